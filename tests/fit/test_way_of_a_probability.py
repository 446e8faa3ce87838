"""What holds of every class probability, whatever it goes through on its way.

The reported probability is that of the fitted point, or the mean over draws where a model says so.
What is done to a point is done to every draw. No row depends on the rows beside it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayesrbf import (
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    MedianLVQClassifier,
    RBFNetworkClassifier,
    SDGMClassifier,
    StackedClassifier,
    load,
    recalibrate,
)
from bayesrbf.base import names
from bayesrbf.fit.asking import new_rows
from bayesrbf.fit.chain import Chain, Draws, Seen, Stage, State, Step
from bayesrbf.fit.table import FittedTable
from tests.cases import generative, some_quick
from tests.fit.class_tables import CLASSES, table

PRIOR = {"calm": 0.2, "gale": 0.5, "storm": 0.3}
MAKERS: dict[str, Callable[..., Any]] = {
    "mixture": lambda **how: HybridMixtureClassifier(1, random_state=0, **how),
    "mixture, mean": lambda **how: generative(1, n_init=1, random_state=0, **how),
    "rbf": lambda **how: RBFNetworkClassifier(1, n_init=1, random_state=0, **how),
    "kernel": lambda **how: KernelNetworkClassifier(n_basis=10, random_state=0, **how),
    "sdgm": lambda **how: SDGMClassifier(
        1, n_init=1, companion_components=1, calibrate=True, random_state=0, **how
    ),
    "exemplars": lambda **how: MedianLVQClassifier(
        2, sigma=0.5, calibrate=True, random_state=0, **how
    ),
    "stack": lambda **how: StackedClassifier(["laplace", "normal"], cv=2, random_state=0, **how),
}
MEANS = ("mixture, mean",)
"""Models that report the mean over their draws."""
SAMPLED = {"sdgm": 0.03}
"""Models whose point is itself a mean over weights, and how near that of its samples must be."""
WAYS = ("as trained", "prevalence", "updated")
Case = tuple[str, str]
ALL = [(name, way) for name in MAKERS for way in WAYS]
QUICK = (
    ("mixture", "updated"),
    ("mixture, mean", "prevalence"),
    ("stack", "updated"),
    ("exemplars", "prevalence"),
)
CASES = some_quick(ALL, *QUICK)
# An update moves the mean over weights, which is not the mean of what it moves.
POINTS = some_quick([case for case in ALL if case != ("sdgm", "updated")], *QUICK)


@cache
def fitted(name: str, way: str) -> Any:
    """A fit to a point, at its own class shares, at others, or updated by rows of elsewhere."""
    model = MAKERS[name](**({"class_prior": PRIOR} if way == "prevalence" else {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(*table())
        if way != "updated":
            return model
        frame, y = table(seed=2)
        return recalibrate(model, frame, np.where(y == CLASSES[0], CLASSES[1], y), "slope")


@cache
def drawn(name: str, way: str) -> Any:
    """The fit with draws from Laplace's approximation, or of discrete exemplars."""
    method = "gibbs" if name == "exemplars" else "laplace"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fitted(name, way).refine(method, draws=40, chains=2)


def rows() -> pd.DataFrame:
    """New rows with holes, one that is far outside of training, and one without a cell."""
    frame = table(n=12, seed=1)[0]
    frame.loc[3, ["wind", "pressure"]] = [80.0, 1e5]
    frame.iloc[5] = [np.nan, np.nan, None]
    return frame


def of_draws(model: Any, frame: pd.DataFrame) -> np.ndarray:
    """Class probabilities under every draw of what intervals are of, not yet centred."""
    cells = new_rows(model.fitted_, frame).cells
    drawn, thinning = model.fitted_.interval_chain.draws(cells)
    assert thinning == 1
    return drawn.reshape(-1, *drawn.shape[2:])


@pytest.mark.filterwarnings("ignore:Column:UserWarning")
@pytest.mark.parametrize("case", POINTS, ids=": ".join)
def test_draws_of_a_point_are_what_is_reported(case: Case) -> None:
    model = fitted(*case)
    draws = of_draws(model, rows())
    assert len(draws) == 1 or case[0] in SAMPLED
    reported, atol = model.predict_proba(rows()), SAMPLED.get(case[0], 1e-10)
    np.testing.assert_allclose(draws.mean(axis=0), reported, atol=atol)


