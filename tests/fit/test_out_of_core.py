"""Tables out of memory: fits and answers are those of the same table in memory."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr
import zarr

from bayesrbf import (
    Hinge,
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    Likelihood,
    MedianLVQClassifier,
    MixtureDensity,
    MixturePrior,
    RBFNetworkClassifier,
    RBFNetworkRegressor,
    SDGMClassifier,
    StackedClassifier,
    load,
)
from bayesrbf.fit import drawing, training
from bayesrbf.mixture.fitted import FittedMixture, Solver, fit_mixture_rows
from bayesrbf.table.encode import encode
from bayesrbf.table.order import distinct
from tests.cases import some_quick
from tests.fit.registries import (
    ROWS,
    chunkings,
    in_partitions,
    odd_order,
    registry,
)

X, Y = registry()
SETTINGS: dict[str, Any] = {
    "objective": "likelihood",
    "covariance_type": "full",
    "shared_covariance": False,
    "column_transforms": None,
    "calibrate": False,
    "unlabelled_weight": 1.0,
    "n_init": 2,
    "random_state": 0,
}


BLOCKS = some_quick(chunkings(), [0, 0, 1, 1, 2, 130], [5, 5, 9, 200])
"""Blocks of no row, of one, and of many."""


@pytest.fixture(autouse=True)
def small_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample is a part of the registry."""
    monkeypatch.setattr(training, "SAMPLE_ROWS", 120)
    monkeypatch.setattr(training, "BLOCK", 120)  # beyond it a memory map is read in parts


def classifier(**settings: Any) -> HybridMixtureClassifier:
    return HybridMixtureClassifier(2, **SETTINGS | settings)


def numbers(mixture: FittedMixture) -> dict[str, np.ndarray]:
    """All parameters of a mixture by name."""
    held = {one.name: getattr(mixture.parameters, one.name) for one in fields(mixture.parameters)}
    levels = held.pop("category_probabilities")
    units = {"location": mixture.units.location, "scale": mixture.units.scale}
    return held | dict(enumerate(levels)) | units


def assert_same(one: FittedMixture, other: FittedMixture, rtol: float = 1e-10) -> None:
    mine, theirs = numbers(one), numbers(other)
    assert mine.keys() == theirs.keys()
    for name, value in mine.items():
        np.testing.assert_allclose(value, theirs[name], rtol=rtol, atol=rtol, err_msg=str(name))


@pytest.fixture(scope="module")
def whole() -> HybridMixtureClassifier:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(training, "SAMPLE_ROWS", 120)
        order = odd_order()
        table = in_partitions(X.iloc[order], [])
        return classifier().fit(table, in_partitions(Y.iloc[order], []))


@pytest.mark.parametrize("ends", BLOCKS, ids=str)
def test_the_blocks_do_not_matter(ends: list[int], whole: HybridMixtureClassifier) -> None:
    order = odd_order()
    table, labels = in_partitions(X.iloc[order], ends), in_partitions(Y.iloc[order], ends)
    model = classifier().fit(table, labels)
    assert model.passes_ > 5
    assert_same(model.model_, whole.model_)


def test_blocks_give_the_parameters_of_a_table_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[FittedMixture] = []
    refit = training.fit_mixture_blocks

    def spied(rows: Any, mixture: FittedMixture, *rest: Any, **how: Any) -> Any:
        begun.append(mixture)
        return refit(rows, mixture, *rest, **how)

    monkeypatch.setattr(training, "fit_mixture_blocks", spied)
    model = classifier(tol=1e-12).fit(in_partitions(X, [50, 51, 51, 180]), Y)
    inside = classifier(max_iter=5)
    with pytest.warns(Warning, match="max_iter"):
        inside.fit(X, Y)
    # Levels stand in the order of a sample, and in that of all rows.
    cells = encode(X, model.columns_)
    own = replace(inside.rows_, real=cells.real, codes=cells.codes)
    rows, solver = distinct(own)[0], Solver(2, 1000, 1e-12, 0)
    start = begun[0]
    mixture, fit = fit_mixture_rows(
        rows, start.specification, MixturePrior(), solver, start.start, None
    )
    assert_same(model.model_, mixture, rtol=1e-5)  # tol bounds the log posterior alone
    assert abs(model.n_iter_ - fit.trace.n_iter) <= 1  # rows stand in another order
    assert f"{model.passes_} passes over {ROWS} rows in 5 blocks" in model.status_
    pd.testing.assert_frame_equal(model.columns_.table(), inside.columns_.table())
    assert abs(start.parameters.means - mixture.parameters.means).max() > 1e-3


