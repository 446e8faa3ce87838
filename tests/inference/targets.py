"""Log posteriors whose every moment is known."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln, polygamma
from scipy.stats import multivariate_t

from bayesrbf.base.log_posterior import LogPosterior
from bayesrbf.base.rows import Variable


class Target(LogPosterior):
    """What the targets share: one identity variable and no components."""

    variables: tuple[Variable, ...] = ()
    scales = np.ones(1)

    def __init__(self, dimension: int = 1) -> None:
        self.scales = np.ones(dimension)
        self.variables = (Variable("v", ("coordinate",), (dimension,), "identity"),)

    def pointwise(self, theta):
        return np.array([self.value_and_gradient(theta, jacobian=False)[0], -1.0])


class Gaussian(Target):
    """A correlated normal whose coordinates differ in size by 1e8."""

    def __init__(self, dimension: int = 5, seed: int = 0) -> None:
        super().__init__(dimension)
        rng = np.random.default_rng(seed)
        root = rng.normal(size=(dimension, dimension)) + 2 * np.eye(dimension)
        self.scales = 10.0 ** np.linspace(-4, 4, dimension)
        self.mean = self.scales * rng.normal(size=dimension)
        self.covariance = np.outer(self.scales, self.scales) * (root @ root.T)
        scaled = np.linalg.inv(root @ root.T)
        self.precision = scaled / np.outer(self.scales, self.scales)

    def value_and_gradient(self, theta, jacobian=True):
        pull = self.precision @ (theta - self.mean)
        return float(-0.5 * (theta - self.mean) @ pull), -pull


class LogGamma(Target):
    """Independent Gamma variables in log coordinates."""

    def __init__(self, shape: float = 4.0, rate: float = 2.0, dimension: int = 2) -> None:
        super().__init__(dimension)
        self.shape, self.rate = shape, rate
        self.variables = (Variable("v", ("coordinate",), (dimension,), "log"),)
        self.mean = np.full(dimension, digamma(shape) - np.log(rate))
        self.covariance = polygamma(1, shape) * np.eye(dimension)

    def value_and_gradient(self, theta, jacobian=True):
        a = self.shape if jacobian else self.shape - 1
        v = np.exp(theta)
        constant = self.dimension * (self.shape * np.log(self.rate) - gammaln(self.shape))
        return float(np.sum(a * theta - self.rate * v) + constant), a - self.rate * v


class HeavyTailed(Target):
    """A multivariate Student t: no Gaussian covers its tails."""

    def __init__(self, freedom: float = 2.0, dimension: int = 5) -> None:
        super().__init__(dimension)
        self.freedom = freedom
        self.density = multivariate_t(np.zeros(dimension), np.eye(dimension), df=freedom)

    def value_and_gradient(self, theta, jacobian=True):
        square = theta @ theta
        slope = -(self.freedom + self.dimension) / (self.freedom + square)
        return float(self.density.logpdf(theta)), slope * theta


class Saddle(Target):
    """A double well, -(x^2 - 1)^2, beside a normal: the origin curves upwards in x."""

    def __init__(self) -> None:
        super().__init__(2)

    def value_and_gradient(self, theta, jacobian=True):
        x, y = theta
        value = -((x**2 - 1) ** 2) - 0.5 * y**2
        return float(value), np.array([-4 * x * (x**2 - 1), -y])


class Mixture(Target):
    """Weights and means of unit normals over fixed rows; two classes of components.

    Coordinates: a simplex of three weights for class 0, one of two for class 1,
    then the five means; every component is exchangeable within its class.
    """

    component_class = np.array([0, 0, 0, 1, 1])
    deterministic_variables = (Variable("weights", ("mixture_component",), (5,), "simplex"),)

    def __init__(self, seed: int = 0, n: int = 60) -> None:
        super().__init__(3 - 1 + 2 - 1 + 5)
        rng = np.random.default_rng(seed)
        self.centres = np.array([-4.0, 0.0, 4.0, -2.0, 3.0])
        self.labels = rng.integers(2, size=n)
        members = [np.flatnonzero(self.component_class == c) for c in (0, 1)]
        self.rows = np.array([self.centres[rng.choice(members[c])] for c in self.labels])
        self.rows += rng.normal(size=n) * 0.7
        self.variables = (
            Variable("weights_0", ("mixture_component_0",), (3,), "simplex"),
            Variable("weights_1", ("mixture_component_1",), (2,), "simplex"),
            Variable("means", ("mixture_component",), (5,), "identity"),
        )

    @staticmethod
    def _full(t):
        return np.concatenate([t, -np.sum(t, axis=-1, keepdims=True)], axis=-1)

    def _log_weights(self, thetas):
        parts = [self._full(thetas[..., :2]), self._full(thetas[..., 2:3])]
        return np.concatenate(
            [p - np.logaddexp.reduce(p, axis=-1, keepdims=True) for p in parts], axis=-1
        )

    def component_log_joint(self, theta):
        squares = (self.rows[:, None] - theta[3:]) ** 2
        return self._log_weights(theta) - 0.5 * squares

    def _responsibilities(self, theta):
        own = self.component_class == self.labels[:, None]
        joint = np.where(own, self.component_log_joint(theta), -np.inf)
        total = np.logaddexp.reduce(joint, axis=1)
        return total, np.exp(joint - total[:, None])

    def pointwise(self, theta):
        return self._responsibilities(theta)[0]

    def value_and_gradient(self, theta, jacobian=True):
        total, r = self._responsibilities(theta)
        log_w = self._log_weights(theta)
        value = (
            total.sum() + (1.5 if jacobian else 0.5) * log_w.sum() - 0.02 * theta[3:] @ theta[3:]
        )
        counts = r.sum(axis=0) + (1.5 if jacobian else 0.5)
        slopes = []
        for c, part in ((0, slice(0, 3)), (1, slice(3, 5))):
            full = counts[part] - counts[part].sum() * np.exp(log_w[part])
            assert self.component_class[part.start] == c
            slopes.append(full[:-1] - full[-1])
        means = np.sum(r * (self.rows[:, None] - theta[3:]), axis=0) - 0.04 * theta[3:]
        return float(value), np.concatenate([*slopes, means])

    def constrained(self, thetas):
        weights = np.exp(self._log_weights(thetas))
        return {
            "weights_0": weights[..., :3],
            "weights_1": weights[..., 3:],
            "means": thetas[..., 3:],
        }

    def deterministic(self, thetas):
        return {"weights": np.exp(self._log_weights(thetas))}

    def permute(self, theta, order):
        first, second = self._full(theta[:2])[order[:3]], self._full(theta[2:3])[order[3:] - 3]
        return np.concatenate([first[:-1], second[:-1], theta[3:][order]])

    def class_log_joint(self, theta):
        joint = self.component_log_joint(theta)
        return np.stack(
            [np.logaddexp.reduce(joint[:, self.component_class == c], axis=1) for c in (0, 1)],
            axis=1,
        )

    def start(self):
        return np.concatenate([np.zeros(3), self.centres])
