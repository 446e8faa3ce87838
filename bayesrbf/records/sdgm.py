"""Frozen records of sparse discriminative Gaussian mixtures: bases, points, outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.records.order import Order
from bayesrbf.records.priors import PrecisionPrior
from bayesrbf.records.results import Status


@dataclass(frozen=True)
class QuadraticBasis:
    """Monomials of degree at most two: the primal form.

    Attributes
    ----------
    factors : ndarray of shape (n_features, 2)
        Coordinates whose product a feature is; -1 stands for the number 1, so
        that (-1, -1) is the intercept and (-1, i) the coordinate i itself.
    """

    factors: Int[np.ndarray, "feature 2"]

    @property
    def n_features(self) -> int:
        """Number H of features."""
        return self.factors.shape[0]


@dataclass(frozen=True)
class KernelBasis:
    """An intercept and the kernel with some training rows: the dual form.

    Attributes
    ----------
    kernel : str or callable
        ``"polynomial"``, ``"gaussian"``, or a function of two arrays of points
        of shapes (n, d) and (m, d) to kernel values of shape (n, m).
    exemplars : ndarray of shape (n_features - 1, n_coordinates)
        Training rows, in standard units; feature 0 is the intercept.
    """

    kernel: Any
    exemplars: Float[np.ndarray, "exemplar coordinate"]

    @property
    def n_features(self) -> int:
        """Number H of features."""
        return self.exemplars.shape[0] + 1


Basis = QuadraticBasis | KernelBasis


@dataclass(frozen=True)
class CompletedRows:
    """Labelled rows as points: a row with holes is several points, its completions.

    Attributes
    ----------
    points : ndarray of shape (n_points, n_coordinates)
        Completions of all rows, in the user's units, those of one row side by
        side: real columns, then the indicators of all levels.
    starts : ndarray of shape (n_rows,)
        First point of every row.
    allowed : ndarray of shape (n_rows, n_classes)
        The classes that a row may have; all of them where its label is hidden.
    weights : ndarray of shape (n_rows,)
        Factor of each row's log likelihood, at least 0.
    """

    points: Float[np.ndarray, "point coordinate"]
    starts: Int[np.ndarray, " row"]
    allowed: Bool[np.ndarray, "row label"]
    weights: Float[np.ndarray, " row"]

    @cached_property
    def sizes(self) -> Int[np.ndarray, " row"]:
        """Number of completions of every row."""
        return np.diff(self.starts, append=self.points.shape[0])


@dataclass(frozen=True)
class SDGMSpecification:
    r"""Structure of the posterior of the weights.

    .. math:: p(c, m | x) \propto \pi_{cm} \exp(w_{cm}^\top \phi(x)), \quad
        w_h \sim N(0, \alpha_h^{-1})

    Attributes
    ----------
    component_class : ndarray of shape (n_components,)
        Class of every component, non-decreasing.
    proportions : ndarray of shape (n_components,)
        Component probabilities pi: constants of the posterior.
    component : ndarray of shape (n_weights,)
        Component of every weight, non-decreasing.
    feature : ndarray of shape (n_weights,)
        Feature of every weight.
    precisions : ndarray of shape (n_weights,) or PrecisionPrior
        Precisions alpha as constants, or the prior under which they are learned.
    """

    component_class: Int[np.ndarray, " component"]
    proportions: Float[np.ndarray, " component"]
    component: Int[np.ndarray, " weight"]
    feature: Int[np.ndarray, " weight"]
    precisions: Float[np.ndarray, " weight"] | PrecisionPrior

    @property
    def n_components(self) -> int:
        """Number of components of all classes together."""
        return self.component_class.size

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return self.component.size


@dataclass(frozen=True)
class SDGMParameters:
    r"""A point of the model and the spread around it; only active weights are stored.

    .. math:: p(c, m | x) \propto \pi_{cm} \exp(w_{cm}^\top \phi(x))

    Attributes
    ----------
    component_class : ndarray of shape (n_components,)
        Class of every surviving component, non-decreasing.
    proportions : ndarray of shape (n_components,)
        Component probabilities pi, summing to one within each class.
    component : ndarray of shape (n_weights,)
        Component of every active weight, non-decreasing.
    feature : ndarray of shape (n_weights,)
        Feature of every active weight.
    coefficients : ndarray of shape (n_weights,)
        Active weights w at the mode.
    precisions : ndarray of shape (n_weights,)
        Their prior precisions alpha.
    covariance : ndarray of shape (n_weights, n_weights)
        Inverse of the negative Hessian of the log posterior of w at the mode.
    """

    component_class: Int[np.ndarray, " component"]
    proportions: Float[np.ndarray, " component"]
    component: Int[np.ndarray, " weight"]
    feature: Int[np.ndarray, " weight"]
    coefficients: Float[np.ndarray, " weight"]
    precisions: Float[np.ndarray, " weight"]
    covariance: Float[np.ndarray, "weight weight"]

    @property
    def n_components(self) -> int:
        """Number of surviving components of all classes together."""
        return self.component_class.size

    @property
    def n_weights(self) -> int:
        """Number of active weights, intercepts included."""
        return self.coefficients.size

    @property
    def specification(self) -> SDGMSpecification:
        """The posterior of the active weights, precisions as constants."""
        return SDGMSpecification(
            self.component_class, self.proportions, self.component, self.feature, self.precisions
        )

    @cached_property
    def root(self) -> Float[np.ndarray, "weight weight"]:
        """R with ``R R'`` the covariance, the longest axis first, all towards the weights."""
        variances, axes = np.linalg.eigh(self.covariance)
        axes = axes * np.where(self.coefficients @ axes < 0, -1.0, 1.0)
        return (axes * np.sqrt(np.maximum(variances, 0)))[:, ::-1]

    def reordered(self, order: Order) -> SDGMParameters:
        """Put the classes in another order; features keep their numbers.

        Parameters
        ----------
        order : Order
            The order.

        Returns
        -------
        SDGMParameters
            The same point.
        """
        classes = order.new_codes[self.component_class]
        components = np.argsort(classes, kind="stable")
        component = np.argsort(components)[self.component]
        weights = np.argsort(component, kind="stable")
        return SDGMParameters(
            classes[components],
            self.proportions[components],
            component[weights],
            self.feature[weights],
            self.coefficients[weights],
            self.precisions[weights],
            self.covariance[np.ix_(weights, weights)],
        )

    def dense(self, n_features: int) -> Float[np.ndarray, "feature component"]:
        """The weights with their zeros.

        Parameters
        ----------
        n_features : int
            Number of features of the basis.

        Returns
        -------
        ndarray of shape (n_features, n_components)
            One column a component.
        """
        weights = np.zeros((n_features, self.n_components))
        weights[self.feature, self.component] = self.coefficients
        return weights


