"""Updates of a fitted classifier by labelled rows of the population that it is used on."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final, cast

import narwhals.stable.v2 as nw
import numpy as np
from jaxtyping import Float, Int, Shaped
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import check_is_fitted

from bayesrbf import table
from bayesrbf.base.arrays import log_scores
from bayesrbf.base.rows import Observations
from bayesrbf.families.classifier import Classifier
from bayesrbf.fit.arguments import row_weights
from bayesrbf.fit.asking import Fit, new_rows, refuse
from bayesrbf.fit.calibration import Selection
from bayesrbf.fit.updates import (
    METHODS,
    MIN_LOG,
    Coefficients,
    Covariance,
    Labels,
    LogProbabilities,
    Method,
    Update,
    Weights,
    after_update,
    even_folds,
    fit_update,
    row_digests,
)

MARGIN: Final = 1.0
"""Standard errors by which a richer update must be better."""
MIN_ROWS: Final = 2
"""One row cannot be held out and leave another one to learn from."""

Training = tuple[object, object]
"""A training table and its labels."""


def recalibrate[C: Classifier](
    model: C,
    X: object,
    y: object,
    method: str = "cv",
    *,
    sample_weight: object = None,
    training: Training | None = None,
    folds: int = 10,
) -> C:
    r"""Update a fitted classifier by labelled rows of the population that it is used on.

    What the model gives out, :math:`q(c | x)` at the class shares :math:`\pi`, becomes

    .. math:: q'(c | x) \propto q(c | x) \, e^{a_c} \,
        \Bigl(\frac{q(c | x)}{\pi_c}\Bigr)^{b - 1},

    with an intercept a for every class, and a slope b. Both are penalised towards 0 and 1, as
    under :math:`a_c \sim N(0, s / 4)` and :math:`b \sim N(1, 3 s / 20)` with standard deviations
    that a scale s of 1, 2 or 4 multiplies, the most probable one: a few rows change little. Every
    answer about classes is updated alike; what rests on the density alone stays.

    Parameters
    ----------
    model : classifier
        Fitted, of any family that gives out probabilities. It stays as it is.
    X : array-like or frame of shape (n_obs, n_columns)
        New rows, which the model has not seen; missing cells are summed out.
    y : array-like of shape (n_obs,)
        Their labels. Rows whose label is hidden, as in ``fit``, are left out.
    method : {"cv", "none", "intercept", "slope", "refit"}
        ``"intercept"``: class frequencies differ. ``"slope"``: the cells of a row also tell more or
        less than they did in training. ``"refit"``: the arguments of the model are fitted to
        training and new rows together. ``"cv"``: the simplest of these whose log score of new rows
        held out is not beaten by a standard error; a refit takes part where ``training`` is given.
    sample_weight : array-like of shape (n_obs,), optional
        Weights of the new rows: a row of weight 2 counts as two.
    training : tuple of X and y, optional
        The training table and its labels, for a refit.
    folds : int
        Folds of the new rows under ``"cv"``; with ``training`` the model is fitted once for each.

    Returns
    -------
    classifier
        A new one of the same class, whose ``updates_`` say what was done, when, with how many rows,
        and why. Digests of the rows tell :func:`validate` that they are not new. With draws,
        intervals count the uncertainty about intercepts and slope. It can be updated again.

    Raises
    ------
    ValueError
        If labels are none of the model's classes, there are too few, or an argument cannot be used.

    References
    ----------
    .. [1] Vergouwe et al. (2017), A closed testing procedure to select an appropriate method for
       updating prediction models, Statistics in Medicine 36, 4529-4539.
    .. [2] Steyerberg (2019), Clinical prediction models, 2nd edition, chapter 20.

    Examples
    --------
    Sick rows were one in two in training, and are one in ten here:

    >>> import numpy as np
    >>> import bayesrbf
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["sick", "well"], [200, 200])
    >>> X = rng.normal(size=(400, 1)) + (y == "sick")[:, None]
    >>> model = bayesrbf.HybridMixtureClassifier(1, cv=3, random_state=0).fit(X, y)
    >>> y_here = np.repeat(["sick", "well"], [10, 90])
    >>> X_here = rng.normal(size=(100, 1)) + (y_here == "sick")[:, None]
    >>> local = bayesrbf.recalibrate(model, X_here, y_here)
    >>> local.updates_[0].method
    'intercept'
    >>> said = [float(one.predict_proba(X_here)[:, 0].mean()) for one in (model, local)]
    >>> [round(share, 1) for share in said]
    [0.4, 0.1]
    """
    check_is_fitted(model)
    refuse(model, "recalibrate", "probabilities")
    if problem := _unusable(model, method, training, folds):
        raise ValueError(f"recalibrate({problem}.")
    rows = _LocalRows(model, *_labelled(model, X, y, sample_weight), training)
    if method != "cv":
        return rows.updated(cast(Method, method), None)
    methods = METHODS if training is not None else METHODS[:-1]
    fold = even_folds(rows.log_q, rows.labels, rows.weights, min(folds, rows.labels.size))
    scores = np.stack([rows.held_out(candidate, fold) for candidate in methods])
    selection = Selection(methods, scores, rows.weights, MARGIN)
    # One step after the other may be better by a standard error, and both together not.
    gain, error = selection.gain(selection.best, 0)
    return rows.updated(selection.chosen if gain > MARGIN * error else "none", selection)


def _unusable(model: Classifier, method: str, training: Training | None, folds: int) -> str:
    """Message on an argument that cannot be used, and why; empty if all can."""
    fit: Fit = model.fitted_
    if fit.table.classes is None:
        return f"model) must be a classifier; received a {fit.table.owner}"
    if method not in ("cv", *METHODS):
        allowed = ", ".join(map(repr, METHODS))
        return f"method=...) must be 'cv' or one of {allowed}; received {method!r}"
    if method == "refit" and training is None:
        return "method='refit') needs the training table, training=(X, y)"
    if training is not None and method not in ("cv", "refit"):
        return f"training=...) is for 'cv' and 'refit'; received method={method!r}"
    if training is not None and fit.table.whole is not None:
        return "training=...) takes tables of columns, and this model compares whole rows"
    if training is not None:
        classes = table.encode_labels(training[1], unlabelled=_unlabelled(model))[0].tolist()
        if classes != fit.classes.tolist():
            return f"training=...) must have the classes {fit.classes.tolist()}; has {classes}"
    return "" if folds >= 2 else f"folds=...) must be at least 2; received {folds}"


def _unlabelled(model: Classifier) -> object:
    """The label by which the model hides one."""
    return model.get_params(deep=False).get("unlabelled")


def _labelled(
    model: Classifier, X: object, y: object, sample_weight: object
) -> tuple[Any, Observations, Labels, Weights]:
    """Rows with a label and a positive weight, as they came and encoded; class codes; weights.

    ValueError for a label that is no class of the model, or fewer than ``MIN_ROWS`` such rows.
    """
    fit: Fit = model.fitted_
    check_consistent_length(X, y)
    weights = row_weights(sample_weight, X)
    present, unlabelled = table.read_labels(y, _unlabelled(model))
    unknown = present[~np.isin(present, fit.classes)]
    if unknown.size:
        raise ValueError(
            f"recalibrate: y holds {unknown[0]!r}, which is no class of the model: "
            f"{fit.classes.tolist()}. Leave such rows out, or fit the model again with them."
        )
    row_indices = np.flatnonzero(~unlabelled & (weights > 0))
    if row_indices.size < MIN_ROWS:
        raise ValueError(
            f"recalibrate needs at least {MIN_ROWS} labelled rows of positive weight; "
            f"received {row_indices.size}."
        )
    labels = np.searchsorted(fit.classes, present)[weights[~unlabelled] > 0]
    cells = new_rows(fit, X, holes=True).cells.take(row_indices)
    return _safe_indexing(X, row_indices), cells, labels, weights[row_indices]


@dataclass(frozen=True)
class _LocalRows[C: Classifier]:
    """Labelled rows of positive weight."""

    model: C
    X: Any  # As they came.
    cells: Observations
    labels: Labels
    weights: Weights
    training: Training | None

    @cached_property
    def log_q(self) -> LogProbabilities:
        """Class log probabilities that the model reports for the rows."""
        log_q: LogProbabilities = self.model.fitted_.class_log_probabilities(self.cells)
        return log_q

    def fitted(
        self, method: Method, row_indices: Int[np.ndarray, " row"]
    ) -> tuple[Coefficients, Covariance]:
        """Coefficients of the update fitted to the rows ``row_indices``, and their covariance."""
        log_shares = np.log(self.model.fitted_.shares_of_use)
        return fit_update(
            self.log_q[row_indices],
            self.labels[row_indices],
            self.weights[row_indices],
            log_shares,
            method,
        )

    def refitted(self, row_indices: Int[np.ndarray, " row"]) -> C:
        """Clone of the model, fitted to the training table and the rows ``row_indices``."""
        assert self.training is not None  # who asks for a refit was asked for it
        X, y = self.training
        labels = self.model.classes_[self.labels[row_indices]]
        known = np.asarray(y)
        again = clone(self.model).fit(
            _joined(X, _safe_indexing(self.X, row_indices)),
            np.append(known, labels),
            sample_weight=np.append(np.ones(known.size), self.weights[row_indices]),
        )
        if (assumed := self.model.fitted_.table.missingness) != "as_trained":
            again.assume_missingness(assumed)
        return again

    def held_out(self, method: Method, folds: Int[np.ndarray, " obs"]) -> Float[np.ndarray, " obs"]:
        """Log score of every row by an update without its fold, in nats."""
        scores = np.empty(self.labels.size)
        log_shares = np.log(self.model.fitted_.shares_of_use)
        for fold in np.unique(folds):
            out, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
            if method == "refit":
                log_p = self.refitted(rest).predict_log_proba(_safe_indexing(self.X, out))
            else:
                log_p = after_update(self.log_q[out], log_shares, self.fitted(method, rest)[0])
            scores[out] = log_scores(np.maximum(log_p, MIN_LOG), self.labels[out])
        return scores

    def updated(self, method: Method, selection: Selection[Method] | None) -> C:
        """A copy of the model with one more update by ``method``, fitted to these labelled rows.

        The update follows the earlier updates of the model. Its sentence states the held-out gains
        of ``selection``, if any. The model itself is not changed. Under ``"refit"`` the result is a
        clone, fitted again to the training table and these rows, with draws if the model has draws.
        The clone has no earlier update, and its new update changes no probability.
        """
        every = np.arange(self.labels.size)
        fit = self.model.fitted_
        result = copy(self.model)
        if method == "refit":
            result = self.refitted(every)
            if fit.draws is not None and result.fitted_.draws is None:
                model_uncertainty = None if fit.model_uncertainty is None else "pool"
                result.refine(fit.draws.method, model_uncertainty=model_uncertainty)
        shares = result.fitted_.shares_of_use
        log_shares = np.log(shares)
        today = datetime.now(UTC).date().isoformat()
        coefficients, covariance = self.fitted(method, every)
        update = Update(method, coefficients, covariance, log_shares, shares, every.size, today, "")
        if not update.is_identity:
            p = np.exp(update.applied(self.log_q))
            shares = self.weights @ p / self.weights.sum()
            digests = row_digests(self.cells, fit.table.columns)
            update = replace(update, shares=shares, row_digests=digests)
        update = replace(update, sentence=_sentence(update, fit.classes, selection))
        updates = (*result.fitted_.updates, update)
        result.fitted_ = result.fitted_.replaced(updates=updates)
        return result


def _joined(first: object, other: object) -> Any:
    """The rows of two tables of one kind, by the names of the columns where they have names."""
    frames = table.as_frame(first), table.as_frame(other)
    if frames[0] is None or frames[1] is None:
        return np.concatenate([np.asarray(first), np.asarray(other)])
    return nw.concat([frames[0], frames[1].select(frames[0].columns)]).to_native()


def _sentence(
    update: Update, classes: Shaped[np.ndarray, " label"], selection: Selection[Method] | None
) -> str:
    """Message on an update: its method, coefficients with standard errors, held-out gains."""
    message = f"on {update.date} with {update.n_rows} labelled rows"
    first, *other_classes = classes.tolist()
    n, covariance = classes.size, update.covariance
    shifts = []
    for index, label in enumerate(other_classes, 1):
        apart = np.eye(n + 1)[index] - np.eye(n + 1)[0]
        error = np.sqrt(apart @ covariance @ apart)
        shifts.append(f"{label} {apart @ update.coefficients:+.2f} ± {error:.2f}")
    message = {
        "none": f"Left as it was {message}" + ", no update is called for" * (selection is not None),
        "refit": f"Fitted again {message} beside those of training",
    }.get(update.method, f"Updated {message}: log odds against {first}: {', '.join(shifts)}")
    if update.method == "slope":
        message += f"; slope {update.slope:.2f} ± {np.sqrt(covariance[-1, -1]):.2f}"
    if selection is None:
        return f"{message}."
    gains = []
    for index, method in enumerate(selection.candidates[1:], 1):
        gain, error = selection.gain(index, 0)
        gains.append(f"{method} {gain:+.3f} ± {error:.3f}")
    return f"{message}. Log score of held-out rows against none: {', '.join(gains)} nats a row."
