"""Calibrated classifiers for small, messy, high-stakes tables."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from bayesrbf.version import __version__ as __version__

if TYPE_CHECKING:
    from bayesrbf.artefact.estimator_state import load
    from bayesrbf.estimators.conditional_distribution import ConditionalDistribution
    from bayesrbf.estimators.conformal import ConformalSets
    from bayesrbf.estimators.deciding import cost_curves
    from bayesrbf.estimators.kernel_network.classifier import KernelNetworkClassifier
    from bayesrbf.estimators.median_lvq.classifier import MedianLVQClassifier
    from bayesrbf.estimators.mixture.density import MixtureDensity
    from bayesrbf.estimators.mixture.hybrid import HybridMixtureClassifier
    from bayesrbf.estimators.mixture.hybrid_dial import hybrid_path
    from bayesrbf.estimators.model_selection import LabelledKFold, labelled_scorer
    from bayesrbf.estimators.rbf_network.classifier import RBFNetworkClassifier
    from bayesrbf.estimators.rbf_network.regressor import RBFNetworkRegressor
    from bayesrbf.estimators.sdgm.classifier import SDGMClassifier
    from bayesrbf.estimators.stack.classifier import StackedClassifier
    from bayesrbf.estimators.transformers import HalfRankTransformer
    from bayesrbf.new_rows.drift import DriftCheck, check
    from bayesrbf.new_rows.validation import Validation, validate
    from bayesrbf.reading.notes import TableError
    from bayesrbf.reading.read import read_table
    from bayesrbf.reading.tabular_files import ReadTable
    from bayesrbf.records.median_lvq import MedianLVQPrior
    from bayesrbf.records.priors import GammaPrecisions, HorseshoePrecisions, MixturePrior

__all__ = [
    "ConditionalDistribution",
    "ConformalSets",
    "DriftCheck",
    "GammaPrecisions",
    "HalfRankTransformer",
    "HorseshoePrecisions",
    "HybridMixtureClassifier",
    "KernelNetworkClassifier",
    "LabelledKFold",
    "MedianLVQClassifier",
    "MedianLVQPrior",
    "MixtureDensity",
    "MixturePrior",
    "RBFNetworkClassifier",
    "RBFNetworkRegressor",
    "ReadTable",
    "SDGMClassifier",
    "StackedClassifier",
    "TableError",
    "Validation",
    "check",
    "cost_curves",
    "hybrid_path",
    "labelled_scorer",
    "load",
    "read_table",
    "validate",
]

# Where each public name lives. It is imported when first used, so that importing
# bayesrbf costs nothing and a fit pays only for what it touches.
_HOMES = {
    "ConditionalDistribution": "bayesrbf.estimators.conditional_distribution",
    "ConformalSets": "bayesrbf.estimators.conformal",
    "DriftCheck": "bayesrbf.new_rows.drift",
    "GammaPrecisions": "bayesrbf.records.priors",
    "HalfRankTransformer": "bayesrbf.estimators.transformers",
    "HorseshoePrecisions": "bayesrbf.records.priors",
    "HybridMixtureClassifier": "bayesrbf.estimators.mixture.hybrid",
    "KernelNetworkClassifier": "bayesrbf.estimators.kernel_network.classifier",
    "LabelledKFold": "bayesrbf.estimators.model_selection",
    "MedianLVQClassifier": "bayesrbf.estimators.median_lvq.classifier",
    "MedianLVQPrior": "bayesrbf.records.median_lvq",
    "MixtureDensity": "bayesrbf.estimators.mixture.density",
    "MixturePrior": "bayesrbf.records.priors",
    "RBFNetworkClassifier": "bayesrbf.estimators.rbf_network.classifier",
    "RBFNetworkRegressor": "bayesrbf.estimators.rbf_network.regressor",
    "ReadTable": "bayesrbf.reading.tabular_files",
    "SDGMClassifier": "bayesrbf.estimators.sdgm.classifier",
    "StackedClassifier": "bayesrbf.estimators.stack.classifier",
    "TableError": "bayesrbf.reading.notes",
    "Validation": "bayesrbf.new_rows.validation",
    "check": "bayesrbf.new_rows.drift",
    "cost_curves": "bayesrbf.estimators.deciding",
    "hybrid_path": "bayesrbf.estimators.mixture.hybrid_dial",
    "labelled_scorer": "bayesrbf.estimators.model_selection",
    "load": "bayesrbf.artefact.estimator_state",
    "read_table": "bayesrbf.reading.read",
    "validate": "bayesrbf.new_rows.validation",
}

if not TYPE_CHECKING:  # a type checker must still see a name that does not exist

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
