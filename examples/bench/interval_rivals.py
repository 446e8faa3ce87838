"""Intervals of class probabilities: ours, and those that others would take.

A contestant is fitted to rows with labels, and gives new rows probabilities with the ends of their
intervals. Some rivals have no level; their ends stand for every level.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import log_softmax, softmax
from scipy.stats import norm
from sklearn.ensemble import RandomForestClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from bayesrbf import KernelNetworkClassifier, StackedClassifier
from bench.peers import GENTLE, Boosting, logistic, numbers_for

LEVELS: Final = (0.5, 0.8, 0.9)
REFITS: Final = 30
DRAWS: Final = 200


@dataclass(frozen=True)
class Said:
    """What a model says about new rows.

    ``delivered`` is (obs, label). ``ends`` has the lower and upper ends at every level: (level, 2,
    obs, label).
    """

    delivered: np.ndarray
    ends: np.ndarray


Ask = Callable[[pd.DataFrame], Said]
Contestant = Callable[[pd.DataFrame, np.ndarray], Ask]
"""Fits rows with labels, and is then asked about new ones."""


def ours(make: Callable[..., Any], method: str, **options: object) -> Contestant:
    """A classifier of this package, with intervals by draws of a method."""

    def fit(X: pd.DataFrame, y: np.ndarray) -> Ask:
        model = make(random_state=0).fit(X, y).refine(method, **options)

        def ask(X_new: pd.DataFrame) -> Said:
            told = [model.uncertainty(X_new, prob=level) for level in LEVELS]
            ends = [[one["lower"].to_numpy(), one["upper"].to_numpy()] for one in told]
            return Said(told[0]["probability"].to_numpy(), np.array(ends))

        return ask

    return fit


def of_draws(point: np.ndarray, draws: np.ndarray) -> Said:
    """Intervals between quantiles of draws."""
    tails = [[(1 - level) / 2, (1 + level) / 2] for level in LEVELS]
    return Said(point, np.quantile(draws, tails, axis=0))


def bootstrapped(X: pd.DataFrame, y: np.ndarray) -> Ask:
    """Logistic regression and its refits to rows drawn with replacement.

    Its penalty is chosen once, with all rows.
    """
    rng, n_classes = np.random.default_rng(0), y.max() + 1
    penalty = float(logistic(0).fit(X, y)[-1].C_)

    def fitted(rows: np.ndarray) -> Callable[[pd.DataFrame], np.ndarray]:
        chosen = LogisticRegression(C=penalty, max_iter=1000)
        model = numbers_for(chosen).fit(X.iloc[rows], y[rows])
        seen = np.unique(y[rows])
        return lambda X_new: np.eye(n_classes)[seen].T @ model.predict_proba(X_new).T

    def drawn() -> np.ndarray:
        rows = rng.integers(y.size, size=y.size)
        return drawn() if np.bincount(y[rows], minlength=n_classes).min() < 5 else rows

    point, refits = fitted(np.arange(y.size)), [fitted(drawn()) for _ in range(REFITS)]
    return lambda X_new: of_draws(point(X_new).T, np.array([one(X_new).T for one in refits]))


def normal(prior_sd: float | None) -> Contestant:
    """Logistic regression with normal weights; draws from the normal law around their mode.

    Columns have unit scale. Flat priors make it maximum likelihood with the delta method; None: the
    standard deviation is chosen by held-out log loss.
    """

    def fit(X: pd.DataFrame, y: np.ndarray) -> Ask:
        variance = float(logistic(0).fit(X, y)[-1].C_) if prior_sd is None else prior_sd**2
        model = numbers_for(LogisticRegression(C=variance, max_iter=5000)).fit(X, y)
        columns, mode = model[:-1], model[-1]
        weights = np.c_[mode.intercept_, mode.coef_]
        cells = with_constant(columns.transform(X))
        p = model.predict_proba(X)[:, -len(weights) :]
        curvature = p[:, :, None] * (np.eye(len(weights)) - p[:, None])
        information = np.einsum("ncd,ni,nj->cidj", curvature, cells, cells)
        information = information.reshape(weights.size, weights.size)
        covariance = np.linalg.pinv(information + np.eye(weights.size) / variance)
        rng = np.random.default_rng(0)
        draws = rng.multivariate_normal(weights.ravel(), covariance, DRAWS, method="eigh")

        def ask(X_new: pd.DataFrame) -> Said:
            new = with_constant(columns.transform(X_new))
            eta = np.einsum("sci,ni->snc", draws.reshape(-1, *weights.shape), new)
            if eta.shape[2] == 1:
                eta = np.concatenate([np.zeros_like(eta), eta], axis=2)
            return of_draws(model.predict_proba(X_new), softmax(eta, axis=2))

        return ask

    return fit


def with_constant(cells: np.ndarray) -> np.ndarray:
    """Cells behind a column of ones."""
    return np.column_stack([np.ones(len(cells)), cells])


def venn_abers(X: pd.DataFrame, y: np.ndarray) -> Ask:
    """Venn-Abers predictors of two classes around a logistic regression, rows out of fold.

    An interval is between the isotonic fits with the new row in the one class and in the other. It
    has no level: it stands for all of them.
    """
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    scores = cross_val_predict(logistic(0), X, y, cv=folds, method="predict_proba")[:, 1]
    model = logistic(0).fit(X, y)

    def isotonic(score: float, label: int) -> float:
        curve = IsotonicRegression().fit(np.append(scores, score), np.append(y, label))
        return float(curve.predict([score])[0])

    def ask(X_new: pd.DataFrame) -> Said:
        new = model.predict_proba(X_new)[:, 1]
        low, high = np.array([[isotonic(one, label) for label in (0, 1)] for one in new]).T
        p = high / (1 - low + high)
        ends = np.stack([np.c_[1 - high, low], np.c_[1 - low, high]])
        return Said(np.c_[1 - p, p], np.stack([ends] * len(LEVELS)))

    return ask


def bagged_boosting(X: pd.DataFrame, y: np.ndarray) -> Ask:
    """Boosting under the Bayesian bootstrap: refits to rows of Dirichlet weights."""
    rng = np.random.default_rng(0)

    def fitted(weights: np.ndarray) -> Boosting:
        model = Boosting(0, **GENTLE)
        model.fit(X, y, weights)
        return model

    point = fitted(np.ones(y.size))
    refits = [fitted(rng.exponential(size=y.size)) for _ in range(REFITS)]

    def ask(X_new: pd.DataFrame) -> Said:
        draws = np.array([one.predict_proba(X_new) for one in refits])
        return of_draws(point.predict_proba(X_new), draws)

    return ask


PREFIXES: Final = 20


def by_prefixes(make: Callable[[], Any]) -> Contestant:
    """The predictive central limit theorem (arXiv 2602.04596) for any classifier.

    With predictions g_k of the first k rows the law is normal around g_n, with the variance V / n
    and V the mean of k^2 (g_k - g_(k-1))^2. Of 20 prefixes, from a fifth of the rows on, increments
    are scaled: from j to k rows by 1 / j - 1 / k.
    """

    def fit(X: pd.DataFrame, y: np.ndarray) -> Ask:
        rows = np.random.default_rng(0).permutation(y.size)
        n_classes = y.max() + 1
        sizes = np.unique(np.linspace(y.size // 5, y.size, PREFIXES + 1).astype(int))
        refits = []
        for size in sizes:
            some = rows[:size]
            refits.append((make().fit(X.iloc[some], y[some]), np.unique(y[some])))

        def ask(X_new: pd.DataFrame) -> Said:
            g = np.zeros((sizes.size, len(X_new), n_classes))
            for of_prefix, (model, seen) in zip(g, refits, strict=True):
                of_prefix[:, seen] = model.predict_proba(X_new)
            steps = np.square(np.diff(g, axis=0))
            scaled = steps / (1 / sizes[:-1] - 1 / sizes[1:])[:, None, None]
            spread = np.sqrt(scaled.mean(axis=0) / y.size)
            z = norm.ppf((1 + np.array(LEVELS)) / 2)[:, None, None]
            ends = np.stack([g[-1] - z * spread, g[-1] + z * spread], axis=1)
            return Said(g[-1], ends.clip(0, 1))

        return ask

    return fit


Shifts = Callable[[float], np.ndarray]


def logit_shifts(log_p: np.ndarray, y: np.ndarray) -> Shifts:
    """The least and the largest shift of every logit that a relative likelihood allows.

    The likelihood is the mean over rows, in logs: efficient credal prediction (arXiv 2603.08495).
    """
    own = np.arange(y.size), y
    classes = np.eye(log_p.shape[1])

    def loss(shift: float, label: int) -> float:
        moved = log_softmax(log_p + shift * classes[label], axis=1)
        return float((moved[own] - log_p[own]).mean())

    def at(alpha: float) -> np.ndarray:
        found = np.zeros((len(classes), 2))
        for label, end in np.ndindex(*found.shape):
            side = (-1, 1)[end]
            # The fit is near the largest likelihood; a shift that gains is followed to its end.
            reach = [s for s in side * np.linspace(0, 20, 201) if loss(s, label) >= np.log(alpha)]
            inner, outer = reach[-1], reach[-1] + side * 0.1
            if abs(inner) < 20:
                inner = brentq(lambda s, c=label: loss(s, c) - np.log(alpha), inner, outer)
            found[label, end] = inner
        return found

    return at


def credal_ends(log_p: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Least and largest probability over the shifts of one logit at a time: (2, obs, label)."""
    moves = (shifts[:, :, None] * np.eye(len(shifts))[:, None]).reshape(-1, len(shifts))
    p = softmax(log_p + moves[:, None], axis=2)
    return np.stack([p.min(axis=0), p.max(axis=0)])


