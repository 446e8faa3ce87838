"""What the RBF networks share: the hidden layer is a mixture, with all that mixtures can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from types import UnionType
from typing import Any, ClassVar, Self

import numpy as np
from jaxtyping import Float, Int

from bayesrbf import names
from bayesrbf.estimators.describing import constant_data, coordinates, observed_data
from bayesrbf.estimators.mixture.estimator import MixtureEstimator
from bayesrbf.estimators.mixture.fitting import FittedMixture
from bayesrbf.estimators.posterior_estimator import Description
from bayesrbf.estimators.rbf_network.checks import (
    DEFAULT_GROWTH,
    check_network_arguments,
    link_of,
)
from bayesrbf.estimators.rbf_network.exemplars import ExemplarNetwork
from bayesrbf.estimators.rbf_network.fitted import FittedNetwork
from bayesrbf.estimators.rbf_network.fitting import fit_network
from bayesrbf.estimators.rbf_network.settings import (
    DEFAULT_COMPONENTS,
    DEFAULT_FEATURES,
    NetworkSettings,
)
from bayesrbf.numerics.kernel_network.kernel_network_log_posterior import OutputFit
from bayesrbf.numerics.rbf_network.elastic_net_output import Output
from bayesrbf.numerics.rbf_network.network_fit import NetworkFit, count_falls
from bayesrbf.parameters import MixtureParameters, Observations
from bayesrbf.rbf_parameters import (
    Features,
    RBFNetworkHyperparameters,
    RBFNetworkParameters,
    RBFNetworkSpecification,
    Response,
)
from bayesrbf.results import Trace


class RBFNetworkEstimator(MixtureEstimator, ABC):
    """Base of the RBF networks; see the subclasses."""

    _default_features: ClassVar[dict[str, Features]] = DEFAULT_FEATURES

    conditional_path_: Float[np.ndarray, " iteration"]
    n_falls_: int
    _network: FittedNetwork | ExemplarNetwork

    _STATE: ClassVar[dict[str, type | UnionType]] = {
        name: kind for name, kind in MixtureEstimator._STATE.items() if name != "_mixture"
    } | {
        "_network": FittedNetwork | ExemplarNetwork,
        "conditional_path_": np.ndarray,
        "n_falls_": int,
    }

    # ---- what a subclass writes

    @abstractmethod
    def _output(self, rows: Observations) -> Output:
        """Responses of training rows, from their labels."""

    @abstractmethod
    def _responses(self, rows: Observations) -> np.ndarray:
        """Responses of training rows as numbers, NaN where hidden."""

    # ---- fitting

    def _common_arguments(self) -> dict[str, Any]:
        """Arguments that mean the same everywhere; here kappa may be None."""
        arguments = super()._common_arguments()
        del arguments["kappa"]
        return arguments

    def _check(self, X: object, y: object, sample_weight: object) -> Float[np.ndarray, " obs"]:
        """Check arguments and widths; the row weights."""
        check_network_arguments(self.get_params(deep=False), type(self).__name__)
        return super()._check(X, y, sample_weight)

    def _fit_mixture_network(
        self,
        rows: Observations,
        n_outputs: int,
        response: Response,
        seed: int,
        previous: FittedNetwork | None = None,
        *,
        fresh: bool = False,
    ) -> tuple[FittedNetwork, NetworkFit]:
        """Fit a network whose hidden layer is a mixture to distinct rows.

        It starts at a previous fit of the same structure where one is given (a network may
        have grown or lost components), or where ``warm_start`` asks for it, unless ``fresh``.
        """
        settings = replace(self._settings(), seed=seed)
        specification = settings.specification(
            rows.real.shape[1], self._columns.n_levels, n_outputs, response
        )
        output, prior = self._output(rows), self._prior()
        if previous is None:
            start = None if fresh else self._start(specification)
        else:
            start = previous.start if previous.specification == specification else None
        return fit_network(rows, output, specification, prior, settings, start)

    def _settings(self) -> NetworkSettings:
        """How to build and fit the network."""
        return NetworkSettings(
            scheme=self.scheme,
            features=self.features or self._default_features[self.scheme],
            n_components=(
                DEFAULT_COMPONENTS if self.n_components is None else int(self.n_components)
            ),
            shared=bool(self.shared),
            covariance_type=self.covariance_type,
            link=link_of(self.link, self.scheme),
            l1=float(self.l1),
            l2=float(self.l2),
            kappa=None if self.kappa is None else float(self.kappa),
            grow=DEFAULT_GROWTH if self.grow is None else (int(self.grow[0]), int(self.grow[1])),
            impute=self.hidden_cells == "impute",
            n_init=int(self.n_init),
            max_iter=int(self.max_iter),
            tol=float(self.tol),
            seed=self._seed,
        )

    def _start(self, specification: RBFNetworkSpecification) -> RBFNetworkParameters | None:
        """The previous fit, its mixture in the user's units, if there is to be a warm start."""
        previous = self.__dict__.get("_network") if self.warm_start else None
        if not isinstance(previous, FittedNetwork):
            return None
        if previous.specification != specification:
            raise ValueError(
                f"{type(self).__name__}(warm_start=True) needs the columns, classes and "
                f"components of the previous fit, {previous.specification}; received "
                f"{specification}. Use a new estimator."
            )
        return previous.start

    def _keep_fit(
        self, network: FittedNetwork | ExemplarNetwork, fit: NetworkFit | OutputFit
    ) -> None:
        """Fitted attributes, and what the way of the fit has to say."""
        self._network = network
        self._n_features_out = network.n_features
        self.conditional_path_ = fit.conditional
        self.n_falls_ = count_falls(fit.joint)
        self._report(fit.status, Trace(fit.joint))
        if self.scheme != "joint":
            self.status_ = _published_sentence(fit.joint.size - 1, self.converged_, self.n_falls_)

    # ---- the hooks of a posterior

    @property
    def _mixture(self) -> FittedMixture:  # type: ignore[override]
        """The hidden layer, as the bases of mixtures know it."""
        return self._network.mixture

    def _log_posterior(self) -> Any:
        """The declared joint given the training rows, in the graph's coordinates."""
        network: Any = self._network  # of whatever kind the responses are
        return network.log_posterior(self._rows, self._output(self._rows))

    def _map(self, log_posterior: Any) -> Float[np.ndarray, " coordinate"]:
        """The fitted point in the graph's coordinates."""
        return self._network.point(log_posterior)

    def refine(self, method: str = "laplace", **options: Any) -> Self:
        """Draw from the posterior of the joint scheme, starting at the fitted point.

        Parameters
        ----------
        method : {"laplace", "advi", "nuts"}
            Gaussian approximation at the mode; Gaussian approximation of least
            divergence; the No-U-Turn sampler.
        **options : object
            Passed on, such as ``draws``, ``chains`` and ``tune``.

        Returns
        -------
        self
            With the draws in ``posterior_``; predictions average over them.

        Raises
        ------
        ValueError
            If the scheme is a published one, which has no posterior, or the method
            is unknown.
        """
        if self.scheme != "joint":
            raise ValueError(
                f"scheme={self.scheme!r} is an alternation without one declared joint, and so "
                "without a posterior; use scheme='joint' to refine."
            )
        return super().refine(method, **options)

    def _points(self, number: int, rng: np.random.Generator) -> list[MixtureParameters]:
        """Points of the hidden layer in standard units: draws, or the fitted point again."""
        network = self._network
        if self._draws is None:
            return [network.mixture.parameters] * number
        log_posterior = self._log_posterior()
        thetas = self._draws.theta.reshape(-1, log_posterior.dimension)
        chosen = rng.choice(len(thetas), size=number, replace=number > len(thetas))
        return [network.mixture_at(log_posterior, thetas[i]) for i in chosen]

    def _description(self) -> Description:
        """Names and training rows, for the DataTree."""
        structure = self._network.mixture.specification
        coords = dict(coordinates(self._columns, structure, self._kept, None))
        classes = self._class_names()
        if classes is not None:
            coords |= self._network.coords(classes)
        # As in the graph: the node of the rows has no label, the responses are a node.
        responses = (names.OBS,), self._responses(self._rows)
        observed = observed_data(self._rows.unlabelled()) | {names.OBSERVED_LABEL: responses}
        return Description(coords, observed, constant_data(self._rows))

    def _declared(
        self, network: FittedNetwork
    ) -> tuple[Observations, RBFNetworkSpecification, RBFNetworkHyperparameters]:
        """What is declared: training rows (filled in, where the network does so) and prior."""
        self._log_posterior()  # has the words for networks without a joint
        rows = self._rows
        if network.impute:
            filled = network.prepare(rows)
            rows = replace(filled, real=network.mixture.units.backward(filled.real))
        return rows, network.specification, network.hyperparameters

    # ---- rows

    def transform(self, X: object) -> Float[np.ndarray, "obs component"]:
        """Hidden layer: the features of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out (or filled in).

        Returns
        -------
        ndarray of shape (n_obs, n_components)
            Features at the fitted point, as ``features`` says: responsibilities,
            densities or their logarithms; eigenfunctions of the kernel.
        """
        return self._network.features(self._read(X))

    def predict_component(self, X: object) -> Int[np.ndarray, " obs"]:
        """Most probable component of each row: a clustering.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.

        Returns
        -------
        ndarray of shape (n_obs,)
            Component numbers.
        """
        return self._component_log_joint(self._read(X)).argmax(axis=1)


def _published_sentence(rounds: int, converged: bool, falls: int) -> str:
    """How the rounds ended, and whether the joint objective rose."""
    ended = "stood still" if converged else "had not come to rest"
    rose = (
        "the joint objective rose in every one"
        if falls == 0
        else f"the joint objective fell in {falls} of them: this scheme ascends no single objective"
    )
    return f"After {rounds} rounds the alternation {ended}; {rose}."
