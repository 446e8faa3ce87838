"""A fitted RBF network: a mixture as hidden layer, classes or numbers as responses."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
from jaxtyping import Float

from bayesrbf import table
from bayesrbf.fitted.fitted_mixture import FittedMixture, mixture_coords
from bayesrbf.fitted.fitted_model import Axes, Description, FittedModel, observed_rows, row_weights
from bayesrbf.inference.draws import Draws
from bayesrbf.numerics.log_posterior import Predictor
from bayesrbf.numerics.mixture.completion import with_holes
from bayesrbf.numerics.rbf_network.elastic_net_output import Classes, Numbers
from bayesrbf.numerics.rbf_network.network_rows import (
    Network,
    completed_linear,
    mean_log_probabilities,
)
from bayesrbf.numerics.rbf_network.rbf_network_log_posterior import RBFNetworkLogPosterior
from bayesrbf.numerics.rbf_network.student_mixture import StudentMixture
from bayesrbf.posterior.replicates import (
    LEAST_TABLES,
    MOST_DRAWN,
    REPLICATES,
    Replicates,
    evenly,
)
from bayesrbf.records import names
from bayesrbf.records.mixture import MixtureParameters, Observations, Standardisation
from bayesrbf.records.rbf_network import (
    RBFNetworkHyperparameters,
    RBFNetworkParameters,
    RBFNetworkSpecification,
    Response,
)
from bayesrbf.records.specification import Order
from bayesrbf.records.stored import ANY_NUMBER, Requirements, scales, stored

if TYPE_CHECKING:
    import pymc as pm


COMPLETIONS = 64  # Of a row with holes at the fitted point; a power of two.
COMPLETIONS_OF_A_DRAW = 16  # The same under every posterior draw.


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


@stored
class NumberResponses:
    """Responses that are numbers: the labels of rows are places among their distinct values."""

    values: Float[np.ndarray, " value"]  # Distinct responses in the user's units, ascending.
    units: Standardisation
    kind: Response = "number"
    n_outputs: int = 1

    @property
    def units_of_graph(self) -> Standardisation:
        """Location and scale, which the graph takes out of the responses."""
        return self.units

    def canonical(self, rows: Observations) -> tuple[Order, Numbers, Observations]:
        """The canonical order of training rows, their responses, and the rows as of one class."""
        order = table.canonical_order(rows).of_one_class
        return order, self.output(rows), replace(rows, labels=np.minimum(rows.labels, 0))

    def output(self, rows: Observations) -> Numbers:
        """Responses of training rows in standard units, with their likelihood."""
        values = self.units.forward(self.observed(rows)[:, None])[:, 0]
        return Numbers(values, float(self.units.scale[0]))

    def observed(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """Responses in the user's units, NaN where hidden."""
        return np.where(rows.labels >= 0, self.values[np.maximum(rows.labels, 0)], np.nan)

    def of_graph(self, rows: Observations) -> np.ndarray:
        """Responses in the user's units, as the graph takes them; NaN where hidden."""
        return self.observed(rows)

    def __laws__(self) -> Requirements:
        yield self.n_outputs == 1 == self.units.scale.size, "one output, in its units"
        yield self.values.size > 0, "responses"


Responses = ClassResponses | NumberResponses


@stored
class Noise:
    """Student's t about the mean of a number, in units of the fitted noise."""

    scale: float = 1.0
    df: float = field(default=np.inf, metadata=ANY_NUMBER)  # Normal noise, as it was fitted.

    def __laws__(self) -> Requirements:
        yield scales(self.scale) and self.df > 2, "a positive scale, and more than two degrees"


