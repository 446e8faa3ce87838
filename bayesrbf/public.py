"""Where each public name lives.

It is imported when first used, so that importing bayesrbf costs nothing and a fit pays only for
what it touches.
"""

from __future__ import annotations

from typing import Final

ESTIMATORS: Final = {
    "HybridMixtureClassifier": "bayesrbf.estimators.mixture.hybrid",
    "KernelNetworkClassifier": "bayesrbf.estimators.kernel_network.classifier",
    "SDGMClassifier": "bayesrbf.estimators.sdgm.classifier",
    "StackedClassifier": "bayesrbf.estimators.stack.classifier",
    "MedianLVQClassifier": "bayesrbf.estimators.median_lvq.classifier",
    "MixtureDensity": "bayesrbf.estimators.mixture.density",
    "RBFNetworkClassifier": "bayesrbf.estimators.rbf_network.classifier",
    "RBFNetworkRegressor": "bayesrbf.estimators.rbf_network.regressor",
}
"""Estimators that a file may hold. It can name no other, and no record but those that are
``@stored`` in these modules, in what they import, and in that of models beside them."""
BESIDE: Final = "bayesrbf.estimators.stack.beside"
"""Module of the record of other models beside a classifier, which few files have."""

HOMES: Final = {
    **ESTIMATORS,
    "Blend": "bayesrbf.records.mixture_objectives",
    "ConditionalDistribution": "bayesrbf.estimators.answers.conditional_distribution",
    "ConditionalLikelihood": "bayesrbf.records.mixture_objectives",
    "ConformalSets": "bayesrbf.estimators.conformal",
    "DriftCheck": "bayesrbf.new_rows.drift",
    "GammaPrecisions": "bayesrbf.records.priors",
    "Hinge": "bayesrbf.records.mixture_objectives",
    "HorseshoePrecisions": "bayesrbf.records.priors",
    "LabelledKFold": "bayesrbf.estimators.model_selection",
    "Likelihood": "bayesrbf.records.mixture_objectives",
    "Margin": "bayesrbf.records.mixture_objectives",
    "MedianLVQPrior": "bayesrbf.records.median_lvq",
    "MixturePrior": "bayesrbf.records.priors",
    "ReadTable": "bayesrbf.reading.tabular_files",
    "TableError": "bayesrbf.reading.notes",
    "Validation": "bayesrbf.new_rows.validation",
    "acquire_labels": "bayesrbf.estimators.labelling",
    "check": "bayesrbf.new_rows.drift",
    "cost_curves": "bayesrbf.estimators.answers.deciding",
    "labelled_scorer": "bayesrbf.estimators.model_selection",
    "load": "bayesrbf.estimators.saving",
    "predictive_check": "bayesrbf.estimators.predictive_check",
    "read_table": "bayesrbf.reading.read",
    "rehearse": "bayesrbf.estimators.rehearsing",
    "validate": "bayesrbf.new_rows.validation",
}
"""All public names."""