def test_a_table_that_the_sample_holds_is_fitted_as_one_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(training, "SAMPLE_ROWS", ROWS)
    model = classifier().fit(in_partitions(X, [50, 51, 51, 180]), Y)
    inside = classifier().fit(X, Y)
    assert model.objective_ >= inside.objective_ - 1e-9
    np.testing.assert_allclose(model.predict_proba(X), inside.predict_proba(X), atol=1e-3)


def forms(folder: Path) -> dict[str, Any]:
    """The real columns of the registry in every form that is read block by block."""
    real = X[["age", "dose", "visits"]]
    cells = real.to_numpy()
    real.to_parquet(folder / "one.parquet", row_group_size=70)
    (folder / "many").mkdir()
    for part in range(3):
        real.iloc[part * 100 : (part + 1) * 100].to_parquet(folder / "many" / f"{part}.parquet")
    mapped = np.memmap(folder / "cells", dtype=float, mode="w+", shape=cells.shape)
    mapped[:] = cells
    stored = zarr.open_array(
        folder / "cells.zarr", mode="w", shape=cells.shape, chunks=(60, 2), dtype=float
    )
    stored[:] = cells
    return {
        "file": folder / "one.parquet",
        "folder": str(folder / "many"),
        "memory map": mapped,
        "Zarr": stored,
        "LazyFrame": pl.from_pandas(real).lazy(),
        "dask.array": da.from_array(cells, chunks=(90, 2)),
        "dask.dataframe": in_partitions(real, [33, 200]),
    }


@pytest.mark.parametrize(
    "form",
    ["file", "folder", "memory map", "Zarr", "LazyFrame", "dask.array", "dask.dataframe"],
)
def test_every_form_is_fitted_and_answered(form: str, tmp_path: Path) -> None:
    table = forms(tmp_path)[form]
    inside = X[["age", "dose", "visits"]]
    inside = inside.to_numpy() if form in ("memory map", "Zarr", "dask.array") else inside
    model = MixtureDensity(2, random_state=0).fit(table)
    density = model.score_samples(table)
    assert model.passes_ > 3
    np.testing.assert_allclose(density, model.score_samples(inside), rtol=1e-12)
    assert np.asarray(model.predict_proba(table)).shape == (ROWS, 2)
    np.testing.assert_array_equal(model.predict(table), model.predict(inside))


def test_answers_about_dask_are_lazy_and_keep_their_partitions(
    whole: HybridMixtureClassifier,
) -> None:
    table = in_partitions(X, [0, 40, 41, 200])
    labels, probabilities = whole.predict(table), whole.predict_proba(table)
    completed = whole.impute(table)
    assert labels.npartitions == probabilities.npartitions == completed.npartitions == 5
    np.testing.assert_array_equal(labels.compute(), whole.predict(X))
    np.testing.assert_allclose(probabilities.compute(), whole.predict_proba(X), rtol=1e-12)
    pd.testing.assert_frame_equal(completed.compute(), whole.impute(X), check_dtype=False)
    np.testing.assert_allclose(whole.novelty(table).compute(), whole.novelty(X), atol=1e-12)
    with pytest.raises(ValueError, match=r"impute\(\) draws several tables"):
        whole.impute(table, draws=2)


