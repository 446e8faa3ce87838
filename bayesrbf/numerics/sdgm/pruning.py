"""Components that come and go: the state of the type-II maximisation, and what it can lose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.numerics.sdgm.reduction import Factored, Whitened, whiten

LEAST_PROPORTION = 1e-5
"""Components below it are pruned."""


@dataclass(frozen=True)
class State:
    """A point of the type-II maximisation.

    Attributes
    ----------
    component_class : ndarray of shape (n_components,)
        Class of every surviving component.
    proportions : ndarray of shape (n_components,)
        pi, summing to one within each class.
    component, feature : ndarray of shape (n_weights,)
        Place of every active weight; components in order.
    coefficients : ndarray of shape (n_weights,)
        w.
    precisions : ndarray of shape (n_weights,)
        alpha.
    """

    component_class: Int[np.ndarray, " component"]
    proportions: Float[np.ndarray, " component"]
    component: Int[np.ndarray, " weight"]
    feature: Int[np.ndarray, " weight"]
    coefficients: Float[np.ndarray, " weight"]
    precisions: Float[np.ndarray, " weight"]

    def whitened(self, factored: Factored) -> Whitened:
        """Features with standard normal priors.

        Parameters
        ----------
        factored : Factored
            Features of all points.

        Returns
        -------
        Whitened
            For the active weights at their precisions.
        """
        return whiten(
            factored, self.component, self.feature, self.precisions, self.component_class.size
        )


def without_superfluous(state: State) -> State:
    """Drop components that are rare or like another; their probability goes to one that stays.

    Parameters
    ----------
    state : State
        A point.

    Returns
    -------
    State
        The point without them; every class keeps a component.
    """
    dropped, heirs = _superfluous(state)
    if not dropped.any():
        return state
    proportions = np.bincount(heirs, weights=state.proportions, minlength=dropped.size)
    renumbered = np.cumsum(~dropped) - 1
    kept = ~dropped[state.component]
    return State(
        state.component_class[~dropped],
        proportions[~dropped],
        renumbered[state.component[kept]],
        state.feature[kept],
        state.coefficients[kept],
        state.precisions[kept],
    )


def _superfluous(
    state: State,
) -> tuple[Bool[np.ndarray, " component"], Int[np.ndarray, " component"]]:
    """Components to drop, and the component that takes over each one's probability.

    A component without weights is one with every other such component of its class.
    """
    n_components = state.component_class.size
    bare = np.bincount(state.component, minlength=n_components) == 0
    heirs = np.arange(n_components)
    for label in np.unique(state.component_class):
        members = np.flatnonzero(state.component_class == label)
        alike = members[bare[members]]
        heirs[alike] = alike[:1]
        largest = members[np.argmax(state.proportions[members])]
        rare = members[state.proportions[members] < LEAST_PROPORTION]
        heirs[rare] = largest
    return heirs != np.arange(n_components), heirs
