"""From settings and weighted rows to a fitted RBF network: what every fit and fold shares."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from threadpoolctl import ThreadpoolController

from bayesrbf import table
from bayesrbf.fitted.fitted_network import FittedNetwork, Responses
from bayesrbf.numerics.mixture.completion import mostly_complete, with_holes
from bayesrbf.numerics.mixture.mixture_fit import fit_mixture
from bayesrbf.numerics.rbf_network.alternation import imputed
from bayesrbf.numerics.rbf_network.elastic_net_output import Output
from bayesrbf.numerics.rbf_network.network_components import reordered
from bayesrbf.numerics.rbf_network.network_fit import NetworkFit, fit_joint
from bayesrbf.numerics.rbf_network.published_fit import NetworkProblem, Scheme, fit_published
from bayesrbf.records.mixture import Observations, Standardisation
from bayesrbf.records.network_schemes import SchemeName
from bayesrbf.records.priors import MixturePrior
from bayesrbf.records.rbf_network import (
    Features,
    RBFNetworkHyperparameters,
    RBFNetworkParameters,
    RBFNetworkSpecification,
    Response,
)
from bayesrbf.records.specification import CovarianceType, MixtureSpecification
from bayesrbf.records.stored import stored

DEFAULT_COMPONENTS = 10  # Components of a mixture where no number is given.

DEFAULT_FEATURES: dict[str, Features] = {
    "joint": "log_density",
    "em_lr": "density",
    "em_lr_link": "density",
    "em_lr_link_k": "density",
    "caetano": "responsibility",
}
"""Features of each scheme where none are given."""

DEFAULT_L2: dict[Features, float] = {"responsibility": 0.1, "density": 0.1, "log_density": 3.0}
"""Precision of output weights where none is given: logarithms are larger than shares."""


@stored
class NetworkPath:
    """How the search for a network went."""

    conditional: Float[np.ndarray, " iteration"]
    """Log likelihood of the responses, iteration by iteration."""
    falls: int
    """Iterations in which the joint objective fell."""


@dataclass(frozen=True)
class NetworkSettings:
    """How a network is built and fitted; the estimators say what each argument is."""

    scheme: SchemeName
    features: Features
    n_components: int
    shared: bool
    covariance_type: CovarianceType
    link: float
    l1: float
    l2: float
    kappa: float | None  # Power of p(x); None: one over the number of columns.
    grow: tuple[int, int] | None  # Components that join at a time, and the most of a mixture.
    impute: bool  # Whether missing cells are filled in rather than summed out.
    n_init: int
    max_iter: int
    tol: float
    seed: int

    def specification(
        self, n_features: int, levels: tuple[int, ...], n_outputs: int, response: Response
    ) -> RBFNetworkSpecification:
        """Structure of the network on a table: one mixture, or one an output."""
        n_mixtures = 1 if self.shared else n_outputs
        component_class = tuple(c for c in range(n_mixtures) for _ in range(self.n_components))
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
        if settings.scheme == "joint":
            fit = _fit_joint(standard, output, specification, inner, settings, rng, begin)
        else:
            fit = fit_published(
                _problem(standard, output, inner, settings),
                specification,
                rng=rng,
                n_init=settings.n_init,
                start=begin,
            )
    back = order.inverse
    given = fit.specification.reordered(back)
    network = FittedNetwork(
        given,
        hyperparameters.reordered(back),
        reordered(fit.parameters, back, fit.specification),
        responses,
        impute=settings.impute,
        integrate=mostly_complete(rows) and not settings.impute,
        order=given.hidden_order(order),
    )
    return network, replace(fit, specification=given, parameters=network.parameters)


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
    joint = settings.scheme == "joint"
    return RBFNetworkHyperparameters(
        mixture=prior.resolve(structure, units, marginals),
        l1=settings.l1,
        l2=settings.l2,
        link=settings.link,
        kappa=kappa,
        intercept_scale=10.0 if joint else np.inf,
    )


def _fit_joint(
    rows: Observations,
    output: Output,
    specification: RBFNetworkSpecification,
    hyperparameters: RBFNetworkHyperparameters,
    settings: NetworkSettings,
    rng: np.random.Generator,
    start: RBFNetworkParameters | None,
) -> NetworkFit:
    """The mode of the joint; where cells are to be filled in, EM's mixture does it first."""
    if settings.impute and with_holes(rows).any():
        em = fit_mixture(
            replace(rows, labels=np.zeros_like(rows.labels)),
            specification.mixture,
            hyperparameters.mixture,
            rng=rng,
            n_init=settings.n_init,
        )
        rows = imputed(rows, em.parameters, specification)
    return fit_joint(
        rows,
        output,
        specification,
        hyperparameters,
        rng=rng,
        n_init=settings.n_init,
        max_iter=settings.max_iter,
        tol=settings.tol,
        start=start,
    )


def _problem(
    rows: Observations,
    output: Output,
    hyperparameters: RBFNetworkHyperparameters,
    settings: NetworkSettings,
) -> NetworkProblem:
    """A published scheme on rows."""
    grows = settings.scheme == "em_lr_link_k"
    scheme = Scheme(
        annihilate=settings.scheme == "caetano",
        growth=settings.grow if grows else None,
        impute=settings.impute,
    )
    tolerance = settings.tol * float(rows.weights.sum())
    return NetworkProblem(rows, output, hyperparameters, scheme, settings.max_iter, tolerance)
