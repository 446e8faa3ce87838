"""What each question to an estimator costs, as a multiple of ``predict_proba`` of the same rows.

heart_cleveland, of whose cells 30 % are hidden: 200 rows to learn from, 50 new ones. Times are the
least of some runs in one process. ``BAYESRBF_METHODS`` chooses (beginnings of names, with commas).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from bayesrbf import (
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    MixtureDensity,
    RBFNetworkClassifier,
    StackedClassifier,
)
from bench.figures import show
from bench.stack_tables import split
from bench.test_stack import chosen
from tests.measured import COST

ROWS, NEW = 200, 50
LEAST, MOST = 0.2, 5
"""A question is asked again until so many seconds have gone, at most so many times."""

MODELS: dict[str, Callable[[], Any]] = {
    "mixture": partial(HybridMixtureClassifier, random_state=0),
    "mixture, laplace": partial(HybridMixtureClassifier, random_state=0, inference="laplace"),
    "RBF network": partial(RBFNetworkClassifier, random_state=0),
    "kernel network": partial(KernelNetworkClassifier, random_state=0),
    "stack, lite": partial(StackedClassifier, "lite", random_state=0),
    "stack": partial(StackedClassifier, random_state=0),
    "density": partial(
        MixtureDensity, "cv", column_maps="power", atoms="auto", prior="cv", random_state=0
    ),
    "density, pool": partial(
        MixtureDensity,
        "cv",
        column_maps="power",
        atoms="auto",
        prior="cv",
        pool=8,
        random_state=0,
    ),
}
COSTS = {"0": {"treat": 1.0, "wait": 0.0}, "1": {"treat": 0.0, "wait": 5.0}}


def least(call: Callable[[], object]) -> float:
    """Least seconds of some runs."""
    times: list[float] = []
    while len(times) < MOST and sum(times) < LEAST:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def questions(model: Any, X: pd.DataFrame) -> Iterator[tuple[str, Callable[[], object]]]:
    """What can be asked of an estimator, with what asks it."""
    given = model.conditional(X)
    yield "conditional: mean", lambda: model.conditional(X).mean()
    yield "conditional: quantile", lambda: model.conditional(X).quantile(0.9)
    yield "conditional: log_density", lambda: given.log_density(X)
    yield "conditional: sample(20)", lambda: model.conditional(X).sample(20, seed=0)
    yield "impute", lambda: model.impute(X)
    yield "surprise", lambda: model.surprise(X)
    yield "novelty", lambda: model.novelty(X)
    if hasattr(model, "dependence"):
        yield "dependence (whole table)", lambda: model.dependence()
    if hasattr(model, "classes_"):
        costs = {label: COSTS[str(label)] for label in model.classes_}
        yield "acquire", lambda: model.acquire(X)
        yield "explain, by orders", lambda: model.explain(X, exact=1)
        yield "decide", lambda: model.decide(X, costs)
        yield "uncertainty", lambda: model.uncertainty(X)


def figures(name: str) -> Iterator[dict[str, object]]:
    """Milliseconds of every question, and multiples of ``predict_proba``."""
    data = split("heart_cleveland", 0, holes=True)
    X, y, new = data.X.iloc[:ROWS], data.y[:ROWS], data.X_new.iloc[:NEW]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS[name]().fit(X, y)
        model.predict_proba(new)
        plain = least(lambda: model.predict_proba(new))
        yield {"model": name, "question": "predict_proba", "ms": 1000 * plain, "multiple": 1.0}
        asked = zip(questions(model, new), questions(model, new.iloc[:5]), strict=True)
        for (question, ask), (_, few) in asked:
            try:
                few()  # what is compiled or prepared once
                lasted = least(ask)
            except (AttributeError, ValueError, NotImplementedError):
                continue  # is not asked of this estimator
            found = {"model": name, "question": question, "ms": 1000 * lasted}
            yield found | {"multiple": lasted / plain}


def test_cost_of_every_question(data_folder: object) -> None:
    found = []
    for name in chosen(MODELS, "BAYESRBF_METHODS"):
        for line in figures(name):
            found.append(line)
            print(f"{name}: {line['question']} {line['ms']:.1f} ms", flush=True)
    results = pd.DataFrame(found)
    wide = results.pivot_table(index="question", columns="model", values="multiple", sort=False)
    plain = results[results["question"] == "predict_proba"].set_index("model")["ms"]
    told = wide.map(lambda one: None if np.isnan(one) else f"{float(f'{one:.2g}'):,g}")
    told.loc["... in ms"] = plain[told.columns].map("{:.1f}".format)
    show(
        "question_costs",
        told.loc[["predict_proba", "... in ms", *told.index[1:-1]]].reset_index(),
        about=COST,
    )
    if "stack" in wide:
        of_cells = [question for question in wide.index if question.startswith("conditional")]
    quick = [question for question in of_cells if "sample" not in question]
    assert (wide.loc[quick, "stack"].astype(float) < 1).all()
