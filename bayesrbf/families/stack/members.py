"""Members of a stack: recipes, fits, and shared transforms, layers and mixtures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import (
    Any,
    ClassVar,
    Final,
    Literal,
    NamedTuple,
    Protocol,
    Self,
    cast,
    runtime_checkable,
)

import numpy as np
from jaxtyping import Float

from bayesrbf import table
from bayesrbf.base.priors import MixturePrior, Objective, PowerTransforms
from bayesrbf.base.records import MAX_PARTS, Requirements, stored, within
from bayesrbf.base.rows import (
    MixtureSpecification,
    Observations,
    Standardisation,
    default_shape,
)
from bayesrbf.families.kernel_network.fitted import (
    Companions,
    Exemplars,
    FittedKernelNetwork,
    HiddenLayer,
    KernelSettings,
    Rates,
    find_exemplars,
    fit_companions,
    fit_kernel_rows,
    hidden_layer,
    shared_prior,
)
from bayesrbf.families.kernel_network.kernels import CellMoments, Kernel
from bayesrbf.families.kernel_network.rates import RateSearch
from bayesrbf.families.stack.posterior import bounded_log_probabilities
from bayesrbf.families.stack.trees import (
    Boosting,
    Forest,
    TreeRows,
    grow_boosting,
    grow_forest,
    tree_cells,
)
from bayesrbf.fit.drawing import weighted_sample
from bayesrbf.mixture.fitted import (
    FittedMixture,
    Solver,
    component_class,
    fit_mixture_rows,
)
from bayesrbf.mixture.transforms import HalfRankTransforms, fit_half_rank, fit_power

# Training rows of a stack's members, and everything that these members share.
#
# Real columns are standardised and mapped towards a normal shape in front of every
# member: half ranks for kernels, Yeo-Johnson's powers for mixtures.


Shape = Literal["half_rank", "power"]

EM_STARTS, EM_TOL, EM_ITERATIONS = 3, 1e-3, 40
"""Starts, tolerance and steps of EM. The best of three starts is .01 to .03 nats better than one
start of three components; a tolerance ten times smaller gains nothing."""
NETWORK_ROWS: Final = 10_000
"""Rows that kernel networks are fitted to, at most. Adult of 32,000 rows loses nothing by half as
many; digits of 5,800 rows do."""
MIXTURE_ROWS: Final = 20_000
"""Rows that mixtures are fitted to, at most. On adult of 38,000 rows and on a made table of a
million they gained nothing by more; trees do."""
N_EXEMPLARS = 700
"""1,000 were level on 15 tables of up to 1,600 rows, and 2,000 on adult from 2,000 rows on."""
SEARCH: Final = RateSearch(subsamples=2, steps=8)
"""Settings of the search for the rates of the kernels."""


ColumnTransforms = HalfRankTransforms | PowerTransforms
"""Real columns towards a normal shape."""


class MixtureForm(NamedTuple):
    """Key of a shared mixture that EM fits."""

    n_components: int
    """Most components of a class."""
    shared_covariance: bool


@dataclass(frozen=True)
class SharedTraining:
    """Training rows, with the transforms, hidden layers and mixtures that members share."""

    rows: Observations
    """Distinct weighted rows, in the user's units."""
    levels: tuple[int, ...]
    n_classes: int
    prior: MixturePrior
    """Declared prior of mixtures and companion."""
    seed: int
    _layers: dict[KernelSettings, HiddenLayer] = field(default_factory=dict, init=False)
    _mixtures: dict[MixtureForm, FittedMixture] = field(default_factory=dict, init=False)
    _mapped: dict[Shape, Observations] = field(default_factory=dict, init=False)
    _fewer: dict[int, SharedTraining] = field(default_factory=dict, init=False)

    def at_most(self, most: int) -> SharedTraining:
        """Training on at most ``most`` rows, drawn with balanced classes if there are more."""
        if self.rows.n_obs <= most:
            return self
        if most not in self._fewer:
            rows = weighted_sample(self.rows, most, self.seed)
            self._fewer[most] = replace(self, rows=rows)
        return self._fewer[most]

    @property
    def seen_by(self) -> dict[str, int]:
        """Number of training rows of the members, by kinds that may be fitted to a sample."""
        most = {"Kernel networks": NETWORK_ROWS, "Mixtures": MIXTURE_ROWS}
        return {kind: self.at_most(limit).rows.n_obs for kind, limit in most.items()}

    def _solver(self, starts: int) -> Solver:
        return Solver(starts, EM_ITERATIONS, EM_TOL, self.seed)

    @cached_property
    def units(self) -> Standardisation:
        """Location and scale of the real columns."""
        return table.standardisation(self.rows.real, self.rows.weights)

    @cached_property
    def half_rank(self) -> HalfRankTransforms:
        """Half ranks of the rows."""
        return fit_half_rank(self.units, self.rows.real, self.rows.weights)

    @cached_property
    def power(self) -> PowerTransforms:
        """Yeo-Johnson's powers of the rows."""
        return fit_power(self.units, self.rows.real, self.rows.weights)

    @cached_property
    def companions(self) -> Companions:
        """The mixtures that fill in the missing cells of the kernels."""
        rows = self.mapped("half_rank")
        return fit_companions(rows, self.levels, self.n_classes, self.prior, self.seed)

    @cached_property
    def cells(self) -> CellMoments:
        """Moments of the cells, with missing cells filled in by the companions."""
        return self.companions.cells(self.mapped("half_rank"))

    @cached_property
    def exemplars(self) -> Exemplars:
        """The rows that carry the kernels."""
        return find_exemplars(self.mapped("half_rank"), N_EXEMPLARS, self.seed)

    def layer(self, settings: KernelSettings) -> HiddenLayer:
        """Hidden layer of a kernel network, made once for equal settings."""
        if settings not in self._layers:
            searched = replace(settings, search=SEARCH)
            self._layers[settings] = hidden_layer(
                self.mapped("half_rank"), self.cells, self.companions, searched, self.exemplars
            )
        return self._layers[settings]

    def mixture(self, form: MixtureForm) -> FittedMixture:
        """Mixture fitted by EM to rows behind the power transforms, made once for equal forms."""
        if form not in self._mixtures:
            rows = self.mapped("power")
            classes = component_class(rows, self.n_classes, form.n_components)
            d = rows.real.shape[1]
            structure = MixtureSpecification(
                d, self.levels, classes, default_shape(d), form.shared_covariance
            )
            # A covariance that all share leaves less to luck.
            solver = self._solver(1 if form.shared_covariance else EM_STARTS)
            prior = shared_prior(self.prior, structure)
            self._mixtures[form] = fit_mixture_rows(rows, structure, prior, solver)[0]
        return self._mixtures[form]

    def transforms(self, shape: Shape) -> ColumnTransforms:
        """The transforms of a kind."""
        return self.half_rank if shape == "half_rank" else self.power

    def mapped(self, shape: Shape) -> Observations:
        """The rows behind the transforms of a kind."""
        if shape not in self._mapped:
            self._mapped[shape] = self.transforms(shape).applied(self.rows)
        return self._mapped[shape]


