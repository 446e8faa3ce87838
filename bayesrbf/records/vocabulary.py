"""The closed table of what a stored state may name: records, enumerations, frames."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

HOMES: Final = {
    "CellMoments": "bayesrbf.numerics.kernel_network.cells",
    "ColumnMap": "bayesrbf.estimators.stack.training",
    "Columns": "bayesrbf.table",
    "Dissimilarities": "bayesrbf.exemplars",
    "Draws": "bayesrbf.inference.draws",
    "EigenBasis": "bayesrbf.numerics.kernel_network.basis",
    "ExemplarNetwork": "bayesrbf.estimators.rbf_network.exemplars",
    "Fit": "bayesrbf.results",
    "FittedExemplars": "bayesrbf.estimators.median_lvq.fitting",
    "FittedKernelNetwork": "bayesrbf.estimators.kernel_network.fitted",
    "FittedMember": "bayesrbf.estimators.stack.members",
    "FittedMembers": "bayesrbf.estimators.stack.fitting",
    "FittedMixture": "bayesrbf.estimators.mixture.fitting",
    "FittedNetwork": "bayesrbf.estimators.rbf_network.fitted",
    "FittedSDGM": "bayesrbf.estimators.sdgm.fitted",
    "GammaPrecisions": "bayesrbf.priors",
    "Gower": "bayesrbf.numerics.median_lvq.gower",
    "HalfRankMap": "bayesrbf.numerics.column_maps",
    "HeldOut": "bayesrbf.estimators.out_of_fold",
    "HorseshoePrecisions": "bayesrbf.priors",
    "KernelBasis": "bayesrbf.sdgm_parameters",
    "MatrixSource": "bayesrbf.estimators.median_lvq.sources",
    "MedianLVQParameters": "bayesrbf.exemplars",
    "MedianLVQPrior": "bayesrbf.exemplars",
    "MixtureHyperparameters": "bayesrbf.priors",
    "MixtureParameters": "bayesrbf.parameters",
    "MixturePrior": "bayesrbf.priors",
    "MixtureSpecification": "bayesrbf.specification",
    "Objective": "bayesrbf.objective",
    "Observations": "bayesrbf.parameters",
    "Order": "bayesrbf.order",
    "PowerMap": "bayesrbf.numerics.column_maps",
    "ProductKernel": "bayesrbf.numerics.kernel_network.gram",
    "Prototypes": "bayesrbf.exemplars",
    "QuadraticBasis": "bayesrbf.sdgm_parameters",
    "RBFNetworkHyperparameters": "bayesrbf.rbf_parameters",
    "RBFNetworkParameters": "bayesrbf.rbf_parameters",
    "RBFNetworkSpecification": "bayesrbf.rbf_parameters",
    "SDGMModes": "bayesrbf.sdgm_parameters",
    "SDGMParameters": "bayesrbf.sdgm_parameters",
    "SDGMTrace": "bayesrbf.sdgm_parameters",
    "SigmaPrior": "bayesrbf.exemplars",
    "Solver": "bayesrbf.estimators.mixture.fitting",
    "Standardisation": "bayesrbf.parameters",
    "Status": "bayesrbf.results",
    "TableSource": "bayesrbf.estimators.median_lvq.sources",
    "Trace": "bayesrbf.results",
    "Variable": "bayesrbf.specification",
    "VectorSource": "bayesrbf.estimators.median_lvq.sources",
}
"""Where each class that may be stored lives; a file can name no other."""

ENUMERATIONS: Final = ("Status",)
FRAMES: Final = ("pandas", "polars")
FRAME_DTYPES: Final = ("Float64", "String", "Boolean", "Categorical")


class StateError(ValueError):
    """A value that cannot be stored, or stored text that is no state."""


def class_named(name: str) -> Any:
    """Look up a class of the table.

    Parameters
    ----------
    name : str
        One of :data:`HOMES`.

    Returns
    -------
    type
        The class.
    """
    return getattr(import_module(HOMES[name]), name)
