"""From settings and weighted rows to a fitted RBF network: what every fit and fold shares."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import ThreadpoolController

from bayesrbf import table
from bayesrbf.fitted.fitted_network import FittedNetwork, Responses
from bayesrbf.numerics.mixture.completion import mostly_complete, with_holes
from bayesrbf.numerics.rbf_network.network_fit import NetworkFit, fit_joint, reordered
from bayesrbf.records.mixture import Observations, Standardisation
from bayesrbf.records.priors import MixturePrior
from bayesrbf.records.rbf_network import (
    Features,
    RBFNetworkHyperparameters,
    RBFNetworkParameters,
    RBFNetworkSpecification,
    Response,
)
from bayesrbf.records.specification import CovarianceType, MixtureSpecification

DEFAULT_COMPONENTS = 10  # Components of a mixture where no number is given.

DEFAULT_L2: dict[Features, float] = {"responsibility": 0.1, "density": 0.1, "log_density": 3.0}
"""Precision of output weights where none is given: logarithms are larger than shares."""


@dataclass(frozen=True)
class NetworkSettings:
    """How a network is built and fitted; the estimators say what each argument is."""

    features: Features
    n_components: int
    covariance_type: CovarianceType
    link: float
    l1: float
    l2: float
    kappa: float | None  # Power of p(x); None: one over the number of columns.
    n_init: int
    max_iter: int
    tol: float
    seed: int

    def specification(
        self, n_features: int, levels: tuple[int, ...], n_outputs: int, response: Response
    ) -> RBFNetworkSpecification:
        """Structure of the network on a table."""
        component_class = (0,) * self.n_components
        mixture = MixtureSpecification(n_features, levels, component_class, self.covariance_type)
        return RBFNetworkSpecification(mixture, n_outputs, self.features, response)


SAFE_WITH_HOLES = 0.3
"""Least power of p(x) where cells are missing. Below it their likelihood counts for too little."""


def fit_network(
    rows: Observations,
    responses: Responses,
    specification: RBFNetworkSpecification,
    prior: MixturePrior,
    settings: NetworkSettings,
    start: RBFNetworkParameters | None = None,
) -> tuple[FittedNetwork, NetworkFit]:
    """Standardise distinct weighted rows, in the user's units, and fit a network to them.

    A start, its mixture in the user's units as well, takes the place of restarts. All of it
    happens in the canonical order of columns and classes: what is found does not depend on the
    order in which they are given.
    """
    order, output, rows = responses.canonical(rows)
    begin = None if start is None else reordered(start, order, specification)
    rows, specification = rows.reordered(order), specification.reordered(order)
    units = table.standardisation(rows.real, rows.weights)
    standard = replace(rows, real=units.forward(rows.real))
    hyperparameters = _resolve(rows, units, specification, prior, settings)
    inner = hyperparameters.standardised()
    rng = np.random.default_rng(settings.seed)
    begin = None if begin is None else begin.standardised(units)
    # One BLAS thread: the matrices are small.
    with ThreadpoolController().limit(limits=1, user_api="blas"):
        fit = fit_joint(
            standard,
            output,
            specification,
            inner,
            rng=rng,
            n_init=settings.n_init,
            max_iter=settings.max_iter,
            tol=settings.tol,
            start=begin,
        )
    back = order.inverse
    network = FittedNetwork(
        specification.reordered(back),
        hyperparameters.reordered(back),
        reordered(fit.parameters, back, specification),
        responses,
        integrate=mostly_complete(rows),
        order=order.of_one_class,
    )
    return network, replace(fit, parameters=network.parameters)


def _resolve(
    rows: Observations,
    units: Standardisation,
    specification: RBFNetworkSpecification,
    prior: MixturePrior,
    settings: NetworkSettings,
) -> RBFNetworkHyperparameters:
    """Every number of the prior on this table, in the user's units."""
    structure = specification.mixture
    marginals = table.marginals(rows.codes, structure.levels, rows.weights)
    kappa = settings.kappa
    if kappa is None:
        kappa = 1 / (structure.n_features + len(structure.levels))
        if with_holes(rows).any():
            kappa = max(kappa, SAFE_WITH_HOLES)
    return RBFNetworkHyperparameters(
        mixture=prior.resolve(structure, units, marginals),
        l1=settings.l1,
        l2=settings.l2,
        link=settings.link,
        kappa=kappa,
    )
