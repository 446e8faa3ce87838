"""A fitted RBF network, and the steps from weighted rows to it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
from jaxtyping import Float, Int
from sklearn.utils import check_consistent_length, column_or_1d
from threadpoolctl import ThreadpoolController

from bayesrbf import table
from bayesrbf.base import names
from bayesrbf.base.log_posterior import Predictor
from bayesrbf.base.priors import MixturePrior, Status
from bayesrbf.base.records import ANY_NUMBER, Requirements, scales, stored
from bayesrbf.base.rows import (
    CovarianceType,
    MixtureParameters,
    MixtureSpecification,
    Observations,
    Order,
    Standardisation,
)
from bayesrbf.families.rbf_network.maximise import maximise_in_halves
from bayesrbf.families.rbf_network.posterior import (
    Classes,
    Network,
    Numbers,
    Output,
    OutputLayer,
    RBFNetworkLogPosterior,
    StudentMixture,
    completed_linear,
    fit_output_layer,
    mean_log_probabilities,
)
from bayesrbf.families.rbf_network.records import (
    FEATURES,
    Features,
    RBFNetworkHyperparameters,
    RBFNetworkParameters,
    RBFNetworkSpecification,
    Response,
)
from bayesrbf.fit.arguments import SHARED, Arguments, Rule, integer, number, positive
from bayesrbf.fit.calibration import fit_noise
from bayesrbf.fit.held_out import HeldOut
from bayesrbf.fit.model import (
    MAX_DRAWN,
    MIN_TABLES,
    REPLICATES,
    Axes,
    Description,
    FittedModel,
    Replicates,
    evenly,
    observed_rows,
    row_weights,
)
from bayesrbf.inference.draws import Draws
from bayesrbf.mixture import points as mixture_points
from bayesrbf.mixture.em import EMSettings, fit_mixture
from bayesrbf.mixture.fitted import FittedMixture, mixture_coords
from bayesrbf.mixture.laws import order_for
from bayesrbf.mixture.missing import mostly_complete, with_holes

if TYPE_CHECKING:
    import pymc as pm


# A fitted RBF network: a mixture as hidden layer, classes or numbers as responses.


COMPLETIONS = 64  # Completions of a row with missing cells at the fitted point; a power of two.
COMPLETIONS_OF_A_DRAW = 16  # Completions under every posterior draw: draws differ as well.
MAX_EXPONENT = 700.0  # exp(700) is finite, and exp(-700) above 0.


@stored
class ClassResponses:
    """Responses that are classes: the labels of rows are class codes."""

    n_outputs: int
    kind: Response = "classes"

    values: ClassVar[None] = None
    units_of_graph: None = None

    def output(self, rows: Observations) -> Classes:
        """Responses of training rows, with their likelihood."""
        return Classes(rows.labels)

    def canonical(self, rows: Observations) -> tuple[Order, Classes, Observations]:
        """The canonical order of training rows, their responses in it, and the rows."""
        order = table.canonical_order(rows, self.n_outputs)
        return order, Classes(order.labels(rows.labels)), rows

    def observed(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """Class codes, NaN where hidden."""
        return np.where(rows.labels >= 0, rows.labels, np.nan)

    def of_graph(self, rows: Observations) -> np.ndarray:
        """Class codes, -1 where hidden."""
        return rows.labels


@dataclass(frozen=True)
class LogStudentMixture(StudentMixture):
    """Law of a positive response whose logarithm has a :class:`StudentMixture`.

    Under Student's t the response has neither mean nor standard deviation. So the centre is the
    median, and ``sd`` and ``sd_of_mean`` describe the logarithm.
    """

    figures: ClassVar[tuple[str, str, str]] = "median", "sd_of_log", "sd_of_mean_of_log"

    def centre(self) -> Float[np.ndarray, " obs"]:
        """Median of each response."""
        return self.quantile(0.5)

    def quantile(self, prob: float) -> Float[np.ndarray, " obs"]:
        """Quantile of each response: the exponential of the logarithm's quantile."""
        return _positive(super().quantile(prob))

    def log_density(self, values: Float[np.ndarray, " obs"]) -> Float[np.ndarray, " obs"]:
        """Log density at ``values`` in nats, per unit of the response; -inf at 0 and below."""
        logs = np.log(np.where(values > 0, values, np.nan))
        return np.where(values <= 0, -np.inf, super().log_density(logs) - logs)

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, " obs"]:
        """One draw of each row's response."""
        return _positive(super().draw(rng))


