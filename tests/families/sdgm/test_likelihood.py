"""The likelihood of label sets and completions against loops and differences."""

from __future__ import annotations

import numpy as np
import pytest

from bayesrbf.families.sdgm import posterior as label_likelihood
from bayesrbf.families.sdgm.posterior import (
    Labels,
    complete_curvature,
    completion_error,
    expect,
    hidden_information,
    to_logits,
    weight_gradient,
    weight_slices,
)

CLASSES = np.array([0, 0, 1, 2])
SETS = np.array(
    [[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1], [0, 1, 1], [1, 0, 0]], dtype=bool
)
SIZES = np.array([1, 4, 1, 3, 1, 2, 1])


def problem(sizes: np.ndarray = SIZES, seed: int = 0):
    rng = np.random.default_rng(seed)
    starts = np.cumsum(sizes) - sizes
    allowed = np.repeat(SETS[:, CLASSES], sizes, axis=0)
    labels = Labels(allowed, starts, rng.uniform(0.2, 3.0, sizes.size))
    widths = (3, 2, 0, 4)
    designs = tuple(rng.normal(size=(allowed.shape[0], width)) for width in widths)
    weights = rng.normal(size=sum(widths))
    return designs, labels, np.log([0.4, 0.6, 1.0, 1.0]), weights


def by_loops(designs, labels, log_proportions, weights) -> np.ndarray:
    logits = to_logits(designs, weights, log_proportions)
    rows = []
    for start, size in zip(labels.starts, labels.sizes, strict=True):
        terms = []
        for point in range(start, start + size):
            p = np.exp(logits[point]) / np.exp(logits[point]).sum()
            terms.append(p[labels.allowed[point]].sum())
        rows.append(np.log(np.mean(terms)))
    return np.array(rows)


def value(designs, labels, log_proportions, weights) -> float:
    return expect(labels, to_logits(designs, weights, log_proportions)).log_likelihood


def slope(designs, labels, log_proportions, weights) -> np.ndarray:
    return weight_gradient(
        designs, expect(labels, to_logits(designs, weights, log_proportions)).logit_gradient
    )


def test_pointwise_is_the_mean_of_summed_probabilities() -> None:
    case = problem()
    expectation = expect(case[1], to_logits(case[0], case[3], case[2]))
    expected = by_loops(*case)
    np.testing.assert_allclose(expectation.pointwise, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(expectation.log_likelihood, case[1].weights @ expected, rtol=1e-12)


def test_a_row_that_may_have_any_class_says_nothing() -> None:
    designs, labels, log_proportions, weights = problem()
    expectation = expect(labels, to_logits(designs, weights, log_proportions))
    anything = int(labels.starts[4])
    assert expectation.pointwise[4] == pytest.approx(0, abs=1e-15)
    np.testing.assert_allclose(expectation.logit_gradient[anything], 0, atol=1e-15)


@pytest.mark.parametrize("sizes", [SIZES, np.ones(7, dtype=int)], ids=["holes", "whole"])
def test_derivatives_are_those_of_the_value(sizes: np.ndarray) -> None:
    designs, labels, log_proportions, weights = problem(sizes)
    h = 1e-6
    by_difference, curvature = np.empty_like(weights), np.empty((weights.size, weights.size))
    for i in range(weights.size):
        step = h * np.eye(weights.size)[i]
        above = (designs, labels, log_proportions, weights + step)
        below = (designs, labels, log_proportions, weights - step)
        by_difference[i] = (value(*above) - value(*below)) / (2 * h)
        curvature[i] = (slope(*below) - slope(*above)) / (2 * h)
    expectation = expect(labels, to_logits(designs, weights, log_proportions))
    np.testing.assert_allclose(
        weight_gradient(designs, expectation.logit_gradient), by_difference, atol=1e-7
    )
    complete = complete_curvature(designs, labels, expectation)
    observed = complete - hidden_information(designs, labels, expectation)
    np.testing.assert_allclose(observed, curvature, atol=1e-7)
    assert np.linalg.eigvalsh(complete)[0] > -1e-12
    assert np.linalg.eigvalsh(observed)[0] < -0.1  # what the blend is for


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    designs, labels, log_proportions, weights = problem()
    expectation = expect(labels, to_logits(designs, weights, log_proportions))
    whole = hidden_information(designs, labels, expectation)
    monkeypatch.setattr(label_likelihood, "BLOCK_NUMBERS", 2 * weight_slices(designs)[-1].stop)
    np.testing.assert_allclose(hidden_information(designs, labels, expectation), whole, atol=1e-13)


def test_the_error_of_completions_is_their_spread() -> None:
    designs, labels, log_proportions, weights = problem()
    logits = to_logits(designs, weights, log_proportions)
    expectation = expect(labels, logits)
    total = 0.0
    for row, (start, size) in enumerate(zip(labels.starts, labels.sizes, strict=True)):
        if size > 1:
            p = np.exp(logits[start : start + size])
            q = (p * labels.allowed[start]).sum(axis=1) / p.sum(axis=1)
            total += labels.weights[row] ** 2 * q.var(ddof=1) / size / q.mean() ** 2
    assert completion_error(labels, expectation) == pytest.approx(np.sqrt(total), rel=1e-12)
    whole = problem(np.ones(7, dtype=int))
    expectation = expect(whole[1], to_logits(whole[0], whole[3], whole[2]))
    assert completion_error(whole[1], expectation) == 0


def test_far_logits_stay_numbers() -> None:
    designs, labels, log_proportions, weights = problem()
    expectation = expect(labels, to_logits(designs, 1e12 * weights, log_proportions))
    assert np.isfinite(expectation.pointwise).all()
    assert np.isfinite(expectation.logit_gradient).all()
