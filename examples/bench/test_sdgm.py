"""Sparse discriminative mixtures: the dense dual, costs, what averaging and a stack gain by them.

The dense dual is the kernel form as it was published: no change of basis, no jumps, a mode that
is found between updates, and weights that are dropped when their precision has reached its
bound. ``BAYESRBF_SEEDS`` sets the number of small tables (10), ``BAYESRBF_ROWS`` the largest
table (100,000 rows). The value of a sparse mixture as a member of the stack is measured as in
``test_stack.py``, with its variables.
"""

from __future__ import annotations

import os
import resource
import sys
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from bayesrbf import SDGMClassifier
from bayesrbf.datasets import load_table
from bayesrbf.families.sdgm import evidence as sdgm_ard
from bayesrbf.families.sdgm import evidence as sdgm_fit
from bayesrbf.families.sdgm.evidence import Factored
from bench import test_stack as stacks
from bench.figures import show
from bench.stack_tables import CHOSEN, FRESH, split
from reproduce.hayashi import splits

SEEDS = int(os.environ.get("BAYESRBF_SEEDS", "10"))
MOST_ROWS = int(os.environ.get("BAYESRBF_ROWS", "100000"))
SMALL = 60
MANY_COLUMNS = ("raetsch_splice", "vowel")
"""Left out of the comparison of modes: sixty columns, eleven classes."""
PUBLISHED, PUBLISHED_WEIGHTS = 9.15, 7
"""Of one mode on Ripley's table from every seed, as asked: 9.1 % when rounded, and weights."""
MOST_SHARE = 0.03
"""Of the dense dual's time, for the primal form."""
MOST_MEMORY = 2.0
"""GiB, for the largest table."""


def dense(features: np.ndarray, reduce: bool) -> Factored:
    """A rank beyond every number of weights: nothing is reduced."""
    wide = np.zeros((len(features), features.shape[1]))
    return Factored(features, wide, np.eye(features.shape[1]))


