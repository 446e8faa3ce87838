"""Every family that is fitted out of memory: sums over blocks are those of the table in memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from bayesrbf import (
    Blend,
    ConditionalLikelihood,
    Hinge,
    HybridMixtureClassifier,
    Margin,
    MixtureDensity,
)
from bayesrbf.blocks import LocalBlocks
from bayesrbf.estimators.out_of_core import training
from bayesrbf.fitted import drawing, mixture_fitting
from bayesrbf.fitted.fitted_model import FittedModel
from bayesrbf.inference.laplace import laplace
from bayesrbf.numerics.block_log_posterior import BlockLogPosterior, BlockSums
from bayesrbf.numerics.discriminative.hybrid_log_posterior import HybridLogPosterior
from bayesrbf.numerics.discriminative.objective_ascent import climb_objective
from bayesrbf.records.mixture import Observations
from tests.estimators.registries import (
    ROWS,
    chunkings,
    in_partitions,
    odd_order,
    registry,
)

X, Y = (table.iloc[odd_order()] for table in registry())
COMMON: dict[str, Any] = {"calibrate": False, "random_state": 0}
HYBRID: dict[str, Any] = {
    **COMMON,
    "n_init": 1,
    "covariance_type": "diag",
    "tied": False,
    "column_maps": None,
}
BENT = {"max_iter": 8}
"""A climb over corners magnifies rounding from step to step until it has converged."""
FAMILIES: dict[str, Callable[[], Any]] = {
    "conditional": lambda: HybridMixtureClassifier(
        2, objective=ConditionalLikelihood(max_iter=25), **HYBRID
    ),
    "margin": lambda: HybridMixtureClassifier(2, objective=Margin(**BENT), **HYBRID),
    "blend": lambda: HybridMixtureClassifier(
        2,
        objective=Blend(max_iter=25),
        **HYBRID | {"covariance_type": "full", "column_maps": "power"},
    ),
    "hinge": lambda: HybridMixtureClassifier(2, objective=Hinge(**BENT), **HYBRID),
}


@pytest.fixture(autouse=True)
def small_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample is a part of the registry."""
    monkeypatch.setattr(training, "SAMPLE_ROWS", 120)


def fitted(family: str, ends: list[int]) -> Any:
    """The family, fitted block by block."""
    return FAMILIES[family]().fit(in_partitions(X, ends), in_partitions(Y, ends))


def point(model: FittedModel, rows: Observations) -> np.ndarray:
    """All parameters, as coordinates."""
    return model.point(model.log_posterior(rows))


@pytest.fixture(scope="module", params=FAMILIES)
def whole(request: pytest.FixtureRequest) -> tuple[str, Any]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(training, "SAMPLE_ROWS", 120)
        return request.param, fitted(request.param, [])


def blocks_of(rows: Observations, ends: list[int]) -> LocalBlocks[Observations]:
    """Rows cut at some ends."""
    parts = pairwise([0, *ends, rows.n_obs])
    return LocalBlocks(tuple(partial(rows.take, np.arange(*part)) for part in parts))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_log_posterior_does_not_depend_on_the_blocks(family: str) -> None:
    model = FAMILIES[family]().fit(X, Y)
    rows, given = model.rows_, model.model_.log_posterior
    inside = given(rows)
    noise = np.random.default_rng(0).normal(size=(3, inside.dimension))
    thetas = model.model_.point(inside) + 0.01 * inside.scales * noise
    values, gradients = inside.values_and_gradients(thetas)
    for ends in chunkings():
        outside = BlockLogPosterior(BlockSums(blocks_of(rows, ends), given), inside)
        found = outside.values_and_gradients(thetas)
        np.testing.assert_allclose(found[0], values, rtol=1e-12)
        np.testing.assert_allclose(found[1], gradients, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(outside.log_densities(thetas), values, rtol=1e-12)
        bare = outside.value_and_gradient(thetas[0], jacobian=False)[0]
        np.testing.assert_allclose(bare, inside.value_and_gradient(thetas[0], False)[0])


@pytest.mark.parametrize("ends", [[0, 0, 1, 1, 2, 130], [70, 200]], ids=str)
def test_a_fit_does_not_depend_on_the_blocks(ends: list[int], whole: tuple[str, Any]) -> None:
    family, alone = whole
    model = fitted(family, ends)
    mine, theirs = (point(one.model_, one.rows_) for one in (model, alone))
    np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-8)
    assert model.passes_ == alone.passes_
    assert f"{model.passes_} passes over {ROWS} rows in {len(ends) + 1} blocks" in model.status_
    np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("ends", chunkings(), ids=str)
