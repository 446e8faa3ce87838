"""Calibrated classifiers for small, messy, high-stakes tables."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from bayesrbf.public import HOMES as _HOMES
from bayesrbf.version import __version__ as __version__

if TYPE_CHECKING:
    from bayesrbf.answers.conditional import ConditionalDistribution
    from bayesrbf.answers.conformal import ConformalSets
    from bayesrbf.answers.decide import acquire_labels
    from bayesrbf.answers.explain import explain_interval
    from bayesrbf.answers.learning import LearningCurve, learning_curve
    from bayesrbf.answers.performance import Performance, performance
    from bayesrbf.answers.recalibrate import recalibrate
    from bayesrbf.answers.rehearse import predictive_check, rehearse
    from bayesrbf.answers.sample_size import SampleSize, plan_sample_size
    from bayesrbf.answers.stability import Stability, stability
    from bayesrbf.app.check import DriftCheck, check
    from bayesrbf.app.validate import Validation, validate
    from bayesrbf.base.priors import GammaPrecisions, HorseshoePrecisions, MixturePrior
    from bayesrbf.families.estimator import load
    from bayesrbf.families.hybrid.classifier import HybridMixtureClassifier
    from bayesrbf.families.hybrid.density import MixtureDensity
    from bayesrbf.families.hybrid.objectives import (
        Blend,
        ConditionalLikelihood,
        Hinge,
        Likelihood,
        Margin,
    )
    from bayesrbf.families.kernel_network.classifier import KernelNetworkClassifier
    from bayesrbf.families.median_lvq.classifier import MedianLVQClassifier
    from bayesrbf.families.median_lvq.records import MedianLVQPrior
    from bayesrbf.families.rbf_network.classifier import RBFNetworkClassifier
    from bayesrbf.families.rbf_network.regressor import RBFNetworkRegressor
    from bayesrbf.families.sdgm.classifier import SDGMClassifier
    from bayesrbf.families.stack.classifier import StackedClassifier
    from bayesrbf.fit.cross_validation import LabelledKFold, held_out_probabilities, labelled_scorer
    from bayesrbf.reading.notes import TableError
    from bayesrbf.reading.read import ReadTable, read_table


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
    "LearningCurve",
    "Likelihood",
    "Margin",
    "MedianLVQClassifier",
    "MedianLVQPrior",
    "MixtureDensity",
    "MixturePrior",
    "Performance",
    "RBFNetworkClassifier",
    "RBFNetworkRegressor",
    "ReadTable",
    "SDGMClassifier",
    "SampleSize",
    "Stability",
    "StackedClassifier",
    "TableError",
    "Validation",
    "acquire_labels",
    "check",
    "explain_interval",
    "held_out_probabilities",
    "labelled_scorer",
    "learning_curve",
    "load",
    "performance",
    "plan_sample_size",
    "predictive_check",
    "read_table",
    "recalibrate",
    "rehearse",
    "stability",
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