def _positive(logs: Float[np.ndarray, " obs"]) -> Float[np.ndarray, " obs"]:
    """``exp(logs)``, clipped to finite positive floats."""
    return np.exp(np.clip(logs, -MAX_EXPONENT, MAX_EXPONENT))


def modelled(values: Float[np.ndarray, " obs"], kind: Response) -> Float[np.ndarray, " obs"]:
    """Responses on the scale of the Gaussian noise: the numbers, or their logarithms."""
    return np.log(values) if kind == "log_number" else values


@stored
class NumberResponses:
    """Numeric responses; the label of a row is the index of its response in ``values``."""

    values: Float[np.ndarray, " value"]  # Distinct responses in the user's units, ascending.
    units: Standardisation  # Location and scale of the responses or of their logarithms.
    kind: Response = "number"
    n_outputs: int = 1

    @property
    def units_of_graph(self) -> Standardisation:
        """Location and scale by which the graph standardises the modelled response."""
        return self.units

    @property
    def law(self) -> type[StudentMixture]:
        """Family of the predictive laws."""
        return LogStudentMixture if self.kind == "log_number" else StudentMixture

    def log_units(self, values: Float[np.ndarray, " obs"]) -> Float[np.ndarray, " obs"]:
        """Log size of one standard unit in the user's units, at the responses ``values``."""
        jacobian = np.log(values) if self.kind == "log_number" else np.zeros(values.size)
        return np.log(self.units.scale[0]) + jacobian

    def canonical(self, rows: Observations) -> tuple[Order, Numbers, Observations]:
        """The canonical order of training rows, their responses, and the rows as of one class."""
        order = table.canonical_order(rows).of_one_class
        return order, self.output(rows), replace(rows, labels=np.minimum(rows.labels, 0))

    def output(self, rows: Observations) -> Numbers:
        """Responses of training rows in standard units, with their likelihood."""
        values = self.observed(rows)
        standard = self.units.forward(modelled(values, self.kind)[:, None])[:, 0]
        # A hidden response has no likelihood, so its unit does not count.
        return Numbers(standard, np.nan_to_num(self.log_units(values)))

    def observed(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """Responses in the user's units, NaN where hidden."""
        return np.where(rows.labels >= 0, self.values[np.maximum(rows.labels, 0)], np.nan)

    def of_graph(self, rows: Observations) -> np.ndarray:
        """Responses in the user's units, as the graph takes them; NaN where hidden."""
        return self.observed(rows)

    def __laws__(self) -> Requirements:
        yield self.n_outputs == 1 == self.units.scale.size, "one output, in its units"
        yield self.values.size > 0 and self.kind != "classes", "responses"
        yield self.kind == "number" or bool((self.values > 0).all()), "responses with logarithms"


Responses = ClassResponses | NumberResponses


@stored
class Noise:
    """Student's t residuals of a numeric response, in units of the fitted noise."""

    scale: float = 1.0
    df: float = field(default=np.inf, metadata=ANY_NUMBER)  # Normal noise, as it was fitted.

    def __laws__(self) -> Requirements:
        yield scales(self.scale) and self.df > 2, "a positive scale, and more than two degrees"


@stored
class FittedNetwork(FittedModel):
    """A fitted network of classes or of numbers."""

    comparable = True

    specification: RBFNetworkSpecification
    hyperparameters: RBFNetworkHyperparameters
    """The resolved prior, in the user's units; its mixture's centre is the standardisation."""
    parameters: RBFNetworkParameters  # The fitted point, in standard units.
    responses: Responses
    integrate: bool  # Whether rows with holes are predicted by the mean over completions.
    order: Order  # The canonical order of columns, in which rows are completed.
    noise: Noise = Noise()
    """Noise of the responses at the fitted point, by held-out rows."""

    @property
    def n_features(self) -> int:
        """Width of the hidden layer."""
        return self.specification.mixture.n_components

    @property
    def density(self) -> FittedMixture:
        """The hidden layer, without its outputs."""
        hidden, prior = self.specification.mixture, self.hyperparameters.mixture
        return FittedMixture(hidden, prior, self.parameters.mixture, self.order)

    @property
    def number_responses(self) -> NumberResponses:
        """The responses of a network of numbers."""
        return cast(NumberResponses, self.responses)

    @property
    def start(self) -> RBFNetworkParameters:
        """The fitted point with its mixture in the user's units, from where a fit may start."""
        return self.parameters.in_units(self.density.units)

    def features(self, rows: Observations) -> Float[np.ndarray, "obs component"]:
        """The hidden layer of rows."""
        network = Network(self.density.standardise(rows), self.specification)
        return network.features(self.parameters.mixture)

    def linear(self, rows: Observations) -> Float[np.ndarray, "obs output"]:
        """``f w + b``; a numeric response in standard units."""
        return Network(self.density.standardise(rows), self.specification).linear(self.parameters)

    def class_log_joint(
        self, rows: Observations, temperature: float = 1.0
    ) -> Float[np.ndarray, "obs label"]:
        """Class log probabilities, of the mean over completions where the network integrates."""
        standard = self.density.standardise(rows)
        if not self.integrates(standard):
            return Network(standard, self.specification).linear(self.parameters)
        return mean_log_probabilities(
            standard,
            self.parameters,
            self.specification,
            draws=COMPLETIONS,
            temperature=temperature,
            order=self.order,
        )

    def integrates(self, rows: Observations) -> bool:
        """Whether rows are predicted by the mean over completions; never where none has holes."""
        return self.integrate and bool(with_holes(rows).any())

    def completed_linear(
        self,
        standard: Observations,
        point: RBFNetworkParameters,
        *,
        draws: int = COMPLETIONS,
        replicate: int = 0,
    ) -> Float[np.ndarray, "draw obs output"]:
        """Linear outputs of completions, or of the rows where features integrate missing cells."""
        if not self.integrates(standard):
            return Network(standard, self.specification).linear(point)[None]
        return completed_linear(
            standard, point, self.specification, draws=draws, replicate=replicate, order=self.order
        )

    def predictive(
        self, rows: Observations, points: list[RBFNetworkParameters] | None
    ) -> StudentMixture:
        """Predictive laws of numeric responses in the user's units, at the fit or over points.

        The noise is a parameter of the points; at the fitted point it is calibrated by held-out
        rows.
        """
        units, law = self.number_responses.units, self.number_responses.law
        location, scale = units.location[0], units.scale[0]
        standard = self.density.standardise(rows)
        if points is None:
            linear = self.completed_linear(standard, self.parameters)[:, :, 0]
            scales = np.full(len(linear), scale * self.parameters.noise_precision**-0.5)
            means = location + scale * linear
            return law(means, scales * self.noise.scale, self.noise.df)
        draws = [  # one completion a draw: together they are the posterior's
            self.completed_linear(standard, point, draws=1, replicate=replicate)[0, :, 0]
            for replicate, point in enumerate(points)
        ]
        # The standard deviation in standard units.
        noise = np.array([point.noise_precision for point in points]) ** -0.5
        return law(location + scale * np.array(draws), scale * noise)

    def predictive_under(
        self, log_posterior: Any, rows: Observations, draws: Draws | None
    ) -> StudentMixture:
        """Predictive laws of numeric responses at the fit, or averaged over posterior draws."""
        if draws is None:
            return self.predictive(rows, None)
        thetas = draws.theta.reshape(-1, log_posterior.dimension)
        return self.predictive(rows, [self.network_at(log_posterior, theta) for theta in thetas])

    def replicates(
        self, log_posterior: Any, rows: Observations, draws: Draws | None, seed: int
    ) -> Replicates:
        """Replicated responses of labelled training rows, thinned where rows or draws are many."""
        labelled = np.flatnonzero(rows.labels >= 0)
        row_indices = labelled[evenly(labelled.size, MAX_DRAWN // REPLICATES)]
        chosen = rows.take(row_indices)
        rng = np.random.default_rng(seed)
        truth = self.responses.observed(chosen)
        if draws is None:
            predictive = self.predictive(chosen, None)
            drawn = np.stack([predictive.draw(rng) for _ in range(REPLICATES)])[None]
            return Replicates(row_indices, drawn, truth)
        every = -(-draws.theta.shape[1] // MIN_TABLES)

        def drawn_under(theta: np.ndarray) -> np.ndarray:
            network = self.network_at(log_posterior, theta)
            return self.predictive(chosen, [network]).draw(rng)

        drawn = np.apply_along_axis(drawn_under, 2, draws.theta[:, ::every])
        return Replicates(row_indices, drawn, truth, every)

    def log_posterior(self, rows: Observations) -> RBFNetworkLogPosterior:
        """The declared joint on rows."""
        return RBFNetworkLogPosterior(
            self.density.standardise(rows),
            self.responses.output(rows),
            self.specification,
            self.hyperparameters,
        )

    def n_codes(self, n_classes: int) -> int:
        """Number of classes, or of different numbers."""
        return n_classes if self.responses.values is None else self.responses.values.size

    def point(self, log_posterior: Any) -> Float[np.ndarray, " coordinate"]:
        """Unconstrained coordinates of the fitted point."""
        return log_posterior.pack(self.start)

    def network_at(
        self, log_posterior: Any, theta: Float[np.ndarray, " coordinate"]
    ) -> RBFNetworkParameters:
        """The network under a posterior draw, in standard units."""
        return log_posterior.unpack(theta).standardised(self.density.units)

    def mixture_at(
        self, log_posterior: Any, theta: Float[np.ndarray, " coordinate"]
    ) -> MixtureParameters:
        """The hidden layer under a posterior draw, in standard units."""
        return log_posterior.unpack(theta).mixture.standardised(self.density.units)

    def predictor(
        self, log_posterior: Any, rows: Observations, temperature: float = 1.0
    ) -> Predictor:
        """Predictor of new rows at any coordinates: class probabilities and density."""
        standard = self.density.standardise(rows)
        completions = COMPLETIONS_OF_A_DRAW if self.integrates(standard) else 0
        return log_posterior.predictor(standard, completions, temperature, self.order)

    def declare(
        self, rows: Observations, axes: Axes, coefficients: Literal["signed", "halves"] = "signed"
    ) -> pm.Model:
        """The graph on training rows."""
        from bayesrbf.models.rbf_network import declare_rbf_network

        return declare_rbf_network(
            rows,
            self.responses.of_graph(rows),
            self.specification,
            self.hyperparameters,
            coefficients=coefficients,
            response_units=self.responses.units_of_graph,
            **axes.of_graph,
        )

    def description(self, rows: Observations, axes: Axes) -> Description:
        """Names and rows as in the graph: rows without a label, and a node of responses."""
        coords = mixture_coords(self.specification.mixture, replace(axes, classes=None))
        if axes.classes is not None:
            coords[names.CLASS_LABEL] = axes.classes
        responses = (names.OBS,), self.responses.observed(rows)
        observed = observed_rows(rows.unlabelled()) | {names.OBSERVED_LABEL: responses}
        scored = names.JOINT if self.hyperparameters.kappa == 1 else names.OBJECTIVE
        return Description(coords, observed, row_weights(rows), scored)

    def __laws__(self) -> Requirements:
        structure, point = self.specification, self.parameters
        yield structure.n_outputs == self.responses.n_outputs, "an output of every response"
        yield structure.response == self.responses.kind, "responses of its kind"
        shape = structure.n_outputs, structure.mixture.n_components
        yield point.coefficients.shape == shape, "a weight of every component"
        yield point.intercepts.size == structure.n_outputs, "an intercept of every output"
        yield from self.density.__laws__()


# The MAP fit of a declared RBF network: EM, then the output layer, then both together.


@dataclass(frozen=True)
class NetworkFit:
    """Parameters of a fitted network, with the trace and status of the optimisation."""

    parameters: RBFNetworkParameters  # The point, in standard units.
    joint: Float[np.ndarray, " iteration"]
    """Log posterior density without Jacobian at the start and after every iteration, in nats, in
    standard units."""
    status: Status
    violation: float
    """Largest entry of the smallest subgradient at the point, in nats per unit of a standard
    coordinate."""


def reordered(
    parameters: RBFNetworkParameters, order: Order, specification: RBFNetworkSpecification
) -> RBFNetworkParameters:
    """Put columns and classes in another order than the specification's."""
    return RBFNetworkParameters(
        mixture_points.reordered(parameters.mixture, order.of_one_class, specification.mixture),
        parameters.coefficients[order.classes],
        parameters.intercepts[order.classes],
        parameters.noise_precision,
    )


def fit_joint(
    observations: Observations,
    output: Output,
    specification: RBFNetworkSpecification,
    hyperparameters: RBFNetworkHyperparameters,
    em: EMSettings,
    start: RBFNetworkParameters | None = None,
) -> NetworkFit:
    """Find a mode of the declared joint (without Jacobian), starting from EM.

    Rows are in standard units, and their labels are not used. A given ``start`` takes the place of
    EM. The joint ascent has at most as many iterations as EM, and ends by the same tolerance.
    """
    target = RBFNetworkLogPosterior(observations, output, specification, hyperparameters)
    if start is None:
        start = _em_start(observations, output, specification, hyperparameters, em)
    theta = target.pack(start)
    if not np.isfinite(target.smooth(theta).value):
        return NetworkFit(start, np.full(1, -np.inf), Status.DEGENERATE, np.nan)
    weights = np.zeros(theta.size, dtype=bool)
    weights[target.coefficient_slice] = True
    found = maximise_in_halves(
        target.smooth,
        theta,
        np.where(weights, hyperparameters.l1, 0.0),
        weights & (hyperparameters.l1 > 0 or hyperparameters.link > 0),
        max_iter=em.max_iter,
        tolerance=em.tol * float(observations.weights.sum()),
    )
    return NetworkFit(
        target.unpack(found.theta),
        found.path,
        Status.CONVERGED if found.stopped else Status.MAX_ITER,
        found.violation,
    )


def _em_start(
    observations: Observations,
    output: Output,
    specification: RBFNetworkSpecification,
    hyperparameters: RBFNetworkHyperparameters,
    em: EMSettings,
) -> RBFNetworkParameters:
    """EM for the hidden layer, then the output layer on its features."""
    # As rows of one class: labels have no say in the hidden layer's start.
    rows = replace(observations, labels=np.zeros_like(observations.labels))
    mixture = fit_mixture(rows, specification.mixture, hyperparameters.mixture, em).parameters
    layer = fit_output_layer(
        Network(observations, specification).features(mixture),
        output,
        observations.weights,
        hyperparameters,
        OutputLayer.empty(specification),
    )
    return RBFNetworkParameters(
        mixture, layer.coefficients, layer.intercepts, layer.noise_precision
    )


# From settings and weighted rows to a fitted RBF network: what every fit and fold shares.


DEFAULT_COMPONENTS = 10  # Components of a hidden layer under ``n_components=None``.

DEFAULT_L2: dict[Features, float] = {"responsibility": 0.1, "density": 0.1, "log_density": 3.0}
"""Precision of output weights under ``l2=None``: log densities are larger features than shares."""


@dataclass(frozen=True)
class NetworkSettings:
    """Settings of a network; the estimators document each argument."""

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
    order = order_for(order, specification.mixture)
    begin = None if start is None else reordered(start, order, specification)
    rows, specification = rows.reordered(order), specification.reordered(order)
    units = table.standardisation(rows.real, rows.weights)
    standard = replace(rows, real=units.forward(rows.real))
    hyperparameters = _resolve(rows, units, specification, prior, settings)
    inner = hyperparameters.standardised()
    rng = np.random.default_rng(settings.seed)
    em = EMSettings(rng, settings.n_init, settings.max_iter, settings.tol)
    begin = None if begin is None else begin.standardised(units)
    # One BLAS thread: the matrices are small.
    with ThreadpoolController().limit(limits=1, user_api="blas"):
        fit = fit_joint(standard, output, specification, inner, em, begin)
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
    """Hyper-parameters resolved for the table, in the user's units."""
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


# What both RBF networks do: check and read arguments, fit to rows, tell how it went, declare.


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
    """Raise ValueError for an improper prior of the output weights, ``l1 = l2 = 0``."""
    if arguments["l1"] == 0 and arguments["l2"] == 0:
        raise ValueError(
            f"{owner} needs a proper prior of the output weights: l1 or l2 must be positive."
        )


def network_settings(arguments: Arguments, seed: int) -> NetworkSettings:
    """Settings of a network from the arguments of its estimator."""
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
    """Fit both layers to distinct rows, from the end of a previous fit of the table if given."""
    specification = settings.specification(
        rows.real.shape[1], levels, responses.n_outputs, responses.kind
    )
    prior = MixturePrior() if prior is None else prior
    start = None if previous is None else previous.start
    return fit_network(rows, responses, specification, prior, settings, start)


RESPONSES: dict[str, tuple[Response, ...]] = {
    "identity": ("number",),
    "log": ("log_number",),
    "auto": ("number", "log_number"),
}
"""What may be modelled of a number, by the argument ``response``."""


def read_responses(
    X: object, y: object, weights: Float[np.ndarray, " obs"], response: str, owner: str
) -> tuple[list[NumberResponses], Int[np.ndarray, " obs"]]:
    """Responses under every kind of model, and each row's index among distinct responses or -1."""
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
    values, positions = np.unique(numbers[usable], return_inverse=True)
    kinds = RESPONSES[response]
    if values[0] <= 0:
        if response == "log":
            raise ValueError(
                f"{owner}(response='log') needs responses above 0; received "
                f"{(numbers[usable] <= 0).sum()} that are not, the least {values[0]:g}. Take "
                "'identity', or 'auto', which takes logarithms only where there are any."
            )
        kinds = RESPONSES["identity"]
    # From sorted distinct values, so that weight 2 is the row twice to the last bit.
    mass = np.bincount(positions, weights=weights[usable])
    codes = np.full(numbers.size, -1)
    codes[usable] = positions
    units = [table.standardisation(modelled(values, kind)[:, None], mass) for kind in kinds]
    responses = [NumberResponses(values, u, kind) for u, kind in zip(units, kinds, strict=True)]
    return responses, codes


def noise_held_out(model: FittedNetwork, held_out: HeldOut) -> tuple[Noise, float]:
    """Noise fitted to held-out residuals, and the mean held-out log score under it.

    Residuals are in units of the fitted noise. The score is the log density of responses in the
    user's units, in nats, so that models of a number and of its logarithm are comparable.
    """
    residuals, weights = held_out.values, held_out.weights
    noise = Noise(*fit_noise(residuals, weights))
    law = StudentMixture(np.zeros((1, residuals.size)), np.full(1, noise.scale), noise.df)
    responses, precision = model.number_responses, model.parameters.noise_precision
    log_units = responses.log_units(responses.values[held_out.labels]) - 0.5 * np.log(precision)
    return noise, float(np.average(law.log_density(residuals) - log_units, weights=weights))
