"""What only the graph of a law of one's own does: draws, and components as nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pymc as pm
import pytest

from bayesrbf.models.column_laws import declare_law
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.records.rbf_network import RBFNetworkSpecification
from bayesrbf.records.specification import FurtherColumns
from tests.models.poisson_graph import COUNTS, Counted
from tests.poisson_columns import RATES

COUNTED = Counted("diag", "two", False, True, True, True, False, 3, 2)


def test_drawn_tables_have_counts_where_the_mask_shows_them() -> None:
    rows, model = COUNTED.observations, COUNTED.declare()
    columns = [model.coords["column"].index(name) for name in COUNTS.columns]
    drawn = pm.draw(model["x"], draws=20, random_seed=0, mode="FAST_COMPILE")[..., columns]
    known = ~np.isnan(rows.further[0])
    np.testing.assert_array_equal(drawn, np.round(drawn))
    assert (drawn[:, ~known] == 0).all()
    assert (drawn[:, known] > 0).any(axis=0).all()


def test_cells_given_components_have_the_density_of_the_numerics() -> None:
    rows, model = COUNTED.observations, COUNTED.declare(latent="explicit")
    z = np.arange(rows.n_obs) % COUNTED.specification.n_components
    rates = np.random.default_rng(0).gamma(3.0, 2.0, (COUNTED.specification.n_components, 2))
    law = laws_of(COUNTED.specification).further[0]
    expected = law.log_density(rows.further[0], {RATES: rates})[np.arange(rows.n_obs), z]
    found = model.compile_fn(
        model.logp(vars=[model["further_0"]], sum=False)[0],
        inputs=[model.rvs_to_values[model[name]] for name in ("z", RATES)],
        mode="FAST_COMPILE",
        on_unused_input="ignore",
        point_fn=False,
    )(z, np.log(rates))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_columns_that_do_not_fit_are_named() -> None:
    rows = replace(COUNTED.observations, further=())
    case = Counted("diag", "two", False, True, True, True, False, 3, 2)
    case.__dict__["observations"] = rows
    with pytest.raises(ValueError, match=r"observations.further must have \(2,\) columns"):
        case.declare()


def test_what_nobody_registered_is_named() -> None:
    with pytest.raises(TypeError, match="FurtherColumns has no law in the graphs"):
        declare_law(FurtherColumns(("a",)), 2)


def test_an_rbf_network_refuses_further_columns() -> None:
    with pytest.raises(ValueError, match="takes real and categorical columns"):
        RBFNetworkSpecification(replace(COUNTED.specification, component_class=(0, 0)), 2)
