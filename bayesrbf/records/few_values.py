"""Real columns of few values, which may stand for categories: codes of levels, grades, counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.records.mixture import Observations
from bayesrbf.records.stored import Requirements, ascending, stored


@stored
class FewValues:
    """Real columns of few values, and their values."""

    features: tuple[int, ...] = ()
    values: tuple[Float[np.ndarray, " _"], ...] = ()
    """In rising order."""

    @property
    def levels(self) -> tuple[int, ...]:
        """Number of values of every column."""
        return tuple(values.size for values in self.values)

    def as_categories(self, rows: Observations) -> Observations:
        """Rows whose columns of few values are the last categories; a new value is missing.

        >>> cells = np.array([[1.0, 0.5], [2.0, np.nan], [9.0, 2.5]])
        >>> no_codes = np.zeros((3, 0), int)
        >>> rows = Observations(cells, no_codes, np.ones(3, int), np.ones(3))
        >>> rows_of_codes = FewValues((0,), (np.array([1.0, 2.0]),)).as_categories(rows)
        >>> rows_of_codes.real.ravel(), rows_of_codes.codes.ravel()
        (array([0.5, nan, 2.5]), array([ 0,  1, -1]))
        """
        codes = [rows.codes]
        for feature, values in zip(self.features, self.values, strict=True):
            same = rows.real[:, [feature]] == values
            codes.append(np.where(same.any(axis=1), same.argmax(axis=1), -1)[:, None])
        real = np.delete(rows.real, list(self.features), axis=1)
        return replace(rows, real=real, codes=np.concatenate(codes, axis=1))

    def places(self, n_real: int, n_categorical: int) -> Int[np.ndarray, " column"]:
        """Where every column, reals then categories, stands among those of :meth:`as_categories`.

        >>> FewValues((0,), (np.arange(3.0),)).places(2, 1)
        array([2, 0, 1])
        """
        reals = [one for one in range(n_real) if one not in self.features]
        order = [*reals, *range(n_real, n_real + n_categorical), *self.features]
        return np.argsort(order)

    def __laws__(self) -> Requirements:
        yield len(self.features) == len(self.values), "values of every column"
        rising = ascending(self.features) and all(map(ascending, self.values))
        yield rising, "values in rising order"
        yield all(values.size > 1 for values in self.values), "values that differ"
