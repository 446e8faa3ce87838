"""Log densities and conditional moments with 50 digits: the formulas in mpmath, term by term.

Nothing of the package but its records is used. Values are those of the free variables of the
declared graph, in the user's units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from mpmath import mp, mpf

from bayesrbf.base.priors import MixtureHyperparameters, PowerTransforms
from bayesrbf.base.rows import MixtureSpecification, Observations

mp.dps = 50

Values = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class PreciseMixture:
    """A mixture at given values; cells of a row come in the user's units, before any transform."""

    specification: MixtureSpecification
    hyperparameters: MixtureHyperparameters
    values: Values
    transforms: PowerTransforms | None = None

    def log_density(self, rows: Observations) -> list[mpf]:
        """Unweighted log density of every row."""
        return [self._row(rows, n) for n in range(rows.n_obs)]

    def conditional_moments(self, rows: Observations) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of every missing real given its row's cells, after any transform."""
        means, variances = np.full((2, *rows.real.shape), np.nan)
        missing = np.isnan(rows.real)
        for n in np.flatnonzero(missing.any(axis=1)):
            real, _ = self._cells(rows, n)
            joint = self._joint(rows, n, real)
            laws = [self._conditional(k, real) for k in range(len(joint))]
            total = sum(joint)
            for i in np.flatnonzero(missing[n]):
                shares = [(p / total, *law[i]) for p, law in zip(joint, laws, strict=True)]
                mean = sum(p * m for p, m, _ in shares)
                means[n, i] = mean
                variances[n, i] = sum(p * (v + (m - mean) ** 2) for p, m, v in shares)
        return means, variances

    def _row(self, rows: Observations, n: int) -> mpf:
        real, change = self._cells(rows, n)
        joint, classes = self._joint(rows, n, real), self.specification.component_class
        told = rows.labels[n]
        return change + mp.log(
            sum(p for p, label in zip(joint, classes, strict=True) if told in (-1, label))
        )

    def _cells(self, rows: Observations, n: int) -> tuple[dict[int, mpf], mpf]:
        """Known reals after any transform, and the logarithm of what the transform stretches."""
        change, real = mpf(0), {}
        for i, cell in enumerate(rows.real[n]):
            if not np.isnan(cell):
                real[i], slope = self._mapped(i, mpf(float(cell)))
                change += slope
        return real, change

    def _joint(self, rows: Observations, n: int, real: dict[int, mpf]) -> list[mpf]:
        """Density of a row's cells with every component."""
        result = []
        for k in range(self.specification.n_components):
            p = self._share(k) * mp.exp(self._normal(k, real))
            for j, code in enumerate(rows.codes[n]):
                if code >= 0:
                    p *= mpf(float(self.values[f"probability_{j}"][k, code]))
            result.append(p)
        return result

    def _share(self, k: int) -> mpf:
        classes = self.specification.component_class
        label = classes[k]
        name = "weights" if max(classes) == 0 else f"weights_{label}"
        prior = self.values["class_probabilities"][label] if max(classes) else 1.0
        within = self.values[name][k - classes.index(label)] if name in self.values else 1.0
        return mpf(float(prior)) * mpf(float(within))

    def _mapped(self, i: int, x: mpf) -> tuple[mpf, mpf]:
        """Yeo and Johnson's transform within the training range, a straight line beyond it."""
        if self.transforms is None:
            return x, mpf(0)
        location, scale, power, low, high = (
            mpf(float(getattr(self.transforms, name)[i]))
            for name in ("location", "scale", "powers", "low", "high")
        )
        t = (x - location) / scale
        h = min(max(t, low), high)
        p = power if h >= 0 else 2 - power
        size = 1 + abs(h)
        grown = mp.log(size) if p == 0 else (size**p - 1) / p
        slope = (power - 1) * mp.sign(h) * mp.log(size)
        return location + scale * (mp.sign(h) * grown + mp.exp(slope) * (t - h)), slope

    def covariance(self, k: int) -> mp.matrix:
        """Covariance of a component."""
        specification, prior = self.specification, self.hyperparameters
        d, group = specification.n_features, int(specification.covariance_group[k])
        members = int(np.sum(specification.covariance_group == group))
        strength = mpf(float(prior.degrees_of_freedom)) + members
        diagonal = self._of_group("precision_diagonal", group)
        u = [mpf(float(x)) for x in np.broadcast_to(diagonal, d)]
        s = [mpf(float(x)) for x in prior.scale]
        a = mp.diag([mp.sqrt(x) for x in u])
        if "precision_lower" in self.values:
            entries = iter(self._of_group("precision_lower", group))
            for i in range(d):
                for j in range(i):
                    a[i, j] = mpf(float(next(entries)))
        inverse = mp.inverse(mp.diag([1 / (mp.sqrt(strength) * x) for x in s]) * a)
        return inverse.T * inverse

    def _of_group(self, name: str, group: int) -> np.ndarray:
        value = self.values[name]
        return value[group] if self.specification.group_dims else value

    def _normal(self, k: int, real: dict[int, mpf]) -> mpf:
        """Log density of the observed cells: a block of the covariance."""
        if not real:
            return mpf(0)
        whole = self._covariances[k]
        block, gap = self._block(whole, list(real)), self._gap(k, real)
        square = (gap.T * mp.lu_solve(block, gap))[0]
        return -(square + mp.log(mp.det(block)) + len(real) * mp.log(2 * mp.pi)) / 2

    def _conditional(self, k: int, real: dict[int, mpf]) -> list[tuple[mpf, mpf]]:
        """Mean and variance of every real given the observed ones."""
        known, whole = list(real), self._covariances[k]
        means = [mpf(float(mean)) for mean in self.values["means"][k]]
        if not known:
            return [(mean, whole[i, i]) for i, mean in enumerate(means)]
        block, gap = self._block(whole, known), self._gap(k, real)
        result = []
        for i, mean in enumerate(means):
            beside = mp.matrix([whole[i, j] for j in known])
            slopes = mp.lu_solve(block, beside)
            result.append((mean + (slopes.T * gap)[0], whole[i, i] - (slopes.T * beside)[0]))
        return result

    @cached_property
    def _covariances(self) -> list[mp.matrix]:
        return [self.covariance(k) for k in range(self.specification.n_components)]

    @staticmethod
    def _block(whole: mp.matrix, known: list[int]) -> mp.matrix:
        return mp.matrix([[whole[i, j] for j in known] for i in known])

    def _gap(self, k: int, real: dict[int, mpf]) -> mp.matrix:
        return mp.matrix([x - mpf(float(self.values["means"][k, i])) for i, x in real.items()])