# Recipes of a stack's members, and the sets of members that a word stands for.


# A blend that is followed further overfits (``STEPS`` in bayesrbf/mixture/fitted.py).
BLEND_ITERATIONS, BLEND_TOL = 20, 1e-4
NETWORK_TOL, NETWORK_ITERATIONS = 3e-3, 500
N_BASIS = 250
"""Maximum number of features of a kernel network."""


@dataclass(frozen=True)
class KernelMember:
    """Recipe of a kernel network."""

    kernel: Kernel
    relevance: float
    """Shrinkage of the rates of uninformative columns, from 0 to 1."""
    l2: float | Literal["evidence"]
    """Precision of the output weights, or the criterion that chooses it."""
    rates: Rates = "fixed"
    scale: float = 1.0

    shape: ClassVar[Shape] = "half_rank"
    """Map of the real columns."""

    @property
    def group(self) -> str:
        """Name of the member group: members of a group err together."""
        return "linear" if self.kernel == "linear" else "kernel network"

    def rows_of(self, training: SharedTraining) -> SharedTraining:
        """Training rows of the member: a sample above ``NETWORK_ROWS``."""
        return training.at_most(NETWORK_ROWS)

    def fit(self, training: SharedTraining) -> FittedKernelNetwork:
        """Kernel network fitted to the rows of ``training``, whose hidden layer it shares."""
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
        rows = training.mapped(self.shape)
        return fit_kernel_rows(rows, training.companions, training.layer(settings), settings)[0]


