"""Between draws and DataTrees in ArviZ's layout."""

from bayesrbf.conversion.reading import from_datatree
from bayesrbf.conversion.writing import pointwise, predictions, predictive_check, to_datatree

__all__ = ["from_datatree", "pointwise", "predictions", "predictive_check", "to_datatree"]
