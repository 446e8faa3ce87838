"""What a search for exemplars, and a draw of them, ask of an objective."""

from __future__ import annotations

from typing import Protocol, Self, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.exemplars import Dissimilarities, Prototypes

Exemplars = Int[np.ndarray, " prototype"]


@runtime_checkable
class Scorer(Protocol):
    """Exemplars that move one at a time, and what each candidate would make of an objective."""

    def scores(self, prototype: int) -> Float[np.ndarray, " candidate"]:
        """The objective, were a prototype each of the candidates of its class.

        Parameters
        ----------
        prototype : int
            The prototype that would move.

        Returns
        -------
        ndarray of shape (n_candidates,)
            Values of the objective.
        """

    def sweep(
        self,
        exemplars: Exemplars,
        order: Int[np.ndarray, " turn"],
        *,
        uniforms: Float[np.ndarray, " turn"] | None = None,
        tolerance: float = 0.0,
    ) -> Exemplars:
        """Move prototypes in turn, each to its best candidate or to one that is drawn.

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            Where the prototypes are.
        order : ndarray of shape (n_turns,)
            Prototypes that move.
        uniforms : ndarray of shape (n_turns,), optional
            A number from 0 to 1 for every draw, whose probabilities are the softmax of
            the scores; None: to the best candidate.
        tolerance : float
            What must be gained by a move to the best.

        Returns
        -------
        ndarray of shape (n_prototypes,)
            Where they are then.
        """


@runtime_checkable
class Objective(Protocol):
    """What a search for exemplars maximises."""

    @property
    def rows(self) -> Dissimilarities:
        """Training rows."""

    @property
    def prototypes(self) -> Prototypes:
        """Class of every prototype."""

    @property
    def sigma(self) -> float | None:
        """Width of the kernel, where there is one."""

    def value(self, exemplars: Exemplars) -> float:
        """The objective.

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            Training row that each prototype is.

        Returns
        -------
        float
            Its value.
        """

    def scorer(self, exemplars: Exemplars) -> Scorer:
        """Prepare to judge swaps.

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            Training row that each prototype is at first.

        Returns
        -------
        Scorer
            Its scores are values of the objective.
        """

    def bound(self, exemplars: Exemplars) -> Scorer:
        """Prepare the bound that the generalised EM raises in place of the objective.

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            Training row that each prototype is: where the bound is taken.

        Returns
        -------
        Scorer
            Its scores are the bound up to a constant. Where it rises, the objective rises.
        """

    def refit(self, exemplars: Exemplars) -> Self:
        """The same objective at the best width for these exemplars, where it is free.

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            Training row that each prototype is.

        Returns
        -------
        Objective
            Its value is no lower.
        """
