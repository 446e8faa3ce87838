"""Small networks for the laws of their numerics."""

from __future__ import annotations

import numpy as np

from bayesrbf.base.rows import Observations, Standardisation
from bayesrbf.families.rbf_network.posterior import Classes, Numbers, RBFNetworkLogPosterior
from bayesrbf.families.rbf_network.records import (
    Features,
    RBFNetworkHyperparameters,
    RBFNetworkSpecification,
    Response,
)
from tests.cases import hyperparameters, structure, table

UNITS = {"location": 2.0, "scale": 1.5}
RESPONSE_UNITS = Standardisation(np.array([-7.0]), np.array([2.5]))


def network(
    features: Features = "responsibility",
    response: Response = "classes",
    covariance_type: str = "full",
    n_features: int = 2,
    levels: tuple[int, ...] = (3,),
    components: int = 3,
    **prior: float,
) -> RBFNetworkLogPosterior:
    """A network on 15 rows with holes and hidden responses."""
    mixture = structure(covariance_type, False, (0,) * components, n_features, levels)
    n_outputs = 3 if response == "classes" else 1
    specification = RBFNetworkSpecification(mixture, n_outputs, features, response)
    rows = table(mixture, n_obs=15)
    settings = {"l1": 0.5, "l2": 0.3, "link": 4.0, "kappa": 0.4} | prior
    hyper = RBFNetworkHyperparameters(hyperparameters(mixture, **UNITS), **settings)
    return RBFNetworkLogPosterior(rows, responses(rows, response), specification, hyper)


def responses(rows: Observations, response: Response) -> Classes | Numbers:
    """Responses at random, some hidden."""
    rng = np.random.default_rng(5)
    if response == "classes":
        return Classes(rng.integers(-1, 3, rows.n_obs))
    numbers = rng.normal(size=rows.n_obs)
    numbers[::4] = np.nan
    log_unit = np.log(RESPONSE_UNITS.scale[0])
    if response == "number":
        return Numbers(numbers, np.full(rows.n_obs, log_unit))
    logs = RESPONSE_UNITS.backward(numbers[:, None])[:, 0]
    return Numbers(numbers, log_unit + np.nan_to_num(logs))


def random_theta(target: RBFNetworkLogPosterior, seed: int = 1) -> np.ndarray:
    """Coordinates within a few standard deviations of the prior's centre."""
    rng = np.random.default_rng(seed)
    return 0.7 * rng.normal(size=target.dimension) * target.scales


def rows_and_labels(n_obs: int = 60, missing: float = 0.2) -> tuple[Observations, Classes]:
    """Three clusters in two columns and a category, two of the clusters one class."""
    rng = np.random.default_rng(0)
    cluster = np.arange(n_obs) % 3
    real = rng.normal(size=(n_obs, 2)) * 0.5 + np.array([[-2, 0], [0, 1], [2, 0]])[cluster]
    real[rng.random(real.shape) < missing] = np.nan
    codes = ((cluster + (rng.random(n_obs) < 0.2)) % 3)[:, None].astype(np.intp)
    labels = np.where(rng.random(n_obs) < 0.2, -1, cluster % 2).astype(np.intp)
    weights = rng.uniform(0.5, 2.0, n_obs)
    return Observations(real, codes, np.zeros(n_obs, np.intp), weights), Classes(labels)


def specified(k: int = 3, **options: object) -> RBFNetworkSpecification:
    return RBFNetworkSpecification(structure("diag", False, (0,) * k, 2, (3,)), 2, **options)


def prior(specification: RBFNetworkSpecification, **settings: float) -> RBFNetworkHyperparameters:
    settings = {"l1": 0.5, "l2": 0.1, "kappa": 0.5} | settings
    return RBFNetworkHyperparameters(hyperparameters(specification.mixture), **settings)
