"""The declared prior of the real columns, prepared for many points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from bayesrbf.numerics.mixture.gaussian import LOG_2PI
from bayesrbf.numerics.mixture.parts.real_columns import Factors
from bayesrbf.numerics.mixture.statistics import Statistics, sum_by_group
from bayesrbf.records import names
from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.priors import MixtureHyperparameters

if TYPE_CHECKING:
    from bayesrbf.numerics.mixture.parts.precision_columns import PrecisionColumns


class NormalPrior:
    """Prior of means and precision factors (module ``mixture_prior``), of any shape.

    ``gamma_powers`` are the powers of ``precision_diagonal``, without and with Jacobian, and
    ``rate`` is that of its gamma distribution.
    """

    def __init__(self, law: PrecisionColumns, hyperparameters: MixtureHyperparameters) -> None:
        self._law, self._specification = law, law.specification
        sizes, d = law.specification.group_sizes, law.n_features
        self._location = hyperparameters.location
        self._kappa = kappa = hyperparameters.mean_precision
        self.rate = 0.5 * law.columns_a_gamma
        shape = self.rate * hyperparameters.degrees_of_freedom + 1
        powers = (shape - 1 + self.rate * sizes)[:, None]
        self.gamma_powers = [powers, powers + 1]
        scales = law.base_scales(hyperparameters)
        self._lower_scales = law.lower_scales(scales)
        self._row_scales = law.row_scales(hyperparameters)
        n_gammas = sizes.size * d // law.columns_a_gamma
        self.constant = n_gammas * float(shape * np.log(self.rate) - gammaln(shape))
        self.constant += 0.5 * law.n_components * d * float(np.log(kappa) - LOG_2PI)
        self.constant -= float(sizes @ np.log(scales).sum(axis=1))
        self.constant -= 0.5 * self._lower_scales.size * LOG_2PI

    def log_density(self, parameters: MixtureParameters, jacobian: bool) -> float:
        """Log density at one point in nats, but for the constant."""
        law, factors = self._law, parameters.precisions_cholesky
        squares, diagonal = law.unit_squares(factors * self._row_scales)
        # Under full covariances the rate is 1/2, as is that of the squares below the diagonal.
        total = float((self.gamma_powers[jacobian] * np.log(diagonal)).sum())
        total -= self.rate * float(squares.sum())
        pull = parameters.means - self._location
        whitened = law.whiten(pull[:, None, :], law.by_component(factors))
        return total - 0.5 * self._kappa * float(np.vdot(whitened, whitened))

    def gradient(
        self,
        values: Mapping[str, np.ndarray],
        parameters: MixtureParameters,
        statistics: Statistics,
        jacobian: bool,
    ) -> dict[str, np.ndarray]:
        """Gradient of log likelihood plus log prior in the coordinates of every variable."""
        law, factors = self._law, parameters.precisions_cholesky
        pull = parameters.means - self._location
        force = statistics.first - self._kappa * pull
        # (S + kappa0 M) L: what pulls a precision factor towards zero.
        scatter = statistics.second + law.outer(pull, self._kappa)
        stress = law.product(sum_by_group(scatter, self._specification), factors)
        by_log = self._by_log(stress, values, factors, statistics)
        by_log += self.gamma_powers[jacobian]
        return {
            names.MEANS: law.precision_times(force, law.by_component(factors)),
            names.PRECISION_DIAGONAL: by_log,
            **law.lower_gradient(stress, values, self._lower_scales),
        }

    def _by_log(
        self,
        stress: Factors,
        values: Mapping[str, np.ndarray],
        factors: Factors,
        statistics: Statistics,
    ) -> Float[np.ndarray, "group gamma"]:
        """Gradient in log ``precision_diagonal``, powers aside; dL_ii / d log d_i = L_ii / 2."""
        law = self._law
        diagonal = values[names.PRECISION_DIAGONAL].reshape(len(factors), -1)
        counts = sum_by_group(statistics.counts, self._specification)[:, None]
        squares = law.pooled(law.diagonal(stress) * law.diagonal(factors))
        return self.rate * (counts - diagonal) - 0.5 * squares
