"""Members of a stack that were fitted to rows in the user's units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import (
    TYPE_CHECKING,
    Any,
    Protocol,
    Self,
    cast,
    runtime_checkable,
)

import numpy as np
from jaxtyping import Float

from bayesrbf.fitted.fitted_kernel_network import (
    FittedKernelNetwork,
)
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.fitted.fitted_model import Axes, Description, FittedModel
from bayesrbf.fitted.row_view import RowView
from bayesrbf.fitted.stack.recipes import MEMBERS, TREES
from bayesrbf.fitted.stack.shared_training import (
    ColumnMaps,
    SharedTraining,
    ValueMaps,
)
from bayesrbf.numerics.log_posterior import LogPosterior, Predictor
from bayesrbf.numerics.stack.pooling import bounded_log_probabilities
from bayesrbf.numerics.trees import Boosting, Forest, tree_cells
from bayesrbf.records.mixture import Observations
from bayesrbf.records.stored import MOST_PARTS, Requirements, stored, within

if TYPE_CHECKING:
    import pymc as pm


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
        recipe = MEMBERS.get(self.name)
        own = recipe is not None and (recipe.shape == "values" or not few.features)
        yield own, "a recipe, and categories for a kernel alone"


def fit_members(training: SharedTraining, members: Sequence[str]) -> tuple[FittedMember, ...]:
    """Fit members by name to rows that they share."""
    recipes = [(name, MEMBERS[name]) for name in members]
    return tuple(
        FittedMember(name, own.maps(recipe.shape), recipe.fit(own))
        for name, recipe, own in ((name, one, one.rows_of(training)) for name, one in recipes)
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
    """Fit members of trees by name."""
    return tuple(FittedTrees(name, TREES[name].fit(rows, n_classes, seed)) for name in names)


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
    trees: tuple[FittedTrees, ...]

    def __laws__(self) -> Requirements:
        yield 0 < self.n_classes <= MOST_PARTS and len(self.own) > 0, "classes and members"
        shapes = {member.table_shape for member in self.own}
        yield len(shapes) == 1, "members of the same columns"
        n_features, levels, n_classes = shapes.pop()
        yield n_classes == self.n_classes, "members of its classes"
        trees, columns = [one.model.trees for one in self.trees], n_features + len(levels)
        yield all(within(one.feature, -1, columns) for one in trees), "splits of its columns"
        yield all(one.leaves.shape[1] == n_classes for one in trees), "leaves of its classes"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the members that are not of other libraries."""
        smooth = tuple(one.name for one in self.own)
        return smooth + tuple(one.name for one in self.trees)

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
        joints += [member.class_log_joint(rows) for member in self.trees]
        joints += [member.class_log_joint(rows, self.n_classes) for member in self.extra]
        return bounded_log_probabilities(np.stack(joints, axis=1))
