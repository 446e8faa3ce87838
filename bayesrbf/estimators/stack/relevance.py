"""What the kernel networks of a stack learned of the columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesrbf.estimators.stack.members import MEMBERS
from bayesrbf.records import names

if TYPE_CHECKING:
    import pandas as pd


def relevance_table(self: Any) -> pd.DataFrame:
    """Relevance of every column in every member that learns its rates."""
    import pandas as pd

    check_is_fitted(self)
    own: Any = self.model_.members.own
    learned = {m.name: m.relevance for m in own if MEMBERS[m.name].rates != "fixed"}
    columns = self.columns_.real_names + self.columns_.categorical_names
    index = pd.Index(columns, name=names.COLUMN)
    values = np.reshape(list(learned.values()), (len(learned), len(index))).T
    return pd.DataFrame(values, index, pd.Index(list(learned), name=names.MEMBER))
