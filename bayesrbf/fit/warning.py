"""Warnings at the line of the user's code that led to them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Final


class ColumnWarning(UserWarning):
    """Columns or rows of a training table that are not what they seem."""


FOR_DEVELOPERS: Final = (
    DeprecationWarning,
    PendingDeprecationWarning,
    FutureWarning,
    ImportWarning,
)
"""What warnings of other libraries tell those who program, and neither a page nor a terminal."""
PACKAGE: Final = str(Path(__file__).parent.parent)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside this package from which it was called, however deep that was."""
    warnings.warn(message, category, skip_file_prefixes=(PACKAGE,))
