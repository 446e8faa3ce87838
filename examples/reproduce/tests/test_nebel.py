"""The table of median LVQ runs, goes on and is printed; its rivals are what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA
from sklearn.svm import SVC

from bayesrbf.families.median_lvq.fitted import candidates_of
from bayesrbf.families.median_lvq.records import Dissimilarities
from bayesrbf.families.median_lvq.search import climb, objective_of
from reproduce import nebel
from reproduce.cells import read_cells
from reproduce.dissimilarity_methods import (
    RIDGES,
    Categories,
    Centring,
    ClassDirections,
    ClippedKernelSVC,
    LabelledPropagation,
    LeadingDirections,
)
from reproduce.generalised_em import GeneralisedEM


def blobs(n_obs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.arange(n_obs) % 3
    return 3 * np.eye(3)[labels] + rng.normal(size=(n_obs, 3)), labels


X, Y = blobs(60, 0)
NEW, NEW_Y = blobs(30, 1)


def test_a_euclidean_matrix_loses_nothing_by_clipping() -> None:
    model = ClippedKernelSVC([2.0]).fit(cdist(X, X, "sqeuclidean"), Y)
    linear = SVC(C=2.0, kernel="linear").fit(X, Y)
    found = model.predict(cdist(NEW, X, "sqeuclidean"))
    assert found.tolist() == linear.predict(NEW).tolist()


def test_a_spectrum_is_clipped() -> None:
    D = np.random.default_rng(0).random((20, 20))
    model = ClippedKernelSVC().fit(D, np.arange(20) % 2)
    symmetric = (D + D.T) / 2
    kernel = Centring.of(symmetric).similarities(symmetric)
    assert np.linalg.eigvalsh(kernel).min() < -0.1
    assert np.linalg.eigvalsh(kernel @ model._projection).min() > -1e-10


def test_leading_directions_are_principal_components() -> None:
    D = cdist(X, X, "sqeuclidean")
    directions = LeadingDirections(2).fit(D)
    components = PCA(2).fit(X)
    known, new = components.transform(X), components.transform(NEW)
    np.testing.assert_allclose(directions.transform(D), cdist(known, known, "sqeuclidean"))
    np.testing.assert_allclose(
        directions.transform(cdist(NEW, X, "sqeuclidean")), cdist(new, known, "sqeuclidean")
    )


def test_class_directions_place_a_row_as_the_regression_on_all_others() -> None:
    D = cdist(X, X, "sqeuclidean")
    directions = ClassDirections()
    placed = directions.fit_transform(D, Y)
    centred, targets = X - X.mean(axis=0), np.eye(3)[Y]

    def ridge(rows: np.ndarray, of: np.ndarray, strength: float) -> np.ndarray:
        # All rows give the centre of X, and those learned from the mean of the targets.
        design = np.hstack([np.ones((len(rows), 1)), centred[rows]])
        penalty = strength * np.diag([0.0, 1.0, 1.0, 1.0])
        weights = np.linalg.solve(design.T @ design + penalty, design.T @ targets[rows])
        return np.hstack([np.ones((len(of), 1)), of]) @ weights

    spread = np.median(np.linalg.eigvalsh(centred.T @ centred))
    rows = np.arange(60)
    left_out = {
        ratio: np.vstack([ridge(rows[rows != i], centred[[i]], ratio * spread) for i in rows])
        for ratio in RIDGES
    }
    best = min(RIDGES, key=lambda ratio: ((targets - left_out[ratio]) ** 2).sum())
    known = left_out[best]
    np.testing.assert_allclose(placed, cdist(known, known, "sqeuclidean"), atol=1e-8)
    new = ridge(rows, NEW - X.mean(axis=0), best * spread)
    np.testing.assert_allclose(
        directions.transform(cdist(NEW, X, "sqeuclidean")),
        cdist(new, known, "sqeuclidean"),
        atol=1e-8,
    )


def test_the_cost_is_chosen_on_rows_that_are_held_out() -> None:
    D = cdist(X, X, "sqeuclidean")
    best = ClippedKernelSVC([1e-6, 1.0]).fit(D, Y)
    assert best.predict(D).tolist() == ClippedKernelSVC([1.0]).fit(D, Y).predict(D).tolist()


def test_exemplars_of_propagation_have_the_label_of_their_majority() -> None:
    model = LabelledPropagation().fit(cdist(X, X, "sqeuclidean"), Y)
    predicted = model.predict(cdist(NEW, X, "sqeuclidean"))
    assert np.mean(predicted == NEW_Y) > 0.8
    assert model.predict(np.zeros((2, 60))).shape == (2,)


@pytest.mark.slow
def test_a_quick_run_is_stored_and_printed(
    data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nebel.run(tmp_path, quick=True, seed=0)
    shown = capsys.readouterr().out
    assert "RSLVQ, swaps" in shown
    assert "aural sonar" in shown
    stored = read_cells(tmp_path / "nebel-quick.jsonl")
    assert (
        len(stored) == len(nebel.methods(nebel.EXPERIMENTS["aural sonar"], 0)) * nebel.QUICK.folds
    )
    for name, figures in stored.items():
        assert 0 <= figures["error"] < 0.5, name
    nebel.run(tmp_path, quick=True, seed=0)
    assert capsys.readouterr().out == shown


def test_every_table_is_square_and_labelled(data_folder: Path) -> None:
    for name, experiment in nebel.EXPERIMENTS.items():
        if name == "chromosomes":
            continue  # 150 MB
        rows = experiment.load()
        everyone = np.arange(rows.labels.size)
        values, _ = rows.split(everyone, everyone[:1])
        assert values.shape == (rows.labels.size,) * 2
        assert np.all(values >= 0)
        assert np.all(np.diag(values) == 0)
        assert np.bincount(rows.labels).min() >= 10


def test_value_differences_know_no_label_that_is_predicted() -> None:
    rng = np.random.default_rng(0)
    levels, labels = rng.integers(0, 3, (40, 5)), rng.integers(0, 2, 40)
    train, test = np.arange(25), np.arange(25, 40)
    known, new = Categories(levels, labels).split(train, test)
    others = np.where(np.arange(40) < 25, labels, 1 - labels)
    for ours, theirs in zip(
        (known, new), Categories(levels, others).split(train, test), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    # Two rows that differ in one column, whose levels have one row of each class and three.
    tiny = Categories(np.array([[0], [0], [1], [1], [1]]), np.array([0, 1, 0, 0, 0]))
    first, _ = tiny.split(np.arange(5), np.arange(1))
    assert first[0, 2] == pytest.approx(2 * (0.5 - 3.5 / 4) ** 2)


@pytest.mark.parametrize("objective", ["rslvq", "glvq"])
def test_swaps_go_on_from_the_generalised_em(objective: Any) -> None:
    D, to_train = cdist(X, X, "sqeuclidean"), cdist(NEW, X, "sqeuclidean")
    model = GeneralisedEM(2, objective=objective, random_state=0).fit(D, Y)
    assert np.mean(model.predict(to_train) == NEW_Y) > 0.8
    assert hasattr(model, "predict_proba") == (objective == "rslvq")
    assert model.exemplars_.shape == (6,)
    np.testing.assert_array_equal(Y[model.exemplars_], [0, 0, 1, 1, 2, 2])
    point = model._point
    candidates = candidates_of(Y, 3)
    rows = Dissimilarities(D, Y, np.ones(Y.size), candidates)
    end = objective_of(rows, model._prototypes, point.sigma)
    _, trace, _ = climb(end, point.exemplars, 100)
    assert trace.log_posterior[-1] >= end.value(point.exemplars)
