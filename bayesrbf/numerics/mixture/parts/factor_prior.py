r"""The declared prior of factor-analytic columns, prepared for many points.

.. math::
   u_i \sim \mathrm{Gamma}(\nu_0/2 + 1,\ 1/2), \quad \psi_i = b_i^2 / u_i, \quad
   B_{ij} \sim N(0, 1), \quad \mu_k \sim N(m_0, \Psi_{g(k)} / \kappa_0)

The gradient of the rows comes from the moments of (x - mu, f, 1) of every column, by Fisher's
identity: given the factors a cell is normal about :math:`\mu_i + \lambda_i'f`. With
:math:`\lambda_i = \sqrt{\psi_i} B_i`, a step of log u_i changes both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln

from bayesrbf.numerics.mixture.gaussian import LOG_2PI
from bayesrbf.numerics.mixture.parts.factor_precisions import lower_places
from bayesrbf.numerics.mixture.statistics import Statistics, sum_by_group
from bayesrbf.records import names
from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.priors import MixtureHyperparameters

if TYPE_CHECKING:
    from bayesrbf.numerics.mixture.parts.factor_covariances import FactorCovariances


class FactorPrior:
    """Prior of means, uniquenesses and loadings.

    ``gamma_powers`` are the powers of ``precision_diagonal``, without and with Jacobian, and
    ``rate`` is that of its gamma distribution.
    """

    rate = 0.5

    def __init__(self, law: FactorCovariances, hyperparameters: MixtureHyperparameters) -> None:
        self._law, self._specification = law, law.specification
        sizes, d = law.specification.group_sizes, law.n_features
        self._location, self._kappa = hyperparameters.location, hyperparameters.mean_precision
        freedom = hyperparameters.degrees_of_freedom
        powers = (0.5 * (freedom + sizes))[:, None]
        self.gamma_powers = [powers, powers + 1]
        self._scales = law.base_scales(hyperparameters)
        self._places = lower_places(d, law.rank)
        shape = 0.5 * freedom + 1
        self.constant = sizes.size * d * float(shape * np.log(self.rate) - gammaln(shape))
        self.constant += 0.5 * law.n_components * d * float(np.log(self._kappa) - LOG_2PI)
        self.constant -= float(sizes @ np.log(self._scales).sum(axis=1))
        entries = sizes.size * self._places[0].size
        self.constant -= 0.5 * entries * LOG_2PI

    def log_density(self, parameters: MixtureParameters, jacobian: bool) -> float:
        """Log density at one point in nats, but for the constant; the same in every rotation."""
        factors = parameters.precisions_cholesky[:, :, 0]
        squares = (factors[:, :, 0] * self._scales) ** 2
        total = float((self.gamma_powers[jacobian] * np.log(squares)).sum())
        total -= self.rate * float(squares.sum())
        loadings = factors[:, :, 1:] / factors[:, :, :1]
        total -= 0.5 * float(np.vdot(loadings, loadings))
        pull = (parameters.means - self._location) * self._law.by_component(factors)[:, :, 0]
        return total - 0.5 * self._kappa * float(np.vdot(pull, pull))

    def gradient(
        self,
        values: Mapping[str, np.ndarray],
        parameters: MixtureParameters,
        statistics: Statistics,
        jacobian: bool,
    ) -> dict[str, np.ndarray]:
        """Gradient of log likelihood plus log prior in the coordinates of every variable."""
        factors = parameters.precisions_cholesky[:, :, 0]
        roots = factors[:, :, 0]
        loadings = factors[:, :, 1:] / roots[:, :, None]
        own, own_roots = self._law.by_component(loadings), self._law.by_component(roots)
        pull = parameters.means - self._location
        # Moments of ((x - mu) / sqrt(psi), f, 1): residuals are their first less B times the rest.
        second, totals = statistics.second, statistics.second[..., 1:-1, -1]
        residuals = statistics.first * own_roots - (totals * own).sum(axis=-1)
        forces = own_roots * (residuals - self._kappa * pull * own_roots)
        sums = sum_by_group(second, self._specification)
        cross = sums[..., 1:-1, 0] * roots[..., None]
        told = (sums[..., 1:-1, 1:-1] @ loadings[..., None])[..., 0]
        squares = sums[..., 0, 0] * roots**2 - (cross * loadings).sum(axis=-1)
        squares += sum_by_group(self._kappa * (pull * own_roots) ** 2, self._specification)
        by_log = 0.5 * (sums[..., -1, -1] - squares) - self.rate * (roots * self._scales) ** 2
        columns, places = self._places
        by_loading = cross - told - loadings
        return {
            names.MEANS: forces,
            names.PRECISION_DIAGONAL: by_log + self.gamma_powers[jacobian],
            names.LOADINGS: by_loading[:, columns, places],
        }
