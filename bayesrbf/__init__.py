"""Calibrated classifiers for small, messy, high-stakes tables."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from bayesrbf.public import HOMES as _HOMES
from bayesrbf.version import __version__ as __version__

if TYPE_CHECKING:
    from bayesrbf.estimators.answers.conditional_distribution import ConditionalDistribution
    from bayesrbf.estimators.answers.deciding import cost_curves
    from bayesrbf.estimators.conformal import ConformalSets
    from bayesrbf.estimators.kernel_network.classifier import KernelNetworkClassifier
    from bayesrbf.estimators.labelling import acquire_labels
    from bayesrbf.estimators.median_lvq.classifier import MedianLVQClassifier
    from bayesrbf.estimators.mixture.density import MixtureDensity
    from bayesrbf.estimators.mixture.hybrid import HybridMixtureClassifier
    from bayesrbf.estimators.model_selection import LabelledKFold, labelled_scorer
    from bayesrbf.estimators.predictive_check import predictive_check
    from bayesrbf.estimators.rbf_network.classifier import RBFNetworkClassifier
    from bayesrbf.estimators.rbf_network.regressor import RBFNetworkRegressor
    from bayesrbf.estimators.rehearsing import rehearse
    from bayesrbf.estimators.saving import load
    from bayesrbf.estimators.sdgm.classifier import SDGMClassifier
    from bayesrbf.estimators.stack.classifier import StackedClassifier
    from bayesrbf.new_rows.drift import DriftCheck, check
    from bayesrbf.new_rows.validation import Validation, validate
    from bayesrbf.reading.notes import TableError
    from bayesrbf.reading.read import read_table
    from bayesrbf.reading.tabular_files import ReadTable
    from bayesrbf.records.median_lvq import MedianLVQPrior
    from bayesrbf.records.mixture_objectives import (
        Blend,
        ConditionalLikelihood,
        Hinge,
        Likelihood,
        Margin,
    )
    from bayesrbf.records.priors import GammaPrecisions, HorseshoePrecisions, MixturePrior

__all__ = [
    "Blend",
    "ConditionalDistribution",
    "ConditionalLikelihood",
    "ConformalSets",
    "DriftCheck",
    "GammaPrecisions",
    "Hinge",
    "HorseshoePrecisions",
    "HybridMixtureClassifier",
    "KernelNetworkClassifier",
    "LabelledKFold",
    "Likelihood",
    "Margin",
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
    "acquire_labels",
    "check",
    "cost_curves",
    "labelled_scorer",
    "load",
    "predictive_check",
    "read_table",
    "rehearse",
    "validate",
]

if not TYPE_CHECKING:  # a type checker must still see a name that does not exist

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
