"""What trees add to a stack: the default beside smooth members alone and other trees.

Members and candidates are fitted once a split, and each set is pooled as a stack pools its members.
Beside the tables of ``test_stack`` stand the five of ``test_gaps`` that are rules. Figures are log
losses on new rows. A filled forest has medians with indicators; in one on a side, scikit-learn
sends missing cells to one side of a split.

``BAYESRBF_TABLES`` chooses, ``BAYESRBF_SEEDS`` sets the number of splits (3). Results are kept as
they come.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest
from sklearn.base import ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from bayesrbf import StackedClassifier
from bayesrbf.base.priors import POOL_PRIOR
from bayesrbf.base.rows import Observations
from bayesrbf.families.stack.fitted import StackSettings
from bayesrbf.families.stack.members import BY_NAME_ALONE, DEFAULT, LITE, SMOOTH
from bayesrbf.families.stack.trees import tree_cells
from bayesrbf.fit.table import TrainingTable
from bench.figures import Row, show
from bench.pools import Pools
from bench.stack_tables import CHOSEN, FRESH
from bench.test_gaps import RULES, split_of
from bench.test_stack import GENTLE, chosen
from tests.measured import part

SEEDS = int(os.environ.get("BAYESRBF_SEEDS", "3"))


@dataclass(frozen=True)
class OtherTrees:
    """Trees of scikit-learn as a member."""

    name: str
    model: ClassifierMixin
    fitted: Any = None

    def fit(self, rows: Observations) -> OtherTrees:
        """Fit to labelled rows."""
        rows = rows.take(
            np.repeat(np.arange(rows.n_obs), (rows.labels >= 0) * rows.weights.astype(int))
        )
        return replace(self, fitted=self.model.fit(tree_cells(rows), rows.labels))

    def class_log_joint(self, rows: Observations, n_classes: int) -> np.ndarray:
        """Log class probabilities."""
        p = np.zeros((rows.n_obs, n_classes))
        p[:, self.fitted.classes_] = self.fitted.predict_proba(tree_cells(rows))
        return np.log(np.maximum(p, POOL_PRIOR.least))


def candidates() -> tuple[OtherTrees, ...]:
    """Other trees."""
    forest = partial(RandomForestClassifier, 60, random_state=0)
    medians = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    boosting = HistGradientBoostingClassifier(early_stopping=False, random_state=0, **GENTLE)
    return (
        OtherTrees("filled forest", make_pipeline(medians, forest())),
        OtherTrees("forest on one side", forest()),
        OtherTrees("more boosting", boosting),
    )


class WithCandidates(StackedClassifier):
    """The members of the default, those that were part of it, and every candidate."""

    def _settings(self, training: TrainingTable, fitted: Any = None) -> StackSettings:
        settings = super()._settings(training, fitted)
        members = (*BY_NAME_ALONE, *settings.members)
        return replace(settings, members=members, extra=candidates())


SETS: Final = {
    "default": (),
    "with boosting": ("more boosting",),
    "with laplace and normal": BY_NAME_ALONE,
}
"""What is pooled beside the default."""
FORESTS: Final = {
    "smooth": (),
    "filled forest": ("filled forest",),
    "one side": ("forest on one side",),
}
"""What takes the place of its forest."""
LITES: Final = {"lite": LITE, "lite, smooth": tuple(name for name in LITE if name != "forest")}


def losses(table: str, holes: bool, seed: int) -> Row:
    """Log losses of all sets."""
    data = split_of(table, seed, holes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = WithCandidates(random_state=seed).fit(data.X, data.y)
        pools = Pools(model, data)
        few = tuple(name for name in model.members_ if name.endswith("_levels"))
        sets = {name: (*DEFAULT, *more) for name, more in SETS.items()}
        sets |= {name: (*SMOOTH, *more) for name, more in FORESTS.items()}
        return {name: pools.loss((*members, *few)) for name, members in (sets | LITES).items()}


def test_trees(data_folder: object) -> None:
    lines, commits = [], []
    asked = (*CHOSEN, *FRESH, *RULES)
    tables = chosen(asked, "BAYESRBF_TABLES")
    for holes in (False, True):
        rows = []
        for table in tables:
            for seed in range(SEEDS):
                key: Row = {"table": table, "holes": holes, "seed": seed}
                rows.append(part("trees", key, partial(losses, **key)))
        commits += [row["commit"] for row in rows]
        means = pd.DataFrame(rows).drop(columns=["holes", "seed", "commit"])
        means = means.groupby("table", sort=False).mean()
        more = means.sub(means["default"], axis=0)
        for name in (*SETS, *FORESTS, *LITES):
            line = {"cells": "30 % hidden" if holes else "complete", "members": name}
            for title, some in (("18 tables", CHOSEN), ("11 tables", FRESH), ("rules", RULES)):
                line[title] = means.loc[means.index.isin(some), name].mean()
            lines.append({**line, "beyond default": more[name].mean(), "se": more[name].sem()})
    if not lines:
        pytest.skip("BAYESRBF_TABLES names no table of this benchmark")
    counts = {"tables": (len(tables), len(asked)), "splits": (SEEDS, 3)}
    show("stack/trees", lines, digits=4, counts=counts, commits=commits)
    smooth = [line for line in lines if line["members"] == "smooth"]
    assert all(line["beyond default"] > -line["se"] for line in smooth)
