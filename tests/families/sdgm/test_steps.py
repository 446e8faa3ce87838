"""Steps and spreads with one curvature of all weights, and with one a component."""

from __future__ import annotations

import numpy as np
import pytest

from bayesrbf.families.sdgm import evidence as mode_search
from bayesrbf.families.sdgm.evidence import (
    check_size,
    inverse_curvature,
    is_wide,
    newton_step,
    separate_step,
    spread_of_components,
)
from bayesrbf.families.sdgm.posterior import (
    LabelExpectation,
    Labels,
    complete_curvature,
    component_curvatures,
    curvature_product,
    expect,
    to_logits,
    weight_gradient,
    weight_slices,
)

N = 30
SIZES = (4, 0, 6, 3)
CLASSES = np.array([0, 0, 1, 2])
LOG_PROPORTIONS = np.log([0.3, 0.7, 1.0, 1.0])


def problem() -> tuple[tuple[np.ndarray, ...], Labels, np.ndarray]:
    """Designs of four components, one of them bare, labels, and weights."""
    rng = np.random.default_rng(0)
    designs = tuple(rng.normal(size=(N, size)) for size in SIZES)
    allowed = np.eye(3, dtype=bool)[rng.integers(3, size=N)][:, CLASSES]
    labels = Labels(allowed, np.arange(N), rng.uniform(0.5, 2, N))
    return designs, labels, rng.normal(size=sum(SIZES))


def at(designs: tuple[np.ndarray, ...], labels: Labels, weights: np.ndarray) -> LabelExpectation:
    return expect(labels, to_logits(designs, weights, LOG_PROPORTIONS))


def test_blocks_and_products_are_those_of_the_whole_curvature() -> None:
    designs, labels, weights = problem()
    expectation = at(designs, labels, weights)
    whole = complete_curvature(designs, labels, expectation)
    blocks = component_curvatures(designs, expectation)
    for block, place in zip(blocks, weight_slices(designs), strict=True):
        np.testing.assert_allclose(block, whole[place, place], atol=1e-12)
    vector = np.random.default_rng(1).normal(size=weights.size)
    np.testing.assert_allclose(
        curvature_product(designs, expectation, vector), whole @ vector, atol=1e-12
    )


def test_separate_steps_climb_and_end_in_newtons(monkeypatch: pytest.MonkeyPatch) -> None:
    designs, labels, weights = problem()
    expectation = at(designs, labels, weights)
    slope = weight_gradient(designs, expectation.logit_gradient) - weights
    newton, exact = newton_step(designs, labels, expectation, slope, complete=True)
    assert exact
    rough = separate_step(designs, expectation, slope)
    assert slope @ rough > 0
    curvature = complete_curvature(designs, labels, expectation) + np.eye(slope.size)
    assert np.linalg.norm(slope - curvature @ rough) <= mode_search.RELATIVE * np.linalg.norm(slope)
    monkeypatch.setattr(mode_search, "RELATIVE", 1e-12)
    monkeypatch.setattr(mode_search, "GRADIENTS", 200)
    np.testing.assert_allclose(separate_step(designs, expectation, slope), newton, atol=1e-9)


def test_the_spread_of_a_component_with_the_others_held_is_the_smaller() -> None:
    designs, labels, weights = problem()
    expectation = at(designs, labels, weights)
    together, log_together = spread_of_components(designs, labels, expectation, wide=False)
    alone, log_alone = spread_of_components(designs, labels, expectation, wide=True)
    for wider, narrower in zip(together, alone, strict=True):
        assert (np.linalg.eigvalsh(wider - narrower) > -1e-12).all()
    assert log_alone >= log_together  # Fischer's inequality


def test_what_is_wide_depends_on_rows_and_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    designs, _, _ = problem()
    size = sum(SIZES)
    monkeypatch.setattr(mode_search, "WIDE", (N + size) * size**2)
    assert not is_wide(designs)
    assert is_wide((*designs, np.ones((N, 1))))
    assert is_wide(tuple(np.tile(design, (2, 1)) for design in designs))
    assert not is_wide((np.ones((N, 10 * size)),))


def test_too_many_weights_for_one_curvature_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    designs, _, _ = problem()
    monkeypatch.setattr(mode_search, "MAX_COORDINATES", sum(SIZES))
    check_size(designs)
    with pytest.raises(ValueError, match="14 weights are left, beyond the 13"):
        check_size((*designs, np.ones((N, 1))))


def test_the_inverse_of_a_curvature(capfd: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    matrix = root @ root.T + np.eye(5)
    inverse, log_determinant = inverse_curvature(matrix)
    np.testing.assert_allclose(inverse @ matrix, np.eye(5), atol=1e-12)
    assert log_determinant == pytest.approx(np.linalg.slogdet(matrix)[1])
    inverse, log_determinant = inverse_curvature(np.empty((0, 0)))  # no weight is left
    assert inverse.shape == (0, 0)
    assert log_determinant == 0
    assert capfd.readouterr().err == ""