@dataclass(frozen=True)
class MixtureMember:
    """Recipe of a class-conditional mixture."""

    n_components: int
    """Most components of a class."""
    shared_covariance: bool
    objective: Objective

    rates: ClassVar[Rates] = "fixed"
    """A mixture has no kernel whose rates could be learned."""

    @property
    def group(self) -> str:
        """Name of the member group: a single Gaussian per class, or several."""
        return "Gaussian" if self.n_components == 1 else "mixture"

    @property
    def shape(self) -> Shape:
        """Map of the real columns."""
        return "power"

    def rows_of(self, training: SharedTraining) -> SharedTraining:
        """Training rows of the member: a sample above ``MIXTURE_ROWS``."""
        return training.at_most(MIXTURE_ROWS)

    def fit(self, training: SharedTraining) -> FittedMixture:
        """Mixture fitted to the rows of ``training``: by EM or, from there, by the objective."""
        by_em = training.mixture(MixtureForm(self.n_components, self.shared_covariance))
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
        rows = training.mapped(self.shape)
        prior = shared_prior(training.prior, by_em.specification)
        return fit_mixture_rows(rows, by_em.specification, prior, solver, by_em.start)[0]


@dataclass(frozen=True)
class TreeMember:
    """Recipe of trees, which have no density and no posterior."""

    grow: Callable[..., Forest | Boosting]
    """Function of labelled rows and a seed."""

    group: ClassVar = "trees"
    """Name of the member group: members of a group err together."""


Member = KernelMember | MixtureMember
_LIKELIHOOD, _BLEND = Objective("likelihood"), Objective("blend", kappa=0.3)

MEMBERS: Final[Mapping[str, Member]] = {
    "laplace": KernelMember("laplace", 0.8, 1 / 10),
    "laplace_short": KernelMember("laplace", 0.8, 1 / 10, scale=1 / 3),
    "laplace_evidence": KernelMember("laplace", 0.8, 1 / 30, "evidence"),
    "gaussian_loo": KernelMember("gaussian", 0.8, 1 / 100, "leave-one-out"),
    "linear": KernelMember("linear", 0.0, "evidence"),
    "normal": MixtureMember(1, True, _LIKELIHOOD),
    "mixture": MixtureMember(3, False, _LIKELIHOOD),
    "normal_blend": MixtureMember(1, True, _BLEND),
    "mixture_blend": MixtureMember(3, True, _BLEND),
}
"""Recipes by name; the stack's documentation says what each is."""
TREES: Final[Mapping[str, TreeMember]] = {
    "forest": TreeMember(partial(grow_forest, n_trees=60)),
    "extra_trees": TreeMember(partial(grow_forest, n_trees=60, extra=True)),
    "boosting": TreeMember(partial(grow_boosting, n_steps=100)),
}
"""Recipes of members without a density, by name."""
BY_NAME_ALONE: Final = ("laplace", "normal", "mixture")
"""Members that add nothing to the trees and the linear member, and left the default for these."""
SMOOTH: Final = tuple(name for name in MEMBERS if name not in BY_NAME_ALONE)
DEFAULT: Final = (*SMOOTH, "forest", "extra_trees")
"""Extra trees join the forest: in its place they were worse on three of eleven tables."""
OF_MANY_ROWS: Final = ("boosting",)
"""Members of the default where rows are many. On adult boosting overtakes the
others between 500 and 2,000 rows; on 29 tables of at most 700 it adds nothing."""
ROWS_FOR_BOOSTING: Final = 1000.0
"""Weight of the labelled rows from which it is a member, on trial: see ``fit_stack``."""
SETS: Final[Mapping[str, tuple[str, ...]]] = {
    "default": DEFAULT,
    "smooth": SMOOTH,
}
"""Members that one word stands for."""


