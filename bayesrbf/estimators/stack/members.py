"""Members of a stack: what each is before and after it has seen rows in the user's units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import numpy as np
from jaxtyping import Float

from bayesrbf.estimators.stack.training import (
    EM_ITERATIONS,
    EM_STARTS,
    EM_TOL,
    N_EXEMPLARS,
    ColumnMaps,
    Shape,
    Training,
    Views,
)
from bayesrbf.fitted.companions import shared_prior
from bayesrbf.fitted.fitted_kernel_network import (
    FittedKernelNetwork,
    KernelSettings,
    Rates,
    fit_kernel_rows,
)
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.fitted.fitted_model import Axes, Description, FittedModel
from bayesrbf.fitted.mixture_fitting import Solver, component_class, fit_mixture_rows
from bayesrbf.numerics.kernel_network.learned_rates import RateSearch
from bayesrbf.numerics.log_posterior import LogPosterior, Predictor
from bayesrbf.records.few_values import FewValues
from bayesrbf.records.mixture import Observations
from bayesrbf.records.objective import Objective
from bayesrbf.records.specification import CovarianceType, MixtureSpecification
from bayesrbf.records.stored import Requirements, stored, within

if TYPE_CHECKING:
    import pymc as pm


BLEND_ITERATIONS, BLEND_TOL = 20, 1e-4
NETWORK_TOL, NETWORK_ITERATIONS = 3e-3, 500
N_BASIS = 250
SEARCH: Final = RateSearch(subsamples=2, steps=15)
"""Folds learn rates from little: those of the whole table are averaged with theirs. Less is worse:
half of the rows of glass cost .03 nats, 200 rows of vehicle and vowel with holes .003 to .006."""


@dataclass(frozen=True)
class KernelMember:
    """Recipe of a kernel network."""

    kernel: Literal["laplace", "gaussian"]
    relevance: float
    """How far columns that tell nothing are shrunk, from 0 to 1."""
    l2: float
    rates: Rates = "fixed"
    scale: float = 1.0
    shape: Shape = "half_rank"
    """Map of the real columns."""

    kind: ClassVar = "kernel network"
    """Members of one kind err together."""

    def fit(self, training: Training) -> FittedKernelNetwork:
        """Fit to training rows."""
        settings = KernelSettings(
            self.kernel,
            self.relevance,
            self.l2,
            N_BASIS,
            N_EXEMPLARS,
            NETWORK_TOL,
            NETWORK_ITERATIONS,
            training.seed,
            self.rates,
            self.scale,
            SEARCH,
        )
        seen = training.with_categories if self.shape == "values" else training
        rows, layer = seen.mapped("half_rank"), seen.layer(settings)
        return fit_kernel_rows(rows, seen.companions, layer, settings)[0]

    def class_log_joint(
        self, model: FittedKernelNetwork, columns: ColumnMaps, views: Views
    ) -> Float[np.ndarray, "obs label"]:
        """Class log probabilities of rows, whose cells several kernels see alike."""
        return model.of_cells(views.cells(columns, model.companions), 1.0)(model.theta)


@dataclass(frozen=True)
class MixtureMember:
    """Recipe of a class-conditional mixture."""

    n_components: int
    """Most components of a class."""
    covariance_type: CovarianceType
    tied: bool
    objective: Objective

    rates: ClassVar[Rates] = "fixed"
    """It has no kernel to learn."""

    @property
    def kind(self) -> str:
        """Members of one kind err together: those of one Gaussian a class, and of several."""
        return "Gaussian" if self.n_components == 1 else "mixture"

    @property
    def shape(self) -> Shape:
        """Map of the real columns."""
        return "power"

    def fit(self, training: Training) -> FittedMixture:
        """Fit to training rows."""
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
        return fit_mixture_rows(rows, specification, prior, solver)[0]

    def class_log_joint(
        self, model: FittedMixture, columns: ColumnMaps, views: Views
    ) -> Float[np.ndarray, "obs label"]:
        """Class log joint of rows, whose maps several mixtures share."""
        return model.class_log_joint(views.mapped(columns))


Member = KernelMember | MixtureMember
_LIKELIHOOD, _BLEND = Objective("likelihood"), Objective("blend", kappa=0.3)

MEMBERS: Final[Mapping[str, Member]] = {
    "K1": KernelMember("laplace", 0.8, 1 / 10),
    "K2": KernelMember("laplace", 0.0, 1 / 30),
    "K3": KernelMember("gaussian", 0.8, 1 / 10),
    "SL": KernelMember("laplace", 0.8, 1 / 10, scale=1 / 3),
    "AL": KernelMember("laplace", 0.8, 1 / 30, "evidence"),
    "VG10": KernelMember("gaussian", 0.8, 1 / 10, "leave-one-out"),
    "VG100": KernelMember("gaussian", 0.8, 1 / 100, "leave-one-out"),
    "VC100": KernelMember("gaussian", 0.8, 1 / 100, "leave-one-out", shape="values"),
    "G1": MixtureMember(1, "full", True, _LIKELIHOOD),
    "G2": MixtureMember(3, "full", False, _LIKELIHOOD),
    "B1": MixtureMember(1, "full", True, _BLEND),
    "B2": MixtureMember(3, "full", True, _BLEND),
}
"""Recipes by name; the stack's documentation says what each is."""
DEFAULT: Final = ("K1", "K2", "SL", "AL", "VG10", "VG100", "G1", "G2", "B1", "B2")
LITE: Final = ("SL", "AL", "VG100", "G2", "B1")
OF_FEW_VALUES: Final = ("VC100",)
"""Members of the default where a real column has few values."""


