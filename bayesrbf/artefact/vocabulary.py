"""The closed table of what a stored state may name: records, enumerations, frames."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

HOMES: Final = {
    "CellMoments": "bayesrbf.numerics.kernel_network.product_kernels",
    "ClassResponses": "bayesrbf.fitted.fitted_network",
    "Columns": "bayesrbf.table",
    "DensityCandidate": "bayesrbf.estimators.mixture.density_choice",
    "Dissimilarities": "bayesrbf.records.median_lvq",
    "Draws": "bayesrbf.inference.draws",
    "EigenBasis": "bayesrbf.numerics.kernel_network.kernel_layer",
    "Fit": "bayesrbf.records.results",
    "FittedExemplars": "bayesrbf.fitted.fitted_exemplars",
    "FittedKernelNetwork": "bayesrbf.fitted.fitted_kernel_network",
    "FittedMember": "bayesrbf.estimators.stack.members",
    "FittedMembers": "bayesrbf.estimators.stack.fitting",
    "FittedMixture": "bayesrbf.fitted.fitted_mixture",
    "FittedNetwork": "bayesrbf.fitted.fitted_network",
    "FittedSDGM": "bayesrbf.fitted.fitted_sdgm",
    "FittedStack": "bayesrbf.estimators.stack.fitted_stack",
    "GammaPrecisions": "bayesrbf.records.priors",
    "Gower": "bayesrbf.numerics.median_lvq.gower",
    "HalfRankMaps": "bayesrbf.numerics.column_maps",
    "HeldOut": "bayesrbf.estimators.folds",
    "HorseshoePrecisions": "bayesrbf.records.priors",
    "KernelBasis": "bayesrbf.records.sdgm",
    "MatrixSource": "bayesrbf.fitted.exemplar_sources",
    "MedianLVQParameters": "bayesrbf.records.median_lvq",
    "MedianLVQPrior": "bayesrbf.records.median_lvq",
    "MixtureHyperparameters": "bayesrbf.records.priors",
    "MixtureParameters": "bayesrbf.records.mixture",
    "MixturePrior": "bayesrbf.records.priors",
    "MixtureSpecification": "bayesrbf.records.specification",
    "NumberResponses": "bayesrbf.fitted.fitted_network",
    "Objective": "bayesrbf.records.objective",
    "Observations": "bayesrbf.records.mixture",
    "Order": "bayesrbf.records.order",
    "Pool": "bayesrbf.estimators.stack.fitting",
    "PowerMaps": "bayesrbf.records.column_maps",
    "ProductKernel": "bayesrbf.numerics.kernel_network.product_kernels",
    "Prototypes": "bayesrbf.records.median_lvq",
    "QuadraticBasis": "bayesrbf.records.sdgm",
    "RBFNetworkHyperparameters": "bayesrbf.records.rbf_network",
    "RBFNetworkParameters": "bayesrbf.records.rbf_network",
    "RBFNetworkSpecification": "bayesrbf.records.rbf_network",
    "SDGMModes": "bayesrbf.records.sdgm",
    "SDGMParameters": "bayesrbf.records.sdgm",
    "SDGMTrace": "bayesrbf.records.sdgm",
    "SigmaPrior": "bayesrbf.records.median_lvq",
    "Solver": "bayesrbf.fitted.mixture_fitting",
    "StackRefits": "bayesrbf.estimators.stack.bootstrap",
    "Standardisation": "bayesrbf.records.mixture",
    "Status": "bayesrbf.records.results",
    "TableSource": "bayesrbf.fitted.exemplar_sources",
    "Trace": "bayesrbf.records.results",
    "Variable": "bayesrbf.records.specification",
    "VectorSource": "bayesrbf.fitted.exemplar_sources",
}
"""Module of each class that may be stored; a file can name no other."""

ENUMERATIONS: Final = ("Status",)
FRAMES: Final = ("pandas", "polars")
FRAME_DTYPES: Final = ("Float64", "String", "Boolean", "Categorical")


class StateError(ValueError):
    """A value that cannot be stored, or stored text that is no state."""


def class_named(name: str) -> Any:
    """The class of one of the names in :data:`HOMES`."""
    return getattr(import_module(HOMES[name]), name)
