r"""The declared prior of a mixture: log density, and gradient beside that of the rows.

.. math::
   d_i &\sim \mathrm{Gamma}(\nu_0/2 + 1,\ 1/2), \quad A_{ij} \sim N(0, 1), \\
   \mu_k &\sim N(m_0, (\kappa_0 P)^{-1}), \quad
   w, \pi, \theta \sim \mathrm{Dirichlet}(\alpha)

and for spherical covariances one :math:`d \sim \mathrm{Gamma}(D\nu_0/2 + 1,\ D/2)`. The means'
normaliser, with :math:`\log L_{ii} = \tfrac12 \log d_i - \log s_i`, joins the gamma's powers:
with G means under a factor L

.. math::
   \log p = \mathrm{const} + \sum (\alpha - 1) \log p
   + \sum \big(\tfrac{\nu_0 + G}{2} \log d - \tfrac{d}{2}\big)
   - \tfrac12 \sum A_{ij}^2 - \tfrac{\kappa_0}{2} \sum_k |L'(\mu_k - m_0)|^2,

and the log Jacobian of the coordinates raises the powers of every p and d by one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from bayesrbf.numerics.coordinates import Simplices, safe_log, slices
from bayesrbf.numerics.mixture.gaussian import LOG_2PI
from bayesrbf.numerics.mixture.mixture_structure import free_variables, lower_entries
from bayesrbf.numerics.mixture.mixture_variables import base_scales, lower_places
from bayesrbf.numerics.mixture.statistics import Statistics, sum_by_class, sum_by_group
from bayesrbf.records import names
from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification


class DeclaredPrior:
    """The declared prior of one mixture, prepared for many points.

    Parameters
    ----------
    hyperparameters : MixtureHyperparameters
        Resolved prior, in the units of the parameters.
    specification : MixtureSpecification
        Structure of the mixture.

    Attributes
    ----------
    constant : float
        What no point changes, without Jacobian.
    powers : list of ndarray of shape (n_entries,)
        Powers of the probabilities, without and with Jacobian.
    gamma_powers : list of ndarray of shape (n_groups, 1)
        Powers of ``precision_diagonal``, without and with Jacobian.
    rate : float
        Rate of its gamma distribution.
    """

    def __init__(
        self, hyperparameters: MixtureHyperparameters, specification: MixtureSpecification
    ) -> None:
        self._hyperparameters = hyperparameters
        self._specification = specification
        variables = free_variables(specification)
        self._simplices = Simplices.among(variables)
        parts = enumerate(specification.class_slices)
        weights = {names.class_weights(c, specification.n_classes): part for c, part in parts}
        self._weights = {name: weights[name] for name in self._simplices.names if name in weights}
        self._places = {variable.name: place for variable, place in slices(variables)}
        self._dimension = sum(variable.size for variable in variables)
        alphas = _concentrations(hyperparameters, specification)
        # With the log Jacobian every power is one higher: [without, with].
        self.powers = [self._simplices.entries(alphas) + step for step in (-1, 0)]
        self.constant = sum(
            float((gammaln(alpha.sum(axis=-1)) - gammaln(alpha).sum(axis=-1)).sum())
            for alpha in alphas.values()
        )
        self.rate, self.gamma_powers = 0.0, [np.zeros((specification.group_sizes.size, 1))] * 2
        if specification.n_features:
            self._prepare_reals()

    def _prepare_reals(self) -> None:
        """What the blocks of real columns need of hyperparameters and structure."""
        hyperparameters, specification = self._hyperparameters, self._specification
        sizes, d = specification.group_sizes, specification.n_features
        n_means, kappa = specification.n_components * d, hyperparameters.mean_precision
        self._copies = d if specification.shape == "spherical" else 1
        rate = 0.5 * self._copies
        shape = rate * hyperparameters.degrees_of_freedom + 1
        n_gammas = sizes.size * d // self._copies
        powers = (shape - 1 + rate * sizes)[:, None]
        self.rate, self.gamma_powers = rate, [powers, powers + 1]
        self.constant += n_gammas * float(shape * np.log(rate) - gammaln(shape))
        self.constant += 0.5 * n_means * float(np.log(kappa) - LOG_2PI)
        self._scales = scales = base_scales(hyperparameters, specification)
        self.constant -= float(sizes @ np.log(scales).sum(axis=1))
        untied = sizes.size == specification.n_components
        self._group = slice(None) if untied else specification.covariance_group
        if specification.shape == "full":
            rows, _ = lower_entries(d)
            self._lower, self._lower_scales = lower_places(d), scales[:, rows]
            self.constant -= 0.5 * self._lower_scales.size * LOG_2PI

    def log_density(self, parameters: MixtureParameters, jacobian: bool = False) -> float:
        """Log density at one point.

        Parameters
        ----------
        parameters : MixtureParameters
            The point.
        jacobian : bool
            Whether to add the log determinant of the transforms.

        Returns
        -------
        float
            Log density in nats.
        """
        total = self.constant + (self._simplices.log_sizes if jacobian else 0.0)
        total += float(self.powers[jacobian] @ safe_log(self._probabilities(parameters)))
        if self._specification.n_features == 0:
            return total
        squares, diagonal = self._unit_squares(parameters.precisions_cholesky)
        # Under full covariances the rate is 1/2, as is that of the squares below the diagonal.
        total += float((self.gamma_powers[jacobian] * np.log(diagonal)).sum())
        total -= self.rate * float(squares.sum())
        pull = parameters.means - self._hyperparameters.location
        factors = parameters.precisions_cholesky[self._group]
        whitened = factors * pull if factors.ndim == 2 else pull[:, None, :] @ factors
        square = float(np.vdot(whitened, whitened))
        return total - 0.5 * self._hyperparameters.mean_precision * square

    def _probabilities(self, parameters: MixtureParameters) -> Float[np.ndarray, " entry"]:
        """Entries of all simplices."""
        values = {name: parameters.weights[part] for name, part in self._weights.items()}
        values[names.CLASS_PROBABILITIES] = parameters.class_probabilities
        for index, probabilities in enumerate(parameters.category_probabilities):
            values[names.category_probability(index)] = probabilities
        return self._simplices.entries(values)

    def _unit_squares(self, factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Squares of the entries of A, and those on its diagonal, ``precision_diagonal``."""
        if factors.ndim == 3:
            squares = (factors * self._scales[:, :, None]) ** 2
            return squares, squares.diagonal(0, 1, 2)
        squares = (factors * self._scales) ** 2
        if self._specification.shape == "spherical":
            squares = squares[:, :1]
        return squares, squares

    def gradient(
        self,
        values: Mapping[str, np.ndarray],
        parameters: MixtureParameters,
        statistics: Statistics,
        jacobian: bool = False,
    ) -> Float[np.ndarray, " coordinate"]:
        r"""Gradient of log likelihood plus log prior in unconstrained coordinates.

        The likelihood enters by Fisher's identity: its gradient is that of the
        expected complete-data log likelihood, so it needs only the E-step's
        statistics. For a factor L under n rows and G means,
        :math:`\partial / \partial L = (n + G) L^{-T} - (S + \kappa_0 M) L`.

        Parameters
        ----------
        values : mapping of str to ndarray
            Values of the free variables.
        parameters : MixtureParameters
            The same point as parameters.
        statistics : Statistics
            Statistics of the E-step at ``parameters``.
        jacobian : bool
            Whether to add the gradient of the log determinant of the transforms.

        Returns
        -------
        ndarray of shape (dimension,)
            Gradient, in the order of the free variables.
        """
        result = np.empty(self._dimension)
        counts = self._simplices.entries(self._counts(statistics))
        counts += self.powers[jacobian]
        probabilities = self._simplices.entries(values)
        result[self._simplices.places] = self._simplices.gradient(counts, probabilities)
        if self._specification.n_features:
            pull = parameters.means - self._hyperparameters.location
            force = statistics.first - self._hyperparameters.mean_precision * pull
            by_mean = self._by_mean(force, parameters)
            result[self._places[names.MEANS]] = by_mean.reshape(-1)
            stress = self._stress(pull, parameters, statistics)
            by_log = self._by_log(stress, values, parameters, statistics)
            by_log += self.gamma_powers[jacobian]
            result[self._places[names.PRECISION_DIAGONAL]] = by_log.reshape(-1)
        if names.PRECISION_LOWER in values:
            # L^-T is upper triangular: below the diagonal only the scatter pulls.
            by_entry = stress.reshape(len(stress), -1).take(self._lower, axis=1)
            by_entry /= -self._lower_scales
            by_entry -= values[names.PRECISION_LOWER].reshape(by_entry.shape)
            result[self._places[names.PRECISION_LOWER]] = by_entry.reshape(-1)
        return result

    def _counts(self, statistics: Statistics) -> dict[str, np.ndarray]:
        """Expected counts behind every simplex."""
        counts = {name: statistics.counts[part] for name, part in self._weights.items()}
        counts[names.CLASS_PROBABILITIES] = sum_by_class(statistics.counts, self._specification)
        for index, category in enumerate(statistics.category_counts):
            counts[names.category_probability(index)] = category
        return counts

    def _by_mean(self, force: np.ndarray, parameters: MixtureParameters) -> np.ndarray:
        """Gradient in the means: P (sum r (x - mu) - kappa0 (mu - m0))."""
        factors = parameters.precisions_cholesky[self._group]
        if factors.ndim == 2:
            return force * factors**2
        return (force[:, None, :] @ factors) @ factors.swapaxes(1, 2)

    def _stress(
        self, pull: np.ndarray, parameters: MixtureParameters, statistics: Statistics
    ) -> np.ndarray:
        """(S + kappa0 M) L: what pulls a precision factor towards zero."""
        kappa, factors = self._hyperparameters.mean_precision, parameters.precisions_cholesky
        if factors.ndim == 2:
            second = statistics.second + kappa * pull**2
            return sum_by_group(second, self._specification) * factors
        second = statistics.second + (kappa * pull)[:, :, None] * pull[:, None, :]
        return sum_by_group(second, self._specification) @ factors

    def _by_log(
        self,
        stress: np.ndarray,
        values: Mapping[str, np.ndarray],
        parameters: MixtureParameters,
        statistics: Statistics,
    ) -> np.ndarray:
        """Gradient in log ``precision_diagonal``, powers aside; dL_ii / d log d_i = L_ii / 2."""
        factors = parameters.precisions_cholesky
        if factors.ndim == 3:
            stress, factors = stress.diagonal(0, 1, 2), factors.diagonal(0, 1, 2)
        diagonal = values[names.PRECISION_DIAGONAL].reshape(len(factors), -1)
        counts = sum_by_group(statistics.counts, self._specification)[:, None]
        squares = stress * factors
        if self._specification.shape == "spherical":
            squares = squares.sum(axis=1, keepdims=True)
        return self.rate * (counts - diagonal) - 0.5 * squares


def _concentrations(
    hyperparameters: MixtureHyperparameters, specification: MixtureSpecification
) -> dict[str, np.ndarray]:
    """Dirichlet parameters of every free simplex, in its variable's shape."""
    given = {
        names.category_probability(index): concentration
        for index, concentration in enumerate(hyperparameters.category_concentrations)
    }
    given[names.CLASS_PROBABILITIES] = np.asarray(hyperparameters.class_concentration)
    weights = np.asarray(hyperparameters.weight_concentration)
    return {
        variable.name: np.broadcast_to(given.get(variable.name, weights), variable.shape)
        for variable in free_variables(specification)
        if variable.transform == "simplex"
    }
