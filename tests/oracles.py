"""Brute-force oracle of the mixture's log posterior: rows with 50 digits, priors of SciPy.

Nothing of the package but its records is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

from bayesrbf.base.priors import MixtureHyperparameters
from bayesrbf.base.rows import MixtureSpecification, Observations
from tests.precise import PreciseMixture

Point = Mapping[str, np.ndarray]
"""Constrained values of the free variables, by name."""


@dataclass(frozen=True)
class MixtureOracle:
    """Log posterior of a mixture given rows in the user's units."""

    observations: Observations
    specification: MixtureSpecification
    hyperparameters: MixtureHyperparameters

    def log_posterior(self, point: Point) -> float:
        """Density over the constrained values: no Jacobian."""
        weighted = self.observations.weights * self.pointwise(point)
        return float(weighted.sum() + self.log_prior(point))

    def pointwise(self, point: Point) -> np.ndarray:
        """Unweighted log density of every row."""
        exact = PreciseMixture(self.specification, self.hyperparameters, point)
        return np.array([float(value) for value in exact.log_density(self.observations)])

    def groups(self) -> list[list[int]]:
        """Components under each covariance, told from the words of the design."""
        specification = self.specification
        classes = specification.component_class
        every = list(range(len(classes)))
        if specification.shared_covariance:
            return [every]
        if specification.covariance_type == "tied":
            return [[k for k in every if classes[k] == c] for c in range(max(classes) + 1)]
        return [[k] for k in every]

    def precision(self, point: Point, k: int) -> np.ndarray:
        """P = L0 A A' L0' of one component."""
        prior, d = self.hyperparameters, self.specification.n_features
        groups = self.groups()
        g = next(index for index, group in enumerate(groups) if k in group)
        shared_by_all = self.specification.shared_covariance or (
            self.specification.covariance_type == "tied" and len(groups) == 1
        )

        def of_group(name: str) -> np.ndarray:
            return point[name] if shared_by_all else point[name][g]

        a = np.diag(np.sqrt(np.broadcast_to(of_group("precision_diagonal"), d)))
        if "precision_lower" in point:
            a[np.tril_indices(d, -1)] = of_group("precision_lower")
        strength = prior.degrees_of_freedom + len(groups[g])
        l0 = np.linalg.cholesky(np.linalg.inv(strength * np.diag(prior.scale**2)))
        return np.asarray(l0 @ a @ a.T @ l0.T)

    def log_prior(self, point: Point) -> float:
        """SciPy's log density of every free variable."""
        return float(sum(np.sum(term) for term in self._log_prior_terms(point)))

    def _log_prior_terms(self, point: Point) -> Iterable[float]:
        prior, specification = self.hyperparameters, self.specification
        d, freedom = specification.n_features, prior.degrees_of_freedom
        per_d = d if specification.covariance_type == "spherical" else 1
        for name, value in point.items():
            if name == "class_probabilities":
                yield dirichlet(value, np.full(value.size, prior.class_concentration))
            elif name.startswith("weights"):
                yield dirichlet(value, np.full(value.size, prior.weight_concentration))
            elif name.startswith("probability_"):
                concentration = prior.category_concentrations[int(name.split("_")[1])]
                yield from (dirichlet(row, concentration) for row in value)
            elif name == "precision_diagonal":
                law = stats.gamma(per_d * freedom / 2 + 1, scale=2 / per_d)
                yield law.logpdf(value).sum()
            elif name == "precision_lower":
                yield stats.norm(0, 1).logpdf(value).sum()
            elif name == "means":
                for k, mean in enumerate(value):
                    covariance = np.linalg.inv(prior.mean_precision * self.precision(point, k))
                    yield stats.multivariate_normal(prior.location, covariance).logpdf(mean)
            else:
                raise KeyError(f"no prior is known for {name}")


def dirichlet(value: np.ndarray, concentration: np.ndarray) -> float:
    """SciPy's Dirichlet, given a point whose sum is one to the last digit."""
    return float(stats.dirichlet(concentration).logpdf(value / value.sum()))


def constrain(name: str, unconstrained: np.ndarray) -> np.ndarray:
    """Value of a free variable at given coordinates."""
    if name.startswith(("class_probabilities", "weights", "probability_")):
        last = -unconstrained.sum(-1, keepdims=True)
        exponential = np.exp(np.concatenate([unconstrained, last], -1))
        return np.asarray(exponential / exponential.sum(-1, keepdims=True))
    return np.exp(unconstrained) if name == "precision_diagonal" else unconstrained


def log_jacobian(name: str, value: np.ndarray) -> float:
    """Log determinant of :func:`constrain`, at its constrained value."""
    if name.startswith(("class_probabilities", "weights", "probability_")):
        levels = value.shape[-1]
        return float(np.log(value).sum() + np.log(levels) * value.size / levels)
    return float(np.log(value).sum()) if name == "precision_diagonal" else 0.0
