"""Held-out probabilities are held out, and the report says what its mixture chose among."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bayesrbf import HybridMixtureClassifier
from bayesrbf.report.families import FAMILIES
from bayesrbf.report.job import Job
from bayesrbf.report.validate import (
    Frequencies,
    HeldOutRows,
    class_frequencies,
    hold_out,
    logistic_regression,
)
from tests.report.tables import mixed_table


class Peeking:
    """A classifier that knows the rows it was fitted to and nothing else."""

    def __init__(self, X: pd.DataFrame, y: pd.Series) -> None:
        self.seen, self.classes_ = set(X.index), np.unique(y.dropna().to_numpy(dtype=str))

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """One where the row was seen."""
        known = np.array([row in self.seen for row in X.index])
        return np.column_stack([~known, known]).astype(float)


def held_out(labels: list[object], n_folds: int = 5) -> HeldOutRows:
    """Run the peeking classifier."""
    X = pd.DataFrame({"a": np.arange(len(labels), dtype=float)})
    y = pd.Series(labels, dtype=object)
    return hold_out(X, y, {"peek": Peeking}, n_folds=n_folds)


def test_no_row_is_scored_by_a_model_that_saw_it() -> None:
    found = held_out(["a", "b", None] * 20)
    assert np.array_equal(found.probabilities["peek"][found.scored, 1], np.zeros(40))
    assert np.isnan(found.probabilities["peek"][found.labels < 0]).all()


def test_rare_classes_are_in_every_training_part() -> None:
    found = held_out(["a"] * 20 + ["b"] * 20 + ["a"])
    assert len(found.scored) == 41
    rare = hold_out(
        pd.DataFrame({"a": np.arange(41.0)}),
        pd.Series(["a"] * 20 + ["b"] * 20 + ["c"], dtype=object),
        {"frequencies": class_frequencies},
    )
    assert rare.folds[-1] == -1
    assert len(rare.scored) == 40
    assert (rare.probabilities["frequencies"][rare.scored, 2] > 0).all()


def test_columns_follow_the_classes_of_the_whole_table() -> None:
    """A training part without a class gives it probability zero in its own column."""

    def blind(X: pd.DataFrame, y: pd.Series) -> Frequencies:
        return Frequencies(np.array(["b"]), np.ones(1))

    y = pd.Series(["a", "b"] * 10, dtype=object)
    found = hold_out(pd.DataFrame({"a": np.arange(20.0)}), y, {"blind": blind})
    assert found.probabilities["blind"].tolist() == [[0.0, 1.0]] * 20


@pytest.mark.slow
def test_the_mixture_of_the_report_says_what_it_chose_among() -> None:
    table = mixed_table()
    X, y = table.drop(columns="outcome"), table["outcome"]
    kinds = {name: "categorical" if name == "colour" else "real" for name in X}
    job = Job("table", "outcome", X, y, kinds, "map", 0, family="mixture")
    fitted = FAMILIES["mixture"].procedure(job)(X[:60], y[:60])
    names, losses, chosen = zip(*fitted.trials, strict=True)
    assert len(set(names)) == len(names) == len(fitted.model.candidates_)
    assert chosen == (True, *[False] * (len(names) - 1))
    assert f"Among {len(names)} candidates the rule chose: {names[0]}." == fitted.sentence
    assert np.isfinite(losses).all()
    assert any("rows without a label count not" in name for name in names)
    assert sum("missing cells tell something" in name for name in names) == 1
    again = eval(fitted.call, {"HybridMixtureClassifier": HybridMixtureClassifier})
    again.set_params(categorical_features=["colour"], random_state=0).fit(X[:60], y[:60])
    np.testing.assert_array_equal(again.predict_proba(X[60:]), fitted.model.predict_proba(X[60:]))


def test_logistic_regression_takes_holes_hidden_labels_and_new_levels() -> None:
    table = mixed_table()
    X, y = table.drop(columns="outcome"), table["outcome"]
    model = logistic_regression(["colour"])(X[:60], y[:60])
    X.loc[65, "colour"] = "green"
    p = model.predict_proba(X[60:])
    assert p.shape == (10, 2)
    assert p.sum(1) == pytest.approx(np.ones(10))
