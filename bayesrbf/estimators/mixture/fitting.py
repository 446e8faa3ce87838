"""From weighted rows to a fitted mixture: the steps that every fit and fold shares."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from bayesrbf import table
from bayesrbf.estimators.validating import apart, held_out_score
from bayesrbf.numerics.ascent import Acceleration
from bayesrbf.numerics.discriminative.fitting import Schedule, fit_objective
from bayesrbf.numerics.expectation import prepare
from bayesrbf.numerics.fitting import fit_mixture
from bayesrbf.objective import Objective
from bayesrbf.order import Order
from bayesrbf.parameters import MixtureParameters, Observations, Standardisation
from bayesrbf.priors import MixtureHyperparameters, MixturePrior
from bayesrbf.results import Fit
from bayesrbf.specification import MixtureSpecification

LIKELIHOOD = Objective()

STEPS = {"blend": 60}
"""Iterations by objective: stopping early is part of the blend."""
DEFAULT_STEPS = 200

FARTHEST = 1e100
"""Standardised cells are held within this, so that their squares stay finite."""


@dataclass(frozen=True)
class Solver:
    """How a mixture is fitted.

    Attributes
    ----------
    n_init : int
        Number of restarts.
    max_iter : int
        Most iterations of a restart.
    tol : float
        Smallest rise of the log posterior per unit of row weight that counts.
    acceleration : {"squarem", None}
        Extrapolation of EM, or plain EM.
    seed : int
        Seed of the restarts, of mini-batches and of the part held out.
    objective : Objective
        What is maximised; anything but the likelihood starts at the fit by EM.
    steps : int or None
        Most iterations that the objective is followed; None: ``STEPS``.
    batch_size : int or None
        Rows of a mini-batch of the objective; None: all rows.
    held_out : float
        Share of the labelled rows that tell when the objective has been followed
        far enough; 0: none.
    """

    n_init: int
    max_iter: int
    tol: float
    acceleration: Acceleration
    seed: int
    objective: Objective = LIKELIHOOD
    steps: int | None = None
    batch_size: int | None = None
    held_out: float = 0.0

    @property
    def schedule(self) -> Schedule:
        """How long the objective is followed."""
        steps = STEPS.get(self.objective.name, DEFAULT_STEPS) if self.steps is None else self.steps
        return Schedule(steps, self.tol, self.batch_size, self.seed)


@dataclass(frozen=True)
class FittedMixture:
    """A fitted mixture: what predicting needs and nothing else.

    Attributes
    ----------
    specification : MixtureSpecification
        Structure of the mixture.
    hyperparameters : MixtureHyperparameters
        Resolved prior, in the user's units; its centre is the standardisation.
    parameters : MixtureParameters
        The fitted point, in standard units.
    order : Order
        The canonical order of columns and classes, in which it was fitted.
    """

    specification: MixtureSpecification
    hyperparameters: MixtureHyperparameters
    parameters: MixtureParameters
    order: Order

    @property
    def units(self) -> Standardisation:
        """Location and scale of the real columns."""
        return self.hyperparameters.units

    def standardise(self, rows: Observations) -> Observations:
        """Rows in standard units.

        Parameters
        ----------
        rows : Observations
            Rows in the user's units.

        Returns
        -------
        Observations
            The same rows; extreme cells are held within ``FARTHEST`` scales.
        """
        with np.errstate(over="ignore"):
            real = self.units.forward(rows.real)
        return replace(rows, real=np.clip(real, -FARTHEST, FARTHEST))

    def component_log_joint(self, rows: Observations) -> Float[np.ndarray, "obs component"]:
        """``log pi_c + log w_k + log p(x_o | k)`` in standard units.

        Parameters
        ----------
        rows : Observations
            Rows in the user's units.

        Returns
        -------
        ndarray of shape (n_obs, n_components)
            Log joint densities in nats, labels ignored.
        """
        prepared = prepare(self.standardise(rows), self.specification)
        return prepared.component_log_joint(self.parameters)

    def class_log_joint(self, rows: Observations) -> Float[np.ndarray, "obs label"]:
        """``log pi_c + log p(x_o | c)`` in standard units.

        Parameters
        ----------
        rows : Observations
            Rows in the user's units.

        Returns
        -------
        ndarray of shape (n_obs, n_classes)
            Log joint densities in nats, labels ignored.
        """
        starts = [components.start for components in self.specification.class_slices]
        return np.logaddexp.reduceat(self.component_log_joint(rows), starts, axis=1)

    def log_unit(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """Log density in the user's units less that in standard units.

        Parameters
        ----------
        rows : Observations
            Rows in the user's units.

        Returns
        -------
        ndarray of shape (n_obs,)
            ``-sum over observed real cells of log scale``.
        """
        return -(~np.isnan(rows.real) @ np.log(self.units.scale))

    def reordered(self, order: Order) -> FittedMixture:
        """Put columns and classes in another order.

        Parameters
        ----------
        order : Order
            The order.

        Returns
        -------
        FittedMixture
            The same mixture.
        """
        return FittedMixture(
            self.specification.reordered(order),
            self.hyperparameters.reordered(order),
            self.parameters.reordered(order, self.specification),
            order.inverse.then(self.order),
        )


def fit_rows(
    rows: Observations,
    specification: MixtureSpecification,
    prior: MixturePrior,
    solver: Solver,
    start: MixtureParameters | None = None,
) -> tuple[FittedMixture, Fit]:
    """Standardise distinct rows and fit a mixture to them.

    All of it happens in the canonical order of columns and classes: what is found does
    not depend on the order in which they are given.

    Parameters
    ----------
    rows : Observations
        Distinct weighted rows in canonical order, in the user's units.
    specification : MixtureSpecification
        Structure of the mixture.
    prior : MixturePrior
        Declared prior; centred here at the rows' own location and scale.
    solver : Solver
        How to fit.
    start : MixtureParameters, optional
        Point to start from, in the user's units, in place of restarts.

    Returns
    -------
    mixture : FittedMixture
        What predicts, columns and classes as they were given.
    fit : Fit
        How it was reached.
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
    mixture = FittedMixture(structure, hyperparameters, fit.parameters, unchanged)
    mixture = mixture.reordered(order.inverse)
    return mixture, replace(fit, parameters=mixture.parameters)


Problem = tuple[Observations, MixtureSpecification, MixtureHyperparameters]


def _fit_likelihood(problem: Problem, solver: Solver, start: MixtureParameters | None) -> Fit:
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


def _fit_objective(problem: Problem, solver: Solver, start: MixtureParameters | None) -> Fit:
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
