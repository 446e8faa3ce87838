"""What only the graph of counts and ordered levels does: draws, and components as nodes."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest

from bayesrbf.numerics.mixture.parts.laws import laws_of
from tests.models.further_columns import COUNTS, LEVELS, Further

CASE = Further("diag", "two", False, True, True, True, False, 1, 2)


def test_drawn_tables_have_counts_and_levels_where_the_mask_shows_them() -> None:
    model, rows = CASE.declare(), CASE.observations
    columns = [model.coords["column"].index(name) for name in (*COUNTS.columns, *LEVELS.columns)]
    drawn = pm.draw(model["x"], draws=30, random_seed=0, mode="FAST_COMPILE")[..., columns]
    known = ~np.isnan(np.column_stack(rows.further))
    np.testing.assert_array_equal(drawn, np.round(drawn))
    assert (drawn >= 0).all()
    assert (drawn[:, ~known] == 0).all()
    assert (drawn[:, known] > 0).any(axis=0).all()
    most = np.array(LEVELS.n_levels) - 1
    assert (drawn[..., 2:].max(axis=(0, 1)) == most).all()


@pytest.mark.parametrize("law", [0, 1])
def test_cells_given_components_have_the_density_of_the_numerics(law: int) -> None:
    rows, model = CASE.observations, CASE.declare(latent="explicit")
    z = np.arange(rows.n_obs) % CASE.specification.n_components
    rng = np.random.default_rng(0)
    own = laws_of(CASE.specification).further[law]
    values = {v.name: rng.gamma(3.0, 0.5, v.shape) for v in own.variables}
    expected = own.log_density(rows.further[law], values)[np.arange(rows.n_obs), z]
    node = model[f"further_{law}"]
    unconstrained = [
        np.log(values[v.name]) if v.transform == "log" else values[v.name] for v in own.variables
    ]
    found = model.compile_fn(
        model.logp(vars=[node], sum=False)[0],
        inputs=[model.rvs_to_values[model[name]] for name in ("z", *values)],
        mode="FAST_COMPILE",
        on_unused_input="ignore",
        point_fn=False,
    )(z, *unconstrained)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