ALPHAS: Final = (0.99, 0.98, 0.95, 0.9, 0.8, 0.7, 0.5, 0.3)
REHEARSALS: Final = 3


def credal(alpha: float | None) -> Contestant:
    """The default stack with credal intervals; None: the level of a rehearsal.

    A rehearsal draws the labels anew from the fitted probabilities, and chooses the alpha whose
    intervals hold nine in ten of these.
    """

    def fit(X: pd.DataFrame, y: np.ndarray) -> Ask:
        def fitted(labels: np.ndarray) -> tuple[Any, Shifts]:
            model = StackedClassifier(random_state=0).fit(X, labels)
            return model, logit_shifts(np.log(model.predict_proba(X).clip(1e-12)), labels)

        model, shifts = fitted(y)
        level = chosen_alpha(model.predict_proba(X), fitted, X) if alpha is None else alpha

        def ask(X_new: pd.DataFrame) -> Said:
            p = model.predict_proba(X_new)
            ends = credal_ends(np.log(p.clip(1e-12)), shifts(level))
            return Said(p, np.stack([ends] * len(LEVELS)))

        return ask

    return fit


def chosen_alpha(
    truth: np.ndarray, fitted: Callable[[np.ndarray], tuple[Any, Shifts]], X: pd.DataFrame
) -> float:
    """The relative likelihood whose intervals hold nine in ten in rehearsals."""
    rng = np.random.default_rng(0)
    held = np.zeros(len(ALPHAS))
    for _ in range(REHEARSALS):
        y = (truth.cumsum(axis=1) > rng.random((len(truth), 1))).argmax(axis=1)
        if np.bincount(y, minlength=truth.shape[1]).min() < 2:
            continue
        model, shifts = fitted(y)
        log_p = np.log(model.predict_proba(X).clip(1e-12))
        for place, alpha in enumerate(ALPHAS):
            low, high = credal_ends(log_p, shifts(alpha))
            held[place] += ((low <= truth) & (truth <= high)).mean() / REHEARSALS
    return ALPHAS[int(np.abs(held - 0.9).argmin())]


STACK: Final[dict[str, Contestant]] = {"stack": ours(StackedClassifier, "laplace")}
PEERS: Final[dict[str, Contestant]] = {
    "logistic regression, delta method": normal(100.0),
    "logistic regression, bootstrap": bootstrapped,
    "Bayesian logistic regression": normal(None),
}
RIVALS: Final[dict[str, Contestant]] = PEERS | {
    "Venn-Abers": venn_abers,
    "boosting, Bayesian bootstrap": bagged_boosting,
    "forest, central limit theorem": by_prefixes(
        lambda: numbers_for(RandomForestClassifier(min_samples_leaf=3, random_state=0))
    ),
    "kernel network, central limit theorem": by_prefixes(
        partial(KernelNetworkClassifier, random_state=0)
    ),
    **{f"stack, credal at {alpha}": credal(alpha) for alpha in (0.95, 0.9, 0.8)},
    "stack, credal by rehearsal": credal(None),
}
