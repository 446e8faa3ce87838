"""Labelled new rows: what is planted is found, and chance is not."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from bayesrbf import HybridMixtureClassifier
from bayesrbf.reading import TableError
from bayesrbf.report.labelled import Labelled, judge_labelled, rows_of_training
from bayesrbf.report.labelled_text import lines_of

CLASSES = np.array(["a", "b", "c"])


@dataclass
class Said:
    """A model whose probabilities are the columns of its table."""

    trained: np.ndarray
    before: int = 400

    @property
    def classes_(self) -> np.ndarray:
        return CLASSES[: self.trained.size]

    @property
    def rows_(self) -> SimpleNamespace:
        counts = np.round(self.trained * self.before).astype(int)
        labels = np.repeat(np.arange(counts.size), counts)
        return SimpleNamespace(labels=labels, weights=np.ones(labels.size))

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return X.to_numpy()

    def adapt_prior(self, X: pd.DataFrame) -> dict[str, pd.Series]:
        return {"trained": pd.Series(self.trained)}


def drawn(
    n: int, seed: int, shares: tuple[float, ...] = (0.5, 0.3, 0.2)
) -> tuple[Said, np.ndarray, np.ndarray]:
    """A model, its probabilities on new rows and labels drawn from them."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(4 * np.array(shares), size=n)
    labels = (p.cumsum(1)[:, :-1] < rng.random((n, 1))).sum(1)
    return Said(np.array(shares)), p, labels


def judged(model: Said, p: np.ndarray, labels: np.ndarray) -> Labelled:
    """The judgement on rows and the codes of their labels."""
    y = pd.Series(model.classes_[labels], name="outcome", dtype=object)
    return judge_labelled(model, pd.DataFrame(p), y)


def findings(told: Labelled) -> set[str]:
    return {remark.topic for remark in told.remarks if remark.found}


def test_a_model_that_is_right_is_rarely_found_wrong() -> None:
    """Calibration and frequencies are each found by chance once in a hundred tables."""
    found = [topic for seed in range(150) for topic in findings(judged(*drawn(120, seed)))]
    assert len(found) <= 9  # of two tests at 1 % in 150 tables: 3 expected, 9 once in 500


def test_scores_are_what_brute_force_gives_and_what_is_expected_of_them() -> None:
    model, p, labels = drawn(2000, 1)
    by_name = {one.name: one for one in judged(model, p, labels).scores}
    loss = -np.log(p[np.arange(labels.size), labels])
    assert by_name["log loss"].value == pytest.approx(loss.mean())
    assert by_name["share right"].value == pytest.approx((p.argmax(1) == labels).mean())
    assert by_name["log loss"].frequencies == pytest.approx(-np.log(model.trained[labels]).mean())
    for name in ("log loss", "Brier score", "share right"):
        one = by_name[name]
        error = (one.upper - one.lower) / (2 * 1.645)
        assert abs(one.value - one.expected) < 3.5 * error


def test_every_class_is_judged_against_the_rest_as_by_brute_force() -> None:
    model, p, labels = drawn(150, 8)
    told = judged(model, p, labels)
    assert list(told.against_rest) == CLASSES.tolist()
    for c, found in enumerate(told.against_rest.values()):
        own, others = p[labels == c, c], p[labels != c, c]
        pairs = own[:, None] - others
        assert found.auroc.value == pytest.approx(((pairs > 0) + 0.5 * (pairs == 0)).mean())
        assert found.sensitivity.value == pytest.approx((p[labels == c].argmax(1) == c).mean())
        assert found.specificity.value == pytest.approx((p[labels != c].argmax(1) != c).mean())
    assert any("AUROC" in line for line in lines_of(told))


def test_probabilities_that_are_too_extreme_are_found_and_named() -> None:
    model, p, labels = drawn(600, 2)
    sharp = p**3 / (p**3).sum(1, keepdims=True)
    told = judged(model, sharp, labels)
    assert "calibration" in findings(told)
    assert any("too extreme" in remark.sentence for remark in told.remarks)
    flat = p**0.3 / (p**0.3).sum(1, keepdims=True)
    assert any("too timid" in remark.sentence for remark in judged(model, flat, labels).remarks)


