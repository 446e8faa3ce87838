"""Candidates for a stack where tables speak by their gaps, categories and spikes.

Each is a member of a stack as a classifier of another library is: it is fitted without each fold,
tempered and pooled as the others are. A candidate that finds nothing of its kind in a table says
nothing: its log probabilities are 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
from scipy.stats import chi2_contingency

from bayesrbf import MixturePrior
from bayesrbf.base.rows import Observations
from bayesrbf.families.stack.members import FittedMember, SharedTraining, fit_members
from bayesrbf.table.encode import at_atoms, few_values, find_atoms

Encoder = Callable[[Observations], Observations]
"""Maps rows of a table to rows of the same table with other columns."""

CERTAIN = 0.01
"""Level, over the number of columns, below which holes differ by class."""
BINS = 5
"""Ranges of a real column of many values in a tree."""


def encoder_of_masks(rows: Observations) -> Encoder | None:
    """Indicators of the holes of columns whose holes differ by class; None without any."""
    holes, classes = _holes(rows), rows.labels
    known = classes >= 0
    with_holes = np.flatnonzero(holes.any(axis=0) & ~holes.all(axis=0))
    telling = []
    for column in with_holes:
        table = np.zeros((2, classes.max() + 1))
        np.add.at(table, (holes[known, column].astype(int), classes[known]), rows.weights[known])
        table = table[:, table.sum(axis=0) > 0]
        differs = table.sum(axis=1).min() > 0 and table.shape[1] > 1
        if differs and chi2_contingency(table)[1] < CERTAIN / with_holes.size:
            telling.append(column)
    if not telling:
        return None

    def encode(rows: Observations) -> Observations:
        codes = np.concatenate([rows.codes, _holes(rows)[:, telling].astype(int)], axis=1)
        return replace(rows, codes=codes)

    return encode


def _holes(rows: Observations) -> np.ndarray:
    """Where cells are missing, reals then categories."""
    return np.concatenate([np.isnan(rows.real), rows.codes < 0], axis=1)


def encoder_of_values(rows: Observations) -> Encoder | None:
    """Reals of few values as categories; None without any."""
    few = few_values(rows)
    return few.as_categories if few.features else None


def encoder_of_atoms(rows: Observations) -> Encoder | None:
    """Atoms of reals as categories beside them; None without any."""
    found = {j: find_atoms(cells, rows.weights) for j, cells in enumerate(rows.real.T)}
    atoms = {j: values for j, values in found.items() if values}
    if not atoms:
        return None

    def encode(rows: Observations) -> Observations:
        codes = [at_atoms(rows.real[:, j], values)[:, None] for j, values in atoms.items()]
        return replace(rows, codes=np.concatenate([rows.codes, *codes], axis=1))

    return encode


def encoder_of_ranges(rows: Observations) -> Encoder:
    """All columns as categories: reals of many values by their quantiles."""
    few = few_values(rows)
    reals = few.as_categories(rows).real
    ends = [np.unique(np.nanquantile(one, np.arange(1, BINS) / BINS)) for one in reals.T]

    def encode(rows: Observations) -> Observations:
        cut = few.as_categories(rows)
        ranges = [
            np.where(np.isnan(one), -1, np.searchsorted(end, one))[:, None]
            for one, end in zip(cut.real.T, ends, strict=True)
        ]
        codes = np.concatenate([cut.codes, *ranges], axis=1).astype(int)
        return replace(cut, real=cut.real[:, :0], codes=codes)

    return encode


@dataclass(frozen=True)
class Encoded:
    """Members of the stack's own, fitted to rows with other columns."""

    name: str
    member: str
    find: Callable[[Observations], Encoder | None]
    n_classes: int
    encode: Encoder | None = None
    fitted: FittedMember | None = None

    def fit(self, rows: Observations) -> Encoded:
        """Find the columns, and fit."""
        encode = self.find(rows)
        if encode is None:
            return replace(self, encode=None)
        other = encode(rows)
        levels = tuple(np.maximum(other.codes.max(axis=0, initial=0) + 1, 2).tolist())
        training = SharedTraining(other, levels, self.n_classes, MixturePrior(), 0)
        return replace(
            self, encode=_within(encode, levels), fitted=fit_members(training, [self.member])[0]
        )

    def class_log_joint(self, rows: Observations, n_classes: int) -> np.ndarray:
        """Class log joint of rows."""
        if self.encode is None or self.fitted is None:
            return np.zeros((rows.n_obs, n_classes))
        return self.fitted.class_log_joint(self.encode(rows))


def _within(encode: Encoder, levels: tuple[int, ...]) -> Encoder:
    """Levels that were not seen are missing."""

    def encoded(rows: Observations) -> Observations:
        other = encode(rows)
        return replace(other, codes=np.where(other.codes < np.array(levels), other.codes, -1))

    return encoded


