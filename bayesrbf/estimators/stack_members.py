"""Members of a stack: what each is before and after it has seen rows.

Rows come in the user's units. Real columns are standardised and mapped towards a
normal shape in front of every member: half ranks for kernels, Yeo-Johnson's powers
for mixtures. Members that share a map, or the companion of kernels, share its fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Float

from bayesrbf import table
from bayesrbf.estimators.fitting import FittedMixture, Solver, fit_rows
from bayesrbf.estimators.kernel_fitting import (
    FittedKernelNetwork,
    KernelSettings,
    fit_companion,
    fit_kernel_rows,
    shared_prior,
)
from bayesrbf.numerics.column_maps import HalfRankMap, PowerMap, fit_half_rank, fit_power
from bayesrbf.numerics.discriminative import HybridLogPosterior
from bayesrbf.numerics.kernel_network import class_log_probabilities
from bayesrbf.objective import Objective
from bayesrbf.parameters import Observations, Standardisation
from bayesrbf.priors import MixturePrior
from bayesrbf.specification import CovarianceType, MixtureSpecification

Shape = Literal["half_rank", "power"]
Predictor = Callable[[np.ndarray], np.ndarray]

ROWS_PER_COMPONENT = 8
"""Rows of a class that a component needs: a class with fewer gets fewer components."""
EM_TOL, EM_ITERATIONS = 1e-4, 40
MOST_DENSITY_COMPONENTS = 3
BLEND_ITERATIONS = 20
NETWORK_TOL, NETWORK_ITERATIONS = 1e-3, 500
N_BASIS, N_EXEMPLARS = 250, 2000


@dataclass(frozen=True)
class ColumnMap:
    """Real columns towards a normal shape.

    Attributes
    ----------
    units : Standardisation
        Location and scale of the columns.
    shape : HalfRankMap or PowerMap
        The map of the standardised columns.
    """

    units: Standardisation
    shape: HalfRankMap | PowerMap

    @classmethod
    def fit(cls, rows: Observations, shape: Shape) -> ColumnMap:
        """Learn the map from training rows.

        Parameters
        ----------
        rows : Observations
            Rows in the user's units.
        shape : {"half_rank", "power"}
            Kind of map.

        Returns
        -------
        ColumnMap
            The map.
        """
        units = table.standardisation(rows.real, rows.weights)
        fit = fit_half_rank if shape == "half_rank" else fit_power
        return cls(units, fit(units.forward(rows.real), rows.weights))

    def forward(self, rows: Observations) -> Observations:
        """Map rows.

        Parameters
        ----------
        rows : Observations
            Rows in the user's units.

        Returns
        -------
        Observations
            The same rows, real cells mapped.
        """
        return replace(rows, real=self.shape.forward(self.units.forward(rows.real)))


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
        return fit_kernel_rows(training.mapped(self.shape), training.companion, settings)[0]


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
        solver = Solver(
            1,
            EM_ITERATIONS,
            EM_TOL,
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


def component_class(rows: Observations, n_classes: int, most: int) -> tuple[int, ...]:
    """Class of every component; small classes have fewer.

    Parameters
    ----------
    rows : Observations
        Training rows.
    n_classes : int
        Number of classes.
    most : int
        Most components of a class.

    Returns
    -------
    tuple of int
        Class by class.

    Examples
    --------
    >>> labels = np.repeat([0, 1], [20, 5])
    >>> rows = Observations(np.zeros((25, 1)), np.zeros((25, 0), int), labels, np.ones(25))
    >>> component_class(rows, 2, 3)
    (0, 0, 1)
    """
    labelled = rows.labels >= 0
    counts = np.bincount(rows.labels[labelled], rows.weights[labelled], minlength=n_classes)
    sizes = np.clip(counts // ROWS_PER_COMPONENT, 1, most).astype(int)
    return tuple(np.repeat(np.arange(n_classes), sizes).tolist())


def fit_density(
    rows: Observations, levels: tuple[int, ...], n_classes: int, prior: MixturePrior, seed: int
) -> FittedMixture:
    """Fit the density of the columns as they are: as G2, but without a map.

    Parameters
    ----------
    rows : Observations
        Distinct weighted rows in the user's units.
    levels : tuple of int
        Number of levels of every categorical column.
    n_classes : int
        Number of classes.
    prior : MixturePrior
        Declared prior.
    seed : int
        Seed of its start.

    Returns
    -------
    FittedMixture
        The density.
    """
    classes = component_class(rows, n_classes, MOST_DENSITY_COMPONENTS)
    specification = MixtureSpecification(rows.real.shape[1], levels, classes)
    solver = Solver(1, EM_ITERATIONS, EM_TOL, "squarem", seed)
    return fit_rows(rows, specification, prior, solver)[0]


@dataclass(frozen=True)
class Training:
    """Training rows, and what the members fitted to them share.

    Attributes
    ----------
    rows : Observations
        Distinct weighted rows, in the user's units.
    levels : tuple of int
        Number of levels of every categorical column.
    n_classes : int
        Number of classes.
    prior : MixturePrior
        Declared prior of mixtures and companion.
    seed : int
        Seed of starts and exemplars.
    """

    rows: Observations
    levels: tuple[int, ...]
    n_classes: int
    prior: MixturePrior
    seed: int

    @cached_property
    def half_rank(self) -> ColumnMap:
        """Half ranks of the rows."""
        return ColumnMap.fit(self.rows, "half_rank")

    @cached_property
    def power(self) -> ColumnMap:
        """Yeo-Johnson's powers of the rows."""
        return ColumnMap.fit(self.rows, "power")

    @cached_property
    def companion(self) -> FittedMixture:
        """The mixture that fills in the missing cells of the kernels."""
        rows = self.mapped("half_rank")
        return fit_companion(rows, self.levels, self.n_classes, self.prior, self.seed)

    def map(self, shape: Shape) -> ColumnMap:
        """The map of a kind.

        Parameters
        ----------
        shape : {"half_rank", "power"}
            Kind of map.

        Returns
        -------
        ColumnMap
            Fitted when first asked for.
        """
        return self.half_rank if shape == "half_rank" else self.power

    def mapped(self, shape: Shape) -> Observations:
        """The rows under the map of a kind.

        Parameters
        ----------
        shape : {"half_rank", "power"}
            Kind of map.

        Returns
        -------
        Observations
            Mapped rows.
        """
        return self.map(shape).forward(self.rows)

    def fit(self, members: Sequence[str]) -> tuple[FittedMember, ...]:
        """Fit members by name.

        Parameters
        ----------
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
                self.map(recipe.shape),
                recipe.fit(self),
                recipe.objective if isinstance(recipe, MixtureMember) else _LIKELIHOOD,
            )
            for name, recipe in recipes
        )


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

    def class_log_joint(self, rows: Observations) -> Float[np.ndarray, "obs label"]:
        """Class log joint, or log probabilities, at the fitted point.

        Parameters
        ----------
        rows : Observations
            Rows in the user's units.

        Returns
        -------
        ndarray of shape (n_obs, n_classes)
            In nats, up to a constant per row.
        """
        return self.model.class_log_joint(self.columns.forward(rows))

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
