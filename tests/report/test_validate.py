"""Held-out probabilities are held out, and the rule that chooses looks at training rows only."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bayesrbf.report.choose import Trial, choose_mixture
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
def test_choice_does_not_depend_on_held_out_labels() -> None:
    table = mixed_table()
    X, y = table.drop(columns="outcome"), table["outcome"]
    common = {"categorical_features": ["colour"], "random_state": 0}
    first = choose_mixture(X[:60], y[:60], common)
    again = choose_mixture(X[:60].copy(), y[:60].copy(), common)
    assert first.settings == again.settings
    assert [t.losses.tolist() for t in first.trials] == [t.losses.tolist() for t in again.trials]


@pytest.mark.slow
def test_choice_tries_labels_and_holes_only_where_there_are_any() -> None:
    table = mixed_table(60, hidden=0.0).drop(columns="colour").fillna(0.5)
    X, y = table.drop(columns="outcome"), table["outcome"]
    choice = choose_mixture(X, y, {"random_state": 0})
    assert len(choice.trials) == 4
    assert choice.unlabelled == ""
    y = y.where(np.arange(60) > 5, None)
    X.iloc[0, 0] = np.nan
    choice = choose_mixture(X, y, {"random_state": 0})
    assert choice.unlabelled.startswith("Rows without a label, counted ")
    names = [trial.name for trial in choice.trials]
    assert [word in " ".join(names) for word in ("without a label", "holes")] == [True, True]


@pytest.mark.slow
def test_two_components_win_where_a_class_has_two_clusters() -> None:
    rng = np.random.default_rng(0)
    place = rng.integers(0, 3, 300)
    X = pd.DataFrame({"a": np.array([-4.0, 0.0, 4.0])[place] + rng.normal(0, 0.5, 300)})
    y = pd.Series(np.where(place == 1, "middle", "ends"), dtype=object)
    assert choose_mixture(X, y, {"random_state": 0}).settings["n_components"] == 3


@pytest.mark.parametrize(("gain", "wins"), [(0.0, False), (0.05, False), (0.5, True)])
def test_challenger_must_beat_its_own_noise(gain: float, wins: bool) -> None:
    noise = np.random.default_rng(0).normal(0, 1, 50)
    noise -= noise.mean()
    champion = Trial("a", {}, np.ones(50))
    assert Trial("b", {}, 1 - gain + noise).beats(champion) is wins


def test_logistic_regression_takes_holes_hidden_labels_and_new_levels() -> None:
    table = mixed_table()
    X, y = table.drop(columns="outcome"), table["outcome"]
    model = logistic_regression(["colour"])(X[:60], y[:60])
    X.loc[65, "colour"] = "green"
    p = model.predict_proba(X[60:])
    assert p.shape == (10, 2)
    assert p.sum(1) == pytest.approx(np.ones(10))
