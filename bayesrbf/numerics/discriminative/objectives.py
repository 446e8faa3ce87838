r"""Value and slopes of every objective in the log joints of rows and classes.

The objectives differ in nothing but :math:`G_{nc} = \partial J / \partial \log p(x_n, c)`;
what carries G on to the parameters is shared. :class:`bayesrbf.objective.Objective` has
the formulas.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.log_sums import log_sum_exp
from bayesrbf.objective import Objective
from bayesrbf.specification import MixtureSpecification


def value_and_slopes(
    objective: Objective,
    log_joint: Float[np.ndarray, "obs label"],
    labels: Int[np.ndarray, " obs"],
) -> tuple[Float[np.ndarray, " obs"], Float[np.ndarray, "obs label"]]:
    """Evaluate an objective on rows whose log joint with every class is known.

    Parameters
    ----------
    objective : Objective
        What is maximised.
    log_joint : ndarray of shape (n_obs, n_classes)
        ``log p(x_n, c)`` in nats.
    labels : ndarray of shape (n_obs,)
        Class codes, -1 where hidden.

    Returns
    -------
    value : ndarray of shape (n_obs,)
        J of every row in nats, not weighted.
    slopes : ndarray of shape (n_obs, n_classes)
        Derivatives of J in ``log_joint``.

    Examples
    --------
    >>> joint = np.log([[0.1, 0.3], [0.2, 0.2]])
    >>> value, slopes = value_and_slopes(Objective("conditional"), joint, np.array([1, -1]))
    >>> float(np.exp(value[0]).round(6))
    0.75
    >>> slopes
    array([[-0.25,  0.25],
           [ 0.  ,  0.  ]])
    """
    own, every, hinge = objective.coefficients
    labelled = labels >= 0
    rows, classes = np.flatnonzero(labelled), labels[labelled]
    density, shares = log_sum_exp(log_joint, axis=1)
    of_density = np.where(labelled, every, objective.generative_weight)
    value = of_density * density
    slopes = of_density[:, None] * shares
    value[rows] += own * log_joint[rows, classes]
    slopes[rows, classes] += own
    if hinge and log_joint.shape[1] > 1:
        violation, pulls = margin_violation(objective, log_joint[rows], classes)
        loss, slope = bounded_hinge(objective, violation)
        value[rows] -= hinge * loss
        slopes[rows] -= hinge * slope[:, None] * pulls
    return value, slopes


def margin_violation(
    objective: Objective,
    log_joint: Float[np.ndarray, "obs label"],
    labels: Int[np.ndarray, " obs"],
) -> tuple[Float[np.ndarray, " obs"], Float[np.ndarray, "obs label"]]:
    r"""How much every labelled row lacks of the margin, by a soft maximum.

    .. math:: m = \tfrac1\eta \log \sum_{c \neq y} e^{\eta (\gamma - b_y + b_c)}

    Parameters
    ----------
    objective : Objective
        Has the margin and the sharpness.
    log_joint : ndarray of shape (n_obs, n_classes)
        ``log p(x_n, c)`` in nats; at least two classes.
    labels : ndarray of shape (n_obs,)
        Class codes.

    Returns
    -------
    violation : ndarray of shape (n_obs,)
        m in nats; negative where the margin is kept.
    slopes : ndarray of shape (n_obs, n_classes)
        Its derivatives in ``log_joint``.
    """
    rows = np.arange(labels.size)
    own = log_joint[rows, labels]
    rivals = log_joint - own[:, None]
    rivals[rows, labels] = -np.inf
    most, slopes = log_sum_exp(objective.sharpness * rivals, axis=1)
    slopes[rows, labels] = -1.0
    return objective.margin + most / objective.sharpness, slopes


def bounded_hinge(
    objective: Objective, violation: Float[np.ndarray, " obs"]
) -> tuple[Float[np.ndarray, " obs"], Float[np.ndarray, " obs"]]:
    r"""Soft hinge of a violation, or soft ramp where there is a cap.

    .. math:: h(m) = \begin{cases} 0 & m < -\varepsilon \\
        (m + \varepsilon)^2 / 4\varepsilon & |m| \le \varepsilon \\
        m & m > \varepsilon \end{cases}

    Parameters
    ----------
    objective : Objective
        Has the smoothing and the cap.
    violation : ndarray of shape (n_obs,)
        m in nats.

    Returns
    -------
    loss : ndarray of shape (n_obs,)
        ``h(m)``, or ``h(m) - h(m - cap)``, in nats.
    slope : ndarray of shape (n_obs,)
        Its derivative.
    """
    loss, slope = _soft_hinge(violation, objective.smoothing)
    if objective.ramp_cap is not None:
        beyond, beyond_slope = _soft_hinge(violation - objective.ramp_cap, objective.smoothing)
        loss, slope = loss - beyond, slope - beyond_slope
    return loss, slope


def _soft_hinge(violation: np.ndarray, smoothing: float) -> tuple[np.ndarray, np.ndarray]:
    """Soft hinge and its derivative."""
    lift = np.clip(violation + smoothing, 0.0, 2 * smoothing)
    above = np.maximum(violation - smoothing, 0.0)
    return lift**2 / (4 * smoothing) + above, lift / (2 * smoothing)


def class_log_joint(
    log_joint: Float[np.ndarray, "obs component"], specification: MixtureSpecification
) -> tuple[Float[np.ndarray, "obs label"], Float[np.ndarray, "obs component"]]:
    """Sum components to classes.

    Parameters
    ----------
    log_joint : ndarray of shape (n_obs, n_components)
        ``log p(x_n, k)`` in nats.
    specification : MixtureSpecification
        Says which class each component belongs to.

    Returns
    -------
    by_class : ndarray of shape (n_obs, n_classes)
        ``log p(x_n, c)`` in nats.
    shares : ndarray of shape (n_obs, n_components)
        ``p(k | x_n, c)``, the share of each component in its class.
    """
    by_class = np.empty((len(log_joint), specification.n_classes))
    shares = np.ones_like(log_joint)
    for label, part in enumerate(specification.class_slices):
        if part.stop - part.start == 1:
            by_class[:, label] = log_joint[:, part.start]
        else:
            by_class[:, label], shares[:, part] = log_sum_exp(log_joint[:, part], axis=1)
    return by_class, shares
