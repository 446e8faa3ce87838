"""Where each public name lives.

It is imported when first used, so that importing bayesrbf costs nothing and a fit pays only for
what it touches.
"""

from __future__ import annotations

from typing import Final

ESTIMATORS: Final = {
    "HybridMixtureClassifier": "bayesrbf.families.hybrid.classifier",
    "KernelNetworkClassifier": "bayesrbf.families.kernel_network.classifier",
    "SDGMClassifier": "bayesrbf.families.sdgm.classifier",
    "StackedClassifier": "bayesrbf.families.stack.classifier",
    "MedianLVQClassifier": "bayesrbf.families.median_lvq.classifier",
    "MixtureDensity": "bayesrbf.families.hybrid.density",
    "RBFNetworkClassifier": "bayesrbf.families.rbf_network.classifier",
    "RBFNetworkRegressor": "bayesrbf.families.rbf_network.regressor",
}
"""Estimators that a file may hold. It can name no other, and no record but those that are
``@stored`` in these modules, in what they import, and in that of models beside them."""
BESIDE: Final = "bayesrbf.families.stack.model_uncertainty"
"""Module of the record of other models beside a classifier, which few files have."""

HOMES: Final = {
    **ESTIMATORS,
    "Blend": "bayesrbf.families.hybrid.objectives",
    "ConditionalDistribution": "bayesrbf.answers.conditional",
    "ConditionalLikelihood": "bayesrbf.families.hybrid.objectives",
    "ConformalSets": "bayesrbf.answers.conformal",
    "DriftCheck": "bayesrbf.app.check",
    "GammaPrecisions": "bayesrbf.base.priors",
    "Hinge": "bayesrbf.families.hybrid.objectives",
    "HorseshoePrecisions": "bayesrbf.base.priors",
    "LabelledKFold": "bayesrbf.fit.cross_validation",
    "Likelihood": "bayesrbf.families.hybrid.objectives",
    "Margin": "bayesrbf.families.hybrid.objectives",
    "MedianLVQPrior": "bayesrbf.families.median_lvq.records",
    "MixturePrior": "bayesrbf.base.priors",
    "LearningCurve": "bayesrbf.answers.learning",
    "ReadTable": "bayesrbf.reading.read",
    "SampleSize": "bayesrbf.answers.sample_size",
    "Stability": "bayesrbf.answers.stability",
    "TableError": "bayesrbf.reading.notes",
    "Validation": "bayesrbf.app.validate",
    "acquire_labels": "bayesrbf.answers.decide",
    "check": "bayesrbf.app.check",
    "explain_interval": "bayesrbf.answers.explain",
    "held_out_probabilities": "bayesrbf.fit.cross_validation",
    "labelled_scorer": "bayesrbf.fit.cross_validation",
    "learning_curve": "bayesrbf.answers.learning",
    "load": "bayesrbf.families.estimator",
    "Performance": "bayesrbf.answers.performance",
    "performance": "bayesrbf.answers.performance",
    "plan_sample_size": "bayesrbf.answers.sample_size",
    "predictive_check": "bayesrbf.answers.rehearse",
    "read_table": "bayesrbf.reading.read",
    "recalibrate": "bayesrbf.answers.recalibrate",
    "rehearse": "bayesrbf.answers.rehearse",
    "stability": "bayesrbf.answers.stability",
    "validate": "bayesrbf.app.validate",
}
"""All public names."""
