"""Novelty: the share of a density's own rows, with the same holes, that are more typical."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import bayesrbf
from bayesrbf import MixtureDensity
from bayesrbf.app.check import NOVEL_ROW
from bayesrbf.app.predict import novelty_of
from bayesrbf.mixture.cells import SIMULATED
from bayesrbf.mixture.points import component_covariances
from tests.cases import generative
from tests.fit.test_column_transforms import skewed
from tests.fit.test_point_masses import spiked

ERROR = 4 * 0.5 / SIMULATED**0.5


def test_one_component_compares_distances_together_and_by_columns() -> None:
    """Minus half the squared Mahalanobis distance, and that of every column by itself."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3)) @ rng.normal(size=(3, 3))
    model = MixtureDensity(random_state=0).fit(X)
    rows = X[:50].copy()
    rows[::2, 1] = np.nan
    mixture = model.model_
    covariance = (
        mixture.units.scale[:, None]
        * component_covariances(mixture.parameters, mixture.specification)[0]
    )
    covariance *= mixture.units.scale
    centre = mixture.units.backward(mixture.parameters.means)[0]
    drawn = rng.multivariate_normal(np.zeros(3), covariance, 20_000)

    def distances(away: np.ndarray, shape: np.ndarray) -> np.ndarray:
        together = np.einsum("ni,ni->n", away, np.linalg.solve(shape, away.T).T)
        return np.stack([together, (away**2 / np.diag(shape)).sum(axis=1)])

    for row, found in zip(rows, model.novelty(rows), strict=True):
        seen = ~np.isnan(row)
        shape = covariance[np.ix_(seen, seen)]
        others = distances(drawn[:, seen], shape)
        own = distances((row - centre)[None, seen], shape)
        by = others.mean(axis=1, keepdims=True), others.std(axis=1, keepdims=True)
        tails = [norm.logsf((some - by[0]) / by[1]).sum(axis=0) for some in (own, others)]
        share = (tails[1] > tails[0]).mean()
        assert found == pytest.approx(share, abs=ERROR)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_novelties_of_the_models_own_rows_are_uniform(missing: float) -> None:
    """Whatever cells are missing: so they can be compared."""
    model = MixtureDensity(2, column_transforms="power", random_state=0).fit(skewed(300))
    drawn = model.sample(1500)
    drawn[np.random.default_rng(1).random(drawn.shape) < missing] = np.nan
    found = model.novelty(drawn)
    assert ((found >= 0) & (found <= 1)).all()
    for level in (0.1, 0.5, 0.9):
        assert (found < level).mean() == pytest.approx(level, abs=0.06)
    assert model.novelty(np.full((1, 3), np.nan))[0] == pytest.approx(0.5)


def test_rows_of_another_kind_are_novel_and_units_change_nothing() -> None:
    X = spiked()
    model = MixtureDensity(2, random_state=0).fit(X)
    far = np.array([[1e3, 0.0], [np.nan, 40.0], [1e300, np.nan]])
    np.testing.assert_array_equal(model.novelty(far), 1.0)
    factors = np.array([2.0, 0.25])
    scaled = MixtureDensity(2, random_state=0).fit(X * factors)
    np.testing.assert_allclose(scaled.novelty(X * factors), model.novelty(X), atol=1e-9)


def test_a_rows_novelty_does_not_depend_on_the_others() -> None:
    X = spiked(40)
    model = MixtureDensity(2, random_state=0).fit(X)
    together = model.novelty(X)
    np.testing.assert_array_equal([model.novelty(row[None])[0] for row in X[:10]], together[:10])


def test_categories_count_by_their_surprise() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(["x", "y", "z"], p=[0.6, 0.38, 0.02], size=400)})
    found = MixtureDensity(random_state=0).fit(X).novelty(pd.DataFrame({"a": ["x", "y", "z"]}))
    assert found[0] < 0.5 < found[1] < 0.9 < found[2]


def test_classifiers_tell_beside_the_density(tmp_path) -> None:
    X = spiked(80)
    y = (np.nan_to_num(X[:, 1]) > 1.2).astype(int)
    model = generative(random_state=0, inference="laplace").fit(X, y)
    frame = pd.DataFrame(X, columns=["a", "b"], index=[f"row {i}" for i in range(80)])
    told = model.uncertainty(frame.to_numpy())
    np.testing.assert_array_equal(told["novelty"], model.novelty(X))
    named = generative(random_state=0, inference="laplace").fit(frame, y)
    assert list(named.uncertainty(frame)["obs"].to_numpy()) == list(frame.index)
    named.save(tmp_path / "model.safetensors")
    loaded = bayesrbf.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.novelty(frame), named.novelty(frame))


def test_the_sentence_on_new_rows_names_the_column() -> None:
    rng = np.random.default_rng(0)
    size = rng.normal(size=200)
    X = pd.DataFrame(
        {"mass": np.exp(3 + 0.2 * size), "length": 10 + size + rng.normal(size=200) / 4}
    )
    model = MixtureDensity(column_transforms="power", random_state=0).fit(X)

    def said_of(rows: pd.DataFrame) -> str:
        novel = rows[model.novelty(rows) > NOVEL_ROW]
        return novelty_of(model, novel, len(novel), len(rows))

    assert said_of(X) == ""
    wrong = X.iloc[:20].assign(mass=lambda rows: rows["mass"] * 1000)
    with pytest.warns(UserWarning, match="'mass' has 20 cells far outside"):
        said = said_of(wrong)
    unlike = "20 of 20 rows are unlike the training table"
    assert said == f"{unlike}: mass stands out in 20 of them."