def own_members(members: object, few: FewValues) -> tuple[str, ...]:
    """Names of the members that ``StackedClassifier(members=...)`` asks for."""
    if isinstance(members, str) and members in ("default", "lite"):
        return (DEFAULT if members == "default" else LITE) + OF_FEW_VALUES * bool(few.features)
    chosen = tuple(members) if isinstance(members, list | tuple) else (members,)
    unknown = [name for name in chosen if name not in MEMBERS]
    if unknown or not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(
            "StackedClassifier(members=...) must be 'default', 'lite' or different names among "
            f"{', '.join(MEMBERS)}; received {members!r}."
        )
    return chosen


@stored
class FittedMember(FittedModel):
    """A fitted member: maps of the columns in front of a fitted model."""

    name: str
    columns: ColumnMaps
    model: FittedKernelNetwork | FittedMixture

    @property
    def density(self) -> FittedMixture | None:
        """None: a density of mapped rows is not one of the user's rows."""
        return None

    @property
    def table_shape(self) -> tuple[int, tuple[int, ...], int]:
        """Real columns, levels and classes of the table, as it is in front of the maps."""
        seen, few = self.model.density.specification, self.columns.few
        own = len(seen.levels) - len(few.features)
        return seen.n_features + len(few.features), seen.levels[:own], self.model.n_classes

    @property
    def condensed(self) -> FittedMember:
        """What predicts the same from less; drawn from it is nothing."""
        return replace(self, model=self.model.condensed)

    def rounded(self, columns: ColumnMaps) -> FittedMember:
        """The same with the digits of single precision in what is large, behind rounded maps."""
        return replace(self, columns=columns, model=self.model.rounded)

    def class_log_joint(
        self, rows: Observations, temperature: float = 1.0
    ) -> Float[np.ndarray, "obs label"]:
        """Class log joint, or log probabilities, at the fitted point."""
        return self.model.class_log_joint(self.columns.applied(rows), temperature)

    @property
    def relevance(self) -> Float[np.ndarray, " column"]:
        """Relevance of every column of the table in a kernel network, reals then categories."""
        model: Any = self.model
        columns: Any = self.columns
        found: Float[np.ndarray, " column"] = model.relevance
        return columns.in_table(found) if MEMBERS[self.name].shape == "values" else found

    def of_views(self, views: Views) -> Float[np.ndarray, "obs label"]:
        """The same of rows that several members see."""
        recipe: Any = MEMBERS[self.name]
        return recipe.class_log_joint(self.model, self.columns, views)

    def log_posterior(self, rows: Observations) -> LogPosterior:
        """The log posterior of the member's parameters given mapped rows."""
        return self.model.log_posterior(self.columns.applied(rows))

    def point(self, log_posterior: Any) -> Float[np.ndarray, " coordinate"]:
        """The fitted point in the coordinates of the log posterior."""
        return self.model.point(log_posterior)

    def predictor(
        self, log_posterior: Any, rows: Observations, temperature: float = 1.0
    ) -> Predictor:
        """Prepare rows for predictions at any coordinates."""
        return self.model.predictor(log_posterior, self.columns.applied(rows), temperature)

    def declare(self, rows: Observations, axes: Axes) -> pm.Model:
        """The graph of the member's model on mapped rows."""
        return self.model.declare(self.columns.applied(rows), axes)

    def description(self, rows: Observations, axes: Axes) -> Description:
        """Names and mapped rows."""
        return self.model.description(self.columns.applied(rows), axes)

    def __laws__(self) -> Requirements:
        few, (n_reals, _, _) = self.columns.few, self.table_shape
        seen = self.model.density.specification
        yield self.columns.units.scale.size == seen.n_features, "a map of every column"
        last = seen.levels[len(seen.levels) - len(few.features) :]
        yield last == few.levels, "levels for the values of its columns"
        yield within(few.features, 0, n_reals), "real columns of few values"
        recipe = MEMBERS.get(self.name)
        own = recipe is not None and (recipe.shape == "values" or not few.features)
        yield own, "a recipe, and categories for a kernel alone"


def fit_members(training: Training, members: Sequence[str]) -> tuple[FittedMember, ...]:
    """Fit members by name to rows that they share."""
    recipes = [(name, MEMBERS[name]) for name in members]
    return tuple(
        FittedMember(name, training.maps(recipe.shape), recipe.fit(training))
        for name, recipe in recipes
    )
