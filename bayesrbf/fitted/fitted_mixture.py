"""A fitted mixture, and the steps from weighted rows to it that every fit and fold shares."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from bayesrbf.fitted.fitted_model import (
    Axes,
    Description,
    FittedModel,
    observed_rows,
    row_weights,
)
from bayesrbf.numerics.discriminative.hybrid_log_posterior import HybridLogPosterior
from bayesrbf.numerics.log_posterior import Predictor
from bayesrbf.numerics.log_sums import at_prevalence, class_log_joint
from bayesrbf.numerics.mixture.expectation import prepare
from bayesrbf.numerics.mixture.mixture_log_posterior import MixtureLogPosterior
from bayesrbf.numerics.mixture.mixture_points import reordered
from bayesrbf.numerics.mixture.mixture_rows import MixtureOnRows
from bayesrbf.numerics.mixture.parts.laws import SHAPES
from bayesrbf.numerics.rounding import single_digits
from bayesrbf.records import names
from bayesrbf.records.column_maps import PowerMaps
from bayesrbf.records.mixture import MixtureParameters, Observations, Standardisation
from bayesrbf.records.objective import Objective
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification, Order
from bayesrbf.records.stored import Requirements, by_class, scales, stored

if TYPE_CHECKING:
    import pymc as pm


LIKELIHOOD = Objective()

FARTHEST = 1e8
"""Standardised cells are held within this. Beyond it a square is rounded by more than one nat, and
what rows far out say of their class, which lies in the linear term, would be lost."""


@stored
class FittedMixture(FittedModel):
    """A fitted mixture; with one class, a density."""

    specification: MixtureSpecification
    hyperparameters: MixtureHyperparameters
    """The resolved prior, in the user's units; its centre is the standardisation."""
    parameters: MixtureParameters
    """The fitted point, in standard units."""
    order: Order
    """The canonical order of columns and classes, in which it was fitted."""
    objective: Objective = LIKELIHOOD
    """What the fit maximised, and what stands in the place of the likelihood in its posterior."""
    maps: PowerMaps | None = None
    """Maps in front of the real columns; prior and parameters are those of mapped columns."""

    @property
    def kind(self) -> str:
        """Its kind beside those of a stack's members."""
        return "Gaussian" if self.specification.n_components == self.n_classes else "mixture"

    @property
    def density(self) -> FittedMixture:
        """The mixture itself."""
        return self

    def at_prevalence(
        self, parameters: MixtureParameters, log_ratio: Float[np.ndarray, " label"]
    ) -> MixtureParameters:
        """Parameters whose class probabilities are moved to other class shares."""
        moved = at_prevalence(np.log(parameters.class_probabilities), log_ratio)
        return replace(parameters, class_probabilities=np.exp(moved))

    @property
    def n_classes(self) -> int:
        """Number of classes; 1 for a density."""
        return self.specification.n_classes

    @property
    def units(self) -> Standardisation:
        """Location and scale of the real columns."""
        return self.hyperparameters.units

    @property
    def start(self) -> MixtureParameters:
        """The fitted point in the units of the mapped columns, from where another fit may start."""
        return self.parameters.in_units(self.units)

    @property
    def condensed(self) -> FittedMixture:
        """The mixture itself: it keeps nothing that predictions do not need."""
        return self

    @property
    def rounded(self) -> FittedMixture:
        """A copy whose precision factors, which are large, have the digits of single precision."""
        factors = single_digits(self.parameters.precisions_cholesky)
        return replace(self, parameters=replace(self.parameters, precisions_cholesky=factors))

    def reordered(self, order: Order) -> FittedMixture:
        """Put columns and classes in another order."""
        return FittedMixture(
            self.specification.reordered(order),
            self.hyperparameters.reordered(order),
            reordered(self.parameters, order, self.specification),
            order.inverse.then(self.order),
            self.objective,
            None if self.maps is None else self.maps.reordered(order),
        )

    def mapped(self, rows: Observations) -> Observations:
        """Rows behind the maps, with what these do to their log densities."""
        return rows if self.maps is None else self.maps.applied(rows)

    def standardise(self, rows: Observations) -> Observations:
        """Rows behind the maps, in standard units, held within ``FARTHEST`` scales."""
        rows = self.mapped(rows)
        with np.errstate(over="ignore"):
            real = self.hyperparameters.units.forward(rows.real)
        return replace(rows, real=np.clip(real, -FARTHEST, FARTHEST))

    def in_users_units(
        self, standard: Float[np.ndarray, "*rows feature"]
    ) -> Float[np.ndarray, "*rows feature"]:
        """Cells that a model made, from standard units and through the maps to the user's units."""
        mapped = self.units.backward(standard)
        return mapped if self.maps is None else self.maps.within_range(self.maps.backward(mapped))

    def component_log_joint(self, rows: Observations) -> Float[np.ndarray, "obs component"]:
        """``log pi_c + log w_k + log p(x_o | k)`` in standard units; labels are not used."""
        log_joint = np.empty((rows.n_obs, self.specification.n_components))
        for part, some in rows.in_blocks():
            log_joint[part] = self._component_log_joint(some)
        return log_joint

    def _component_log_joint(self, block: Observations) -> Float[np.ndarray, "obs component"]:
        """``log pi_c + log w_k + log p(x_o | k)`` of one block of rows; labels are not used."""
        prepared = prepare(self.standardise(block), self.specification)
        return prepared.component_log_joint(self.parameters)

    def responsibilities(self, rows: Observations) -> Float[np.ndarray, "obs component"]:
        """``p(k | x_o)`` of every component; labels are not used."""
        shares = np.empty((rows.n_obs, self.specification.n_components))
        for part, some in rows.in_blocks():
            shares[part] = softmax(self._component_log_joint(some), axis=1)
        return shares

    def class_log_joint(
        self, rows: Observations, temperature: float = 1.0
    ) -> Float[np.ndarray, "obs label"]:
        """``log pi_c + log p(x_o | c)`` in standard units; labels are not used."""
        slices = self.specification.class_slices
        log_joint = np.empty((rows.n_obs, len(slices)))
        for part, some in rows.in_blocks():
            log_joint[part] = class_log_joint(self._component_log_joint(some), slices)[0]
        return log_joint

    def log_unit(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """Log density in the user's units less that in standard units."""
        return self.units.log_unit(self.mapped(rows))

    def log_density(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """``log p(x_o)`` in the user's units."""
        log_density = np.empty(rows.n_obs)
        for part, some in rows.in_blocks():
            in_standard_units = np.logaddexp.reduce(self._component_log_joint(some), axis=1)
            log_density[part] = in_standard_units + self.log_unit(some)
        return log_density

    def class_shares(self, rows: Observations, n_classes: int) -> Float[np.ndarray, " label"]:
        """Shares of the classes that predictions stand for.

        Under the likelihood rows without a label teach the class probabilities, too: they
        are shared out as the M-step did. Other objectives bend these, and stand for the
        labelled rows.
        """
        labelled, hidden = super().class_shares(rows, n_classes), rows.labels < 0
        if self.objective.coefficients != LIKELIHOOD.coefficients or not hidden.any():
            return labelled
        extra = self.hyperparameters.class_concentration - 1
        smoothed = self.parameters.class_probabilities
        counts = smoothed * (rows.weights.sum() + extra * smoothed.size) - extra
        counts = np.maximum(counts, labelled * rows.weights[~hidden].sum())
        return counts / counts.sum()

    def log_posterior(self, rows: Observations) -> MixtureOnRows:
        """The log posterior, or the log Gibbs posterior of another objective."""
        data_and_prior = self.standardise(rows), self.specification, self.hyperparameters
        if self.objective.name == "likelihood":
            return MixtureLogPosterior(*data_and_prior)
        return HybridLogPosterior(*data_and_prior, self.objective)

    def point(self, log_posterior: Any) -> Float[np.ndarray, " coordinate"]:
        """The fitted point in the coordinates of its log posterior."""
        return log_posterior.pack(self.start)

    def mixture_at(
        self, log_posterior: Any, theta: Float[np.ndarray, " coordinate"]
    ) -> MixtureParameters:
        """The mixture under a posterior draw, in standard units."""
        return log_posterior.unpack(theta).standardised(self.units)

    def predictor(
        self, log_posterior: Any, rows: Observations, temperature: float = 1.0
    ) -> Predictor:
        """Prepare rows for predictions at any coordinates: classes and density apart."""
        return log_posterior.predictor(self.standardise(rows))

    def declare(
        self,
        rows: Observations,
        axes: Axes,
        latent: Literal["marginal", "explicit"] = "marginal",
    ) -> pm.Model:
        """The graph of the density, or of the classes and their objective."""
        from bayesrbf.models import declare_hybrid_mixture, declare_mixture

        data_and_prior = rows, self.specification, self.hyperparameters
        asked = axes.of_graph | {"latent": latent, "column_maps": self.maps}
        if axes.classes is None:
            return declare_mixture(*data_and_prior, **asked)
        return declare_hybrid_mixture(*data_and_prior, **asked, objective=self.objective)

    def description(self, rows: Observations, axes: Axes) -> Description:
        """Names along every dim of the graph, and the training rows."""
        coords = mixture_coords(self.specification, axes)
        constant = row_weights(rows)
        if axes.classes is not None:
            of_component = axes.classes[list(self.specification.component_class)]
            constant |= {names.COMPONENT_LABEL: ((names.COMPONENT,), of_component)}
        return Description(coords, observed_rows(rows), constant, self._scored(axes))

    def _scored(self, axes: Axes) -> str:
        """What the log likelihood is of: rows, rows with labels, labels, or an objective's own."""
        if axes.classes is None:
            return names.OBSERVED
        alpha, beta, hinge = self.objective.coefficients
        named = {(1.0, 0.0, 0.0): names.JOINT, (1.0, -1.0, 0.0): names.OBSERVED_LABEL}
        return named.get((alpha, beta, hinge), names.OBJECTIVE)

    def __laws__(self) -> Requirements:
        structure, point, prior = self.specification, self.parameters, self.hyperparameters
        k, d, levels = structure.n_components, structure.n_features, structure.levels
        yield point.class_probabilities.size == structure.n_classes, "a probability of every class"
        yield point.means.shape == (k, d), "a mean of every component and column"
        yield point.weights.size == k, "a weight of every component"
        yield by_class(point.weights, structure.component_class), "weights that sum to one by class"
        reals, factors = SHAPES[structure.shape](structure), point.precisions_cholesky
        shape = reals.n_groups, *reals.matrix_shape
        yield factors.shape == shape, "a factor of every covariance"
        yield scales(reals.diagonal(factors)), "factors of positive diagonal"
        shapes = [array.shape for array in point.category_probabilities]
        yield shapes == [(k, n) for n in levels], "probabilities of all levels"
        yield all((array > 0).all() for array in point.category_probabilities), "levels that can be"
        yield prior.location.size == d, "a centre of every column"
        sizes = [array.size for array in prior.category_concentrations]
        yield sizes == list(levels), "concentrations of all levels"
        order = self.order.features.size, self.order.categories.size, self.order.classes.size
        ordered = order == (d, len(levels), structure.n_classes)
        yield ordered, "an order of its columns and classes"
        yield self.maps is None or self.maps.scale.size == d, "a map of every column"


def mixture_coords(specification: MixtureSpecification, axes: Axes) -> dict[str, Any]:
    """Names along every dim of a mixture's posterior, as the declared graph has them."""
    columns = axes.columns
    assert columns is not None  # a mixture is one of columns
    features = columns.real_names
    entries = range(specification.n_features)
    coords: dict[str, Any] = {
        names.OBS: axes.obs,
        names.COLUMN: [names.LABEL, *features, *columns.categorical_names],
        names.COMPONENT: np.arange(specification.n_components),
        names.FEATURE: list(features),
        names.FEATURE_BIS: list(features),
        names.PRECISION_ENTRY: [f"{features[i]},{features[j]}" for i in entries for j in range(i)],
    }
    for index, levels in enumerate(columns.all_levels):
        coords[names.category_level(index)] = [str(level) for level in levels]
    if axes.classes is not None:
        coords[names.CLASS_LABEL] = axes.classes
    return coords
