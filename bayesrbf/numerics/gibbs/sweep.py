r"""One Gibbs sweep of a mixture: theta -> components, missing cells -> theta.

Components and missing cells are drawn jointly given theta (module ``augmentation``), and theta is
drawn jointly given both (``conjugate``). Before or after that, on the toss of a coin, one class is
offered a jump to another mode (``mode_jumps``), once draws of the posterior have been seen. So a
sweep reads the same backwards: it is a reversible Markov kernel of the posterior.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.gibbs.augmentation import CellDraws, ComponentDraws
from bayesrbf.numerics.gibbs.conjugate import Conjugate, assigned, posterior
from bayesrbf.numerics.gibbs.mode_jumps import MOST_REFERENCES, ModeJumps, can_jump, slowness_of
from bayesrbf.numerics.gibbs.mode_references import searched
from bayesrbf.numerics.log_posterior import MarkovKernel
from bayesrbf.numerics.mixture.mixture_points import MixturePoints
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification

MOST_SWEEP_ROWS = 10_000_000  # Most rows, copies counted, that a sweep takes in.


class MixtureSweep(MarkovKernel):
    """Gibbs sweeps over the coordinates of a mixture's declared graph.

    Rows are in standard units, and a row of weight w stands for w rows: ValueError if a weight is
    no whole number, if there are more than 10,000,000 rows, or if a column has a law without
    conjugate prior. The prior is in the user's units.
    """

    def __init__(
        self,
        observations: Observations,
        specification: MixtureSpecification,
        hyperparameters: MixtureHyperparameters,
    ) -> None:
        rows = _repeated(observations)
        self._specification = specification
        self._points = MixturePoints(specification, hyperparameters)
        self._standard = self._points.standard
        self._weighted = observations
        self._jumps: ModeJumps | None = None
        self._codes = rows.codes
        self._components = ComponentDraws(rows, specification)
        self._cells = CellDraws(rows.real, specification)
        certain = self._components.certain if self._cells.are_known else None
        self._posterior = None if certain is None else self._given(certain, rows.real)

    def sweep(
        self, theta: Float[np.ndarray, " coordinate"], rng: np.random.Generator
    ) -> Float[np.ndarray, " coordinate"]:
        """Draw what is latent given theta, then theta given what is latent.

        The result is distributed as the posterior if theta was.
        """
        if self._posterior is not None:  # nothing is latent, and sweeps are independent
            return self._points.pack_standard(self._posterior.draw(rng))
        parameters = self._points.unpack_standard(theta)
        if self._jumps is None:
            return self._points.pack_standard(self._augment(parameters, rng))
        # A fair coin decides which move is first: read backwards, the sweep is as probable.
        if rng.random() < 0.5:
            return self._points.pack_standard(self._jumps.jump(self._augment(parameters, rng), rng))
        return self._points.pack_standard(self._augment(self._jumps.jump(parameters, rng), rng))

    def adapted(self, thetas: Float[np.ndarray, "draw coordinate"]) -> MixtureSweep:
        """A sweep that has learnt where jumps may lead, from draws that are then thrown away.

        It is this one where the structure allows no jumps.
        """
        if not can_jump(self._specification):
            return self
        points = [self._points.unpack_standard(theta) for theta in thetas]
        slowness = slowness_of(np.stack([one.weights for one in points]), self._specification)
        places = np.linspace(0, len(thetas) - 1, min(len(thetas), MOST_REFERENCES)).round()
        references = [points[place] for place in places.astype(np.intp)] + self._searched
        learnt = copy(self)  # with what was found
        model = (self._weighted, self._specification, self._standard)
        learnt._jumps = ModeJumps(*model, references, slowness)
        return learnt

    @cached_property
    def _searched(self) -> list[MixtureParameters]:
        """Modes that the chains may not have seen."""
        return searched(self._weighted, self._specification, self._standard)

    def _augment(
        self, parameters: MixtureParameters, rng: np.random.Generator
    ) -> MixtureParameters:
        """Draw components and missing cells, then the parameters given these."""
        components = self._components.draw(parameters, rng)
        real = self._cells.draw(parameters, components, rng)
        return self._given(components, real).draw(rng)

    def _given(self, components: np.ndarray, real: np.ndarray) -> Conjugate:
        """The posterior of the parameters once nothing else is latent."""
        statistics = assigned(real, self._codes, components, self._specification)
        return posterior(statistics, self._standard, self._specification)


def _repeated(observations: Observations) -> Observations:
    """Every row as often as its weight says; ValueError if that is no whole number."""
    weights = observations.weights
    whole = np.round(weights)
    if not np.allclose(weights, whole):  # parts that were added up are whole but for rounding
        worst = float(weights[np.argmax(np.abs(weights - whole))])
        raise ValueError(
            "Gibbs sampling needs row weights that are whole numbers, because it draws a "
            f"component for every row; received a weight of {worst:g}: use inference='nuts', or "
            "unlabelled_weight=1 if it is that of a row without a label."
        )
    if whole.sum() > MOST_SWEEP_ROWS:
        raise ValueError(
            f"Gibbs sampling takes row weights that add up to at most {MOST_SWEEP_ROWS:,}; "
            f"received {whole.sum():.6g}: use inference='nuts'."
        )
    return observations.take(np.repeat(np.arange(weights.size), whole.astype(np.intp)))
