"""A table of findings that shows its sentences whole, in a terminal and in a notebook."""

from __future__ import annotations

import textwrap
from typing import Final

import pandas as pd

COLUMNS: Final = ["row", "value", "sentence"]
_WIDTH: Final = 100
"""Characters of a line of text."""


class FindingsTable(pd.DataFrame):
    """A data frame whose long sentences are wrapped and never cut.

    Examples
    --------
    >>> FindingsTable({"row": ["p_loo"], "value": [3.14159], "sentence": ["Few parameters."]})
    row    value  sentence
    p_loo  3.142  Few parameters.
    """

    @property
    def _constructor(self) -> type[FindingsTable]:
        """Type of a selection of rows."""
        return FindingsTable

    def __repr__(self) -> str:
        if list(self.columns) != COLUMNS:
            return str(super().__repr__())
        values = [f"{value:.4g}" for value in self["value"]]
        rows = [COLUMNS, *map(list, zip(self["row"], values, self["sentence"], strict=True))]
        first, second = (max(len(str(row[i])) for row in rows) for i in (0, 1))
        lines = []
        for name, value, sentence in rows:
            head = f"{name:<{first}}  {value:>{second}}  "
            lines += textwrap.wrap(
                str(sentence), _WIDTH, initial_indent=head, subsequent_indent=" " * len(head)
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        with pd.option_context("display.max_colwidth", None, "display.precision", 4):
            return str(super()._repr_html_())
