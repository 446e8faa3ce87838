"""The closed table of what a stored state may name: records, enumerations, frames."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

HOMES: Final = {
    "CellMoments": "bayesrbf.numerics.kernel_network.product_kernels",
    "ClassResponses": "bayesrbf.fitted.fitted_network",
    "ColumnMap": "bayesrbf.estimators.stack.training",
    "Columns": "bayesrbf.table",
    "Dissimilarities": "bayesrbf.exemplars",
    "Draws": "bayesrbf.inference.draws",
    "EigenBasis": "bayesrbf.numerics.kernel_network.kernel_layer",
    "Fit": "bayesrbf.results",
    "FittedExemplars": "bayesrbf.fitted.fitted_exemplars",
    "FittedKernelNetwork": "bayesrbf.fitted.fitted_kernel_network",
    "FittedMember": "bayesrbf.estimators.stack.members",
    "FittedMembers": "bayesrbf.estimators.stack.fitting",
    "FittedMixture": "bayesrbf.fitted.fitted_mixture",
    "FittedNetwork": "bayesrbf.fitted.fitted_network",
    "FittedSDGM": "bayesrbf.fitted.fitted_sdgm",
    "FittedStack": "bayesrbf.estimators.stack.fitted_stack",
    "GammaPrecisions": "bayesrbf.priors",
    "Gower": "bayesrbf.numerics.median_lvq.gower",
    "HalfRankMap": "bayesrbf.numerics.column_maps",
    "HeldOut": "bayesrbf.estimators.out_of_fold",
    "HorseshoePrecisions": "bayesrbf.priors",
    "KernelBasis": "bayesrbf.sdgm_parameters",
    "MatrixSource": "bayesrbf.fitted.exemplar_sources",
    "MedianLVQParameters": "bayesrbf.exemplars",
    "MedianLVQPrior": "bayesrbf.exemplars",
    "MixtureHyperparameters": "bayesrbf.priors",
    "MixtureParameters": "bayesrbf.parameters",
    "MixturePrior": "bayesrbf.priors",
    "MixtureSpecification": "bayesrbf.specification",
    "NumberResponses": "bayesrbf.fitted.fitted_network",
    "Objective": "bayesrbf.objective",
    "Observations": "bayesrbf.parameters",
    "Order": "bayesrbf.order",
    "Pool": "bayesrbf.estimators.stack.fitting",
    "PowerMap": "bayesrbf.numerics.column_maps",
    "ProductKernel": "bayesrbf.numerics.kernel_network.product_kernels",
    "Prototypes": "bayesrbf.exemplars",
    "QuadraticBasis": "bayesrbf.sdgm_parameters",
    "RBFNetworkHyperparameters": "bayesrbf.rbf_parameters",
    "RBFNetworkParameters": "bayesrbf.rbf_parameters",
    "RBFNetworkSpecification": "bayesrbf.rbf_parameters",
    "SDGMModes": "bayesrbf.sdgm_parameters",
    "SDGMParameters": "bayesrbf.sdgm_parameters",
    "SDGMTrace": "bayesrbf.sdgm_parameters",
    "SigmaPrior": "bayesrbf.exemplars",
    "Solver": "bayesrbf.fitted.fitted_mixture",
    "Standardisation": "bayesrbf.parameters",
    "Status": "bayesrbf.results",
    "TableSource": "bayesrbf.fitted.exemplar_sources",
    "Trace": "bayesrbf.results",
    "Variable": "bayesrbf.specification",
    "VectorSource": "bayesrbf.fitted.exemplar_sources",
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
