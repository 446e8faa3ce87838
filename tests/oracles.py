"""Brute-force oracle of the mixture's log posterior, in plain NumPy and SciPy.

Nothing of the package but its records is used. Labels and components are
enumerated, missing categories summed level by level, missing real cells either
left out of SciPy's own normal density or integrated on a grid; priors are
``scipy.stats``. Rows are loops: slow, and easy to believe.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.special import logsumexp

from bayesrbf.base.priors import MixtureHyperparameters
from bayesrbf.base.rows import MixtureSpecification, Observations

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

    def pointwise(self, point: Point, *, integrate: bool = False) -> np.ndarray:
        """Unweighted log density of every row."""
        rows = self.observations
        return np.array(
            [
                self.row(point, rows.real[n], rows.codes[n], rows.labels[n], integrate)
                for n in range(rows.n_obs)
            ]
        )

    def row(
        self, point: Point, real: np.ndarray, codes: np.ndarray, label: int, integrate: bool
    ) -> float:
        """Log density of one row: a sum over whatever is hidden."""
        classes = self.specification.component_class
        terms = [
            np.log(self.component_probability(point, k))
            + self.real_log_density(point, k, real, integrate)
            + self.category_log_probability(point, k, codes)
            for k in range(len(classes))
            if label in (-1, classes[k])
        ]
        return float(logsumexp(terms))

    def component_probability(self, point: Point, k: int) -> float:
        classes = self.specification.component_class
        c, first = classes[k], classes.index(classes[k])
        weights = point.get("weights" if max(classes) == 0 else f"weights_{c}", np.ones(1))
        return float(point.get("class_probabilities", np.ones(1))[c] * weights[k - first])

    def real_log_density(self, point: Point, k: int, real: np.ndarray, integrate: bool) -> float:
        """Missing cells integrated numerically, or the sub-block of what is observed."""
        if real.size == 0 or (np.isnan(real).all() and not integrate):
            return 0.0
        mean, covariance = point["means"][k], np.linalg.inv(self.precision(point, k))
        if integrate:
            return float(np.log(integrate_missing(mean, covariance, real)))
        o = ~np.isnan(real)
        law = stats.multivariate_normal(mean[o], covariance[np.ix_(o, o)])
        return float(law.logpdf(real[o]))

    def category_log_probability(self, point: Point, k: int, codes: np.ndarray) -> float:
        """Every completion of the missing categories, added up."""
        tables = [point[f"probability_{j}"][k] for j in range(codes.size)]
        choices = [
            range(table.size) if code < 0 else (code,)
            for table, code in zip(tables, codes, strict=True)
        ]
        total = sum(
            np.prod([table[level] for table, level in zip(tables, levels, strict=True)])
            for levels in itertools.product(*choices)
        )
        return float(np.log(total))

    def groups(self) -> list[list[int]]:
        """Components under each covariance, told from the words of the design."""
        specification = self.specification
        classes = specification.component_class
        every = list(range(len(classes)))
        if specification.tied:
            return [every]
        if specification.covariance_type == "tied":
            return [[k for k in every if classes[k] == c] for c in range(max(classes) + 1)]
        return [[k] for k in every]

    def precision(self, point: Point, k: int) -> np.ndarray:
        """P = L0 A A' L0' of one component."""
        prior, d = self.hyperparameters, self.specification.n_features
        groups = self.groups()
        g = next(index for index, group in enumerate(groups) if k in group)
        shared_by_all = self.specification.tied or (
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


def integrate_missing(mean: np.ndarray, covariance: np.ndarray, real: np.ndarray) -> float:
    """Integral of the joint normal density over the missing cells of one row.

    The trapezoidal rule on 10 standard deviations to each side: its error on a
    normal density falls faster than any power of the step.
    """
    missing = np.flatnonzero(np.isnan(real))
    nodes = {0: 1, 1: 2001, 2: 301, 3: 101}[missing.size]
    deviations = np.sqrt(np.diag(covariance))[missing]
    unit = np.linspace(-10, 10, nodes) if nodes > 1 else np.zeros(1)
    grids = np.meshgrid(*([unit] * missing.size), indexing="ij")
    cells = np.tile(real, (nodes**missing.size, 1))
    for column, deviation, grid in zip(missing, deviations, grids, strict=True):
        cells[:, column] = mean[column] + deviation * grid.ravel()
    volume = np.prod(deviations * 20 / max(nodes - 1, 1))
    return float(stats.multivariate_normal(mean, covariance).pdf(cells).sum() * volume)


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
