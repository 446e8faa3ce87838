"""Figures of a rehearsal equal counts, and its labels have the law of the truth."""

from __future__ import annotations

import numpy as np
import pytest

from bayesrbf.answers.rehearse import LEVELS, covers, drawn_labels, sentence, to_dataset, truth


def simulated(n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), n)
    return p, (p.cumsum(axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1)


def test_the_truth_is_tempered_to_the_labels() -> None:
    p, labels = simulated(4000)
    sharp = p**3 / (p**3).sum(axis=1, keepdims=True)
    found = truth(sharp, labels)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert np.abs(found - p).mean() < np.abs(sharp - p).mean() / 4


def test_labels_come_as_often_as_their_probabilities_say() -> None:
    p, labels = simulated(300)
    rng, alone = np.random.default_rng(1), np.arange(300)
    shares = np.mean([np.eye(3)[drawn_labels(p, labels, alone, rng)] for _ in range(800)], axis=0)
    assert np.abs(shares - p).max() < 5 * np.sqrt(0.25 / 800)


def test_no_class_is_lost() -> None:
    labels = np.repeat([0, 1], [38, 2])
    p = np.tile([0.98, 0.02], (40, 1))
    rng, alone = np.random.default_rng(0), np.arange(40)
    for _ in range(50):
        assert np.bincount(drawn_labels(p, labels, alone, rng), minlength=2).min() >= 2
    with pytest.raises(ValueError, match="too few rows of some class"):
        drawn_labels(np.tile([1.0, 0.0], (40, 1)), labels, alone, rng)


def test_copies_of_a_row_have_one_label() -> None:
    p, labels = simulated(30)
    copies = np.r_[np.arange(20), np.arange(10)]
    drawn = drawn_labels(p, labels, copies, np.random.default_rng(0))
    np.testing.assert_array_equal(drawn[20:], drawn[:10])


def test_intervals_of_known_coverage_are_counted_so_and_shrunken_ones_are_seen() -> None:
    rng = np.random.default_rng(0)
    truths = rng.uniform(0.4, 0.6, (20_000, 2))
    centre = truths + rng.normal(0, 0.03, truths.shape)
    for level, z in zip(LEVELS, (0.6745, 1.2816, 1.6449), strict=True):
        half = 0.03 * z
        assert abs(covers(centre - half, centre + half, truths).mean() - level) < 0.01
        assert covers(centre - half / 10, centre + half / 10, truths).mean() < 0.14


def test_figures_are_means_of_fits_with_their_errors() -> None:
    rng = np.random.default_rng(0)
    coverage, width = rng.random((2, 2, 3, 3))
    table = to_dataset(coverage, width, ("trees", "process"), "laplace")
    for t in range(2):
        for k, level in enumerate(LEVELS):
            one = table.isel(teacher=t).sel(level=level)
            assert one["coverage"] == pytest.approx(sum(coverage[t, :, k]) / 3)
            error = np.sqrt(np.var(coverage[t, :, k], ddof=1) / 3)
            assert one["coverage_error"] == pytest.approx(error)
            assert one["overall_width"] == pytest.approx(width[:, :, k].mean())
    fits = coverage[:, :, -1].ravel()
    assert table["overall_error"][-1] == pytest.approx(np.sqrt(np.var(fits, ddof=1) / 6))
    assert np.isnan(
        to_dataset(coverage[:, :1], width[:, :1], ("a", "b"), "")["coverage_error"]
    ).all()


def test_the_sentence() -> None:
    assert sentence(0.9, 0.908, 3) == (
        "90 % intervals held the truth 91 times in 100 when labels of these rows were drawn from "
        "three other models."
    )
