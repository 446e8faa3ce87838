r"""Prevalences of the classes: those of training, and probabilities at others by Bayes' rule.

.. math:: q(c | x) \propto \frac{q_c}{p_c} \, p(c | x)

with p the prevalences of training and q those of use. The rule holds for the final probability:
where that is a mean over missing cells, modes or draws, the factor is applied to the mean.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.log_sums import log_softmax


def class_shares(
    labels: Int[np.ndarray, " obs"], weights: Float[np.ndarray, " obs"], n_classes: int
) -> Float[np.ndarray, " label"]:
    """Weighted frequencies of the classes among the labelled rows, without smoothing.

    >>> class_shares(np.array([0, 1, -1, 1]), np.array([1.0, 1.0, 5.0, 2.0]), 2)
    array([0.25, 0.75])
    """
    known = labels >= 0
    counts = np.bincount(labels[known], weights[known], minlength=n_classes)
    return counts / counts.sum()


def at_prevalence(
    log_probabilities: Float[np.ndarray, "*rows label"],
    log_ratio: Float[np.ndarray, " label"] | float,
) -> Float[np.ndarray, "*rows label"]:
    """Class log probabilities at another prevalence, ``log_ratio`` being ``log(q / p)``.

    >>> log_ratio = np.log([0.9 / 0.5, 0.1 / 0.5])
    >>> np.exp(at_prevalence(np.log([[0.5, 0.5], [0.1, 0.9]]), log_ratio)).round(2)
    array([[0.9, 0.1],
           [0.5, 0.5]])
    """
    return log_softmax(log_probabilities + log_ratio, axis=-1)
