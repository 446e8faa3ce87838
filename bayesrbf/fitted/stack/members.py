"""Members of a stack: what each is before and after it has seen rows in the user's units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Literal,
    Protocol,
    Self,
    cast,
    runtime_checkable,
)

import numpy as np
from jaxtyping import Float

from bayesrbf.fitted.companions import shared_prior
from bayesrbf.fitted.fitted_kernel_network import (
    FittedKernelNetwork,
    KernelSettings,
    Rates,
    fit_kernel_rows,
)
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.fitted.fitted_model import Axes, Description, FittedModel
from bayesrbf.fitted.mixture_fitting import Solver, fit_mixture_rows
from bayesrbf.fitted.row_view import RowView
from bayesrbf.fitted.stack.shared_training import (
    EM_ITERATIONS,
    N_EXEMPLARS,
    ColumnMaps,
    MixtureForm,
    Shape,
    SharedTraining,
    ValueMaps,
)
from bayesrbf.numerics.log_posterior import LogPosterior, Predictor
from bayesrbf.numerics.stack.pooling import bounded_log_probabilities
from bayesrbf.records.few_values import FewValues
from bayesrbf.records.mixture import Observations
from bayesrbf.records.objective import Objective
from bayesrbf.records.specification import CovarianceType
from bayesrbf.records.stored import MOST_PARTS, Requirements, stored, within

if TYPE_CHECKING:
    import pymc as pm


BLEND_ITERATIONS, BLEND_TOL = 20, 1e-4
NETWORK_TOL, NETWORK_ITERATIONS = 3e-3, 500
N_BASIS = 250


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

    def fit(self, training: SharedTraining) -> FittedKernelNetwork:
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
        )
        seen = training.with_categories if self.shape == "values" else training
        rows, layer = seen.mapped("half_rank"), seen.layer(settings)
        return fit_kernel_rows(rows, seen.companions, layer, settings)[0]


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

    def fit(self, training: SharedTraining) -> FittedMixture:
        """Fit to training rows."""
        by_em = training.mixture(MixtureForm(self.n_components, self.covariance_type, self.tied))
        if self.objective.name == "likelihood":
            return by_em
        solver = Solver(
            1,
            EM_ITERATIONS,
            BLEND_TOL,
            training.seed,
            objective=self.objective,
            steps=BLEND_ITERATIONS,
        )
        rows, structure = training.mapped(self.shape), by_em.specification
        prior = shared_prior(training.prior, structure)
        return fit_mixture_rows(rows, structure, prior, solver, by_em.start)[0]


Member = KernelMember | MixtureMember
_LIKELIHOOD, _BLEND = Objective("likelihood"), Objective("blend", kappa=0.3)

MEMBERS: Final[Mapping[str, Member]] = {
    "laplace": KernelMember("laplace", 0.8, 1 / 10),
    "laplace_equal": KernelMember("laplace", 0.0, 1 / 30),
    "laplace_short": KernelMember("laplace", 0.8, 1 / 10, scale=1 / 3),
    "laplace_evidence": KernelMember("laplace", 0.8, 1 / 30, "evidence"),
    "gaussian_loo": KernelMember("gaussian", 0.8, 1 / 10, "leave-one-out"),
    "gaussian_loo_light": KernelMember("gaussian", 0.8, 1 / 100, "leave-one-out"),
    "gaussian_loo_levels": KernelMember("gaussian", 0.8, 1 / 100, "leave-one-out", shape="values"),
    "normal": MixtureMember(1, "full", True, _LIKELIHOOD),
    "mixture": MixtureMember(3, "full", False, _LIKELIHOOD),
    "normal_blend": MixtureMember(1, "full", True, _BLEND),
    "mixture_blend": MixtureMember(3, "full", True, _BLEND),
}
"""Recipes by name; the stack's documentation says what each is."""
OF_FEW_VALUES: Final = ("gaussian_loo_levels",)
"""Members of the default where a real column has few values."""
DEFAULT: Final = tuple(name for name in MEMBERS if name not in OF_FEW_VALUES)
LITE: Final = (
    "laplace_short",
    "laplace_evidence",
    "gaussian_loo_light",
    "mixture",
    "normal_blend",
)


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


