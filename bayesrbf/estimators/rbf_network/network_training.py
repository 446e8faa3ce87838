"""What both RBF networks do: check and read arguments, fit to rows, tell how it went, declare."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from sklearn.utils import check_consistent_length, column_or_1d

from bayesrbf import table
from bayesrbf.estimators.answers.asking import new_rows
from bayesrbf.estimators.arguments import SHARED, Arguments, Rule, integer, number, one_of
from bayesrbf.fitted.fitted_network import FittedNetwork, NumberResponses, Responses
from bayesrbf.fitted.fitted_table import FittedTable
from bayesrbf.fitted.network_fitting import (
    DEFAULT_COMPONENTS,
    DEFAULT_FEATURES,
    DEFAULT_L2,
    NetworkSettings,
    fit_network,
)
from bayesrbf.numerics.rbf_network.network_fit import NetworkFit
from bayesrbf.records.mixture import Observations
from bayesrbf.records.network_schemes import SCHEMES, NetworkScheme, scheme_of
from bayesrbf.records.priors import MixturePrior
from bayesrbf.records.rbf_network import (
    FEATURES,
)
from bayesrbf.records.results import Status

DEFAULT_GROWTH = (1, 10)
RULES = SHARED | {
    "n_components": integer(),
    "scheme": Rule(
        f"a JointScheme, a PublishedScheme, or a word for one of {tuple(SCHEMES)}",
        tuple(SCHEMES),
        NetworkScheme,
        error=TypeError,
    ),
    "features": Rule(
        f"None or one of {FEATURES} (for training rows as hidden units "
        "use KernelNetworkClassifier)",
        (None, *FEATURES),
    ),
    "l1": number(),
    "l2": number(),
    "hidden_cells": one_of("marginalise", "impute"),
}
"""Rules of the arguments of both RBF networks."""


def check_scheme(owner: str, arguments: Arguments, *, of_classes: bool) -> None:
    """Refuse arguments that do not go with the scheme of a network."""
    scheme = scheme_of(arguments["scheme"])
    if arguments["l1"] == 0 and arguments["l2"] == 0:
        raise ValueError(
            f"{owner} needs a proper prior of the output weights: l1 or l2 must be positive."
        )
    if not (scheme.shared or of_classes):
        raise ValueError(
            f"{owner}(scheme=...) has one mixture, as there are no classes: use shared=True in "
            f"place of {scheme}."
        )


def network_settings(arguments: Arguments, seed: int) -> NetworkSettings:
    """How a network is built and fitted, from the arguments of its estimator."""
    scheme, n_components = scheme_of(arguments["scheme"]), arguments["n_components"]
    features, l2 = arguments["features"] or DEFAULT_FEATURES[scheme.name], arguments["l2"]
    step, maximum = scheme.grow or DEFAULT_GROWTH
    return NetworkSettings(
        scheme=scheme.name,
        features=features,
        n_components=DEFAULT_COMPONENTS if n_components is None else int(n_components),
        shared=bool(scheme.shared),
        covariance_type=arguments["covariance_type"],
        link=scheme.gamma,
        l1=float(arguments["l1"]),
        l2=DEFAULT_L2[features] if l2 is None else float(l2),
        kappa=None if scheme.kappa is None else float(scheme.kappa),
        grow=(int(step), int(maximum)),
        impute=arguments["hidden_cells"] == "impute",
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
    """Fit both layers to distinct rows, from a previous fit on if it has the same structure."""
    specification = settings.specification(
        rows.real.shape[1], levels, responses.n_outputs, responses.kind
    )
    prior = MixturePrior() if prior is None else prior
    start = None
    if previous is not None and previous.specification == specification:
        start = previous.start
    return fit_network(rows, responses, specification, prior, settings, start)


def refuse_without_joint(asked: str | NetworkScheme) -> None:
    """Refuse to draw under a published scheme: an alternation has no posterior."""
    name = scheme_of(asked).name
    if name != "joint":
        raise ValueError(
            f"scheme={name!r} is an alternation without one declared joint, and so "
            "without a posterior; use scheme='joint' to refine."
        )


def fit_sentence(asked: str | NetworkScheme, fit: NetworkFit) -> str:
    """How a fit ended; of a published scheme, also whether the joint objective rose."""
    if scheme_of(asked).name == "joint":
        return fit.status.sentence
    rounds, falls = fit.joint.size - 1, fit.falls
    ended = "stood still" if fit.status is Status.CONVERGED else "had not come to rest"
    rose = (
        "the joint objective rose in every one"
        if falls == 0
        else f"the joint objective fell in {falls} of them: this scheme ascends no single objective"
    )
    return f"After {rounds} rounds the alternation {ended}; {rose}."


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
        Rows; missing cells are summed out (or filled in).

    Returns
    -------
    ndarray of shape (n_obs, n_components)
        Responsibilities, densities or their logarithms at the fitted point.
    """
    return fit.model.features(new_rows(fit, X).cells)
