"""The learning curve: figures of recipes whose probabilities are known, and of a mixture."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.special import expit
from scipy.stats import entropy
from sklearn.base import BaseEstimator

import bayesrbf
from bayesrbf.answers.learning import TESTED, LearningCurve
from bayesrbf.fit.drawing import Rehearsal


def probabilities(X: Any) -> np.ndarray:
    """The truth: a hidden cell tells nothing."""
    p = expit(np.nan_to_num(np.asarray(X, dtype=float)).sum(axis=1))
    return np.stack([p, 1 - p], axis=1)


class Truth(BaseEstimator):
    """A density of complete rows and its class probabilities."""

    def __init__(self, random_state: int | None = None, frame: bool = False) -> None:
        self.random_state = random_state
        self.frame = frame
        self.classes_ = np.array(["sick", "well"])

    def sample(self, n: int) -> Any:
        rows = np.random.default_rng(self.random_state).normal(size=(n, 2))
        return pd.DataFrame(rows, columns=["a", "b"]) if self.frame else rows, np.zeros(n)

    def predict_proba(self, X: Any) -> np.ndarray:
        return probabilities(X)


class Told(BaseEstimator):
    """A recipe that knows the truth, whose log odds it multiplies, and writes down its rows."""

    seen: ClassVar[list[tuple[Any, np.ndarray]]] = []

    def __init__(
        self,
        factor: float = 1.0,
        inference: str = "map",
        class_prior: Any = None,
        random_state: Any = None,
    ) -> None:
        self.factor = factor
        self.inference = inference
        self.class_prior = class_prior
        self.random_state = random_state

    def fit(self, X: Any, y: np.ndarray) -> Self:
        self.n_obs_ = len(X)
        self.seen.append((X, y))
        return self

    def __rehearsal__(self) -> Rehearsal:
        return Rehearsal()

    def refine(self, method: str, draws: int) -> Self:
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        powers = probabilities(X) ** self.factor
        return powers / powers.sum(axis=1, keepdims=True)

    def uncertainty(self, X: Any, prob: float) -> xr.Dataset:
        half = np.full((len(X), 2), 1 / self.n_obs_)
        return xr.Dataset({"lower": (("obs", "label"), -half), "upper": (("obs", "label"), half)})


@pytest.fixture(autouse=True)
def _nothing_seen() -> None:
    Told.seen.clear()


COMPLETE = np.zeros((40, 2))


def curve(recipe: Told, X: Any = COMPLETE, **more: Any) -> LearningCurve:
    """The curve of a recipe where the truth is known, at three sizes."""
    truth = Truth(frame=isinstance(X, pd.DataFrame))
    return bayesrbf.learning_curve(
        truth, X, recipe=recipe, **{"sizes": [20, 40, 80], "repeats": 3, **more}
    )


def test_the_truth_has_no_excess_and_slope_one() -> None:
    found = curve(Told())
    np.testing.assert_allclose(found.excess, 0, atol=1e-12)
    np.testing.assert_allclose(found.slope, 1, atol=1e-6)
    np.testing.assert_allclose(found.width.T, [[2 / 20, 2 / 40, 2 / 80]] * 3)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_excess_is_the_divergence_and_slope_undoes_the_factor(factor: float) -> None:
    found = curve(Told(factor), random_state=3)
    tested = Truth(3).sample(TESTED + 3 * (20 + 40 + 80))[0][:TESTED]
    p, q = probabilities(tested), Told(factor).predict_proba(tested)
    np.testing.assert_allclose(found.excess, entropy(p, q, axis=1).mean(), rtol=1e-9)
    np.testing.assert_allclose(found.slope, 1 / factor, rtol=1e-3)
    assert found.log_loss == pytest.approx(entropy(p, axis=1).mean())


def test_tables_have_the_sizes_and_labels_that_the_truth_draws() -> None:
    curve(Told(), sizes=[400, 200], repeats=2)
    assert [len(X) for X, _ in Told.seen] == [200, 200, 400, 400]
    X, y = (np.concatenate(parts) for parts in zip(*Told.seen, strict=True))
    assert len(np.unique(X, axis=0)) == len(X)  # no row is in two tables
    z = ((y == "sick") - probabilities(X)[:, 0]).sum()
    assert abs(z) < 4 * np.sqrt(len(X) / 4)


def test_cells_are_hidden_as_in_rows_of_the_table() -> None:
    X = pd.DataFrame(COMPLETE, columns=["a", "b"])
    X.loc[:29, "b"] = np.nan
    curve(Told(), X, sizes=[500, 1000], repeats=1)
    rows = pd.concat([rows for rows, _ in Told.seen])
    assert rows.columns.tolist() == ["a", "b"]
    assert not rows["a"].isna().any()
    assert rows["b"].isna().mean() == pytest.approx(0.75, abs=0.05)


def test_columns_of_the_density_that_the_table_lacks_are_left_out() -> None:
    class Wide(Truth):
        def sample(self, n: int) -> pd.DataFrame:
            return super().sample(n)[0].assign(label="sick")[["label", "b", "a"]]

    X = pd.DataFrame(COMPLETE, columns=["a", "b"])
    found, plain = curve(Told(2.0), X, density=Wide(frame=True)), curve(Told(2.0), X)
    assert all(rows.columns.tolist() == ["a", "b"] for rows, _ in Told.seen)
    np.testing.assert_array_equal(found.excess, plain.excess)
    with pytest.raises(ValueError, match="columns of X by their names, or no others"):
        curve(Told(2.0), COMPLETE, density=Wide(frame=True))


def test_a_seed_repeats_the_tables_and_another_does_not() -> None:
    first, second, other = (curve(Told(2.0), random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.excess, second.excess)
    assert (first.excess != other.excess).all()
    tables = len(Told.seen) // 3
    for (X, y), (again, y_again) in zip(Told.seen[:tables], Told.seen[tables:], strict=False):
        np.testing.assert_array_equal(X, again)
        np.testing.assert_array_equal(y, y_again)


@pytest.mark.parametrize(
    ("power", "told"),
    [
        (-1.0, "about 100 rows more"),
        (-0.5, "about 300 rows more"),
        (-0.1, "400 rows do not"),
        (-1e-9, "400 rows do not"),
        (0.2, "400 rows do not"),
    ],
)
def test_the_sentence_says_how_many_rows_halve_a_power_law(power: float, told: str) -> None:
    sizes = np.array([50, 100, 200, 400])
    excess = 0.03 * (sizes[:, None] / 100.0) ** power * np.ones((4, 2))
    found = LearningCurve(100, sizes, 0.5, excess, excess, excess)
    assert found.sentence.startswith("With 100 rows log loss is about 0.030 above")
    assert told in found.sentence
    assert str(found).endswith(found.sentence)
    assert len(str(found).splitlines()) == 6


def test_nothing_is_halved_that_is_nothing() -> None:
    excess = np.array([[0.0004], [0.0001]])
    found = LearningCurve(100, np.array([100, 200]), 0.5, excess, excess, excess)
    assert found.sentence == "With 100 rows log loss is that of truth, to three decimals."


def test_figures_are_means_and_where_the_central_80_percent_are() -> None:
    refits = np.random.default_rng(0).random((3, 2, 11))
    found = LearningCurve(10, np.array([5, 10]), 0.5, *refits)
    for one, told in zip(refits, found.figures.values(), strict=True):
        ordered = np.sort(one, axis=1)  # of eleven, one is beyond each end
        assert told == pytest.approx(np.stack([one.mean(1), ordered[:, 1], ordered[:, 9]], 1))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"sizes": [20, 20]}, "two different"),
        ({"sizes": [1, 9]}, "two different"),
        ({"repeats": 0}, "repeats"),
    ],
)
def test_what_makes_no_curve_is_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        curve(Told(), **more)
    assert not Told.seen


def test_what_draws_no_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="Told has not: give a MixtureDensity"):
        curve(Told(), density=Told())
    assert not Told.seen


@pytest.mark.slow
def test_a_mixture_learns_from_more_rows() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        rng.normal(size=(60, 2)) + np.repeat([[0], [2]], 30, axis=0), columns=["a", "b"]
    )
    X["c"] = pd.Categorical(rng.choice(["u", "v"], 60))
    X.iloc[::3, 0] = X.iloc[::4, 2] = np.nan
    density = bayesrbf.MixtureDensity(1, random_state=0).fit(X)
    model = bayesrbf.HybridMixtureClassifier(1).fit(X, np.repeat(["sick", "well"], 30))
    found = bayesrbf.learning_curve(model, X, density=density, sizes=[30, 480], repeats=3)
    small, large = found.excess.mean(axis=1)
    assert large < small / 3
    assert (found.excess > 0).all()
    assert (np.diff(found.width.mean(axis=1)) < 0).all()
