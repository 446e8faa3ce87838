"""Matrix scaling after the pool: what it finds, what is luck, and what it leaves as it was."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from bayesrbf import StackedClassifier, load
from bayesrbf.base.rows import Subjects
from bayesrbf.families.stack.matrix_scaling import (
    MatrixScaling,
    effective_parameters,
    fit_matrix_scaling,
)
from bayesrbf.fit.held_out import HeldOut

CONFUSION = np.array([[0.0, 0, 0, 0], [0, -0.2, 0.5, 0], [0, 0.6, -0.3, 0], [0, 0, 0, 0.1]])
"""Members take the second class for the third, and the third for the second."""


def labelled(
    n: int, matrix: np.ndarray, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log probabilities of a pool, the true ones, and labels drawn from these."""
    rng = np.random.default_rng(seed)
    log_q = log_softmax(rng.normal(size=(n, len(matrix))) * 1.5, axis=1)
    p = softmax(log_q + np.maximum(log_q, np.log(1e-4)) @ matrix.T, axis=1)
    labels = (p.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1)
    return log_q, np.log(p), labels


def held(log_q: np.ndarray, labels: np.ndarray, fraction: float = 0.0) -> HeldOut:
    """Held-out rows of one member."""
    n, k = log_q.shape
    fractions = np.tile([fraction, 1.0], (n, 1))
    masked = np.zeros((n, 1, 1, k))
    return HeldOut(log_q[:, None], labels, np.ones(n), masked, fractions, log_shares=np.zeros(k))


def fitted(log_q: np.ndarray, labels: np.ndarray, fraction: float = 0.0) -> MatrixScaling:
    scaling = fit_matrix_scaling(log_q, held(log_q, labels, fraction))
    assert scaling is not None
    return scaling


def test_it_finds_which_classes_are_taken_for_each_other() -> None:
    log_q, log_p, labels = labelled(20_000, CONFUSION)
    scaled = fitted(log_q, labels).scaled(log_q, np.zeros(len(log_q)))
    before, after = (abs(np.exp(one) - np.exp(log_p)).mean() for one in (log_q, scaled))
    assert after < 0.1 * before
    np.testing.assert_allclose(np.exp(scaled).sum(axis=1), 1, rtol=1e-12)


def test_what_is_luck_changes_little() -> None:
    """The pool is right; without the factor of the gain, new rows would lose .04 nats."""
    rises = []
    for seed in range(40):
        log_q, _, labels = labelled(150, np.zeros((5, 5)), seed)
        scaling = fit_matrix_scaling(log_q, held(log_q, labels))
        new, _, _ = labelled(2000, np.zeros((5, 5)), 1000 + seed)
        scaled = new if scaling is None else scaling.scaled(new, np.zeros(len(new)))
        rises.append(float((np.exp(new) * (new - scaled)).sum(axis=1).mean()))
    assert min(rises) >= 0
    assert np.mean(rises) < 0.003


def test_two_classes_have_none_and_order_of_classes_changes_nothing() -> None:
    log_q, _, labels = labelled(500, np.zeros((2, 2)))
    assert fit_matrix_scaling(log_q, held(log_q, labels)) is None
    log_q, _, labels = labelled(500, CONFUSION)
    order = np.array([2, 0, 3, 1])
    turned = fitted(log_q[:, order], np.argsort(order)[labels])
    none = np.zeros(len(log_q))
    expected = fitted(log_q, labels).scaled(log_q, none)[:, order]
    np.testing.assert_allclose(turned.scaled(log_q[:, order], none), expected, atol=1e-6)


def test_a_class_never_held_out_and_an_empty_row_keep_their_probabilities() -> None:
    log_q, _, labels = labelled(2000, CONFUSION)
    known = np.column_stack([log_q[:, :2], np.full(len(log_q), -1.0), log_q[:, 2:]])
    known = log_softmax(known, axis=1)
    scaling = fitted(known, np.array([0, 1, 3, 4])[labels])
    assert np.isnan(scaling.offsets).tolist() == [False, False, True, False, False]
    assert scaling.n_judged == 4
    scaled = scaling.scaled(known, np.zeros(len(known)))
    np.testing.assert_allclose(scaled[:, 2], known[:, 2], rtol=1e-12)
    assert abs(scaled - known).max() > 0.1
    np.testing.assert_allclose(scaling.scaled(known, np.ones(len(known))), known, rtol=1e-12)


def test_it_leaves_as_cells_go_missing() -> None:
    log_q, _, labels = labelled(2000, CONFUSION)
    scaling = fitted(log_q, labels)
    whole, some, half = (
        abs(scaling.scaled(log_q, np.full(len(log_q), h)) - log_q).mean() for h in (0.0, 0.1, 0.5)
    )
    assert whole > 2 * some > 100 * half


