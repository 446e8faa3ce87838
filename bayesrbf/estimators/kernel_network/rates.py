"""Rates of a fitted kernel network: by column, and as the graph that they are the mode of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from bayesrbf import table
from bayesrbf.fitted.fitted_kernel_network import fixed_kernel
from bayesrbf.numerics.kernel_network.learned_rates import rate_log_posteriors
from bayesrbf.records import names

if TYPE_CHECKING:
    import pandas as pd
    import pymc as pm


def named_rates(self: Any) -> pd.Series:
    """Rate of every column by its name."""
    import pandas as pd

    check_is_fitted(self)
    index = pd.Index(_columns(self), name=names.COLUMN)
    return pd.Series(self.model_.rates, index, name=names.RATES)


def declare_rates(self: Any) -> pm.Model:
    """Declare the graph of the rates on a sub-sample of the labelled training rows.

    Returns
    -------
    pymc.Model
        As :func:`bayesrbf.models.declare_kernel_rates` has it. ``rates_`` are averages over the
        modes of four such graphs, divided by ``scale``.

    Raises
    ------
    ValueError
        If the rates are fixed, or there is one class.
    """
    from bayesrbf.models import declare_kernel_rates

    check_is_fitted(self)
    n_classes = self.classes_.size
    if self.rates == "fixed" or n_classes < 2:
        raise ValueError(
            f"{type(self).__name__}.declare_rates() needs learned rates and two or more classes; "
            f"received rates={self.rates!r} and {n_classes} class(es)."
        )
    rows, companions = table.distinct(self.rows_)[0], self.model_.companions
    cells = companions.cells(rows)
    kernel = fixed_kernel(rows, cells, companions, self._settings())
    first = next(rate_log_posteriors(kernel, cells, rows, n_classes, self.rates, self.seed_, 1))
    return declare_kernel_rates(
        first.rows, first.fixed, first.criterion, column_names=_columns(self)
    )


def _columns(self: Any) -> tuple[str, ...]:
    """Names of the columns, reals then categorical."""
    names_of: tuple[str, ...] = self.columns_.real_names + self.columns_.categorical_names
    return names_of
