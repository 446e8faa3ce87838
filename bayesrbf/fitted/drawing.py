"""Draws of the posterior of a fit by any method, from the fitted point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any, Final

import numpy as np

from bayesrbf import table
from bayesrbf.fitted.fitted_table import FittedTable
from bayesrbf.inference.draws import Draws
from bayesrbf.numerics.log_posterior import LogPosterior

METHODS: Final = {
    "laplace": "bayesrbf.inference.laplace",
    "advi": "bayesrbf.inference.variational",
    "gibbs": "bayesrbf.inference.gibbs",
    "nuts": "bayesrbf.inference.nuts",
}
"""Module of the function that draws by each method; the function has the method's name."""
MOST_DRAWING_ROWS: Final = {"gibbs": 1_000_000, "nuts": 100_000}
"""Rows beyond which a method that sees all of them again and again takes more than some four hours:
8,000 sweeps, or 80,000 gradients, at the 1.8 microseconds of a row in an E-step of eight
components and ten columns."""


def drawn(fit: FittedTable[Any, Any], method: str, options: dict[str, Any]) -> Draws:
    """Draws by a method; ValueError for an unknown one, or too many rows for it."""
    n_rows, most = fit.rows.n_obs, MOST_DRAWING_ROWS.get(method)
    if most is not None and n_rows > most:
        raise ValueError(
            f"refine({method!r}) takes at most {most:,} rows, each of which it looks at thousands "
            f"of times; received {n_rows:,}. Use 'laplace' or 'advi', or fit a random sample of "
            "the rows."
        )
    options = {"random_state": fit.table.seed, **options}
    if method in METHODS:  # imported here, so that a fit without draws never does
        draw: Callable[..., Draws] = getattr(import_module(METHODS[method]), method)
        return draw(fit.log_posterior, fit.point, **options)
    if method != "bootstrap":
        allowed = " or ".join(repr(name) for name in (*METHODS, "bootstrap"))
        raise ValueError(f"refine(method) must be {allowed}; received {method!r}.")
    from bayesrbf.inference.bootstrap import bootstrap

    rows, _ = table.distinct(fit.rows)  # of copies, the sum of the weights is drawn

    def reweighted(weights: np.ndarray) -> LogPosterior:
        return fit.model.log_posterior(replace(rows, weights=weights))

    return bootstrap(reweighted, rows.weights, fit.point, units=rows.units, **options)