@pytest.fixture(scope="module")
def drawn() -> HybridMixtureClassifier:
    return classifier().fit(X, Y).refine("laplace", draws=40, chains=2)


@pytest.mark.parametrize("ends", BLOCKS, ids=str)
def test_uncertainty_is_lazy_and_does_not_depend_on_the_blocks(
    ends: list[int], drawn: HybridMixtureClassifier
) -> None:
    order = odd_order()
    found = drawn.uncertainty(in_partitions(X.iloc[order], ends), prob=0.5)
    assert all(isinstance(one.data, da.Array) for one in found.values())
    inside = drawn.uncertainty(X.iloc[order].reset_index(drop=True), prob=0.5)
    xr.testing.assert_allclose(found.compute(), inside, rtol=1e-9)
    assert found.attrs == inside.attrs


def test_uncertainty_about_a_file_is_put_together(
    tmp_path: Path, drawn: HybridMixtureClassifier
) -> None:
    X.to_parquet(tmp_path / "table.parquet", row_group_size=100)
    found = drawn.uncertainty(tmp_path / "table.parquet")
    xr.testing.assert_allclose(found, drawn.uncertainty(X), rtol=1e-9)


def test_a_file_is_completed_block_by_block(tmp_path: Path) -> None:
    X.assign(label=Y).to_parquet(tmp_path / "table.parquet", row_group_size=100)
    model = classifier().fit(tmp_path / "table.parquet", "label")
    assert model.classes_.tolist() == ["ill", "well"]
    blocks = list(model.impute(tmp_path / "table.parquet"))
    assert list(map(len, blocks)) == [100, 100, 60]
    expected = model.impute(X)
    pd.testing.assert_frame_equal(pd.concat(blocks, ignore_index=True), expected, check_dtype=False)


def test_weights_are_those_of_copies() -> None:
    weights = np.random.default_rng(3).integers(0, 3, ROWS)
    table, settings = X[["age", "dose"]], {"n_components": 2, "random_state": 0, "tol": 1e-12}
    model = MixtureDensity(**settings).fit(in_partitions(table, [70, 180]), None, weights)
    copies = MixtureDensity(**settings).fit(
        in_partitions(table.loc[table.index.repeat(weights)], [100])
    )
    np.testing.assert_allclose(model.score_samples(table), copies.score_samples(table), atol=1e-4)


def test_an_estimator_of_many_rows_is_a_file(
    tmp_path: Path, whole: HybridMixtureClassifier
) -> None:
    whole.save(tmp_path / "model.safetensors")
    read = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(read.predict_proba(X), whole.predict_proba(X))
    assert read.passes_ == whole.passes_


@pytest.mark.parametrize(
    "estimator",
    [
        KernelNetworkClassifier(),
        MedianLVQClassifier(),
        RBFNetworkClassifier(),
        RBFNetworkRegressor(),
        SDGMClassifier(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_family_that_needs_all_rows_says_so(estimator: Any) -> None:
    with pytest.raises(TypeError, match=r"takes a table in memory.*random sample"):
        estimator.fit(in_partitions(X, [100]), Y)


@pytest.mark.slow
def test_a_stack_is_fitted_to_a_sample_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stack(inference: str = "map") -> StackedClassifier:
        settings = {"cv": 2, "unlabelled_weight": 0.5, "inference": inference, "random_state": 0}
        return StackedClassifier(("mixture", "normal_blend"), **settings)

    ends = [70, 180]
    monkeypatch.setattr(training, "SAMPLE_ROWS", ROWS)
    few = stack().fit(in_partitions(X, ends), in_partitions(Y, ends))
    assert "all 260 rows, read from 3 blocks" in few.status_
    np.testing.assert_array_equal(few.predict_proba(X), stack().fit(X, Y).predict_proba(X))
    monkeypatch.setattr(training, "SAMPLE_ROWS", 150)
    monkeypatch.setattr(training, "SAMPLE_CELLS", 150 * X.shape[1])
    some = stack("laplace").fit(in_partitions(X, ends), in_partitions(Y, ends))
    drawn = some.rows_.n_obs
    assert drawn <= 150
    assert f"{drawn} of 260 rows, drawn at random" in some.status_
    # its rows are rows of the table, as they stand there
    own = (
        MixtureDensity(1, random_state=0)
        .fit(X.iloc[some.row_indices_].reset_index(drop=True))
        .rows_
    )
    np.testing.assert_array_equal(np.sort(some.rows_.real, axis=0), np.sort(own.real, axis=0))
    made = some.draws_  # by fit, as refine makes them
    assert made is not None
    np.testing.assert_array_equal(some.refine("laplace").draws_.theta, made.theta)
    some.save(tmp_path / "stack.safetensors")
    read = load(tmp_path / "stack.safetensors")
    np.testing.assert_array_equal(read.predict_proba(X), some.predict_proba(X))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"trim": True}, "trim=True"),
        ({"pool": 8}, "pool=8"),
    ],
)
def test_an_argument_that_needs_all_rows_says_so(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"{sentence}.*out of memory.*sample"):
        MixtureDensity(**settings).fit(in_partitions(X[["age"]], [100]))


