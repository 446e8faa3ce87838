"""Rates of a fitted kernel network: by column, and as the graph that they are the mode of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayesrbf import table
from bayesrbf.fitted.fitted_kernel_network import (
    FittedKernelNetwork,
    KernelSettings,
    fixed_kernel,
)
from bayesrbf.fitted.fitted_table import FittedTable
from bayesrbf.numerics.kernel_network.learned_rates import rate_log_posteriors
from bayesrbf.records import names

if TYPE_CHECKING:
    import pandas as pd
    import pymc as pm

KernelFit = FittedTable[FittedKernelNetwork, None]


def named_rates(fit: KernelFit) -> pd.Series:
    """Rate of every column by its name."""
    import pandas as pd

    index = pd.Index(_columns(fit), name=names.COLUMN)
    return pd.Series(fit.model.rates, index, name=names.RATES)


def rates_graph(fit: KernelFit, settings: KernelSettings) -> pm.Model:
    """The graph of the rates on a sub-sample of the labelled training rows."""
    from bayesrbf.models import declare_kernel_rates

    fit.require_all_rows("declare('rates')")
    n_classes, criterion = fit.classes.size, settings.rates
    if criterion == "fixed" or n_classes < 2:
        raise ValueError(
            f"{fit.table.owner}.declare('rates') needs learned rates and two or more classes; "
            f"received rates={criterion!r} and {n_classes} class(es)."
        )
    rows, companions = table.distinct(fit.rows)[0], fit.model.companions
    cells = companions.cells(rows)
    kernel = fixed_kernel(rows, cells, companions, settings)
    seed = fit.table.seed
    first = next(rate_log_posteriors(kernel, cells, rows, n_classes, criterion, seed, 1))
    return declare_kernel_rates(
        first.rows, first.fixed, first.criterion, column_names=_columns(fit)
    )


def _columns(fit: KernelFit) -> tuple[str, ...]:
    """Names of the columns, reals then categorical."""
    return fit.columns.real_names + fit.columns.categorical_names
