"""What both RBF networks do: check and read arguments, fit to rows, tell how it went, declare."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from sklearn.utils import check_consistent_length, column_or_1d

from bayesrbf import table
from bayesrbf.estimators.answers.asking import new_rows
from bayesrbf.estimators.arguments import SHARED, Arguments, Rule, integer, number, positive
from bayesrbf.fitted.fitted_network import FittedNetwork, NumberResponses, Responses
from bayesrbf.fitted.fitted_table import FittedTable
from bayesrbf.fitted.network_fitting import (
    DEFAULT_COMPONENTS,
    DEFAULT_L2,
    NetworkSettings,
    fit_network,
)
from bayesrbf.numerics.rbf_network.network_fit import NetworkFit
from bayesrbf.records.mixture import Observations
from bayesrbf.records.priors import MixturePrior
from bayesrbf.records.rbf_network import (
    FEATURES,
)

RULES = SHARED | {
    "n_components": integer(),
    "features": Rule(
        f"one of {FEATURES} (for training rows as hidden units use KernelNetworkClassifier)",
        FEATURES,
    ),
    "l1": number(),
    "l2": number(),
    "link": number(),
    "kappa": positive(None),
}
"""Rules of the arguments of both RBF networks."""


def check_penalties(owner: str, arguments: Arguments) -> None:
    """Refuse a prior of the output weights that is none."""
    if arguments["l1"] == 0 and arguments["l2"] == 0:
        raise ValueError(
            f"{owner} needs a proper prior of the output weights: l1 or l2 must be positive."
        )


def network_settings(arguments: Arguments, seed: int) -> NetworkSettings:
    """How a network is built and fitted, from the arguments of its estimator."""
    n_components, kappa = arguments["n_components"], arguments["kappa"]
    features, l2 = arguments["features"], arguments["l2"]
    return NetworkSettings(
        features=features,
        n_components=DEFAULT_COMPONENTS if n_components is None else int(n_components),
        covariance_type=arguments["covariance_type"],
        link=float(arguments["link"]),
        l1=float(arguments["l1"]),
        l2=DEFAULT_L2[features] if l2 is None else float(l2),
        kappa=None if kappa is None else float(kappa),
        n_init=int(arguments["n_init"]),
        max_iter=int(arguments["max_iter"]),
        tol=float(arguments["tol"]),
        seed=seed,
    )


def fit_to_rows(
    rows: Observations,
    levels: tuple[int, ...],
    responses: Responses,
    prior: MixturePrior | None,
    settings: NetworkSettings,
    previous: FittedNetwork | None = None,
) -> tuple[FittedNetwork, NetworkFit]:
    """Fit both layers to distinct rows, from where a previous fit of the same table ended."""
    specification = settings.specification(
        rows.real.shape[1], levels, responses.n_outputs, responses.kind
    )
    prior = MixturePrior() if prior is None else prior
    start = None if previous is None else previous.start
    return fit_network(rows, responses, specification, prior, settings, start)


def read_responses(
    X: object, y: object, weights: Float[np.ndarray, " obs"]
) -> tuple[NumberResponses, Int[np.ndarray, " obs"]]:
    """Distinct responses with their units, and each row's place among them, -1 where hidden."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    numbers = np.asarray(column_or_1d(y, warn=True), dtype=np.float64)
    check_consistent_length(X, numbers)
    if np.isinf(numbers).any():
        raise ValueError("y contains infinity; every response must be a number, or NaN.")
    usable = ~np.isnan(numbers) & (weights > 0)
    if not usable.any():
        raise ValueError(
            "y needs at least one response of positive weight; every one is NaN or has "
            "sample_weight 0."
        )
    values, places = np.unique(numbers[usable], return_inverse=True)
    # From sorted distinct values, so that weight 2 is the row twice to the last bit.
    mass = np.bincount(places, weights=weights[usable])
    units = table.standardisation(values[:, None], mass)
    codes = np.full(numbers.size, -1)
    codes[usable] = places
    return NumberResponses(values, units), codes


def transform(
    fit: FittedTable[FittedNetwork, object], X: object
) -> Float[np.ndarray, "obs component"]:
    """Hidden layer: the features of each row.

    Parameters
    ----------
    X : array-like or frame of shape (n_obs, n_columns)
        Rows; missing cells are summed out.

    Returns
    -------
    ndarray of shape (n_obs, n_components)
        Responsibilities, densities or their logarithms at the fitted point.
    """
    return fit.model.features(new_rows(fit, X).cells)