def test_no_fit_depends_on_any_blocks(ends: list[int], whole: tuple[str, Any]) -> None:
    family, alone = whole
    model = fitted(family, ends)
    mine, theirs = (point(one.model_, one.rows_) for one in (model, alone))
    np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-8)


def begun_at(module: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    """What a climb over blocks is handed."""
    handed: list[tuple[Any, Any]] = []
    climb = getattr(module, name)

    def spied(*args: Any, **options: Any) -> Any:
        handed.append((args, options))
        return climb(*args, **options)

    monkeypatch.setattr(module, name, spied)
    return handed


@pytest.mark.parametrize("family", ["conditional", "margin", "blend", "hinge"])
def test_an_objective_has_the_parameters_of_a_table_in_memory(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed = begun_at(mixture_fitting, "climb_objective", monkeypatch)
    model = fitted(family, [50, 51, 51, 180])
    (((_, points, start), limits),) = handed
    rows = FAMILIES[family]().fit(X, Y).rows_
    rows = model.model_.standardise(rows)
    known = points.specification, points.hyperparameters, model.model_.objective
    inside = climb_objective(HybridLogPosterior(rows, *known), points, start, **limits)
    mine, theirs = points.pack(model.model_.parameters), points.pack(inside.parameters)
    np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-8)
    assert np.abs(points.pack(start) - theirs).max() > 1e-3


def test_laplace_of_sums_is_that_of_a_table_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "DRAWS_BY_SUMS", 20)
    made = FAMILIES["conditional"]().set_params(inference="laplace")
    model = made.fit(in_partitions(X, [0, 101]), in_partitions(Y, [0, 101]))
    given = model.model_.log_posterior(FAMILIES["conditional"]().fit(X, Y).rows_)
    start = model.model_.point(given)
    inside = laplace(given, start, random_state=model.seed_, draws=20)
    for stat in ("lp", "log_q"):  # of every draw, whatever its components are called
        np.testing.assert_allclose(model.draws_.stats[stat], inside.stats[stat], rtol=1e-6)
    assert model.posterior_["posterior"].sizes["draw"] == 20
    assert "more passes for laplace" in model.status_
    found = {one.row for one in model.fitted_.findings()}
    assert "pareto_k" in found
    assert not any("loo" in name for name in found)
    assert np.isfinite(model.uncertainty(X)["sd"]).all()
    with pytest.raises(ValueError, match=r"refine\('laplace'\).*block by block"):
        model.refine("laplace")


def test_a_variational_posterior_is_made_of_sums() -> None:
    table = X[["age", "dose"]]
    settings: dict[str, Any] = {"random_state": 0, "covariance_type": "diag"}
    model = MixtureDensity(1, inference="advi", **settings).fit(in_partitions(table, [100]))
    inside = MixtureDensity(1, inference="advi", **settings).fit(table)
    mine, theirs = model.posterior_["posterior"], inside.posterior_["posterior"]
    np.testing.assert_allclose(mine["means"].mean(), theirs["means"].mean(), rtol=1e-2)


@pytest.mark.parametrize("method", ["gibbs", "nuts", "bootstrap"])
def test_samplers_say_how_many_rows_they_take(method: str) -> None:
    table = in_partitions(X[["age", "dose"]], [100])
    with pytest.raises(ValueError, match=r"at most 120 rows.*received 260.*'laplace'.*sample"):
        MixtureDensity(inference=method).fit(table)


def test_a_table_that_the_sample_holds_has_every_posterior(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(training, "SAMPLE_ROWS", ROWS)
    model = MixtureDensity(inference="laplace", random_state=0)
    model.fit(in_partitions(X[["age", "dose"]], [100]))
    assert model.refine("gibbs", draws=20, tune=20, chains=2).posterior_["posterior"].sizes["draw"]


def test_samplers_refuse_more_rows_in_memory_than_they_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(drawing.MOST_DRAWING_ROWS, "nuts", 200)
    model = MixtureDensity(random_state=0).fit(X[["age", "dose"]])
    with pytest.raises(ValueError, match=r"'nuts'.*at most 200 rows.*received 260.*sample"):
        model.refine("nuts")
