"""The order of columns and classes in which a table is fitted, whatever order it came in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Int


@dataclass(frozen=True)
class Order:
    """Another order of a table: the old position of each real and categorical column and class."""

    features: Int[np.ndarray, " feature"]
    categories: Int[np.ndarray, " categorical"]
    classes: Int[np.ndarray, " label"]

    @cached_property
    def inverse(self) -> Order:
        """The order that leads back."""
        return Order(np.argsort(self.features), np.argsort(self.categories), self.new_codes)

    @cached_property
    def new_codes(self) -> Int[np.ndarray, " label"]:
        """Code that each class goes to."""
        return np.argsort(self.classes)

    @cached_property
    def of_one_class(self) -> Order:
        """The same order of columns where all rows belong to one class."""
        return replace(self, classes=np.zeros(1, dtype=np.intp))

    def then(self, following: Order) -> Order:
        """Both orders as one: this one first, then one of what it leads to."""
        return Order(
            self.features[following.features],
            self.categories[following.categories],
            self.classes[following.classes],
        )

    def coordinates(self, levels: tuple[int, ...]) -> Int[np.ndarray, " coordinate"]:
        """Old position of each coordinate of a point: reals, then indicators of levels.

        ``levels`` are the numbers of levels in the old order; levels of a column stay in theirs.
        """
        edges = self.features.size + np.cumsum([0, *levels])
        parts = [np.arange(edges[j], edges[j + 1]) for j in self.categories]
        return np.concatenate([self.features, *parts])

    def labels(self, codes: Int[np.ndarray, " obs"]) -> Int[np.ndarray, " obs"]:
        """Class codes in this order; -1, where a label is hidden, stays."""
        return np.append(self.new_codes, -1)[codes]
