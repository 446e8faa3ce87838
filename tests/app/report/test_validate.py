"""Held-out probabilities are held out, and the report says what its mixture chose among."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bayesrbf import HybridMixtureClassifier
from bayesrbf.app.report.families import FAMILIES
from bayesrbf.app.report.held_out import (
    LOGISTIC,
    Fitter,
    Frequencies,
    HeldOutRows,
    class_frequencies,
    hold_out,
    logistic_regression,
    rivals,
)
from bayesrbf.app.report.job import Job, Splits, splits_of
from bayesrbf.base.arrays import log_loss
from bayesrbf.table.encode import encode_labels
from bayesrbf.table.kinds import kind_named
from tests.app.report.tables import mixed_table


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
    return hold_out(X, y, {"peek": Peeking}, dealt(y, n_folds))


def dealt(y: pd.Series, n_folds: int = 5) -> Splits:
    """Rows dealt to folds by chance."""
    return splits_of(encode_labels(y)[1], n_folds, 0)


def test_no_row_is_scored_by_a_model_that_saw_it() -> None:
    found = held_out(["a", "b", None] * 20)
    assert np.array_equal(found.probabilities["peek"][found.scored, 1], np.zeros(40))
    assert np.isnan(found.probabilities["peek"][found.labels < 0]).all()


def test_rare_classes_are_in_every_training_part() -> None:
    found = held_out(["a"] * 20 + ["b"] * 20 + ["a"])
    assert len(found.scored) == 41
    X, y = (
        pd.DataFrame({"a": np.arange(41.0)}),
        pd.Series([*"a" * 20, *"b" * 20, "c"], dtype=object),
    )
    rare = hold_out(X, y, {"frequencies": class_frequencies}, dealt(y))
    assert rare.folds[-1] == -1
    assert len(rare.scored) == 40
    assert (rare.probabilities["frequencies"][rare.scored, 2] > 0).all()


def test_columns_follow_the_classes_of_the_whole_table() -> None:
    """A training part without a class gives it probability zero in its own column."""

    def blind(X: pd.DataFrame, y: pd.Series) -> Frequencies:
        return Frequencies(np.array(["b"]), np.ones(1))

    y = pd.Series(["a", "b"] * 10, dtype=object)
    found = hold_out(pd.DataFrame({"a": np.arange(20.0)}), y, {"blind": blind}, dealt(y))
    assert found.probabilities["blind"].tolist() == [[0.0, 1.0]] * 20


@pytest.mark.slow
def test_the_mixture_of_the_report_says_what_it_chose_among() -> None:
    table = mixed_table()
    X, y = table.drop(columns="outcome"), table["outcome"]
    kinds = {name: kind_named("categorical" if name == "colour" else "real") for name in X}
    job = Job("table", "outcome", X, y, kinds, "map", 0, family="mixture")
    fitted = FAMILIES["mixture"].procedure(job)(X[:60], y[:60])
    names, losses, chosen = zip(*fitted.trials, strict=True)
    assert len(set(names)) == len(names) == len(fitted.model.candidates_)
    assert chosen == (True, *[False] * (len(names) - 1))
    assert f"Among {len(names)} candidates the rule chose: {names[0]}." == fitted.message
    assert np.isfinite(losses).all()
    assert any("rows without a label count not" in name for name in names)
    assert sum("missing cells tell something" in name for name in names) == 1
    again = eval(fitted.call, {"HybridMixtureClassifier": HybridMixtureClassifier})
    again.set_params(categorical_features=["colour"], random_state=0).fit(X[:60], y[:60])
    np.testing.assert_array_equal(again.predict_proba(X[60:]), fitted.model.predict_proba(X[60:]))


def held_out_loss(fit: Fitter, X: pd.DataFrame, y: pd.Series) -> float:
    """Log loss of rows held out."""
    found = hold_out(X, y, {"one": fit}, dealt(y))
    return float(log_loss(found.probabilities["one"], found.labels).mean())


def test_the_penalty_of_logistic_regression_is_that_of_rows_held_out() -> None:
    """Thirty columns of noise cost next to nothing; two that tell all are hardly held back."""
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame(rng.normal(size=(80, 30))), np.arange(80) % 2
    noise = pd.Series(np.where(y, "a", "b"), dtype=object)
    assert held_out_loss(logistic_regression([]), X, noise) < np.log(2) + 0.03
    told = X.iloc[:, :2] + 4.0 * y[:, None]
    assert held_out_loss(logistic_regression([]), told, noise) < 0.02


def test_skewed_columns_do_not_weaken_logistic_regression() -> None:
    rng = np.random.default_rng(1)
    sick = rng.random(400) < 0.5
    z = pd.DataFrame({"a": rng.normal(sick, 1.0), "b": rng.normal(sick, 1.0)})
    y = pd.Series(np.where(sick, "sick", "well"), dtype=object)
    plain, skewed = (held_out_loss(logistic_regression([]), X, y) for X in (z, np.exp(2 * z)))
    assert skewed < plain + 0.02


def test_rows_that_belong_together_do_not_choose_the_penalty_of_logistic_regression() -> None:
    """Rows of noise, each four times: a penalty by rows would be none, one by groups is strong."""
    rng = np.random.default_rng(2)
    X = pd.DataFrame(np.repeat(rng.normal(size=(40, 20)), 4, axis=0)).add_prefix("x")
    y = pd.Series(np.repeat(np.where(rng.random(40) < 0.5, "a", "b"), 4), dtype=object)
    kinds = dict.fromkeys(X, kind_named("real"))
    job = Job("t", "y", X, y, kinds, "map", 0, groups=np.repeat(np.arange(40), 4))
    model = rivals(job)[LOGISTIC](X, y)
    assert np.abs(model.predict_proba(X)[:, 0] - (y == "a").mean()).max() < 0.1


def test_logistic_regression_takes_a_class_that_cannot_be_held_out() -> None:
    X, y = pd.DataFrame({"a": np.arange(6.0)}), pd.Series(list("aaaaab"), dtype=object)
    assert logistic_regression([])(X, y).predict_proba(X).shape == (6, 2)


def test_logistic_regression_takes_holes_hidden_labels_and_new_levels() -> None:
    table = mixed_table()
    X, y = table.drop(columns="outcome"), table["outcome"]
    model = logistic_regression(["colour"])(X[:60], y[:60])
    X.loc[65, "colour"] = "green"
    p = model.predict_proba(X[60:])
    assert p.shape == (10, 2)
    assert p.sum(1) == pytest.approx(np.ones(10))
