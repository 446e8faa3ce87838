r"""The law of a row's missing cells given its observed ones: a mixture again.

Given component k the missing reals are normal and the other missing cells independent, and

.. math:: p(x_m | x_o) = \sum_k p(k | x_o) \, p(x_m | x_o, k).

Under several points s of the parameters it is the mean of their laws, a mixture of all their
components, of which that of point s and component k has the share :math:`p_s(k | x_o) / S`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_softmax, logsumexp

from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.posterior.cell_laws import CellLaw, RealLaws
from bayesrbf.records.mixture import Observations


@dataclass(frozen=True)
class ConditionalLaw:
    """Laws of the missing cells of rows, in the units of a law that they are given in."""

    rows: Observations
    law: CellLaw
    """Its components are those of all points, point by point."""
    n_points: int = 1

    @cached_property
    def log_shares(self) -> Float[np.ndarray, "obs component"]:
        """Log responsibilities of all components given the observed cells."""
        log_joint = self._by_point(self.rows)
        shares = log_softmax(log_joint, axis=2) - np.log(self.n_points)
        return shares.reshape(len(shares), -1)

    @cached_property
    def shares(self) -> Float[np.ndarray, "obs component"]:
        """Responsibilities of all components given the observed cells."""
        return np.exp(self.log_shares)

    def mean(self) -> Float[np.ndarray, "obs feature"]:
        """Means of the missing reals in the user's units; NaN elsewhere."""
        return self._of_reals(lambda laws: laws.mean())

    def sd(self) -> Float[np.ndarray, "obs feature"]:
        """Standard deviations of the missing reals in the user's units; NaN elsewhere."""
        return self._of_reals(lambda laws: laws.sd())

    def quantile(self, share: float) -> Float[np.ndarray, "obs feature"]:
        """Quantiles of the missing reals in the user's units; NaN elsewhere."""
        return self._of_reals(lambda laws: laws.quantile(share))

    def levels(self, category: int) -> Float[np.ndarray, "obs level"]:
        """Probabilities of the levels of a category, as if its cells were all missing."""
        return self.shares @ self.law.parameters.category_probabilities[category]

    def log_density(self, whole: Observations) -> Float[np.ndarray, " obs"]:
        """Log density of cells, ``log p(x_o, x_m) - log p(x_o)``, in the units of the law.

        The rows given are those here, with missing cells filled; those that still are missing are
        summed out.
        """
        log_whole = logsumexp(self._by_point(whole), axis=2)
        log_given = logsumexp(self._by_point(self.rows), axis=2)
        # Every point divides by its own p(given) before the mean over points is taken: a mixture of
        # conditionals, not the conditional of a mixture.
        log_density: Float[np.ndarray, " obs"] = logsumexp(log_whole - log_given, axis=1)
        return log_density - np.log(self.n_points)

    def _by_point(self, rows: Observations) -> Float[np.ndarray, "obs point component"]:
        """Log joint of rows and components, apart for every point."""
        log_joint = self.law.log_joint(rows.unlabelled())
        return log_joint.reshape(rows.n_obs, self.n_points, -1)

    def reals(self) -> Iterator[tuple[Int[np.ndarray, " row"], RealLaws]]:
        """Laws of the missing reals, some rows at a time; those of other cells mean nothing."""
        law, real = self.law, self.rows.real
        reals = laws_of(law.specification).reals
        for block in reals.conditionals(real, law.parameters):
            hole = np.isnan(real[block.rows])
            # The law of an observed cell is not read; its variance is 0, and 1 divides safely.
            sds = np.sqrt(np.where(hole[:, None], block.variances, 1.0))
            yield (
                block.rows,
                RealLaws(block.means, sds, self.log_shares[block.rows, :, None], law),
            )

    def _of_reals(
        self, of: Callable[[RealLaws], Float[np.ndarray, "row feature"]]
    ) -> Float[np.ndarray, "obs feature"]:
        """A figure of the missing reals."""
        real = self.rows.real
        figures = np.full_like(real, np.nan)
        for rows, laws in self.reals():
            figures[rows] = np.where(np.isnan(real[rows]), of(laws), np.nan)
        return figures