@dataclass(frozen=True)
class SDGMModes:
    """The modes that restarts found, and how probable each is.

    Attributes
    ----------
    parameters : tuple of SDGMParameters
        Point and spread of every mode, the most probable first.
    probabilities : ndarray of shape (n_modes,)
        Their shares of the evidence, the precisions integrated out; they sum to one.
    """

    parameters: tuple[SDGMParameters, ...]
    probabilities: Float[np.ndarray, " mode"]

    @property
    def best(self) -> SDGMParameters:
        """The most probable mode."""
        return self.parameters[0]

    @property
    def alone(self) -> SDGMModes:
        """The most probable mode, without the others."""
        return SDGMModes(self.parameters[:1], np.ones(1))


@dataclass(frozen=True)
class SDGMTrace:
    """The way of the type-II maximisation, one entry a step.

    Attributes
    ----------
    evidence : ndarray of shape (n_iter,)
        Laplace approximation of the log evidence in nats; while weights are very
        many, of every component with the others held. No ascent is promised:
        the updates of alpha and pi are fixed-point steps.
    n_weights : ndarray of shape (n_iter,)
        Active weights.
    n_components : ndarray of shape (n_iter,)
        Surviving components.
    """

    evidence: Float[np.ndarray, " iteration"]
    n_weights: Int[np.ndarray, " iteration"]
    n_components: Int[np.ndarray, " iteration"]


@dataclass(frozen=True)
class SDGMFit:
    """The modes that restarts found; of the most probable one, how it was reached.

    Attributes
    ----------
    modes : SDGMModes
        Points and spreads.
    trace : SDGMTrace
        Its way.
    status : Status
        How it ended.
    log_posterior : float
        Log density of the active weights given their precisions, at the point.
    restarts : ndarray of shape (n_init,)
        Log evidence that every restart reached.
    n_indefinite : int
        Directions in which the log posterior does not curve downwards at the
        point; their spread is that of the complete-data curvature.
    completion_error : float
        Standard error of the log likelihood by the finite number of
        completions of rows with holes, in nats.
    """

    modes: SDGMModes
    trace: SDGMTrace
    status: Status
    log_posterior: float
    restarts: Float[np.ndarray, " restart"]
    n_indefinite: int
    completion_error: float
