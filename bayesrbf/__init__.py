"""Calibrated classifiers for small, messy, high-stakes tables."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayesrbf.estimators.hybrid_mixture import HybridMixtureClassifier
    from bayesrbf.estimators.kernel_network import KernelNetworkClassifier
    from bayesrbf.estimators.median_lvq import MedianLVQClassifier
    from bayesrbf.estimators.mixture_density import MixtureDensity
    from bayesrbf.estimators.rbf_network import RBFNetworkClassifier
    from bayesrbf.estimators.rbf_network_regressor import RBFNetworkRegressor
    from bayesrbf.estimators.sdgm import SDGMClassifier
    from bayesrbf.estimators.stack import StackedClassifier
    from bayesrbf.exemplars import MedianLVQPrior
    from bayesrbf.hybrid_dial import hybrid_path
    from bayesrbf.persistence import load
    from bayesrbf.priors import MixturePrior
    from bayesrbf.sdgm_parameters import GammaPrecisions, HorseshoePrecisions
    from bayesrbf.transformers import HalfRankTransformer

__version__ = "0.1.0"

__all__ = [
    "GammaPrecisions",
    "HalfRankTransformer",
    "HorseshoePrecisions",
    "HybridMixtureClassifier",
    "KernelNetworkClassifier",
    "MedianLVQClassifier",
    "MedianLVQPrior",
    "MixtureDensity",
    "MixturePrior",
    "RBFNetworkClassifier",
    "RBFNetworkRegressor",
    "SDGMClassifier",
    "StackedClassifier",
    "hybrid_path",
    "load",
]

# Where each public name lives. It is imported when first used, so that importing
# bayesrbf costs nothing and a fit pays only for what it touches.
_HOMES = {
    "GammaPrecisions": "bayesrbf.sdgm_parameters",
    "HalfRankTransformer": "bayesrbf.transformers",
    "HorseshoePrecisions": "bayesrbf.sdgm_parameters",
    "HybridMixtureClassifier": "bayesrbf.estimators.hybrid_mixture",
    "KernelNetworkClassifier": "bayesrbf.estimators.kernel_network",
    "MedianLVQClassifier": "bayesrbf.estimators.median_lvq",
    "MedianLVQPrior": "bayesrbf.exemplars",
    "MixtureDensity": "bayesrbf.estimators.mixture_density",
    "MixturePrior": "bayesrbf.priors",
    "RBFNetworkClassifier": "bayesrbf.estimators.rbf_network",
    "RBFNetworkRegressor": "bayesrbf.estimators.rbf_network_regressor",
    "SDGMClassifier": "bayesrbf.estimators.sdgm",
    "StackedClassifier": "bayesrbf.estimators.stack",
    "hybrid_path": "bayesrbf.hybrid_dial",
    "load": "bayesrbf.persistence",
}

if not TYPE_CHECKING:  # a type checker must still see a name that does not exist

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
