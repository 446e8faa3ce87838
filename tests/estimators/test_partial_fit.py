"""A density that sees its rows block by block ends where a fit to all of them does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bayesrbf import MixtureDensity, load
from bayesrbf.numerics.mixture.expectation import prepare
from bayesrbf.numerics.mixture.stepwise import recentred
from bayesrbf.records.mixture import MixtureParameters
from tests.estimators.registries import registry

X, _ = registry(3000, seed=1)


def streamed(columns: list[str], passes: int, **settings: Any) -> MixtureDensity:
    rng = np.random.default_rng(2)
    table = X[columns]
    density = MixtureDensity(2, random_state=0, **settings).partial_fit(table.iloc[:300])
    for _ in range(passes):
        for block in np.array_split(rng.permutation(len(table)), 10):
            density.partial_fit(table.iloc[block])
    return density


def assert_ends_at_the_optimum(columns: list[str], passes: int, settings: dict[str, Any]) -> None:
    table = X[columns]
    density = streamed(columns, passes, **settings)
    begun = streamed(columns, 0, warm_start=True, **settings)
    before = begun.score(table)
    best = begun.fit(table).score(table)  # from the same start
    assert density.score(table) == pytest.approx(best, abs=2e-3)
    assert before < best - 2e-3
    assert density.passes_ == 1 + 10 * passes


@pytest.mark.parametrize(
    ("columns", "settings"),
    [
        (["age", "dose"], {}),
        (["age", "dose", "site", "smokes", "visits", "grade"], {}),
        (["age", "dose", "site"], {"covariance_type": "diag"}),
    ],
    ids=lambda one: str(one)[:40],
)
def test_a_stream_ends_at_the_optimum_of_all_rows(
    columns: list[str], settings: dict[str, Any]
) -> None:
    assert_ends_at_the_optimum(columns, 12, settings)


@pytest.mark.slow
def test_a_shift_of_the_centre_is_exact() -> None:
    for shape in ("full", "diag"):
        model = MixtureDensity(2, covariance_type=shape, random_state=0).fit(X[["age", "dose"]])
        mixture = model.model_
        rows = prepare(mixture.standardise(model.rows_), mixture.specification)
        point = mixture.parameters
        shift = np.array([[0.3, -1.0], [2.0, 0.1]])
        about = rows.statistics(point)
        there = recentred(about, shift, mixture.specification)
        again = recentred(there, -shift, mixture.specification)
        np.testing.assert_allclose(again.second, about.second, atol=1e-9)
        np.testing.assert_allclose(there.first, about.first - about.counts[:, None] * shift)
        assert not np.allclose(there.second, about.second)


def test_a_stream_goes_on_from_a_fit_and_from_a_file(tmp_path: Any) -> None:
    table = X[["age", "dose"]]
    fitted = MixtureDensity(2, random_state=0).fit(table)
    fitted.save(tmp_path / "density.safetensors")
    read = load(tmp_path / "density.safetensors")
    one, other = fitted.partial_fit(table.iloc[:500]), read.partial_fit(table.iloc[:500])
    np.testing.assert_array_equal(one.score_samples(table), other.score_samples(table))
    with pytest.raises(ValueError, match="block by block"):
        one.refine("laplace")
    one.save(tmp_path / "density.safetensors")
    assert isinstance(one.model_.parameters, MixtureParameters)
    assert one.fitted_.details.stream is not None  # a file and a new fit begin another
    for begun in (load(tmp_path / "density.safetensors"), one.fit(table)):
        assert begun.fitted_.details.stream is None


def test_weights_of_a_block_are_those_of_copies() -> None:
    table, weights = X[["age", "dose"]], np.random.default_rng(0).integers(0, 3, 400)
    one = MixtureDensity(2, random_state=0).partial_fit(table.iloc[:500])
    other = MixtureDensity(2, random_state=0).partial_fit(table.iloc[:500])
    one.partial_fit(table.iloc[500:900], sample_weight=weights)
    other.partial_fit(table.iloc[np.arange(500, 900).repeat(weights)])
    np.testing.assert_allclose(one.score_samples(table), other.score_samples(table), atol=1e-9)