def test_an_objective_that_needs_all_rows_says_so() -> None:
    table, labels = in_partitions(X, [100]), in_partitions(Y, [100])
    with pytest.raises(ValueError, match=r"objective='blend'\).*pass objective='likelihood'"):
        HybridMixtureClassifier().fit(table, labels)
    with pytest.raises(ValueError, match=r"objective=Hinge\(.*sample"):
        HybridMixtureClassifier(objective=Hinge(1.0)).fit(table, labels)
    assert classifier(objective=Likelihood()).fit(table, labels).passes_ > 5


def test_an_argument_of_another_meaning_is_not_refused() -> None:
    """An estimator says itself which of its arguments need all rows."""

    class Pooling(HybridMixtureClassifier):
        def get_params(self, deep: bool = True) -> dict[str, Any]:
            return super().get_params(deep) | {"pool": "mean"}

    table, labels = in_partitions(X, [100]), in_partitions(Y, [100])
    assert Pooling(objective="likelihood", n_init=1).fit(table, labels).passes_ > 5


@pytest.mark.parametrize("what", ["refine", "declare"])
def test_a_posterior_needs_all_rows(what: str, whole: HybridMixtureClassifier) -> None:
    with pytest.raises(ValueError, match=rf"{what}\(.*block by block.*sample"):
        getattr(whole, what)()


def test_blocks_that_disagree_are_named() -> None:
    text = X[["age"]].astype(object).to_numpy().copy()
    text[100:] = "old"
    with pytest.raises(TypeError, match=r"'x0' holds other kinds of cells in some blocks"):
        MixtureDensity().fit(da.from_array(text, chunks=(100, 1)))
    with pytest.raises(ValueError, match="partitions of X, which has 2; received 3"):
        classifier().fit(in_partitions(X, [100]), in_partitions(Y, [50, 60]))
    with pytest.raises(ValueError, match="X has 260 rows and y has 10"):
        classifier().fit(in_partitions(X, [100]), Y.iloc[:10])
    with pytest.raises(FileNotFoundError, match="no Parquet file"):
        MixtureDensity().fit("nowhere.parquet")


@pytest.mark.parametrize("method", ["laplace", "advi", "gibbs", "nuts", "bootstrap"])
def test_samplers_say_how_many_rows_they_take(method: str) -> None:
    table = in_partitions(X[["age", "dose"]], [100])
    with pytest.raises(ValueError, match=r"at most 120 rows.*received 260.*'map'.*sample"):
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
    monkeypatch.setitem(drawing.MAX_DRAWING_ROWS, "nuts", 200)
    model = MixtureDensity(random_state=0).fit(X[["age", "dose"]])
    with pytest.raises(ValueError, match=r"'nuts'.*at most 200 rows.*received 260.*sample"):
        model.refine("nuts")
