r"""How probable each restart's end is: its evidence, with the precisions integrated out.

The evidence at its maximum over many precisions is too high, by more the more weights are
active. With a log-uniform prior between the bounds that the fit keeps them in, and MacKay's
error bars on the logs, :math:`\sigma^2_{\log \alpha} = 2 / \gamma`, every active weight costs

.. math:: \log \frac{\sqrt{4 \pi / \gamma}}{\log \alpha_{\max} - \log \alpha_{\min}}

nats, about two. A weight that was dropped costs nothing: all large precisions are one model.
Ends that say the same of the rows are one mode, and count once.

References
----------
MacKay (1992), Bayesian interpolation, Neural Computation 4, 415-447, section 4.3.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from bayesrbf.numerics.sdgm.ard import LEAST_PRECISION, Problem, Run
from bayesrbf.numerics.sdgm.prediction import class_log_probabilities
from bayesrbf.sdgm_parameters import SDGMModes, SDGMParameters

ALIKE = 0.01
"""Largest difference of class probabilities at the rows between ends that are one mode."""
LEAST_PROBABILITY = 1e-3
"""Of that of the most probable mode: less are left out, for draws would seldom meet them."""


def log_masses(runs: list[Run], alpha_max: float) -> Float[np.ndarray, " restart"]:
    """Log evidence of every restart, its precisions integrated out.

    Parameters
    ----------
    runs : list of Run
        All restarts.
    alpha_max : float
        Largest precision of an active weight.

    Returns
    -------
    ndarray of shape (n_restarts,)
        Evidence and volume together, in nats.
    """
    return np.array([run.evidence + log_volume(run.determined, alpha_max) for run in runs])


def probable_modes(
    problem: Problem, runs: list[Run], masses: Float[np.ndarray, " restart"]
) -> SDGMModes:
    """The different ends of the restarts, the most probable first.

    Parameters
    ----------
    problem : Problem
        Rows and all features.
    runs : list of Run
        All restarts.
    masses : ndarray of shape (n_restarts,)
        What :func:`log_masses` says of them.

    Returns
    -------
    SDGMModes
        Without those that are like a more probable one, or hardly probable.
    """
    kept: list[int] = []
    seen: list[np.ndarray] = []
    for number in np.argsort(-masses, kind="stable"):
        here = _probabilities(problem, runs[number].parameters)
        if all(np.abs(here - other).max(initial=0.0) > ALIKE for other in seen):
            kept.append(int(number))
            seen.append(here)
    probabilities = softmax(masses[kept])
    probable = probabilities >= LEAST_PROBABILITY * probabilities[0]
    parameters = tuple(runs[kept[i]].parameters for i in np.flatnonzero(probable))
    return SDGMModes(parameters, probabilities[probable] / probabilities[probable].sum())


def _probabilities(
    problem: Problem, parameters: SDGMParameters
) -> Float[np.ndarray, "point label"]:
    """Class probabilities of the training points at a mode."""
    phi = problem.factored.features
    logits = phi @ parameters.dense(phi.shape[1]) + np.log(parameters.proportions)
    return np.exp(class_log_probabilities(logits, parameters.component_class))


def log_volume(determined: Float[np.ndarray, " weight"], alpha_max: float) -> float:
    """Log share of the precisions' prior that their posterior takes.

    Parameters
    ----------
    determined : ndarray of shape (n_weights,)
        How much of every active weight the rows determine: MacKay's gamma.
    alpha_max : float
        Largest precision of an active weight.

    Returns
    -------
    float
        At most 0.

    Examples
    --------
    >>> round(log_volume(np.array([1.0]), alpha_max=1e5), 2)
    -1.97
    """
    reach = max(float(np.log(alpha_max / LEAST_PRECISION)), 1.0)
    log_widths = 0.5 * np.log(4 * np.pi / np.maximum(determined, 1e-9))
    return float(np.minimum(log_widths - np.log(reach), 0.0).sum())
