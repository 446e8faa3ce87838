"""A law of further columns, and the door by which it enters the mixture."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import singledispatch

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.records.specification import FurtherColumns, Variable

Cells = Float[np.ndarray, "row column"]
"""Cells of the law's columns, NaN where missing."""
Values = Mapping[str, np.ndarray]
"""Constrained values of the law's variables by name; the component is the first axis of each."""


class ColumnLaw(ABC):
    r"""Law of some columns given the component, :math:`\prod_n \prod_k p(x_n | k)^{z_{nk}}`.

    ``variables`` are those of the declared graph, in its order; the first axis of each is the
    component. Missing cells are summed out, and columns are independent given the component.
    """

    variables: tuple[Variable, ...]

    @abstractmethod
    def log_density(self, cells: Cells, values: Values) -> Float[np.ndarray, "row component"]:
        """Log density in nats of the observed cells of every row under every component."""

    @abstractmethod
    def statistics(
        self, cells: Cells, weights: Float[np.ndarray, "row component"]
    ) -> Float[np.ndarray, "component *statistic"]:
        """Statistics of the rows for mode, gradient and draw: linear in weights of any sign."""

    @abstractmethod
    def log_prior(self, values: Values) -> float:
        """Log density of the prior in nats, without Jacobian."""

    @abstractmethod
    def gradient(
        self, values: Values, statistics: Float[np.ndarray, "component *statistic"]
    ) -> dict[str, np.ndarray]:
        """Gradient of expected log density plus log prior in the constrained values."""

    @abstractmethod
    def mode(
        self, values: Values, statistics: Float[np.ndarray, "component *statistic"]
    ) -> dict[str, np.ndarray]:
        """Where expected log density plus log prior is largest, or larger than at the values."""

    @abstractmethod
    def prior_mode(self) -> dict[str, np.ndarray]:
        """Where components begin."""

    @abstractmethod
    def moments(self, values: Values) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance (component, column) of a missing cell."""

    @abstractmethod
    def sample(
        self, components: Int[np.ndarray, " row"], values: Values, rng: np.random.Generator
    ) -> Cells:
        """Rows drawn given their components."""

    def draw(
        self, statistics: Float[np.ndarray, "component *statistic"], rng: np.random.Generator
    ) -> dict[str, np.ndarray]:
        """An exact draw of the values given rows whose components are known, if there is one."""
        raise NotImplementedError

    def check_conjugate(self) -> None:
        """ValueError if the law has no :meth:`draw`."""
        if type(self).draw is ColumnLaw.draw:
            raise ValueError(
                "Gibbs sampling needs laws with conjugate priors, which "
                f"{type(self).__name__} does not have: use inference='nuts'."
            )

    def embedding(
        self, cells: Cells, weights: Float[np.ndarray, " row"]
    ) -> Float[np.ndarray, "row coordinate"]:
        """Rows as points for the first clusters: standardised cells, the mean where missing."""
        known = weights[:, None] * ~np.isnan(cells)
        totals = np.maximum(known.sum(axis=0), np.finfo(float).tiny)
        centred = cells - (known * np.nan_to_num(cells)).sum(axis=0) / totals
        scales = np.sqrt((known * np.nan_to_num(centred) ** 2).sum(axis=0) / totals)
        return np.nan_to_num(centred) / np.where(scales > 0, scales, 1.0)

    def conditional(
        self, responsibilities: Float[np.ndarray, "row component"], values: Values
    ) -> tuple[Cells, Cells]:
        """Mean and variance of missing cells given the components' shares in their rows."""
        means, variances = self.moments(values)
        mean = responsibilities @ means
        return mean, responsibilities @ (variances + means**2) - mean**2


@singledispatch
def column_law(record: FurtherColumns, n_components: int) -> ColumnLaw:
    """The law that is registered under the record's class."""
    raise TypeError(
        f"{type(record).__name__} has no law in the numerics: register a ColumnLaw that is made "
        "from the record and a number of components, by column_law.register."
    )