def test_rows_with_missing_cells_teach_a_matrix_of_complete_rows() -> None:
    """What rows with a few of their cells missing show is scaled up by the factor that it had."""
    log_q, log_p, labels = labelled(20_000, 0.66 * CONFUSION)
    scaling = fitted(log_q, labels, 0.05)
    scaled = scaling.scaled(log_q, np.full(len(log_q), 0.05))
    assert abs(np.exp(scaled) - np.exp(log_p)).mean() < 0.01


def test_effective_parameters_are_those_of_the_eigenvalues() -> None:
    rng = np.random.default_rng(0)
    x, information = rng.normal(size=(50, 4)), rng.random(50)
    values = np.linalg.eigvalsh((x * information[:, None]).T @ x)
    found = effective_parameters(x, information, np.full(4, 3.0))
    assert found == pytest.approx((values / (values + 3)).sum())


def test_a_stack_reports_what_its_matrix_makes_of_the_pool() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 240)
    X = rng.normal(size=(240, 3)) + np.array([[2.0, 0, 0], [0, 1, 0], [0, 0.4, 0]])[y]
    model = StackedClassifier(["laplace_evidence"], cv=3, random_state=0).fit(X, y)
    stack = model.model_
    matrix = rng.normal(size=(3, 3)) / 4
    scaling = MatrixScaling(matrix, np.array([0.1, -0.2, 0.3]))
    plain = replace(model.fitted_, model=replace(stack, matrix_scaling=None))
    changed = replace(model.fitted_, model=replace(stack, matrix_scaling=scaling))
    new = rng.normal(size=(20, 3))
    model.fitted_ = plain
    log_q = np.log(model.predict_proba(new))
    model.fitted_ = changed
    expected = log_softmax(log_q + log_q @ matrix.T + scaling.offsets, axis=1)
    np.testing.assert_allclose(np.log(model.predict_proba(new)), expected, rtol=1e-7)
    answer = model.refine().uncertainty(new)
    inside = (answer["lower"] <= answer["probability"]) & (answer["probability"] <= answer["upper"])
    assert inside.all()


def log_loss_of_complete_rows(model: StackedClassifier, X: np.ndarray, y: np.ndarray) -> float:
    p = model.predict_proba(X)
    return float(-np.log(p[np.arange(len(y)), y]).mean())


@pytest.mark.parametrize("by_class", [(0.02, 0.1, 0.2), (0.1, 0.5, 0.9)])
def test_cells_that_are_missing_by_class_move_no_probability_of_complete_rows(
    by_class: tuple[float, ...],
) -> None:
    """The pool ignores why cells are missing, and so does its matrix."""
    rng = np.random.default_rng(0)

    def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
        y = rng.integers(0, 3, n)
        return np.column_stack([rng.normal(size=(n, 2)) + y[:, None], rng.normal(size=(n, 2))]), y

    X, y = rows(400)
    X[:, 2:][rng.random((400, 2)) < np.array(by_class)[y, None]] = np.nan
    members = ["laplace_evidence", "forest"]
    model = StackedClassifier(members, cv=3, missingness="ignorable", random_state=0).fit(X, y)
    new, labels = rows(600)
    loss = log_loss_of_complete_rows(model, new, labels)
    plain = replace(model.model_, matrix_scaling=None)
    model.fitted_ = replace(model.fitted_, model=plain)
    assert loss < log_loss_of_complete_rows(model, new, labels) + 0.01


def test_rows_of_one_subject_are_no_more_evidence_than_one_row() -> None:
    log_q, _, labels = labelled(200, 2 * CONFUSION)
    one = fit_matrix_scaling(log_q, held(log_q, labels))
    assert one is not None
    ten = replace(
        held(np.repeat(log_q, 10, axis=0), np.repeat(labels, 10)),
        subjects=Subjects.of(np.repeat(np.arange(200), 10)),
    )
    several = fit_matrix_scaling(np.repeat(log_q, 10, axis=0), ten)
    assert several is not None
    np.testing.assert_allclose(several.matrix, one.matrix, atol=1e-6)


def test_a_stack_with_a_singleton_class_is_saved(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = np.append(rng.integers(0, 3, 240), 3)
    X = rng.normal(size=(241, 3)) + np.array([[2.0, 0, 0], [0, 1, 0], [0, 0.4, 0], [0, 0, 9]])[y]
    model = StackedClassifier(["laplace_evidence"], cv=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class of one row
        model.fit(X, y)
    scaling = MatrixScaling(np.diag([0.1, 0.2, -0.1, 0.0]), np.array([0.1, -0.2, 0.3, np.nan]))
    model.fitted_ = replace(model.fitted_, model=replace(model.model_, matrix_scaling=scaling))
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