def test_other_class_frequencies_are_found_and_telling_them_helps() -> None:
    model, p, labels = drawn(3000, 3, (0.5, 0.5))
    keep = (labels == 1) | (np.arange(labels.size) % 5 == 0)
    told = judged(model, p[keep], labels[keep])
    assert {"classes", "calibration"} <= findings(told)
    (sentence,) = (one.sentence for one in told.remarks if one.topic == "classes")
    assert "class_prior" in sentence
    after, before = (float(word) for word in sentence.rstrip(".").split() if word[:2] == "0.")
    assert after < before


def test_probabilities_of_no_worth_are_found() -> None:
    model, p, labels = drawn(300, 4)
    told = judged(model, p, np.random.default_rng(0).permutation(labels))
    assert {"worth", "calibration"} <= findings(told)


def test_what_is_not_known_is_not_said_to_be_so() -> None:
    """A gain that chance explains is called that, and frequencies are seen not to change."""
    trained = np.array([0.5, 0.5])
    labels = np.tile([0, 1], 15)
    told = {}
    for name, right in (("some", 0.55), ("much", 0.9)):
        of_class = np.where(np.arange(30) < 12, 1 - right, right) if name == "some" else right
        p = np.stack([np.where(labels == 0, of_class, 1 - of_class)] * 2, axis=1)
        p[:, 1] = 1 - p[:, 0]
        remarks = judged(Said(trained), p, labels).remarks
        told[name] = {remark.topic: remark.sentence for remark in remarks}
    assert (
        "say more than the class frequencies of training do, which may be" in told["some"]["worth"]
    )
    assert "may be chance" not in told["much"]["worth"]
    assert told["much"]["classes"] == "No change of the class frequencies is seen beyond chance."
    assert "as far as these rows can tell" in told["some"]["calibration"]


def test_classes_that_training_did_not_have_are_named_and_not_scored() -> None:
    model, p, labels = drawn(60, 5)
    y = pd.Series(CLASSES[labels], name="outcome", dtype=object)
    y[:3], y[3:7] = "new", None
    told = judge_labelled(model, pd.DataFrame(p), y)
    assert (told.rows, told.unlabelled) == (53, 4)
    assert "labels" in findings(told)
    assert any("'new' (3)" in line for line in lines_of(told))
    without = judged(model, p[7:], labels[7:])
    assert told.scores == without.scores


@pytest.mark.parametrize("known", [0, 1])
def test_too_few_labels_are_refused(known: int) -> None:
    model, p, labels = drawn(20, 6)
    y = pd.Series(CLASSES[labels], name="outcome", dtype=object)
    y[known:] = None
    with pytest.raises(TableError, match="at least 2"):
        judge_labelled(model, pd.DataFrame(p), y)


def test_no_interval_is_empty_where_every_row_is_right() -> None:
    model = Said(np.array([0.5, 0.5]))
    labels = np.array([0, 1] * 6)
    p = np.where(labels[:, None] == np.arange(2), 0.9, 0.1)
    by_name = {one.name: one for one in judged(model, p, labels).scores}
    right = by_name["share right"]
    assert right.lower < right.value == right.upper == 1
    assert all(each.lower < each.share < each.upper for each in judged(model, p, labels).classes)


def test_rows_of_training_are_no_new_rows() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=60), "colour": rng.choice(["red", "blue"], 60)})
    X.loc[::7, "size"] = np.nan
    model = HybridMixtureClassifier(random_state=0).fit(X, np.arange(60) % 2)
    (remark,) = rows_of_training(model, X.iloc[10:40].reset_index(drop=True))
    assert remark.found
    assert remark.sentence.startswith("30 of 30 rows equal rows that the model was fitted to")
    assert not list(rows_of_training(model, X.assign(size=X["size"] + 1)))
