"""Between draws and DataTrees in ArviZ's layout."""

from bayesrbf.conversion.datatrees import from_datatree, to_datatree
from bayesrbf.conversion.predictive_trees import by_column, predictions, predictive_check

__all__ = ["by_column", "from_datatree", "predictions", "predictive_check", "to_datatree"]
