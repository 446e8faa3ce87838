"""Fitted estimators in files: arguments and the fit, written whole and read without trust."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from bayesrbf.artefact.state_file import ArtefactError, load_state, save_state, shown
from bayesrbf.estimators.estimator import Estimator
from bayesrbf.estimators.older_files import from_flat_state
from bayesrbf.fitted.fitted_table import FittedTable

CONTAINER: Final = "_sklearn_output_config"
"""Where scikit-learn keeps the container of ``set_output``."""

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
"""Module of each estimator that may be stored; a file can name no other."""