def test_the_primal_form_and_the_dense_dual(
    data_folder: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, test = load_table("ripley_synth_train"), load_table("ripley_synth_test")
    lines, seconds = [], {}
    SDGMClassifier(1, n_init=1, calibrate=False).fit(
        train.X, train.y
    )  # what is compiled or imported once
    for name in ("primal", "kernel", "dense dual"):
        form = "primal" if name == "primal" else "kernel"
        if name == "dense dual":
            monkeypatch.setattr(sdgm_fit, "factor_features", dense)
            monkeypatch.setattr(sdgm_ard, "_doomed", lambda determined, pull: determined < 0)
            monkeypatch.setattr(sdgm_ard, "SETTLED", -1.0)
            monkeypatch.setattr(sdgm_ard, "LOOSE_STEPS", sdgm_ard.TIGHT_STEPS)
        model = SDGMClassifier(form=form, n_init=1, random_state=0, calibrate=False)
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(train.X, train.y)
        seconds[name] = time.process_time() - start
        error = 100 * float(np.mean(model.predict(test.X) != np.asarray(test.y)))
        lines.append(
            {"form": name, "s": seconds[name], "error %": error, "weights": model.n_weights_}
        )
    show("sdgm/dual", lines, {"error %": 1})
    assert seconds["primal"] <= MOST_SHARE * seconds["dense dual"]


def test_ripley_from_every_seed(data_folder: object) -> None:
    train, test = load_table("ripley_synth_train"), load_table("ripley_synth_test")
    lines = []
    for seed in range(SEEDS):
        model = SDGMClassifier(random_state=seed, calibrate=False).fit(train.X, train.y)
        line = {"seed": seed}
        for prediction in ("single-mode", "average"):
            model.set_params(prediction=prediction)
            errors = int(np.sum(model.predict(test.X) != np.asarray(test.y)))
            line |= {f"error %, {prediction}": errors / 10}
        lines.append(line | {"weights": model.n_weights_, "of all": model.mode_n_weights_.sum()})
    show("sdgm/ripley", lines, 1, {"seeds": (SEEDS, 10)})
    assert max(line["error %, single-mode"] for line in lines) <= PUBLISHED
    assert max(line["weights"] for line in lines) <= PUBLISHED_WEIGHTS
    averages = [line["error %, average"] for line in lines]  # The paper has one mode alone.
    assert np.mean(averages) + np.std(averages) / np.sqrt(len(averages)) <= PUBLISHED


@pytest.mark.parametrize("table", ["banana", "breast_cancer"])
def test_official_splits_from_every_seed(table: str, data_folder: object) -> None:
    """Table 1 of the command has one seed a split; how much is chance?"""
    lines = []
    for seed in range(SEEDS):
        errors: dict[str, list[float]] = {"single-mode": [], "average": []}
        for data in splits(table):
            model = SDGMClassifier(form="kernel", random_state=seed, calibrate=False).fit(
                data.X, data.y
            )
            for prediction, found in errors.items():
                model.set_params(prediction=prediction)
                found.append(100 * float(np.mean(model.predict(data.X_new) != data.y_new)))
        lines.append({"seed": seed} | {name: np.mean(found) for name, found in errors.items()})
    frame = pd.DataFrame(lines)
    show(f"sdgm/official_{table}", lines, 1, {"seeds": (SEEDS, 10)})
    assert frame["average"].mean() < frame["single-mode"].mean() + 0.5


def test_averaging_on_small_tables(data_folder: object) -> None:
    train, test = load_table("ripley_synth_train"), load_table("ripley_synth_test")
    y, y_new = np.asarray(train.y), np.asarray(test.y)
    losses = []
    for seed in range(SEEDS):
        rows = np.random.default_rng(seed).permutation(len(y))[:SMALL]
        model = SDGMClassifier(random_state=seed, calibrate=False).fit(train.X.iloc[rows], y[rows])
        truth = np.searchsorted(model.classes_, y_new)
        for prediction in ("average", "single-mode", "plug-in"):
            p = model.set_params(prediction=prediction).predict_proba(test.X)
            loss = -np.log(np.maximum(p[np.arange(truth.size), truth], 1e-6)).mean()
            losses.append({"seed": seed, "prediction": prediction, "nats": loss})
    means = pd.DataFrame(losses).groupby("prediction")["nats"].mean()
    show("sdgm/small", [means.to_dict()], counts={"tables": (SEEDS, 10)})
    assert means["average"] < means["plug-in"] + 0.01


@pytest.mark.parametrize("form", ["primal", "kernel"])
def test_all_modes_and_one(form: str, data_folder: object) -> None:
    """Tables that are split anew: at most 300 rows to learn from, ``SEEDS`` splits."""
    lines = []
    for name in (name for name in FRESH if name not in MANY_COLUMNS):
        for seed in range(SEEDS):
            data = split(name, seed, holes=False)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = SDGMClassifier(form=form, random_state=seed, calibrate=False).fit(
                    data.X, data.y
                )
            line = {"table": name, "modes": model.mode_n_weights_.size}
            for prediction in ("single-mode", "average"):
                p = model.set_params(prediction=prediction).predict_proba(data.X_new)
                own = np.maximum(p[np.arange(data.y_new.size), data.y_new], 1e-6)
                line |= {
                    f"nats, {prediction}": -np.log(own).mean(),
                    f"error %, {prediction}": 100 * np.mean(p.argmax(axis=1) != data.y_new),
                }
            lines.append(line)
    means = pd.DataFrame(lines).groupby("table", sort=False).mean().reset_index()
    show(
        f"sdgm/modes_{form}", means, {"modes": 1, "error %, single-mode": 1, "error %, average": 1},
        {"splits": (SEEDS, 10)},
    )  # fmt: skip
    assert (means["nats, average"] < means["nats, single-mode"] + 0.01).all()


def test_cost_against_rows() -> None:
    lines = []
    for n_rows in (250, 2_500, 25_000, 100_000):
        if n_rows > MOST_ROWS:
            continue
        X, y = make_classification(
            n_rows, n_features=5, n_informative=5, n_redundant=0, n_clusters_per_class=4,
            flip_y=0.05, random_state=0,
        )  # fmt: skip
        model = SDGMClassifier(4, n_init=2, max_iter=300, random_state=0, calibrate=False)
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        lines.append(
            {
                "rows": n_rows,
                "s": time.process_time() - start,
                "updates": model.n_iter_,
                "weights": model.n_weights_,
                "GiB": used / 2**30 if sys.platform == "darwin" else used / 2**20,
            }
        )
    show("sdgm/rows", lines, 2, {"rows of the largest table": (lines[-1]["rows"], 100_000)})
    assert lines[-1]["GiB"] < MOST_MEMORY
    each = [line["s"] / line["updates"] / line["rows"] for line in lines]
    assert each[-1] < 3 * each[1], "an update takes more than its rows explain"


def test_cost_against_weights() -> None:
    lines = []
    for n_columns in (2, 5, 10, 15):
        X, y = make_classification(
            1_000, n_features=n_columns, n_informative=n_columns, n_redundant=0,
            n_clusters_per_class=2, flip_y=0.05, random_state=0,
        )  # fmt: skip
        model = SDGMClassifier(2, n_init=1, random_state=0, calibrate=False)
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        seconds = time.process_time() - start
        lines.append(
            {
                "columns": n_columns,
                "weights at first": int(model.path_.n_weights[0]),
                "in the end": model.n_weights_,
                "mean of all updates": model.path_.n_weights.mean(),
                "updates": model.n_iter_,
                "s": seconds,
                "ms an update": 1e3 * seconds / model.n_iter_,
            }
        )
    show("sdgm/weights", lines, {"mean of all updates": 0, "s": 2, "ms an update": 1})
    assert all(line["in the end"] < line["weights at first"] for line in lines)


def sparse_member(seed: int) -> list[object]:
    """One more member of the stack; the kernel form has no more coordinates than rows."""
    return [
        ("sdgm", SDGMClassifier(2, form="kernel", n_init=4, random_state=seed, calibrate=False))
    ]


@pytest.mark.parametrize("holes", [False, True], ids=["complete", "holes"])
def test_value_in_the_stack(holes: bool, data_folder: object) -> None:
    extended = {
        "stack": stacks.stack("default"),
        "stack with SDGM": stacks.stack("default", sparse_member),
    }
    results = pd.DataFrame(stacks.contest(CHOSEN, holes, extended, "sdgm_in_the_stack"))
    if results.empty:
        pytest.skip("BAYESRBF_TABLES names no table of this set")
    kind = "with_holes" if holes else "complete"
    told = stacks.summary(results)
    show(
        f"sdgm/in_the_stack_{kind}", told, {"error %": 1, "rank": 1, "behind": 4, "se": 4},
        stacks.counts(results, len(CHOSEN), extended),
    )  # fmt: skip
    if "behind" in told and len(results) > 4:
        more = told.loc["stack with SDGM"]
        assert more["behind"] > -3 * more["se"]
