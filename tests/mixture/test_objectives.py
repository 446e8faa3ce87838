"""Objectives on rows: slopes, limits, and what each of them must not depend on."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

import numpy as np
import pytest

from bayesrbf.base.arrays import class_log_joint
from bayesrbf.base.priors import OBJECTIVES, SHARPNESS, SMOOTHING, Objective
from bayesrbf.mixture.objective import margin_violation, objective_and_gradient, soft_hinge
from tests.cases import structure

EVERY = [
    *(Objective(name) for name in OBJECTIVES),
    Objective("hinge", margin=2.0, hinge_weight=1.7),
    Objective("blend", kappa=0.0),
]


def rows(n_classes: int = 3, spread: float = 6.0) -> tuple[np.ndarray, np.ndarray]:
    """Log joints and labels, one in five hidden."""
    rng = np.random.default_rng(n_classes)
    labels = rng.integers(0, n_classes, size=40)
    labels[::5] = -1
    return rng.normal(scale=spread, size=(40, n_classes)) - 20.0, labels


@pytest.mark.parametrize("objective", EVERY, ids=attrgetter("name"))
@pytest.mark.parametrize("n_classes", [1, 2, 4])
def test_slopes_equal_central_differences(objective, n_classes):
    joint, labels = rows(n_classes)
    _, slopes = objective_and_gradient(objective, joint, labels)
    for label in range(n_classes):
        step = np.zeros(n_classes)
        step[label] = 1e-5
        above, _ = objective_and_gradient(objective, joint + step, labels)
        below, _ = objective_and_gradient(objective, joint - step, labels)
        np.testing.assert_allclose(slopes[:, label], (above - below) / 2e-5, atol=1e-6)


@pytest.mark.parametrize("objective", EVERY, ids=attrgetter("name"))
def test_a_factor_of_the_density_counts_as_often_as_the_density(objective):
    """b + t adds (alpha + beta) t: slopes sum to the weight of the density in every row."""
    joint, labels = rows()
    value, slopes = objective_and_gradient(objective, joint, labels)
    moved, same = objective_and_gradient(objective, joint + 7.0, labels)
    np.testing.assert_allclose(moved, value + 7.0 * objective.generative_weight, atol=1e-9)
    np.testing.assert_allclose(slopes, same, atol=1e-9)
    np.testing.assert_allclose(slopes.sum(axis=1), objective.generative_weight, atol=1e-12)


@pytest.mark.parametrize(
    ("limit", "of"),
    [
        (Objective("blend", kappa=1.0), Objective("likelihood")),
        (Objective("blend", kappa=0.0), Objective("conditional")),
        (Objective("hinge", hinge_weight=0.0), Objective("likelihood")),
    ],
    ids=attrgetter("name"),
)
def test_the_ends_of_a_dial_are_other_objectives(limit, of):
    joint, labels = rows()
    for found, expected in zip(
        objective_and_gradient(limit, joint, labels),
        objective_and_gradient(of, joint, labels),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_conditional_is_the_log_probability_of_the_label():
    joint, labels = rows()
    value, _ = objective_and_gradient(Objective("conditional"), joint, labels)
    probabilities = np.exp(joint) / np.exp(joint).sum(axis=1, keepdims=True)
    shown = labels >= 0
    np.testing.assert_allclose(np.exp(value[shown]), probabilities[shown, labels[shown]])
    assert np.all(value[~shown] == 0)


def test_a_soft_maximum_is_near_the_best_rival():
    joint, labels = rows(4)
    shown = labels >= 0
    joint, labels = joint[shown], labels[shown]
    violation, _ = margin_violation(8.0, joint, labels)
    own = joint[np.arange(labels.size), labels]
    others = joint.copy()
    others[np.arange(labels.size), labels] = -np.inf
    above = violation - (8.0 - own + others.max(axis=1))
    assert np.all((above > -1e-12) & (above < np.log(3) / SHARPNESS + 1e-12))


def test_a_row_beyond_the_margin_pulls_nothing():
    loss, slope = soft_hinge(np.array([-0.2, 0.0, 1.0, 50.0]))
    np.testing.assert_allclose(loss, [0.0, 0.025, 1.0, 50.0])
    np.testing.assert_allclose(slope, [0.0, 0.5, 1.0, 1.0])


def test_the_smoothed_hinge_is_within_a_quarter_of_its_width_of_the_hinge():
    violation = np.linspace(-1, 1, 201)
    error = soft_hinge(violation)[0] - np.maximum(violation, 0)
    assert error.max() == pytest.approx(SMOOTHING / 4)
    assert error.min() >= 0


def test_rows_that_nothing_explains_have_finite_slopes():
    joint = np.full((3, 3), -1e300)
    for objective in EVERY:
        _, slopes = objective_and_gradient(objective, joint, np.array([0, 1, -1]))
        assert np.all(np.isfinite(slopes))


def test_components_are_summed_within_their_class():
    specification = structure(classes=(0, 0, 1))
    joint = np.log([[0.1, 0.2, 0.4], [0.3, 0.3, 0.2]])
    by_class, shares = class_log_joint(joint, specification.class_slices)
    np.testing.assert_allclose(np.exp(by_class), [[0.3, 0.4], [0.6, 0.2]])
    np.testing.assert_allclose(shares, [[1 / 3, 2 / 3, 1], [0.5, 0.5, 1]])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kappa", 1.5),
        ("kappa", np.nan),
        ("hinge_weight", -1.0),
        ("margin", np.inf),
    ],
)
def test_constants_without_meaning_are_refused(field, value):
    with pytest.raises(ValueError, match=f"{field} must be"):
        replace(Objective(), **{field: value})
