"""Between draws and DataTrees in ArviZ's layout."""

from bayesrbf.conversion.checking import by_column
from bayesrbf.conversion.reading import from_datatree
from bayesrbf.conversion.writing import predictions, predictive_check, to_datatree

__all__ = [
    "by_column",
    "from_datatree",
    "predictions",
    "predictive_check",
    "to_datatree",
]
