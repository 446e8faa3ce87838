r"""Class probabilities of a new population, from its rows without labels.

Where only the prevalence of the classes has changed, :math:`p(x | c)` is what it was, and
the new rows have the likelihood

.. math:: L(q) = \sum_n v_n \log \sum_c \frac{q_c}{p_c} \, p(c | x_n) + \text{const},

which is concave in the new prevalence q. EM climbs it from the trained prevalence p.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float, Shaped
from scipy.special import log_softmax, logsumexp

from bayesrbf.records import names

MAX_ITER = 10_000
TOL = 1e-10  # Largest change of a probability at which EM has converged.


@dataclass(frozen=True)
class LabelShift:
    """An estimated prevalence."""

    prior: Float[np.ndarray, " label"]  # New class probabilities, all positive.
    covariance: Float[np.ndarray, "label label"]
    """Covariance of their estimate, from the observed information; rows sum to 0."""
    gain: float
    """Log likelihood less that at the trained prevalence, in nats.

    It is half the likelihood-ratio statistic of no shift.
    """
    n_iter: int  # Iterations of EM.
    converged: bool

    @property
    def standard_error(self) -> Float[np.ndarray, " label"]:
        """Standard errors of the probabilities."""
        return np.sqrt(np.diag(self.covariance))

    def to_dataset(
        self, trained: Float[np.ndarray, " label"], classes: Shaped[np.ndarray, " label"]
    ) -> xr.Dataset:
        """The new probabilities beside the trained ones, with the names of the classes."""
        variables = {
            names.PROBABILITY: self.prior,
            "standard_error": self.standard_error,
            "trained": trained,
        }
        return xr.Dataset(
            {name: (names.LABEL, values) for name, values in variables.items()},
            coords={names.LABEL: classes},
            attrs={"gain": self.gain},
        )


def adapt_prior(
    log_probabilities: Float[np.ndarray, "obs label"],
    trained: Float[np.ndarray, " label"],
    *,
    weights: Float[np.ndarray, " obs"] | None = None,
    pseudo_rows: float = 1.0,
) -> LabelShift:
    """Estimate the prevalence of a new population by EM.

    The log probabilities hold under the trained prevalence and must be calibrated, or the estimate
    inherits the fault. As many ``pseudo_rows`` at the trained prevalence are added: they keep
    classes possible that the new rows do not show.

    See Saerens, Latinne, Decaestecker (2002), Adjusting the outputs of a classifier to new a
    priori probabilities, Neural Computation 14, 21-41, equation 2.9.

    Half of the rows were of class 1 in training, and nine in ten are now:

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=2000) + 2.0 * (rng.random(2000) < 0.9)
    >>> joint = np.column_stack([-x**2 / 2, -(x - 2) ** 2 / 2])
    >>> shift = adapt_prior(log_softmax(joint, axis=1), np.array([0.5, 0.5]))
    >>> shift.prior.round(2), shift.standard_error.round(3)
    (array([0.1, 0.9]), array([0.01, 0.01]))
    """
    weights = np.ones(len(log_probabilities)) if weights is None else weights
    log_ratios = log_probabilities - np.log(trained)
    pseudo = pseudo_rows * trained
    prior, converged, n_iter = trained / trained.sum(), False, 0
    while n_iter < MAX_ITER and not converged:
        n_iter += 1
        shares = np.exp(log_softmax(log_ratios + np.log(prior), axis=1))
        updated = weights @ shares + pseudo
        updated /= updated.sum()
        converged = bool(np.abs(updated - prior).max() <= TOL)
        prior = updated
    before, after = (
        float(weights @ logsumexp(log_ratios + np.log(p), axis=1)) for p in (trained, prior)
    )
    covariance = _covariance(log_ratios, prior, weights, pseudo)
    return LabelShift(prior, covariance, after - before, n_iter, converged)


def _covariance(
    log_ratios: np.ndarray, prior: np.ndarray, weights: np.ndarray, pseudo: np.ndarray
) -> np.ndarray:
    """Inverse of the observed information within the simplex."""
    shares = np.exp(log_softmax(log_ratios + np.log(prior), axis=1))
    scores = shares / prior
    information = (weights[:, None] * scores).T @ scores + np.diag(pseudo / prior**2)
    # An orthonormal basis of the steps that keep the sum of the probabilities.
    n_classes = prior.size
    basis = np.linalg.svd(np.ones((1, n_classes)))[2][1:].T
    inside = basis.T @ information @ basis
    return np.asarray(basis @ np.linalg.pinv(inside, hermitian=True) @ basis.T)
