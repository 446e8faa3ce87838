"""Members of a stack: what each is before and after it has seen rows in the user's units."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Float

from bayesrbf.estimators.kernel_network.fitted import FittedKernelNetwork
from bayesrbf.estimators.kernel_network.fitting import (
    KernelSettings,
    fit_kernel_rows,
    shared_prior,
)
from bayesrbf.estimators.mixture.fitting import FittedMixture, Solver, fit_rows
from bayesrbf.estimators.stack.training import (
    EM_ITERATIONS,
    EM_STARTS,
    EM_TOL,
    ColumnMap,
    Shape,
    Training,
    Views,
    component_class,
)
from bayesrbf.numerics.discriminative.hybrid_log_posterior import HybridLogPosterior
from bayesrbf.numerics.kernel_network.log_posterior import class_log_probabilities
from bayesrbf.objective import Objective
from bayesrbf.parameters import Observations
from bayesrbf.specification import CovarianceType, MixtureSpecification

Predictor = Callable[[np.ndarray], np.ndarray]

BLEND_ITERATIONS, BLEND_TOL = 20, 1e-4
NETWORK_TOL, NETWORK_ITERATIONS = 1e-3, 500
N_BASIS, N_EXEMPLARS = 250, 2000


@dataclass(frozen=True)
class KernelMember:
    """Recipe of a kernel network.

    Attributes
    ----------
    kernel : {"laplace", "gaussian"}
        Shape of the kernel.
    relevance : float
        How far silent columns are shrunk, from 0 to 1.
    l2 : float
        Precision of the output weights.
    """

    kernel: Literal["laplace", "gaussian"]
    relevance: float
    l2: float

    @property
    def shape(self) -> Shape:
        """Map of the real columns."""
        return "half_rank"

    def fit(self, training: Training) -> FittedKernelNetwork:
        """Fit to training rows.

        Parameters
        ----------
        training : Training
            The rows, and what members share.

        Returns
        -------
        FittedKernelNetwork
            What predicts on mapped rows.
        """
        settings = KernelSettings(
            self.kernel,
            self.relevance,
            self.l2,
            N_BASIS,
            N_EXEMPLARS,
            NETWORK_TOL,
            NETWORK_ITERATIONS,
            training.seed,
        )
        rows = training.mapped(self.shape)
        return fit_kernel_rows(rows, training.cells, training.companion, settings)[0]


@dataclass(frozen=True)
class MixtureMember:
    """Recipe of a class-conditional mixture.

    Attributes
    ----------
    n_components : int
        Most components of a class.
    covariance_type : {"full", "tied", "diag", "spherical"}
        Shape of the covariances.
    tied : bool
        One covariance for all components of all classes.
    objective : Objective
        What is maximised; anything but the likelihood starts at the fit by EM.
    """

    n_components: int
    covariance_type: CovarianceType
    tied: bool
    objective: Objective

    @property
    def shape(self) -> Shape:
        """Map of the real columns."""
        return "power"

    def fit(self, training: Training) -> FittedMixture:
        """Fit to training rows.

        Parameters
        ----------
        training : Training
            The rows, and what members share.

        Returns
        -------
        FittedMixture
            What predicts on mapped rows.
        """
        rows = training.mapped(self.shape)
        specification = MixtureSpecification(
            rows.real.shape[1],
            training.levels,
            component_class(rows, training.n_classes, self.n_components),
            self.covariance_type,
            self.tied,
        )
        blend = self.objective.name != "likelihood"
        solver = Solver(
            1 if blend else EM_STARTS,
            EM_ITERATIONS,
            BLEND_TOL if blend else EM_TOL,
            "squarem",
            training.seed,
            objective=self.objective,
            steps=BLEND_ITERATIONS,
        )
        prior = shared_prior(training.prior, specification)
        return fit_rows(rows, specification, prior, solver)[0]


Member = KernelMember | MixtureMember
_LIKELIHOOD, _BLEND = Objective("likelihood"), Objective("blend", kappa=0.3)

MEMBERS: Final[Mapping[str, Member]] = {
    "K1": KernelMember("laplace", 0.8, 1 / 10),
    "K2": KernelMember("laplace", 0.0, 1 / 30),
    "K3": KernelMember("gaussian", 0.8, 1 / 10),
    "G1": MixtureMember(1, "full", True, _LIKELIHOOD),
    "G2": MixtureMember(3, "full", False, _LIKELIHOOD),
    "B1": MixtureMember(1, "full", True, _BLEND),
    "B2": MixtureMember(3, "full", True, _BLEND),
}
"""Recipes by name; the stack's documentation says what each is."""
DEFAULT: Final = tuple(MEMBERS)
LITE: Final = ("K1", "G2", "B1")


