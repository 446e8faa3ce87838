"""From weighted rows to a fitted RBF network: the steps that every fit and fold shares."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Float
from threadpoolctl import ThreadpoolController

from bayesrbf import table
from bayesrbf.estimators.mixture.fitting import FittedMixture
from bayesrbf.numerics.fitting import fit_mixture
from bayesrbf.numerics.rbf_network.alternating import Problem, Scheme, fit_published
from bayesrbf.numerics.rbf_network.fitting import NetworkFit, fit_joint
from bayesrbf.numerics.rbf_network.log_posterior import RBFNetworkLogPosterior
from bayesrbf.numerics.rbf_network.output import Output
from bayesrbf.numerics.rbf_network.rows import Network
from bayesrbf.numerics.rbf_network.schemes import imputed
from bayesrbf.parameters import Observations, Standardisation
from bayesrbf.priors import MixturePrior
from bayesrbf.rbf_parameters import (
    Features,
    RBFNetworkHyperparameters,
    RBFNetworkParameters,
    RBFNetworkSpecification,
    Response,
)
from bayesrbf.specification import CovarianceType, MixtureSpecification

SchemeName = Literal["joint", "em_lr", "em_lr_link", "em_lr_link_k", "caetano"]

SAFE_WITH_HOLES = 0.3
"""Least power of p(x) where cells are missing: below, their likelihood loses its say."""

DEFAULT_LINK = {
    "joint": 0.0,
    "em_lr": 0.0,
    "em_lr_link": np.inf,
    "em_lr_link_k": np.inf,
    "caetano": 100.0,
}
"""gamma of each scheme where none is given."""

DEFAULT_FEATURES: dict[str, Features] = {
    "joint": "responsibility",
    "em_lr": "density",
    "em_lr_link": "density",
    "em_lr_link_k": "density",
    "caetano": "responsibility",
}
"""Features of each scheme where none are given."""


@dataclass(frozen=True)
class NetworkSettings:
    """How a network is built and fitted; see the estimators.

    Attributes
    ----------
    scheme : {"joint", "em_lr", "em_lr_link", "em_lr_link_k", "caetano"}
        What is fitted, and how.
    features : {"density", "responsibility", "log_density"}
        What the hidden layer tells the output layer.
    n_components : int
        Components of every mixture.
    shared : bool
        Whether all outputs see one mixture.
    covariance_type : {"full", "tied", "diag", "spherical"}
        Shape of the covariances.
    link : float
        gamma.
    l1 : float
        Rate of the Laplace factor of the output weights' prior.
    l2 : float
        Precision of its normal factor.
    kappa : float or None
        Power of p(x); None: one over the number of columns.
    grow : tuple of int or None
        Components that join at a time, and the most of a mixture.
    impute : bool
        Whether missing cells are filled in rather than summed out.
    n_init : int
        Number of starts.
    max_iter : int
        Most iterations.
    tol : float
        Smallest gain per unit of row weight that counts.
    seed : int
        Seed of the starts.
    """

    scheme: SchemeName
    features: Features
    n_components: int
    shared: bool
    covariance_type: CovarianceType
    link: float
    l1: float
    l2: float
    kappa: float | None
    grow: tuple[int, int] | None
    impute: bool
    n_init: int
    max_iter: int
    tol: float
    seed: int

    def specification(
        self, n_features: int, levels: tuple[int, ...], n_outputs: int, response: Response
    ) -> RBFNetworkSpecification:
        """Structure of the network on a table.

        Parameters
        ----------
        n_features : int
            Number of real columns.
        levels : tuple of int
            Levels of every categorical column.
        n_outputs : int
            Number of classes, or 1.
        response : {"classes", "number"}
            What is predicted.

        Returns
        -------
        RBFNetworkSpecification
            One mixture, or one an output.
        """
        n_mixtures = 1 if self.shared else n_outputs
        component_class = tuple(c for c in range(n_mixtures) for _ in range(self.n_components))
        mixture = MixtureSpecification(n_features, levels, component_class, self.covariance_type)
        return RBFNetworkSpecification(mixture, n_outputs, self.features, response)


@dataclass(frozen=True)
class FittedNetwork:
    """A fitted network: what predicting needs and nothing else.

    Attributes
    ----------
    specification : RBFNetworkSpecification
        Structure of the network.
    hyperparameters : RBFNetworkHyperparameters
        Resolved prior, in the user's units.
    parameters : RBFNetworkParameters
        The fitted point, in standard units.
    impute : bool
        Whether missing cells are filled in rather than summed out.
    """

    specification: RBFNetworkSpecification
    hyperparameters: RBFNetworkHyperparameters
    parameters: RBFNetworkParameters
    impute: bool

    @property
    def mixture(self) -> FittedMixture:
        """The hidden layer, without its outputs."""
        return FittedMixture(
            self.specification.mixture, self.hyperparameters.mixture, self.parameters.mixture
        )

    def prepare(self, rows: Observations) -> Observations:
        """Rows in standard units, filled in where the network does so.

        Parameters
        ----------
        rows : Observations
            Rows in the user's units.

        Returns
        -------
        Observations
            What the hidden layer sees.
        """
        standard = self.mixture.standardise(rows)
        if not self.impute:
            return standard
        return imputed(standard, self.parameters.mixture, self.specification)

    def features(self, rows: Observations) -> Float[np.ndarray, "obs component"]:
        """Features of rows.

        Parameters
        ----------
        rows : Observations
            Rows in the user's units.

        Returns
        -------
        ndarray of shape (n_obs, n_components)
            What the hidden layer tells the output layer.
        """
        network = Network(self.prepare(rows), self.specification)
        return network.features(self.parameters.mixture)

    def linear(self, rows: Observations) -> Float[np.ndarray, "obs output"]:
        """Linear outputs of rows.

        Parameters
        ----------
        rows : Observations
            Rows in the user's units.

        Returns
        -------
        ndarray of shape (n_obs, n_outputs)
            ``f w + b``, a numeric response in standard units.
        """
        return Network(self.prepare(rows), self.specification).linear(self.parameters)

    def log_posterior(self, rows: Observations, output: Output) -> RBFNetworkLogPosterior:
        """The declared joint on rows, in the graph's coordinates.

        Parameters
        ----------
        rows : Observations
            Rows in the user's units.
        output : Classes or Numbers
            Their responses.

        Returns
        -------
        RBFNetworkLogPosterior
            Log posterior.

        Raises
        ------
        ValueError
            If there is no such joint: several mixtures, or the hard link.
        """
        if not self.specification.shared or np.isinf(self.hyperparameters.link):
            raise ValueError(
                "A posterior needs one declared joint: shared=True and a finite link; this "
                "network has one mixture an output or the hard link, and is a point estimate only."
            )
        return RBFNetworkLogPosterior(
            self.prepare(rows), output, self.specification, self.hyperparameters
        )


def fit_network(
    rows: Observations,
    output: Output,
    specification: RBFNetworkSpecification,
    prior: MixturePrior,
    settings: NetworkSettings,
    start: RBFNetworkParameters | None = None,
) -> tuple[FittedNetwork, NetworkFit]:
    """Standardise distinct rows and fit a network to them.

    Parameters
    ----------
    rows : Observations
        Distinct weighted rows in canonical order, in the user's units.
    output : Classes or Numbers
        Their responses, numbers in standard units.
    specification : RBFNetworkSpecification
        Structure of the network.
    prior : MixturePrior
        Declared prior of the hidden layer.
    settings : NetworkSettings
        How to fit.
    start : RBFNetworkParameters, optional
        Point to start from, its mixture in the user's units, in place of restarts.

    Returns
    -------
    network : FittedNetwork
        What predicts.
    fit : NetworkFit
        How it was reached.
    """
    units = table.standardisation(rows.real, rows.weights)
    standard = replace(rows, real=units.forward(rows.real))
    hyperparameters = _resolve(rows, units, specification, prior, settings)
    inner = hyperparameters.standardised()
    rng = np.random.default_rng(settings.seed)
    begin = None if start is None else start.standardised(units)
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
    network = FittedNetwork(fit.specification, hyperparameters, fit.parameters, settings.impute)
    return network, fit


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
        if np.isnan(rows.real).any() or (rows.codes < 0).any():
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
    if settings.impute and (np.isnan(rows.real).any() or (rows.codes < 0).any()):
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
) -> Problem:
    """A published scheme on rows."""
    grows = settings.scheme == "em_lr_link_k"
    scheme = Scheme(
        annihilate=settings.scheme == "caetano",
        growth=settings.grow if grows else None,
        impute=settings.impute,
    )
    tolerance = settings.tol * float(rows.weights.sum())
    return Problem(rows, output, hyperparameters, scheme, settings.max_iter, tolerance)