def recipe_of(name: str) -> Member | TreeMember:
    """The recipe of a member."""
    return MEMBERS[name] if name in MEMBERS else TREES[name]


def chosen_members(members: object, n_labelled: float) -> tuple[str, ...]:
    """Names of the members that ``StackedClassifier(members=...)`` asks for, trees last.

    ``n_labelled`` is the number of labelled subjects. ValueError if a name is unknown or occurs
    twice, or all are names of trees.
    """
    chosen: tuple[Any, ...]
    if isinstance(members, str) and members in SETS:
        chosen = SETS[members]
        if n_labelled >= ROWS_FOR_BOOSTING and members != "smooth":
            chosen += OF_MANY_ROWS
    else:
        chosen = tuple(members) if isinstance(members, list | tuple) else (members,)
        unknown = [name for name in chosen if name not in MEMBERS and name not in TREES]
        if unknown or set(chosen) <= set(TREES) or len(set(chosen)) < len(chosen):
            raise ValueError(
                "StackedClassifier(members=...) must be 'default', 'smooth' or different "
                f"names among {', '.join((*MEMBERS, *TREES))}, not of trees alone; "
                f"received {members!r}."
            )
    return tuple(sorted(chosen, key=TREES.__contains__))


def trial_of(members: object) -> tuple[str, ...]:
    """Members of a set that leave after the first fold if their weight is small; none if named."""
    return OF_MANY_ROWS if isinstance(members, str) else ()


# Members of a stack that were fitted to rows in the user's units.


@stored
class FittedMember:
    """A fitted member: transforms of the columns in front of a fitted model."""

    name: str
    columns: ColumnTransforms
    model: FittedKernelNetwork | FittedMixture

    @property
    def table_shape(self) -> tuple[int, tuple[int, ...], int]:
        """Real columns, levels and classes of the table."""
        seen = self.model.density.specification
        return seen.n_features, seen.levels, self.model.n_classes

    @property
    def condensed(self) -> FittedMember:
        """A copy that keeps only what prediction needs."""
        return replace(self, model=self.model.condensed)

    def rounded(self, columns: ColumnTransforms) -> FittedMember:
        """The member with large arrays rounded to single precision, behind rounded transforms."""
        return replace(self, columns=columns, model=self.model.rounded)

    @property
    def relevance(self) -> Float[np.ndarray, " column"]:
        """Relevance of every column of the table in a kernel network, reals then categories."""
        return cast(FittedKernelNetwork, self.model).relevance

    def __laws__(self) -> Requirements:
        n_features = self.model.density.specification.n_features
        yield self.columns.units.scale.size == n_features, "a transform of every column"
        yield self.name in MEMBERS, "a recipe"


def fit_members(training: SharedTraining, members: Sequence[str]) -> tuple[FittedMember, ...]:
    """Kernel networks and mixtures by their names, fitted to rows that they share."""
    recipes = [(name, MEMBERS[name]) for name in members]
    return tuple(
        FittedMember(name, shared.transforms(recipe.shape), recipe.fit(shared))
        for name, recipe in recipes
        for shared in [recipe.rows_of(training)]
    )


@stored
class FittedTrees:
    """A fitted member of trees."""

    name: str
    model: Forest | Boosting

    def class_log_joint(self, rows: Observations) -> Float[np.ndarray, "obs label"]:
        """Class log probabilities, of any set of cells."""
        return self.model.log_probabilities(tree_cells(rows))

    def __laws__(self) -> Requirements:
        yield self.name in TREES, "a recipe"