@pytest.mark.filterwarnings("ignore:Column:UserWarning")
@pytest.mark.parametrize("case", CASES, ids=": ".join)
def test_what_is_reported_is_the_point_or_the_mean_of_the_draws(case: Case) -> None:
    model, frame = drawn(*case), rows()
    reported = model.predict_proba(frame)
    if case[0] not in MEANS:
        np.testing.assert_allclose(reported, fitted(*case).predict_proba(frame), atol=1e-10)
    elif case[1] == "as trained":
        np.testing.assert_allclose(reported, of_draws(model, frame).mean(axis=0), atol=1e-10)
    told = model.uncertainty(frame)
    np.testing.assert_allclose(told["probability"], reported, atol=1e-10)
    assert (told["lower"] <= told["probability"] + 1e-12).all()
    assert (told["upper"] >= told["probability"] - 1e-12).all()


@pytest.mark.filterwarnings("ignore:Column:UserWarning")
@pytest.mark.parametrize("case", CASES, ids=": ".join)
def test_no_row_depends_on_the_rows_beside_it(case: Case) -> None:
    model, frame, some = drawn(*case), rows(), [5, 3, 0, 7]
    answers: list[Callable[[pd.DataFrame], Any]] = [
        lambda frame: xr.DataArray(model.predict_proba(frame), dims=("obs", "label")),
        lambda frame: xr.DataArray(of_draws(model, frame), dims=("draw", "obs", "label")),
        lambda frame: model.uncertainty(frame).drop_vars("obs"),
    ]
    for answer in answers:
        xr.testing.assert_allclose(
            answer(frame.iloc[some]), answer(frame).isel(obs=some), atol=1e-10
        )


@dataclass(frozen=True)
class Cap(Stage):
    """An expert's bound of the probability of a class; the others share what is taken."""

    label: int
    most: float

    def on(self, seen: Seen) -> Step:
        def step(state: State, point: State, draws: Draws | None) -> State:
            p = np.exp(state.log_p)
            own = np.minimum(p[:, :, self.label], self.most)
            rest = (1 - own) / np.maximum(1 - p[:, :, self.label], 1e-12)
            p = p * rest[:, :, None]
            p[:, :, self.label] = own
            return replace(state, log_p=np.log(p))

        return step


@pytest.mark.parametrize("name", some_quick(MAKERS, "mixture", "stack"))
def test_a_new_stage_is_a_class_and_a_line(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is in predictions, draws, intervals, explanations and files."""
    build = FittedTable._chain

    def with_cap(fit: Any, uncertainty: Any) -> Any:
        chain = build(fit, uncertainty)
        return replace(chain, stages=(*chain.stages, Cap(0, 0.4)))

    free, frame = drawn(name, "as trained"), rows()[:6]
    over = free.predict_proba(frame)[:, 0] > 0.45
    assert over.any()
    monkeypatch.setattr(FittedTable, "_chain", with_cap)
    drawn.cache_clear()
    fitted.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = drawn(name, "as trained")
        model.save(tmp_path / "model.safetensors")
        read = load(tmp_path / "model.safetensors")
        for one in (model, read):
            reported = one.predict_proba(frame)
            assert reported[:, 0].max() < 0.4 + 1e-9
            if name not in MEANS:
                np.testing.assert_allclose(reported[over, 0], 0.4, atol=1e-9)
            assert of_draws(one, frame)[:, :, 0].max() < 0.4 + 1e-9
            told = one.uncertainty(frame)
            assert (told["lower"][over, 0] < 0.4 + 1e-9).all()
            explained = one.explain(frame)["log_odds"]
            expected = np.log(reported / (1 - reported))[over, 0]
            np.testing.assert_allclose(explained[over, 0], expected, atol=1e-6)
    drawn.cache_clear()
    fitted.cache_clear()


@pytest.mark.parametrize(("way", "bound"), [("as trained", 0.01), ("updated", 0.04)])
def test_parts_of_the_uncertainty_add_up_before_the_centre(way: str, bound: float) -> None:
    """Draw by draw in log odds; a slope of an update also multiplies the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fitted("stack", way).refine("laplace", draws=1000, chains=1)
    cells, chain = new_rows(model.fitted_, rows()[:5].drop(3)).cells, model.fitted_.interval_chain

    def moves(of: Chain) -> np.ndarray:
        walk = of.on(cells)
        log_p = walk.at(of.numbers.ravel()).log_p - walk.point.log_p
        return log_p[:, :, 0] - log_p[:, :, 1]

    before = names.BEFORE_LABELS, names.MISSING_CELLS
    own = [name for name in chain.components if name not in (*before, names.LABEL_NOISE)]
    assert len(own) == 4 + (way == "updated")
    parts = sum(moves(chain.only(name)) for name in own)
    np.testing.assert_allclose(np.var(parts, axis=0), np.var(moves(chain), axis=0), rtol=bound)
