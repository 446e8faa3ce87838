"""What further members would add to the default where tables speak by gaps, rules and few values.

Members and candidates are fitted once a split. Each candidate is then pooled with the default as a
stack pools its members, and its difference is that of the log losses on new rows; it is empty
where a candidate finds nothing of its kind. Beside the tables of ``test_stack`` stand five that are
rules: all ends of tic-tac-toe, a balance, and the three monks' problems, at most 300 rows of each.

``BAYESRBF_TABLES`` chooses, ``BAYESRBF_SEEDS`` sets the number of splits (1). Results are kept as
they come.
"""

from __future__ import annotations

import itertools
import os
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

from bayesrbf import StackedClassifier
from bayesrbf.datasets import hide_cells
from bayesrbf.families.stack.fitted import StackSettings
from bayesrbf.families.stack.members import DEFAULT
from bayesrbf.fit.table import TrainingTable
from bench.figures import show
from bench.gap_members import candidates
from bench.pools import Pools
from bench.stack_tables import CHOSEN, FRESH, HIDDEN, Split, split
from bench.test_stack import chosen
from tests.measured import part

SEEDS = int(os.environ.get("BAYESRBF_SEEDS", "1"))
RULES = ("tictactoe", "balance", "monks1", "monks2", "monks3")
RULE_ROWS = 300
FEW, WORTH = 4, 0.005
"""Tables that tell nothing; nats by which a candidate that is left out may be better for sure."""


class WithCandidates(StackedClassifier):
    """The default, and every candidate."""

    def _settings(self, training: TrainingTable) -> StackSettings:
        settings = super()._settings(training)
        return replace(settings, members=DEFAULT, extra=candidates(settings.n_classes))


def differences(data: Split, seed: int) -> dict[str, float]:
    """Log loss of the default, and how much it changes with each candidate."""
    model = WithCandidates(random_state=seed).fit(data.X, data.y)
    pools = Pools(model, data)
    result = {"default": pools.loss(DEFAULT)}
    for place, name in list(enumerate(model.members_))[len(DEFAULT) :]:
        absent = np.ptp(pools.new[:, place], axis=1).max() < 1e-9
        result[name] = np.nan if absent else pools.loss([*DEFAULT, name]) - result["default"]
    return result


def rules(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Every row that there is, and its class by a rule."""
    if name == "tictactoe":
        boards = np.array(sorted(ends(("b",) * 9, "x")))
        return pd.DataFrame(boards).rename(columns=str), np.array([won(one, "x") for one in boards])
    if name == "balance":
        left, far, right, off = sides = np.array(list(itertools.product(range(1, 6), repeat=4))).T
        return pd.DataFrame(sides.T.astype(float)).rename(columns=str), np.sign(
            left * far - right * off
        )
    a, b, _, d, e, _ = all_rows = np.array(
        list(itertools.product(*(range(1, n + 1) for n in (3, 3, 2, 3, 4, 2))))
    ).T
    holds = {
        "monks1": (a == b) | (e == 1),
        "monks2": (all_rows == 1).sum(axis=0) == 2,
        "monks3": ((e == 3) & (d == 1)) | ((e != 4) & (b != 3)),
    }[name]
    if name == "monks3":  # one label in twenty is wrong
        holds = holds ^ (np.random.default_rng(0).random(holds.size) < 0.05)
    return pd.DataFrame(all_rows.T.astype(str)).rename(columns=str), holds


def ends(board: tuple[str, ...], player: str) -> set[tuple[str, ...]]:
    """Boards at which a game can end from here on."""
    if won(board, "x") or won(board, "o") or "b" not in board:
        return {board}
    free = (place for place, cell in enumerate(board) if cell == "b")
    other = "o" if player == "x" else "x"
    return set().union(*(ends((*board[:i], player, *board[i + 1 :]), other) for i in free))


def won(board: tuple[str, ...], player: str) -> bool:
    """Whether a player has three in a row."""
    cells = np.reshape(np.array(board) == player, (3, 3))
    lines = [*cells, *cells.T, cells.diagonal(), np.fliplr(cells).diagonal()]
    return any(line.all() for line in lines)


def split_of(name: str, seed: int, holes: bool) -> Split:
    """A split of a table of the stack's benchmark, or of rules."""
    if name not in RULES:
        return split(name, seed, holes)
    X, y = rules(name)
    X = hide_cells(X, HIDDEN, np.random.default_rng(seed)) if holes else X
    n = min(RULE_ROWS, y.size // 2)
    X, X_new, y, y_new = train_test_split(X, y, train_size=n, random_state=seed, stratify=y)
    return Split(
        X, np.unique(y, return_inverse=True)[1], X_new, np.unique(y_new, return_inverse=True)[1]
    )


@pytest.mark.parametrize("holes", [False, True], ids=["complete", "holes"])
def test_gaps(holes: bool, data_folder: object) -> None:
    rows, asked = [], (*CHOSEN, *FRESH, *RULES)
    for name in chosen(asked, "BAYESRBF_TABLES"):
        for seed in range(SEEDS):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                key = {"table": name, "holes": holes, "seed": seed}
                make = lambda: differences(split_of(name, seed, holes), seed)  # noqa: B023, E731
                rows.append(part("gaps", key, make))
    if not rows:
        pytest.skip("BAYESRBF_TABLES names no table of this benchmark")
    means = pd.DataFrame(rows).drop(columns=["holes", "seed", "commit"])
    means = means.groupby("table", sort=False).mean()
    counts = {"tables": (len(means), len(asked))}
    kind = "with_holes" if holes else "complete"
    show(f"gaps/{kind}_by_table", means, 4, counts)
    of_rules = means.index.isin(RULES)
    for title, some in (("tables", means[~of_rules]), ("rules", means[of_rules])):
        more = some.drop(columns="default")
        told = {
            "tables with something of its kind": more.notna().sum(),
            "more": more.mean(),
            "se": more.sem(),
            "more on all": more.fillna(0).mean(),
            "se of it": more.fillna(0).sem(),
            "better on": (more < 0).sum(),
        }
        show(f"gaps/{kind}_{title}", pd.DataFrame(told), 4, counts)
        if title == "tables" and len(some) > FEW:
            gain = -(told["more on all"] + 2 * told["se of it"])
            assert (gain <= WORTH).all(), "a candidate is worth being a member"