@dataclass(frozen=True)
class FittedMember:
    """A fitted member: from rows in the user's units to class probabilities.

    Attributes
    ----------
    name : str
        Its name in ``MEMBERS``.
    columns : ColumnMap
        Map in front of it.
    model : FittedKernelNetwork or FittedMixture
        What predicts on mapped rows.
    objective : Objective
        What a mixture maximised.
    """

    name: str
    columns: ColumnMap
    model: FittedKernelNetwork | FittedMixture
    objective: Objective

    def class_log_joint(self, views: Views) -> Float[np.ndarray, "obs label"]:
        """Class log joint, or log probabilities, at the fitted point.

        Parameters
        ----------
        views : Views
            Rows.

        Returns
        -------
        ndarray of shape (n_obs, n_classes)
            In nats, up to a constant per row.
        """
        if isinstance(self.model, FittedKernelNetwork):
            return self.model.class_log_joint(views.cells(self.columns, self.model.companion))
        return self.model.class_log_joint(views.mapped(self.columns))

    def log_posterior(self, rows: Observations) -> Any:
        """The log posterior of the member's parameters.

        Parameters
        ----------
        rows : Observations
            Training rows in the user's units.

        Returns
        -------
        LogPosterior
            In the coordinates of the family's graph, on mapped rows.
        """
        mapped = self.columns.forward(rows)
        if isinstance(self.model, FittedKernelNetwork):
            return self.model.log_posterior(mapped)
        model = self.model
        return HybridLogPosterior(
            model.standardise(mapped), model.specification, model.hyperparameters, self.objective
        )

    def point(self, log_posterior: Any) -> Float[np.ndarray, " coordinate"]:
        """The fitted point in the coordinates of the log posterior.

        Parameters
        ----------
        log_posterior : LogPosterior
            What :meth:`log_posterior` gave.

        Returns
        -------
        ndarray of shape (dimension,)
            Unconstrained coordinates.
        """
        if isinstance(self.model, FittedKernelNetwork):
            return self.model.theta
        return log_posterior.pack(self.model.parameters.in_units(self.model.units))

    def predictor(self, log_posterior: Any, rows: Observations) -> Predictor:
        """Prepare rows for the class log joint at many points.

        Parameters
        ----------
        log_posterior : LogPosterior
            What :meth:`log_posterior` gave.
        rows : Observations
            New rows in the user's units.

        Returns
        -------
        callable
            Maps coordinates to the class log joint, in nats.
        """
        mapped = self.columns.forward(rows)
        if isinstance(self.model, FittedKernelNetwork):
            features, n_classes = self.model.features(mapped), self.model.n_classes
            return lambda theta: class_log_probabilities(features, theta, n_classes)
        return log_posterior.predictor(self.model.standardise(mapped))


def fit_members(training: Training, members: Sequence[str]) -> tuple[FittedMember, ...]:
    """Fit members by name.

    Parameters
    ----------
    training : Training
        The rows, and what members share.
    members : sequence of str
        Names in ``MEMBERS``.

    Returns
    -------
    tuple of FittedMember
        In the same order.
    """
    recipes = [(name, MEMBERS[name]) for name in members]
    return tuple(
        FittedMember(
            name,
            training.map(recipe.shape),
            recipe.fit(training),
            recipe.objective if isinstance(recipe, MixtureMember) else _LIKELIHOOD,
        )
        for name, recipe in recipes
    )
