"""Log densities of every kind of mixture have fourteen digits; planted mutations are seen."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

from bayesrbf import MixtureDensity
from bayesrbf.mixture.points import variables_of
from tests.cases import first_quick
from tests.invariance import FAMILIES, LAWS, broken, table, units
from tests.models.configurations import name_of
from tests.oracle_grid import (
    POINTS,
    TOLERANCE,
    Case,
    cases,
    furthest,
    graph_equals_numerics,
    some,
)
from tests.precise import PreciseMixture

EVERY = Case("full", "two", False, True, True, True, False, 3, 2, True)

DEPENDENT = "columns that depend on each other"


@pytest.mark.parametrize("kind", POINTS)
@pytest.mark.parametrize("case", some(12, seed=3), ids=name_of)
def test_densities_and_conditional_moments_are_those_of_fifty_digits(case: Case, kind: str) -> None:
    found = furthest(case, kind)
    assert found.log_density < TOLERANCE
    assert found.conditional < TOLERANCE


def test_the_product_is_whole() -> None:
    assert len(list(cases())) == 1040


@pytest.mark.parametrize("kind", POINTS)
def test_points_are_ill_conditioned(kind: str) -> None:
    assert max(furthest(case, kind).condition for case in some(40, seed=0)) > 1e7


@pytest.mark.slow
@pytest.mark.parametrize("case", [EVERY, *some(2, seed=5)], ids=name_of)
def test_the_graph_is_the_same_density(case: Case) -> None:
    graph_equals_numerics(case)


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_a_fitted_table_of_every_kind_of_column_has_the_density_of_fifty_digits(
    covariance_type: str,
) -> None:
    """Point masses, transforms and informative holes, from the frame on."""
    X, _ = table(0)
    rng = np.random.default_rng(0)
    X["a"] = X["a"].where(rng.random(len(X)) < 0.7, 0.0)
    X["stage"] = pd.Categorical(rng.choice(["I", "II", "III"], len(X)))
    model = MixtureDensity(
        2,
        covariance_type=covariance_type,
        point_masses="auto",
        column_transforms="power",
        missingness="informative",
        random_state=0,
    ).fit(X)
    fitted = model.model_
    values = variables_of(fitted.start, fitted.hyperparameters, fitted.specification)
    exact = PreciseMixture(fitted.specification, fitted.hyperparameters, values, fitted.transforms)
    assert len(model.columns_.point_masses) == 3
    assert fitted.transforms is not None
    expected = np.array([float(v) for v in exact.log_density(model.rows_)])
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=1e-9)


MUTATIONS = {
    "share": ("_share", lambda self, k: 1),
    "map": ("_mapped", lambda self, i, x: (x, 0)),
    "covariance": ("covariance", lambda self, k: ORIGINAL(self, 0)),
}
ORIGINAL = PreciseMixture.covariance


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_planted_mutation_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method, mutation = MUTATIONS[name]
    monkeypatch.setattr(PreciseMixture, method, mutation)
    assert furthest(EVERY, DEPENDENT).log_density > TOLERANCE


CONDITIONAL, JOINT = PreciseMixture._conditional, PreciseMixture._joint
CELLS_UNREAD = {
    "_conditional": lambda self, k, real: CONDITIONAL(self, k, {}),
    "_joint": lambda self, rows, n, real: JOINT(self, rows, n, {}),
}


@pytest.mark.parametrize("name", CELLS_UNREAD)
def test_conditional_moments_that_do_not_read_a_row_are_seen(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PreciseMixture, name, CELLS_UNREAD[name])
    assert furthest(EVERY, DEPENDENT).conditional > TOLERANCE


def test_a_hidden_label_that_is_read_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    row = PreciseMixture._row

    def read(self: PreciseMixture, rows, n: int):
        return row(self, replace(rows, labels=np.maximum(rows.labels, 0)), n)

    monkeypatch.setattr(PreciseMixture, "_row", read)
    assert furthest(EVERY, DEPENDENT).log_density > TOLERANCE


@pytest.mark.parametrize("name", first_quick(["RBF network", "sparse discriminative mixture"]))
def test_rounding_decides_no_tie_between_starts_or_weights(name: str) -> None:
    """With this seed several starts, and two weights that mirror each other, are exactly tied."""
    assert units(FAMILIES[name], seed=1) < LAWS["shift and scale of real columns"].most


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_laws_of_invariance_hold(law: str) -> None:
    found = broken(law, range(4))
    assert len(found) == 4 * len(FAMILIES)
    assert {name: error for name, error in found.items() if error > LAWS[law].most} == {}


class Planted:
    """A density that depends on what it must not: units, the first row and column, their number."""

    def __init__(self, what: str) -> None:
        self.what = what

    def fit(self, X, y, sample_weight=None):
        first = X.iloc[0].to_dict()
        self.leak = {
            "shift and scale of real columns": X["a"].mean(),
            "order of the rows": first["b"] + first["c"],
            "order of the columns": float(list(X).index("a")),
            "weight of two and the row twice": float(len(X)),
        }[self.what]
        return self

    def predict_proba(self, X):
        return np.full((len(X), 2), 1e-6 * np.nan_to_num(self.leak))


@pytest.mark.parametrize("law", LAWS)
def test_a_planted_dependence_is_seen(law: str) -> None:
    def family(X, y, seed, sample_weight=None):
        return Planted(law).fit(X, y, sample_weight)

    leaks = partial(lambda kind, *given, **how: family(*given, **how), Planted)
    assert LAWS[law].changed(leaks, 0) > LAWS[law].most
