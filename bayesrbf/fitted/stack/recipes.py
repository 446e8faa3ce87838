"""Recipes of a stack's members, and the sets of members that a word stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final, Literal

from bayesrbf import table
from bayesrbf.fitted.companions import shared_prior
from bayesrbf.fitted.fitted_kernel_network import (
    FittedKernelNetwork,
    KernelSettings,
    Rates,
    fit_kernel_rows,
)
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.fitted.mixture_fitting import Solver, fit_mixture_rows
from bayesrbf.fitted.stack.shared_training import (
    EM_ITERATIONS,
    N_EXEMPLARS,
    MixtureForm,
    Shape,
    SharedTraining,
)
from bayesrbf.numerics.trees import Boosting, Forest, tree_cells
from bayesrbf.records.few_values import FewValues
from bayesrbf.records.mixture import Observations
from bayesrbf.records.objective import Objective
from bayesrbf.records.specification import CovarianceType
from bayesrbf.solvers.trees import TreeRows, grow_boosting, grow_forest

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

    def rows_of(self, training: SharedTraining) -> SharedTraining:
        """The training rows that it is fitted to: some where they are many."""
        return training.of_networks

    def fit(self, training: SharedTraining) -> FittedKernelNetwork:
        """Fit to its training rows."""
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

    def rows_of(self, training: SharedTraining) -> SharedTraining:
        """The training rows that it is fitted to: all."""
        return training

    def fit(self, training: SharedTraining) -> FittedMixture:
        """Fit to its training rows."""
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


@dataclass(frozen=True)
class TreeMember:
    """Recipe of trees, which have no density and no posterior."""

    grow: Callable[..., Forest | Boosting]
    """Of labelled rows and a seed."""

    kind: ClassVar = "trees"
    """Members of one kind err together."""

    def fit(self, rows: Observations, n_classes: int, seed: int) -> Forest | Boosting:
        """Grow on the labelled rows, in the canonical order of columns and classes."""
        rows = rows.take(rows.labels >= 0)
        order = table.canonical_order(rows, n_classes)
        rows = rows.reordered(order)
        given = TreeRows(tree_cells(rows), rows.labels, rows.weights, n_classes)
        return self.grow(given, seed=seed).reordered(order.inverse)


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
TREES: Final[Mapping[str, TreeMember]] = {
    "forest": TreeMember(partial(grow_forest, n_trees=60)),
    "boosting": TreeMember(partial(grow_boosting, n_steps=300)),
}
"""Recipes of members without a density, by name."""
OF_FEW_VALUES: Final = ("gaussian_loo_levels",)
"""Members of the default where a real column has few values."""
BY_NAME_ALONE: Final = ("laplace", "normal")
"""Members that were part of the default before the forest was: with it they add nothing."""
SMOOTH: Final = tuple(name for name in MEMBERS if name not in OF_FEW_VALUES + BY_NAME_ALONE)
LITE: Final = (
    "laplace_short",
    "laplace_evidence",
    "gaussian_loo_light",
    "mixture",
    "normal_blend",
    "forest",
)
DEFAULT: Final = (*SMOOTH, "forest")
OF_MANY_ROWS: Final = ("boosting",)
"""Members of the default and of the lite set where rows are many. On adult boosting overtakes the
others between 500 and 2,000 rows; on 29 tables of at most 700 it adds nothing."""
ROWS_FOR_BOOSTING: Final = 1000.0
"""Weight of the labelled rows from which it is a member."""
SETS: Final[Mapping[str, tuple[str, ...]]] = {
    "default": DEFAULT,
    "smooth": SMOOTH,
    "lite": LITE,
}
"""Members that one word stands for."""


def recipe_of(name: str) -> Member | TreeMember:
    """The recipe of a member."""
    return MEMBERS[name] if name in MEMBERS else TREES[name]


def own_members(members: object, few: FewValues, n_labelled: float) -> tuple[str, ...]:
    """Names of the members that ``StackedClassifier(members=...)`` asks for, trees last.

    ``n_labelled`` is the number of labelled units.
    """
    chosen: tuple[Any, ...]
    if isinstance(members, str) and members in SETS:
        chosen = SETS[members] + OF_FEW_VALUES * bool(few.features)
        if n_labelled >= ROWS_FOR_BOOSTING and members != "smooth":
            chosen += OF_MANY_ROWS
    else:
        chosen = tuple(members) if isinstance(members, list | tuple) else (members,)
        unknown = [name for name in chosen if name not in MEMBERS and name not in TREES]
        if unknown or set(chosen) <= set(TREES) or len(set(chosen)) < len(chosen):
            raise ValueError(
                "StackedClassifier(members=...) must be 'default', 'smooth', 'lite' or different "
                f"names among {', '.join((*MEMBERS, *TREES))}, not of trees alone; "
                f"received {members!r}."
            )
    return tuple(sorted(chosen, key=TREES.__contains__))
