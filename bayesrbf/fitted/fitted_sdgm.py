"""A fitted sparse discriminative mixture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float, Int

from bayesrbf import table
from bayesrbf.fitted.completed_rows import LabelSets, completions, informative, labelled, set_shares
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.fitted.fitted_model import Axes, Delivery, Description, FittedModel, row_weights
from bayesrbf.inference.draws import Draws
from bayesrbf.numerics.log_posterior import OneByOne, Predictor
from bayesrbf.numerics.sdgm.sdgm_features import quadratic_basis, standard_points
from bayesrbf.numerics.sdgm.sdgm_log_posterior import SDGMLogPosterior
from bayesrbf.numerics.sdgm.sdgm_prediction import (
    component_probabilities,
    drawn_log_probabilities,
    predict,
    replicated_draws,
)
from bayesrbf.numerics.sdgm.sdgm_prior import learned_specification, learned_weights
from bayesrbf.posterior.predictive import ClassPosterior
from bayesrbf.records import names
from bayesrbf.records.mixture import Observations, Standardisation
from bayesrbf.records.priors import PrecisionPrior
from bayesrbf.records.sdgm import (
    Basis,
    CompletedRows,
    KernelBasis,
    SDGMModes,
    SDGMParameters,
    SDGMSpecification,
)
from bayesrbf.records.specification import MixtureSpecification
from bayesrbf.records.stored import Requirements, classes_in_order, stored, within

if TYPE_CHECKING:
    import pymc as pm

    from bayesrbf.records.results import ClassPrediction

PREDICTION_DRAWS = 64  # Completions of a row with holes in each replicate of a prediction.
POSTERIOR_DRAWS = 128  # Completions of a row with holes under every posterior draw.

Prediction = Literal["average", "single-mode", "plug-in"]
"""What a prediction averages over: modes and their spread, the spread of one mode, nothing."""


@stored
class FittedSDGM(FittedModel):
    """A fitted sparse discriminative mixture."""

    modes: SDGMModes
    basis: Basis  # The features that are used.
    features: Int[np.ndarray, " feature"]  # Their places among all features.
    units: Standardisation  # Location and scale of the coordinates of a point.
    companion: FittedMixture
    """A density of the columns, blind to the labels: it completes rows with holes."""
    sets: LabelSets  # The classes of every code of a label.
    component_class: tuple[int, ...]  # Class of every component before any was pruned.
    precision_prior: PrecisionPrior | None
    """Of the declared graph; None holds the precisions at their evidence's maximum."""
    prediction: Prediction

    @property
    def kind(self) -> str:
        """Its kind beside those of a stack's members."""
        return "mixture"

    @property
    def density(self) -> FittedMixture:
        """The companion."""
        return self.companion

    @property
    def parameters(self) -> SDGMParameters:
        """The most probable mode."""
        return self.modes.best

    @property
    def averages(self) -> bool:
        """Whether predictions average over the spread around a mode."""
        return self.prediction != "plug-in"

    @property
    def averaged_modes(self) -> SDGMModes:
        """The modes that predictions use."""
        return self.modes if self.prediction == "average" else self.modes.alone

    def predict(
        self,
        rows: Observations,
        temperature: float = 1.0,
        log_ratio: Float[np.ndarray, " label"] | float = 0.0,
    ) -> tuple[Float[np.ndarray, "obs label"], Float[np.ndarray, "obs label"]]:
        """Class probabilities of rows, and their numerical standard errors.

        The log ratio is that of the prevalences of use to those of training.
        """
        return predict(
            self.averaged_modes,
            self.basis,
            self.units,
            lambda replicate: completions(self.companion, rows, PREDICTION_DRAWS, replicate),
            average=self.averages,
            temperature=temperature,
            log_ratio=log_ratio,
        )

    def drawn_log_probabilities(self, rows: Observations) -> Float[np.ndarray, "obs draw label"]:
        """Class log probabilities of which :meth:`predict` gives the mean."""
        return drawn_log_probabilities(
            self.averaged_modes,
            self.basis,
            self.units,
            lambda replicate: completions(self.companion, rows, PREDICTION_DRAWS, replicate),
            average=self.averages,
        )

    def component_probabilities(self, rows: Observations) -> Float[np.ndarray, "obs component"]:
        """Probabilities of classes and components together, at the fitted weights."""
        return component_probabilities(
            self.parameters,
            self.basis,
            self.units,
            lambda replicate: completions(self.companion, rows, POSTERIOR_DRAWS, replicate),
        )

    def class_log_joint(
        self, rows: Observations, temperature: float = 1.0
    ) -> Float[np.ndarray, "obs label"]:
        """Log of the mean of tempered probabilities, over the temperature."""
        with np.errstate(divide="ignore"):
            # The mean is one of tempered draws; the caller's temperature gives it back.
            return np.log(self.predict(rows, temperature)[0]) / temperature

    def declared(self, rows: Observations) -> tuple[CompletedRows, Basis, SDGMSpecification]:
        """Training rows, features and structure of the declared graph."""
        completed = labelled(self.companion, rows, self.sets)
        if self.precision_prior is None:
            return completed, self.basis, self.parameters.specification
        distinct, _ = table.distinct(rows)  # the exemplars of the fit
        basis = full_basis(
            self.companion.specification,
            self.units,
            labelled(self.companion, distinct.take(informative(distinct, self.sets)), self.sets),
            self.basis.kernel,
        )
        return (
            completed,
            basis,
            learned_specification(self.component_class, basis.n_features, self.precision_prior),
        )

    def class_shares(self, rows: Observations, n_classes: int) -> Float[np.ndarray, " label"]:
        """Shares of the classes; a row with several classes is shared out."""
        return set_shares(rows, self.sets)

    def n_codes(self, n_classes: int) -> int:
        """Number of sets of classes."""
        return len(self.sets)

    def log_posterior(self, rows: Observations) -> SDGMLogPosterior:
        """The log posterior of the weights of one mode."""
        completed, basis, specification = self.declared(rows)
        return SDGMLogPosterior(completed, basis, self.units, specification)

    def point(self, log_posterior: Any) -> Float[np.ndarray, " coordinate"]:
        """The fitted weights; where precisions are learned, the same function of all weights."""
        parameters = self.parameters
        if self.precision_prior is None:
            return log_posterior.pack(parameters.coefficients)
        everywhere = replace(parameters, feature=self.features[parameters.feature])
        return log_posterior.pack(learned_weights(everywhere, log_posterior.specification))

    def predictor(
        self, log_posterior: Any, rows: Observations, temperature: float = 1.0
    ) -> Predictor:
        """Prepare rows for predictions at any coordinates: they are completed once."""
        points, starts = completions(self.companion, rows, POSTERIOR_DRAWS)
        density = self.companion.log_density(rows.unlabelled())  # it has no classes
        return log_posterior.predictor(points, starts, density, temperature)

    def class_posterior(
        self,
        log_posterior: Any,
        rows: Observations,
        draws: Draws | None,
        delivery: Delivery,
    ) -> ClassPosterior:
        """Of the draws, or of the Laplace posterior that the fit itself makes."""
        posterior = super().class_posterior(log_posterior, rows, draws, delivery)
        if draws is not None or not self.averages:
            return posterior
        prepare = self.modes_predictor(rows, delivery.temperature)
        averaged = replace(
            posterior,
            predictor=prepare,
            theta=self.replicated_draws(),
            temperature=delivery.temperature,
        )
        return averaged.calibrated(
            delivery.calibration, delivery.uncalibrated, delivery.hidden, rows, delivery.seed
        )

    def replicated_draws(self) -> Float[np.ndarray, "chain draw coordinate"]:
        """Draws of the Laplace posterior that the fit itself makes: a mode's number, weights."""
        return replicated_draws(self.averaged_modes)

    def modes_predictor(
        self, training: Observations, temperature: float
    ) -> Callable[[Observations], Predictor]:
        """Prepares rows for predictions at :meth:`replicated_draws`."""
        completed = labelled(self.companion, training, self.sets)
        modes = self.averaged_modes.parameters
        log_posteriors = [
            SDGMLogPosterior(completed, self.basis, self.units, mode.specification)
            for mode in modes
        ]

        def prepare(rows: Observations) -> Predictor:
            predictors = [self.predictor(one, rows, temperature) for one in log_posteriors]

            def predicted(theta: np.ndarray) -> ClassPrediction:
                number = int(theta[0])
                return predictors[number](theta[1 : 1 + modes[number].n_weights])

            return OneByOne(predicted)

        return prepare

    def declare(self, rows: Observations, axes: Axes) -> pm.Model:
        """The graph of the weights on training rows."""
        from bayesrbf.models import declare_sdgm

        assert axes.classes is not None
        completed, basis, specification = self.declared(rows)
        return declare_sdgm(
            completed,
            basis,
            self.units,
            specification,
            class_names=axes.classes.tolist(),
            obs_names=axes.obs.tolist(),
            coefficient_names=coefficient_names(basis, specification, axes),
        )

    def description(self, rows: Observations, axes: Axes) -> Description:
        """Names of weights and components, and the classes that every row may have."""
        assert axes.classes is not None
        completed, basis, specification = self.declared(rows)
        coords = {
            names.OBS: axes.obs,
            names.LABEL: axes.classes,
            names.COMPONENT: np.arange(specification.n_components),
            names.COEFFICIENT: coefficient_names(basis, specification, axes),
        }
        allowed = (names.OBS, names.LABEL), completed.allowed.astype(np.int64)
        component_class = axes.classes[specification.component_class]
        constant = row_weights(rows) | {
            "proportions": ((names.COMPONENT,), specification.proportions),
            names.COMPONENT_LABEL: ((names.COMPONENT,), component_class),
        }
        return Description(coords, {"allowed": allowed}, constant, names.OBSERVED_LABEL)

    def __laws__(self) -> Requirements:
        structure, n_features = self.companion.specification, self.basis.n_features
        n_coordinates = structure.n_features + sum(structure.levels)
        yield structure.n_classes == 1, "a companion without classes"
        yield self.units.scale.size == n_coordinates, "units of all coordinates"
        yield self.basis.fits(n_coordinates), "features of its coordinates"
        yield self.features.size == n_features and within(self.features, 0), "numbers of features"
        modes = self.modes.parameters
        n_classes = modes[0].component_class[-1] + 1
        yield all(within(mode.feature, 0, n_features) for mode in modes), "weights of its features"
        yield all(mode.component_class[-1] + 1 == n_classes for mode in modes), "modes of one table"
        yield classes_in_order(self.component_class), "classes in order"
        yield self.component_class[-1] + 1 == n_classes, "components of all classes"
        sets = self.sets
        yield sets.shape[1] == n_classes and bool(sets.any(axis=1).all()), "sets of its classes"
        own = sets.shape[0] >= n_classes and bool(sets[:n_classes].diagonal().all())
        yield own, "a set of every class"


def coefficient_names(basis: Basis, specification: SDGMSpecification, axes: Axes) -> list[str]:
    """Names of the weights: class, component within the class, feature."""
    assert axes.classes is not None
    assert axes.columns is not None
    columns = axes.columns
    coordinates = list(columns.real_names)
    for name, levels in zip(columns.categorical_names, columns.all_levels, strict=True):
        coordinates += [f"{name}={level}" for level in levels]
    features = basis.named(coordinates)
    component_class = specification.component_class
    first = np.searchsorted(component_class, component_class)
    within = np.arange(component_class.size) - first
    return [
        f"{axes.classes[component_class[k]]} {within[k]}: {features[h]}"
        for k, h in zip(specification.component, specification.feature, strict=True)
    ]


def full_basis(
    specification: MixtureSpecification, units: Standardisation, rows: CompletedRows, kernel: Any
) -> Basis:
    """All features, before any is pruned; a kernel's exemplars are the rows' first points."""
    if kernel is None:
        return quadratic_basis(specification.n_features, specification.levels)
    return KernelBasis(kernel, standard_points(rows.points[rows.starts], units))
