"""How a stack is fitted: members held out fold by fold, and all of them to all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float

from bayesrbf.fitted.fitted_kernel_network import Exemplars
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.fitted.folds import NumberedFold
from bayesrbf.fitted.holding_out import HeldOut, hold_out_folds
from bayesrbf.fitted.masking import Masking
from bayesrbf.fitted.mixture_fitting import Solver, component_class, fit_mixture_rows
from bayesrbf.fitted.stack.fitted_stack import FittedStack
from bayesrbf.fitted.stack.members import FittedMembers, OtherMember, fit_members, fit_trees
from bayesrbf.fitted.stack.pool import Pool
from bayesrbf.fitted.stack.recipes import TREES
from bayesrbf.fitted.stack.shared_training import (
    EM_ITERATIONS,
    EM_STARTS,
    EM_TOL,
    SharedTraining,
    Starts,
)
from bayesrbf.records.few_values import FewValues
from bayesrbf.records.mixture import Observations, joined_rows
from bayesrbf.records.priors import MixturePrior
from bayesrbf.records.specification import MixtureSpecification

DENSITY_COMPONENTS = 3
"""Components that a class of the stack's density has at most."""


@dataclass(frozen=True)
class StackSettings:
    """What is fitted in every fold and at the end."""

    members: tuple[str, ...]
    """Names of own members, trees last."""
    extra: tuple[OtherMember, ...]
    """Members of other libraries, not fitted."""
    levels: tuple[int, ...]
    n_classes: int
    prior: MixturePrior
    seed: int
    """Seed of starts and exemplars."""
    few: FewValues = field(default_factory=FewValues)
    """Real columns that a member may take for categories."""
    masking: Masking | None = None
    """How cells of rows held out are hidden, where they are."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all members."""
        return self.members + tuple(member.name for member in self.extra)

    @property
    def smooth(self) -> tuple[str, ...]:
        """Names of the own members that are no trees."""
        return tuple(name for name in self.members if name not in TREES)

    def training(
        self,
        rows: Observations,
        seed: int,
        starts: Starts | None = None,
        of_cells: Exemplars | None = None,
    ) -> SharedTraining:
        """Rows, and what members fitted to them share."""
        own = self.levels, self.n_classes, self.prior, self.seed + seed
        return SharedTraining(rows, *own, starts, self.few, of_cells)

    def fit(self, training: SharedTraining) -> FittedMembers:
        """Fit all members to the same rows."""
        extra = tuple(member.fit(training.rows) for member in self.extra)
        trees = [name for name in self.members if name in TREES]
        return FittedMembers(
            fit_members(training, self.smooth),
            extra,
            self.n_classes,
            fit_trees(training.rows, trees, self.n_classes, training.seed),
        )

    def fit_density(self, rows: Observations) -> FittedMixture:
        """Fit the density of the columns as they are: up to three Gaussians a class, no map."""
        components = component_class(rows, self.n_classes, DENSITY_COMPONENTS)
        specification = MixtureSpecification(rows.real.shape[1], self.levels, components)
        solver = Solver(EM_STARTS, EM_ITERATIONS, EM_TOL, self.seed)
        return fit_mixture_rows(rows, specification, self.prior, solver)[0]

    def hold_out(
        self, numbered: NumberedFold
    ) -> tuple[Float[np.ndarray, "row member label"], Sequence[Observations]]:
        """What members fitted to some rows say of others, as they are and with cells hidden."""
        fold, train, test = numbered
        members = self.fit(self.training(train, fold + 1)).condensed
        versions = [test]
        if self.masking is not None and self._takes_missing(members, test):
            versions = self.masking.versions(fold, train, test)
        return members.log_probabilities(joined_rows(versions)), versions

    def _takes_missing(self, members: FittedMembers, rows: Observations) -> bool:
        """Whether members of other libraries answer where a cell is missing."""
        if not self.extra:
            return True
        one = rows.take(np.arange(min(1, rows.n_obs)))
        try:
            members.log_probabilities(
                replace(one, real=np.full_like(one.real, np.nan), codes=np.full_like(one.codes, -1))
            )
        except (TypeError, ValueError):
            return False
        return True

    def hold_out_folds(self, folds: Sequence[NumberedFold], n_jobs: int | None) -> HeldOut | None:
        """What members say of the rows held out in all folds.

        None where no row could be held out. ``n_jobs`` processes share the folds. Where a member of
        another library takes no missing cells, rows are predicted as they are alone.
        """
        return hold_out_folds(folds, self.hold_out, self.n_classes, n_jobs, self.masking)


def stack_of(
    members: FittedMembers,
    rows: Observations,
    settings: StackSettings,
    pools: Sequence[Pool],
    held_out: HeldOut,
) -> FittedStack:
    """Members and pools as a stack, with the density of the distinct rows.

    Members have the digits of single precision: what they predict moves in its seventh digit, and
    the file is half as large.
    """
    (pool, *emptier), density = pools, settings.fit_density(rows)
    return FittedStack(
        members.rounded, pool, held_out, density, settings.names, tuple(emptier), settings.prior
    )