@dataclass(frozen=True)
class Tree:
    """Class-conditional Chow-Liu tree: one tree for all classes, tables of each.

    Edges are those of the largest conditional mutual information given the class, less the price of
    their numbers; holes are summed out exactly.
    """

    name: str
    find: Callable[[Observations], Encoder | None]
    n_classes: int
    strength: float = 5.0
    encode: Encoder | None = None
    order: tuple[int, ...] = ()
    parent: tuple[int, ...] = ()
    tables: tuple[np.ndarray, ...] = ()
    shares: np.ndarray | None = None

    def fit(self, rows: Observations) -> Tree:
        """Find the tree on labelled rows, pair by pair where both cells are there."""
        encode = self.find(rows)
        if encode is None or not encode(rows).codes.shape[1]:
            return replace(self, encode=None)
        other = encode(rows).take(rows.labels >= 0)
        codes, n_columns = other.codes, other.codes.shape[1]
        levels = np.maximum(codes.max(axis=0, initial=0) + 1, 2)
        first = np.concatenate([[0], np.cumsum(levels)])
        hot = np.zeros((codes.shape[0], first[-1]))
        row, column = np.nonzero(codes >= 0)
        hot[row, first[column] + codes[row, column]] = 1
        pairs = np.zeros((self.n_classes, first[-1], first[-1]))
        for c in range(self.n_classes):
            weight = np.where(other.labels == c, other.weights, 0)
            pairs[c] = hot.T @ (weight[:, None] * hot)
        part = [slice(*ends) for ends in itertools.pairwise(first)]
        single = [np.diagonal(pairs[:, p, p], axis1=1, axis2=2) for p in part]
        gains = np.zeros((n_columns, n_columns))
        log_n = np.log(max(other.weights.sum(), 2))
        for a in range(n_columns):
            for b in range(a):
                n = pairs[:, part[a], part[b]]
                expected = n.sum(2, keepdims=True) * n.sum(1, keepdims=True)
                total = n.sum((1, 2), keepdims=True)
                with np.errstate(divide="ignore", invalid="ignore"):
                    g = np.where(n > 0, n * np.log(n * total / expected), 0).sum()
                seen = (total > 0).sum()
                price = 0.5 * log_n * seen * (levels[a] - 1) * (levels[b] - 1)
                gains[a, b] = max(g - price, 0)
        tree = minimum_spanning_tree(np.where(gains > 0, -gains, 0)).toarray()
        linked = (tree < 0) | (tree.T < 0)
        order, parent, seen_columns = [], np.full(n_columns, -1), set()
        for root in range(n_columns):
            if root in seen_columns:
                continue
            found, before = breadth_first_order(linked, root, directed=False)
            order += found.tolist()
            seen_columns |= set(found.tolist())
            parent[found[1:]] = before[found[1:]]
        tables = []
        for j in range(n_columns):
            pooled = single[j].sum(0) + 1 / levels[j]
            own = single[j] + self.strength / 5 * pooled / pooled.sum()
            own = own / own.sum(1, keepdims=True)
            if parent[j] >= 0:
                n = pairs[:, part[parent[j]], part[j]] + self.strength * own[:, None]
                own = n / n.sum(2, keepdims=True)
            tables.append(own)
        shares = np.bincount(other.labels, other.weights, minlength=self.n_classes) + 1e-3
        return replace(
            self,
            encode=_within(encode, tuple(levels.tolist())),
            order=tuple(order),
            parent=tuple(parent.tolist()),
            tables=tuple(tables),
            shares=shares / shares.sum(),
        )

    def class_log_joint(self, rows: Observations, n_classes: int) -> np.ndarray:
        """Log joint of class and known cells, from the leaves to the roots."""
        if self.encode is None or self.shares is None:
            return np.zeros((rows.n_obs, n_classes))
        codes = self.encode(rows).codes
        said = [np.zeros((rows.n_obs, n_classes, t.shape[-1])) for t in self.tables]
        joint = np.tile(np.log(self.shares), (rows.n_obs, 1))
        for j in reversed(self.order):
            known = codes[:, j] >= 0
            levels = np.arange(said[j].shape[2])
            off = known[:, None] & (levels != codes[:, [j]])
            inside = np.where(off[:, None], -np.inf, said[j])
            top = inside.max(axis=2, keepdims=True)
            top = np.where(np.isfinite(top), top, 0)
            inside = np.exp(inside - top)
            if self.parent[j] < 0:
                joint += np.log(np.einsum("ncl,cl->nc", inside, self.tables[j])) + top[:, :, 0]
            else:
                up = np.einsum("ncl,cpl->ncp", inside, self.tables[j])
                said[self.parent[j]] += np.log(up) + top
        return joint


FOUND: dict[str, tuple[Callable[[Observations], Encoder | None], tuple[str, ...]]] = {
    "masks": (
        encoder_of_masks,
        ("normal", "normal_blend", "laplace_short", "laplace", "gaussian_loo_light"),
    ),
    "values": (
        encoder_of_values,
        ("normal_blend", "laplace_short", "laplace_evidence", "gaussian_loo", "gaussian_loo_light"),
    ),
    "atoms": (encoder_of_atoms, ("laplace_evidence", "gaussian_loo_light")),
}
"""What is found in a table, and the members that are given it."""


def candidates(n_classes: int) -> tuple[Encoded | Tree, ...]:
    """All of them."""
    encoded = [
        Encoded(f"{member} with {word}", member, find, n_classes)
        for word, (find, members) in FOUND.items()
        for member in members
    ]
    return (*encoded, Tree("tree", encoder_of_ranges, n_classes))
