"""Two columns that say the same: each tells much alone and little beside the other."""

from __future__ import annotations

import re
import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from bayesrbf import HybridMixtureClassifier
from bayesrbf.app.report.column_effects import Contribution, Effect, contributions, read_effects
from bayesrbf.app.report.drawing import LETTER, foot, level_names
from bayesrbf.app.report.job import Job
from bayesrbf.app.svg import PlotArea
from bayesrbf.table.kinds import kind_named


def test_names_of_levels_are_whole_and_do_not_meet() -> None:
    levels = ["intermittent_mild", "depressed", "continuous_severe", "intermittent_severe", "alert"]
    axes = PlotArea((-0.5, 4.5), (0.0, 1.0), (48.0, 10.0, 284.0, 150.0))
    drawn = re.findall(r'x="([\d.]+)" y="([\d.]+)">([^<]+)<', level_names(axes, "pain", levels))
    assert [text for _, _, text in drawn] == [*levels, "pain"]
    places = [(float(x), float(y), LETTER * len(text) / 2) for x, y, text in drawn]
    assert all(half <= x <= 296 - half and y < foot(axes, levels) for x, y, half in places)
    for (x, y, half), (other, line, its_half) in combinations(places, 2):
        assert y != line or abs(x - other) >= half + its_half


@pytest.fixture(scope="module")
def found() -> tuple[dict[str, Contribution], dict[str, Effect], np.ndarray]:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 150)
    size = 1.5 * labels + rng.normal(size=300)
    noise, twin = rng.normal(size=300), size + 0.1 * rng.normal(size=300)
    colour = np.where(rng.random(300) < 0.2 + 0.6 * labels, "red", "blue")
    X = pd.DataFrame({"size": size, "twin": twin, "noise": noise, "colour": colour})
    X.loc[::7, "size"] = np.nan
    y = pd.Series(np.array(["well", "sick"], object)[labels])
    kinds = {name: kind_named("categorical" if name == "colour" else "real") for name in X}
    model = HybridMixtureClassifier(categorical_features=["colour"], random_state=0).fit(X, y)
    job = Job("t", "y", X, y, kinds, "map", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of missing columns, which other tests leave out
        effects, nothing = read_effects(job, model)
        told = contributions(job, model, effects, nothing)
    return {c.name: c for c in told}, {e.name: e for e in effects}, nothing


def test_twins_tell_much_alone_and_little_beside_each_other(found: tuple) -> None:
    columns, _, _ = found
    for name in ("size", "twin"):
        assert columns[name].alone > 5 * columns[name].beside
    assert columns["colour"].beside > columns["twin"].beside
    assert columns["noise"].most < 0.05 * columns["twin"].alone
    assert next(iter(columns)) == "twin"


def test_effects_go_the_way_of_the_table(found: tuple) -> None:
    """``classes_`` are sick and well: the first column is that of sick."""
    _, effects, nothing = found
    assert nothing.sum() == pytest.approx(1)
    for name in ("size", "twin"):
        assert (np.diff(effects[name].probabilities[:, 0]) > 0).all()
    assert np.ptp(effects["noise"].probabilities[:, 0]) < 0.15
    colour = effects["colour"]
    sick = dict(zip(colour.levels, colour.probabilities[:, 0], strict=True))
    assert sick["red"] > 0.7 > 0.3 > sick["blue"]
    for effect in effects.values():
        assert effect.weights.sum() == pytest.approx(1)
        assert effect.weights @ effect.probabilities == pytest.approx(nothing, abs=0.05)