@stored
class FittedNetwork(FittedModel):
    """A fitted network of classes or of numbers."""

    specification: RBFNetworkSpecification
    hyperparameters: RBFNetworkHyperparameters
    """The resolved prior, in the user's units; its mixture's centre is the standardisation."""
    parameters: RBFNetworkParameters  # The fitted point, in standard units.
    responses: Responses
    integrate: bool  # Whether rows with holes are predicted by the mean over completions.
    order: Order  # The canonical order of columns, in which rows are completed.
    noise: Noise = Noise()
    """Of numbers at the fitted point, as rows held out show it."""

    @property
    def n_features(self) -> int:
        """Width of the hidden layer."""
        return self.specification.mixture.n_components

    @property
    def kind(self) -> str:
        """Its kind beside those of a stack's members."""
        return "RBF network"

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
        """Linear outputs of several completions; of the rows themselves where none is needed."""
        if not self.integrates(standard):
            return Network(standard, self.specification).linear(point)[None]
        return completed_linear(
            standard, point, self.specification, draws=draws, replicate=replicate, order=self.order
        )

    def predictive(
        self, rows: Observations, points: list[RBFNetworkParameters] | None
    ) -> StudentMixture:
        """Numeric responses of rows in the user's units, at the fit or averaged over points.

        The noise is that of the points, or at the fitted point as rows held out show it.
        """
        units = self.number_responses.units
        location, scale = units.location[0], units.scale[0]
        standard = self.density.standardise(rows)
        if points is None:
            linear = self.completed_linear(standard, self.parameters)[:, :, 0]
            scales = np.full(len(linear), scale * self.parameters.noise_precision**-0.5)
            means = location + scale * linear
            return StudentMixture(means, scales * self.noise.scale, self.noise.df)
        draws = [  # one completion a draw: together they are the posterior's
            self.completed_linear(standard, point, draws=1, replicate=replicate)[0, :, 0]
            for replicate, point in enumerate(points)
        ]
        # The standard deviation in standard units.
        noise = np.array([point.noise_precision for point in points]) ** -0.5
        return StudentMixture(location + scale * np.array(draws), scale * noise)

    def predictive_under(
        self, log_posterior: Any, rows: Observations, draws: Draws | None
    ) -> StudentMixture:
        """Numeric responses of rows at the fit, or averaged over draws of the posterior."""
        if draws is None:
            return self.predictive(rows, None)
        thetas = draws.theta.reshape(-1, log_posterior.dimension)
        return self.predictive(rows, [self.network_at(log_posterior, theta) for theta in thetas])

    def replicates(
        self, log_posterior: Any, rows: Observations, draws: Draws | None, seed: int
    ) -> Replicates:
        """Responses drawn for training rows that have one; of many rows and draws, some."""
        labelled = np.flatnonzero(rows.labels >= 0)
        kept = labelled[evenly(labelled.size, MOST_DRAWN // REPLICATES)]
        some, rng = rows.take(kept), np.random.default_rng(seed)
        truth = self.responses.observed(some)
        if draws is None:
            predictive = self.predictive(some, None)
            drawn = np.stack([predictive.draw(rng) for _ in range(REPLICATES)])[None]
            return Replicates(kept, drawn, truth)
        every = -(-draws.theta.shape[1] // LEAST_TABLES)

        def drawn_under(theta: np.ndarray) -> np.ndarray:
            network = self.network_at(log_posterior, theta)
            return self.predictive(some, [network]).draw(rng)

        drawn = np.apply_along_axis(drawn_under, 2, draws.theta[:, ::every])
        return Replicates(kept, drawn, truth, every)

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
        """The fitted point in the coordinates of its log posterior."""
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
        """Prepare rows for predictions at any coordinates: classes and density apart."""
        standard = self.density.standardise(rows)
        completions = COMPLETIONS_OF_A_DRAW if self.integrates(standard) else 0
        return log_posterior.predictor(standard, completions, temperature, self.order)

    def declare(
        self, rows: Observations, axes: Axes, coefficients: Literal["signed", "halves"] = "signed"
    ) -> pm.Model:
        """The graph on training rows."""
        from bayesrbf.models import declare_rbf_network

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
        """As in the graph: the node of the rows has no label, the responses are a node."""
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
