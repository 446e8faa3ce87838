"""Class probabilities with their uncertainty, diagnoses, and frequencies of new rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Shaped
from scipy.special import log_softmax, logsumexp

from bayesrbf import table
from bayesrbf.base import names
from bayesrbf.base.rows import Observations
from bayesrbf.fit.asking import Fit, new_rows
from bayesrbf.fit.model import observed_rows
from bayesrbf.fit.probabilities import PredictiveSummary
from bayesrbf.inference.draws import MEMORY

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

    from bayesrbf.inference.diagnose import FindingsTable


# The graph of a fit, and how far to trust it and its draws.


def declare(fit: Fit, /, **options: Any) -> pm.Model:
    """Declare the graph of this model on its training rows."""
    graph: pm.Model = fit.model.declare(fit.rows, fit.axes, **options)
    return graph


def diagnose(fit: Fit) -> FindingsTable:
    """Judge fit and draws by figures, each with a sentence; a warning lists the bad ones."""
    from bayesrbf.inference import diagnose as judging

    figures = fit.findings()
    judging.warn(figures, stacklevel=4)
    return judging.table(figures)


def prior_sensitivity(fit: Fit, X: object) -> xr.Dataset:
    """Class probabilities of rows under half the prior, the prior and twice the prior.

    ``probability`` is over prior, obs and label, and ``change``, the largest change of a class
    probability, over obs. Where the model has them, ``lower`` and ``upper`` are ends of a stack's
    90 % intervals, and ``probability_at_scale`` is at half and twice a scale that draws hold fixed.
    """
    from bayesrbf.fit.sensitivity import prior_sensitivity as sensitivity_of
    from bayesrbf.fit.trees import dataset_of

    rows = new_rows(fit, X, holes=True)
    found = sensitivity_of(fit, rows.cells)
    dims = ("prior", names.OBS, names.LABEL)
    variables = {
        names.PROBABILITY: (dims, found.probabilities),
        "change": ((names.OBS,), found.change),
    }
    if found.scaled is not None:
        variables["probability_at_scale"] = dims, found.scaled
    if found.ends is not None:
        variables |= {"lower": (dims, found.ends[:, 0]), "upper": (dims, found.ends[:, 1])}
    coords = {"prior": ["half", "as it is", "twice"]}
    result = dataset_of(variables, coords | {names.OBS: rows.names, names.LABEL: fit.classes})
    attributes = {"psense": found.psense, "refitted": int(found.refitted)}
    return result.assign_attrs(attributes, message=found.message)


# Class probabilities of rows under the draws of a posterior, with their uncertainty.


def predict_posterior(
    fit: Fit, X: object, y: object = None, *, memory: int = MEMORY
) -> xr.DataTree:
    """Tree of class probabilities over chain, draw, obs and label, with the rows as encoded.

    With labels ``y`` it has drawn and true labels, too. Draws are thinned to ``memory`` bytes.
    """
    from bayesrbf.fit.trees import predictions, with_drawn_labels

    cells = new_rows(fit, X).cells
    probabilities, thinning = replace(fit.interval_chain, memory=memory).draws(cells)
    tree = predictions(
        probabilities,
        labels=fit.classes,
        rows=np.arange(cells.n_obs),
        constant=observed_rows(cells),
        thinning=thinning,
    )
    return tree if y is None else with_drawn_labels(tree, fit.classes, y, fit.table.seed)


def uncertainty(
    fit: Fit, X: object, prob: float = 0.9, *, memory: int = MEMORY, asked_at: object = None
) -> xr.Dataset:
    """Class probabilities with intervals, kinds of uncertainty and the novelty of each row.

    ``asked_at`` has the rows before cells were filled in to ask what if: missing indicators are
    those of ``asked_at``.
    """
    from bayesrbf.fit.row_answers import to_dataset

    rows = new_rows(fit, X, holes=True)
    if asked_at is not None and rows.cells.whole is None:
        before = new_rows(fit, asked_at).cells
        if before.n_obs != rows.cells.n_obs:
            raise ValueError(
                f"uncertainty(asked_at=...) must have the {rows.cells.n_obs} rows of X, in memory; "
                f"received {before.n_obs}."
            )
        every = np.ones((before.n_obs, len(fit.columns.names)), dtype=bool)
        rows = replace(rows, cells=table.replaced(before, rows.cells, every, fit.columns))
    summary = summary_of(fit, rows.cells, prob, memory)
    of_rows = {"novelty": fit.novelty(rows.cells), "familiarity": fit.familiarity(rows.cells)}
    at_point = fit.chain.n_draws == 1
    return to_dataset(summary, fit.classes, rows.names, of_rows, at_point, fit.assumes_model)


def summary_of(
    fit: Fit, cells: Observations, prob: float = 0.9, memory: int = MEMORY
) -> PredictiveSummary:
    """Predictive summary behind :func:`uncertainty`, as arrays."""
    return replace(fit.interval_chain, memory=memory).summary(cells, prob)


# Class probabilities of a new population, from its rows without labels.
#
# Where only the prevalence of the classes has changed, :math:`p(x | c)` is what it was, and
# the new rows have the likelihood
#
# .. math:: L(q) = \sum_n v_n \log \sum_c \frac{q_c}{p_c} \, p(c | x_n) + \text{const},
#
# which is concave in the new prevalence q. EM climbs it from the trained prevalence p.


MAX_ITER = 10_000  # EM is slow where the classes overlap, and a step is one product.
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
        """New class probabilities, their standard errors and the trained ones, over the classes."""
        import xarray as xr

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
    """Class probabilities of a new population, estimated by EM from rows without a label.

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
    """Covariance (label, label) of the estimated class probabilities; rows sum to 0.

    It is the inverse of the observed information within the simplex. ``pseudo`` are the pseudo rows
    of each class.
    """
    shares = np.exp(log_softmax(log_ratios + np.log(prior), axis=1))
    scores = shares / prior
    information = (weights[:, None] * scores).T @ scores + np.diag(pseudo / prior**2)
    # An orthonormal basis of the steps that keep the sum of the probabilities.
    n_classes = prior.size
    basis = np.linalg.svd(np.ones((1, n_classes)))[2][1:].T
    inside = basis.T @ information @ basis
    return np.asarray(basis @ np.linalg.pinv(inside, hermitian=True) @ basis.T)