ALIASES: Final = {
    "K1": "laplace",
    "K2": "laplace_equal",
    "SL": "laplace_short",
    "AL": "laplace_evidence",
    "VG10": "gaussian_loo",
    "VG100": "gaussian_loo_light",
    "VC100": "gaussian_loo_levels",
    "G1": "normal",
    "G2": "mixture",
    "B1": "normal_blend",
    "B2": "mixture_blend",
}
"""Names of members by those of version 0.1.0, whose files have them."""


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
        """The member with the digits of single precision in what is large, behind rounded maps."""
        return replace(self, columns=columns, model=self.model.rounded)

    def class_log_joint(
        self, rows: Observations, temperature: float = 1.0
    ) -> Float[np.ndarray, "obs label"]:
        """Class log joint, or log probabilities, at the fitted point."""
        return self.model.class_log_joint(self.columns.applied(rows), temperature)

    @property
    def relevance(self) -> Float[np.ndarray, " column"]:
        """Relevance of every column of the table in a kernel network, reals then categories."""
        relevance = cast(FittedKernelNetwork, self.model).relevance
        if MEMBERS[self.name].shape != "values":
            return relevance
        return cast(ValueMaps, self.columns).in_table(relevance)

    def of_view(self, view: RowView) -> Float[np.ndarray, "obs label"]:
        """Class log joint, or log probabilities, of rows behind the maps of the member."""
        return self.model.of_view(view)

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
        recipe = MEMBERS.get(ALIASES.get(self.name, self.name))
        own = recipe is not None and (recipe.shape == "values" or not few.features)
        yield own, "a recipe, and categories for a kernel alone"


def fit_members(training: SharedTraining, members: Sequence[str]) -> tuple[FittedMember, ...]:
    """Fit members by name to rows that they share."""
    recipes = [(name, MEMBERS[name]) for name in members]
    return tuple(
        FittedMember(name, training.maps(recipe.shape), recipe.fit(training))
        for name, recipe in recipes
    )


@runtime_checkable
class OtherMember(Protocol):
    """A member that another library made, and any that is given the rows as they are."""

    @property
    def name(self) -> str:
        """Its name in the stack."""

    def fit(self, rows: Observations) -> Self:
        """A member that is fitted to rows."""

    def class_log_joint(self, rows: Observations, n_classes: int) -> Float[np.ndarray, "obs label"]:
        """Class log joint, or log probabilities."""


@stored
class FittedMembers:
    """All members, fitted."""

    own: tuple[FittedMember, ...]
    extra: tuple[OtherMember, ...]
    n_classes: int

    def __laws__(self) -> Requirements:
        yield 0 < self.n_classes <= MOST_PARTS and len(self.own) > 0, "classes and members"
        shapes = {member.table_shape for member in self.own}
        yield len(shapes) == 1, "members of the same columns"
        yield shapes.pop()[2] == self.n_classes, "members of its classes"

    @property
    def renamed(self) -> FittedMembers:
        """Members of a file of version 0.1.0 under their present names."""
        own = (replace(one, name=ALIASES.get(one.name, one.name)) for one in self.own)
        return replace(self, own=tuple(own))

    @property
    def condensed(self) -> FittedMembers:
        """Members that predict the same from less: those that draws share are many."""
        return replace(self, own=tuple(member.condensed for member in self.own))

    @property
    def rounded(self) -> FittedMembers:
        """Members with the digits of single precision in what is large; maps stay shared."""
        shared = {id(member.columns): member.columns for member in self.own}
        maps = {key: columns.rounded for key, columns in shared.items()}
        own = tuple(member.rounded(maps[id(member.columns)]) for member in self.own)
        return replace(self, own=own)

    def log_probabilities(self, rows: Observations) -> Float[np.ndarray, "obs member label"]:
        """Class log probabilities of every member at its fitted point, in nats, -60 at least."""
        maps = {id(member.columns): member.columns for member in self.own}
        views = {key: RowView(columns.applied(rows)) for key, columns in maps.items()}
        joints = [member.of_view(views[id(member.columns)]) for member in self.own]
        joints += [member.class_log_joint(rows, self.n_classes) for member in self.extra]
        return bounded_log_probabilities(np.stack(joints, axis=1))
