"""Rates of a fitted kernel network by column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from bayesrbf.records import names

if TYPE_CHECKING:
    import pandas as pd


def named_rates(self: Any) -> pd.Series:
    """Rate of every column by its name."""
    import pandas as pd

    check_is_fitted(self)
    columns = self.columns_.real_names + self.columns_.categorical_names
    index = pd.Index(columns, name=names.COLUMN)
    return pd.Series(self.model_.rates, index, name=names.RATES)