def fit_trees(
    rows: Observations, names: Sequence[str], n_classes: int, seed: int
) -> tuple[FittedTrees, ...]:
    """Trees by their names, grown on the labelled rows.

    They grow in the canonical order of columns and classes, and predict in the order of ``rows``.
    """
    rows = rows.take(rows.labels >= 0)
    order = table.canonical_order(rows, n_classes)
    rows = rows.reordered(order)
    tree_rows = TreeRows(tree_cells(rows), rows.labels, rows.weights, n_classes)
    return tuple(
        FittedTrees(name, TREES[name].grow(tree_rows, seed=seed).reordered(order.inverse))
        for name in names
    )


@runtime_checkable
class OtherMember(Protocol):
    """A member of another library, which is given the unmapped rows."""

    @property
    def name(self) -> str:
        """Name of the member in the stack."""

    def fit(self, rows: Observations) -> Self:
        """A member that is fitted to rows."""

    def class_log_joint(self, rows: Observations, n_classes: int) -> Float[np.ndarray, "obs label"]:
        """Class log joint, or log probabilities."""


@stored
class FittedMembers:
    """Fitted members of a stack: kernel networks and mixtures, other libraries' models, trees."""

    fitted: tuple[FittedMember, ...]
    extra: tuple[OtherMember, ...]
    n_classes: int
    trees: tuple[FittedTrees, ...]

    def __laws__(self) -> Requirements:
        yield 0 < self.n_classes <= MAX_PARTS and len(self.fitted) > 0, "classes and members"
        shapes = {member.table_shape for member in self.fitted}
        yield len(shapes) == 1, "members of the same columns"
        n_features, levels, n_classes = shapes.pop()
        yield n_classes == self.n_classes, "members of its classes"
        trees, columns = [member.model.trees for member in self.trees], n_features + len(levels)
        yield all(within(tree.feature, -1, columns) for tree in trees), "splits of its columns"
        yield all(tree.leaves.shape[1] == n_classes for tree in trees), "leaves of its classes"

    @property
    def table_shape(self) -> tuple[int, tuple[int, ...], int]:
        """Real columns, levels and classes of the rows."""
        return self.fitted[0].table_shape

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the members, without members of other libraries."""
        smooth = tuple(member.name for member in self.fitted)
        return smooth + tuple(member.name for member in self.trees)

    @property
    def condensed(self) -> FittedMembers:
        """Copies that keep only what prediction needs."""
        return replace(self, fitted=tuple(member.condensed for member in self.fitted))

    @property
    def rounded(self) -> FittedMembers:
        """Members with large arrays rounded to single precision; transforms stay shared."""
        shared = {id(member.columns): member.columns for member in self.fitted}
        transforms = {key: columns.rounded for key, columns in shared.items()}
        members = tuple(member.rounded(transforms[id(member.columns)]) for member in self.fitted)
        return replace(self, fitted=members)

    def log_probabilities(self, rows: Observations) -> Float[np.ndarray, "obs member label"]:
        """Class log probabilities of every member at its fitted point, in nats, -60 at least.

        Members are kernel networks and mixtures, then trees, then those of other libraries.
        """
        transforms = {id(member.columns): member.columns for member in self.fitted}
        mapped = {key: columns.applied(rows) for key, columns in transforms.items()}
        seen: dict[tuple[int, int], CellMoments] = {}  # alike by kernels that share companions
        joints = []
        for member in self.fitted:
            model, mapped_rows = member.model, mapped[id(member.columns)]
            if isinstance(model, FittedMixture):
                joints.append(model.class_log_joint(mapped_rows))
                continue
            key = id(member.columns), id(model.companions)
            if key not in seen:
                seen[key] = model.companions.cells(mapped_rows)
            joints.append(model.of_cells(seen[key], 1.0)(model.theta))
        joints += [member.class_log_joint(rows) for member in self.trees]
        joints += [member.class_log_joint(rows, self.n_classes) for member in self.extra]
        return bounded_log_probabilities(np.stack(joints, axis=1))
