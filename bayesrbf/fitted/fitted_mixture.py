"""A fitted mixture, and the steps from weighted rows to it that every fit and fold shares."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float

from bayesrbf import table
from bayesrbf.fitted.early_stopping import apart, held_out_score
from bayesrbf.fitted.fitted_model import (
    COLUMN,
    Axes,
    Description,
    FittedModel,
    observed_rows,
    row_weights,
)
from bayesrbf.numerics.discriminative.hybrid_log_posterior import HybridLogPosterior
from bayesrbf.numerics.discriminative.objective_ascent import Schedule, fit_objective
from bayesrbf.numerics.log_posterior import Predictor
from bayesrbf.numerics.log_sums import class_log_joint
from bayesrbf.numerics.mixture.ascent import Acceleration
from bayesrbf.numerics.mixture.expectation import prepare
from bayesrbf.numerics.mixture.mixture_fit import fit_mixture
from bayesrbf.numerics.mixture.mixture_log_posterior import MixtureLogPosterior
from bayesrbf.numerics.mixture.mixture_rows import MixtureOnRows
from bayesrbf.records import names
from bayesrbf.records.mixture import MixtureParameters, Observations, Standardisation
from bayesrbf.records.objective import Objective
from bayesrbf.records.priors import MixtureHyperparameters, MixturePrior
from bayesrbf.records.results import Fit
from bayesrbf.records.specification import MixtureSpecification, Order

if TYPE_CHECKING:
    import pymc as pm


LIKELIHOOD = Objective()

STEPS = {"blend": 60}
"""Iterations by objective: stopping early is part of the blend."""
DEFAULT_STEPS = 200

FARTHEST = 1e100
"""Standardised cells are held within this, so that their squares stay finite."""


@dataclass(frozen=True)
class Solver:
    """How a mixture is fitted."""

    n_init: int
    max_iter: int
    tol: float
    """Smallest rise of the log posterior per unit of row weight that counts."""
    acceleration: Acceleration
    seed: int
    """Of the restarts, of mini-batches and of the part held out."""
    objective: Objective = LIKELIHOOD
    """What is maximised; anything but the likelihood starts at the fit by EM."""
    steps: int | None = None
    """Most iterations that the objective is followed; None: ``STEPS``."""
    batch_size: int | None = None
    """Rows of a mini-batch of the objective; None: all rows."""
    held_out: float = 0.0
    """Share of the labelled rows that tell when to stop following the objective; 0: none."""

    @property
    def schedule(self) -> Schedule:
        """How long the objective is followed."""
        steps = STEPS.get(self.objective.name, DEFAULT_STEPS) if self.steps is None else self.steps
        return Schedule(steps, self.tol, self.batch_size, self.seed)


@dataclass(frozen=True)
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

    @property
    def density(self) -> FittedMixture:
        """The mixture itself."""
        return self

    @property
    def units(self) -> Standardisation:
        """Location and scale of the real columns."""
        return self.hyperparameters.units

    @property
    def start(self) -> MixtureParameters:
        """The fitted point in the user's units, from where another fit may start."""
        return self.parameters.in_units(self.units)

    def reordered(self, order: Order) -> FittedMixture:
        """The same mixture, columns and classes in another order."""
        return FittedMixture(
            self.specification.reordered(order),
            self.hyperparameters.reordered(order),
            self.parameters.reordered(order, self.specification),
            order.inverse.then(self.order),
            self.objective,
        )

    def standardise(self, rows: Observations) -> Observations:
        """Rows in standard units; extreme cells are held within ``FARTHEST`` scales."""
        with np.errstate(over="ignore"):
            real = self.units.forward(rows.real)
        return replace(rows, real=np.clip(real, -FARTHEST, FARTHEST))

    def component_log_joint(self, rows: Observations) -> Float[np.ndarray, "obs component"]:
        """``log pi_c + log w_k + log p(x_o | k)`` in standard units; labels are not used."""
        prepared = prepare(self.standardise(rows), self.specification)
        return prepared.component_log_joint(self.parameters)

    def class_log_joint(
        self, rows: Observations, temperature: float = 1.0
    ) -> Float[np.ndarray, "obs label"]:
        """``log pi_c + log p(x_o | c)`` in standard units; labels are not used."""
        return class_log_joint(self.component_log_joint(rows), self.specification.class_slices)[0]

    def log_unit(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """Log density in the user's units less that in standard units."""
        return self.units.log_unit(rows.real)

    def log_density(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """``log p(x_o)`` in the user's units."""
        return np.logaddexp.reduce(self.component_log_joint(rows), axis=1) + self.log_unit(rows)

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
        known = self.standardise(rows), self.specification, self.hyperparameters
        if self.objective.name == "likelihood":
            return MixtureLogPosterior(*known)
        return HybridLogPosterior(*known, self.objective)

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

        known = rows, self.specification, self.hyperparameters
        if axes.classes is None:
            return declare_mixture(*known, **axes.of_graph, latent=latent)
        return declare_hybrid_mixture(
            *known, **axes.of_graph, latent=latent, objective=self.objective
        )

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


def mixture_coords(specification: MixtureSpecification, axes: Axes) -> dict[str, Any]:
    """Names along every dim of a mixture's posterior, as the declared graph has them."""
    columns = axes.columns
    assert columns is not None  # a mixture is one of columns
    features = columns.real_names
    entries = range(specification.n_features)
    coords: dict[str, Any] = {
        names.OBS: axes.obs,
        COLUMN: [names.LABEL, *features, *columns.categorical_names],
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


def fit_mixture_rows(
    rows: Observations,
    specification: MixtureSpecification,
    prior: MixturePrior,
    solver: Solver,
    start: MixtureParameters | None = None,
) -> tuple[FittedMixture, Fit]:
    """Standardise distinct weighted rows, in the user's units, and fit a mixture to them.

    A start, in the user's units as well, takes the place of restarts. All of it happens in the
    canonical order of columns and classes: what is found does not depend on the order in which
    they are given.
    """
    order = table.canonical_order(rows, specification.n_classes)
    structure, canonical = specification.reordered(order), rows.reordered(order)
    units = table.standardisation(canonical.real, canonical.weights)
    marginals = table.marginals(canonical.codes, structure.levels, canonical.weights)
    hyperparameters = prior.resolve(structure, units, marginals)
    problem = (
        replace(canonical, real=units.forward(canonical.real)),
        structure,
        hyperparameters.standardised(),
    )
    begin = None
    if start is not None:
        begin = start.reordered(order, specification).standardised(units)
    if solver.objective.name == "likelihood":
        fit = _fit_likelihood(problem, solver, begin)
    else:
        fit = _fit_objective(problem, solver, begin)
    unchanged = order.inverse.then(order)
    mixture = FittedMixture(structure, hyperparameters, fit.parameters, unchanged, solver.objective)
    mixture = mixture.reordered(order.inverse)
    return mixture, replace(fit, parameters=mixture.parameters)


StandardProblem = tuple[Observations, MixtureSpecification, MixtureHyperparameters]


def _fit_likelihood(
    problem: StandardProblem, solver: Solver, start: MixtureParameters | None
) -> Fit:
    """The mode of the posterior, by EM."""
    return fit_mixture(
        *problem,
        tol=solver.tol,
        max_iter=solver.max_iter,
        n_init=solver.n_init,
        acceleration=solver.acceleration,
        rng=np.random.default_rng(solver.seed),
        start=start,
    )


def _fit_objective(
    problem: StandardProblem, solver: Solver, start: MixtureParameters | None
) -> Fit:
    """The mode of the Gibbs posterior, from the start that is given or the one by EM."""
    rows, specification, hyperparameters = problem
    score = None
    if solver.held_out:
        inside, outside = apart(rows.labels, solver.held_out, solver.seed)
        score = held_out_score(rows.take(outside), specification)
        rows = rows.take(inside)
    if start is None:
        start = _fit_likelihood((rows, specification, hyperparameters), solver, None).parameters
    return fit_objective(
        rows,
        specification,
        hyperparameters,
        solver.objective,
        start,
        schedule=solver.schedule,
        score=score,
    )
