"""The families that a report can fit: estimators, settings and ways to draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from bayesrbf.report.job import Job
from bayesrbf.report.words import count, plural

if TYPE_CHECKING:
    from bayesrbf.fitted.mixture_candidates import MixtureCandidate

ROWS_FOR_ALL: Final = 2_000
WORK_FOR_ALL: Final = 1e8
"""Rows, and rows x real columns^4 x classes, up to which a stack has all its members.

Beyond, the intervals of all members take minutes.
"""


@dataclass(frozen=True)
class Fitted:
    """A fitted classifier and how it was chosen."""

    model: Any  # At its fitted point.
    call: str  # The constructor's call.
    sentence: str  # What was chosen, and why.
    trials: tuple[tuple[str, float, bool], ...] = ()
    """Candidate, held-out log loss, whether it was chosen; empty where there was no choice."""
    out_of_fold: pd.DataFrame | None = None
    """Probabilities of its training rows, fold by fold without them, by position and class.

    None where the fit has none on the folds by which it is to be judged.
    """


Settings = Mapping[str, Any]
"""Constructor arguments."""

Procedure = Callable[[pd.DataFrame, pd.Series], Fitted]
"""Training rows and labels to a classifier; this is what is cross-validated."""


@dataclass(frozen=True)
class Family:
    """A family of classifiers."""

    estimator: str  # Name of the class in ``bayesrbf``.
    procedure: Callable[[Job], Procedure]  # Maps a job to the procedure that fits its tables.
    methods: tuple[str, ...]  # Ways to draw from the posterior.
    draws: int  # Per chain.
    has_components: bool = False  # Whether the rows come from components of the model itself.
    averages: bool = False  # Whether a point fit has intervals: it averages around its mode.
    pools: bool = False  # Whether it pools members, and so holds its own rows out.


def common_settings(job: Job) -> dict[str, Any]:
    """Constructor arguments that all families share."""
    return {"categorical_features": job.categorical or None, "random_state": job.seed}


def _fixed(
    job: Job, estimator: str, settings: Settings, sentence: str, pools: bool = False
) -> Procedure:
    """The procedure of a family whose settings do not depend on labels.

    An estimator that pools members is given its folds: its rows held out judge it, too, by weights
    that the other folds chose. By time it is judged on later rows alone, which are not those that
    it holds out.
    """
    build = getattr(import_module("bayesrbf"), estimator)

    def fit(X: pd.DataFrame, y: pd.Series) -> Fitted:
        cv = {"cv": job.splits_within(y).pairs()} if pools else {}
        groups = job.groups_of(y)
        model = build(**{**common_settings(job), **settings, **cv}).fit(X, y, groups=groups)
        out_of_fold = model.out_of_fold_ if pools and job.times is None else None
        return Fitted(model, _call(estimator, settings), sentence, out_of_fold=out_of_fold)

    return fit


def _stack(job: Job) -> Procedure:
    """The default members, or fewer where intervals of all would take minutes."""
    columns = len(job.X.columns) - len(job.categorical)
    classes = job.y.nunique()
    work = len(job.X) * float(columns) ** 4 * classes
    small = len(job.X) <= ROWS_FOR_ALL and work <= WORK_FOR_ALL
    sizes = f"{count(len(job.X))} rows, {count(columns)} real columns and {count(classes)} classes"
    rule = (
        f"all are taken up to {count(ROWS_FOR_ALL)} rows, with rows × real columns⁴ × classes "
        "up to a hundred million; beyond, their intervals take minutes"
    )
    every = small and not job.quick
    settings = {"members": "default" if every else "lite"}
    procedure = _fixed(job, "StackedClassifier", settings, "", pools=True)

    def fit(X: pd.DataFrame, y: pd.Series) -> Fitted:
        fitted = procedure(X, y)
        # Columns of few values add a member, as many rows do: the fit alone knows their number.
        n = len(fitted.model.members_)
        chosen = f"all {n} members" if every else f"{n} members (lite)"
        why = ", because --quick was asked for." if job.quick else f" for {sizes}: {rule}."
        return replace(fitted, sentence=f"A stack of {chosen}{why}")

    return fit


def _mixture(job: Job) -> Procedure:
    """A mixture that chooses its structure on the training rows, and a temperature."""
    # what the report says of cells is what the likelihood finds; a blend bends the density
    settings: dict[str, object] = {"n_components": "cv", "objective": "likelihood"}
    if job.y.isna().any():
        settings["unlabelled_weight"] = "cv"
    settings["missingness"] = "cv"
    procedure = _fixed(job, "HybridMixtureClassifier", settings, "")

    def fit(X: pd.DataFrame, y: pd.Series) -> Fitted:
        fitted = procedure(X, y)
        names = [_in_words(candidate, job) for candidate in fitted.model.candidates_]
        scores = [candidate.log_score for candidate in fitted.model.candidates_]
        trials = tuple(
            (name, -score, place == 0)
            for place, (name, score) in enumerate(zip(names, scores, strict=True))
        )
        sentence = f"Among {len(names)} candidates the rule chose: {names[0]}."
        return replace(fitted, sentence=sentence, trials=trials)

    return fit


def _in_words(candidate: MixtureCandidate, job: Job) -> str:
    """Structure of a mixture, and what it makes of hidden labels and of missing cells."""
    parts = [f"{plural(max(candidate.n_components), 'component')} a class"]
    if len(job.categorical) < len(job.X.columns):
        shape = {"full": "full", "diag": "diagonal"}[candidate.covariance_type]
        shared = "shared" if candidate.tied else "own"
        parts[0] += f", {shared} {shape} covariances"
    if job.y.isna().any():
        weight = candidate.unlabelled_weight
        word = "not" if weight == 0 else "fully" if weight == 1 else "little"
        parts.append(f"rows without a label count {word}")
    if candidate.informative:
        parts.append("missing cells tell something")
    return "; ".join(parts)


def _rbf(job: Job) -> Procedure:
    """An RBF network with its defaults."""
    sentence = (
        "A network whose hidden layer is a mixture of ten components, shared by all classes, "
        "fitted jointly with its output layer."
    )
    return _fixed(job, "RBFNetworkClassifier", {}, sentence)


def _sdgm(job: Job) -> Procedure:
    """A sparse mixture with its defaults and a temperature."""
    sentence = (
        "A sparse discriminative mixture of three components a class, of which the evidence "
        "keeps what it needs; the more probable of two starts, because each takes long on tables "
        "with holes."
    )
    settings = {"prediction": "single-mode", "n_init": 2, "calibrate": True}
    return _fixed(job, "SDGMClassifier", settings, sentence)


def _median_lvq(job: Job) -> Procedure:
    """Exemplars under Gower's dissimilarity, and a temperature."""
    sentence = (
        "Two rows of each class stand for it, compared by Gower's dissimilarity; the width of "
        "the kernel was chosen by cross-validation."
    )
    return _fixed(job, "MedianLVQClassifier", {"calibrate": True}, sentence)


def _call(estimator: str, settings: Settings) -> str:
    """A constructor's call as it would be typed."""
    return f"{estimator}({', '.join(f'{key}={value!r}' for key, value in settings.items())})"


FAMILIES: Final[Mapping[str, Family]] = {
    "stack": Family("StackedClassifier", _stack, ("bootstrap", "laplace", "nuts"), 400, pools=True),
    "mixture": Family(
        "HybridMixtureClassifier",
        _mixture,
        ("laplace", "advi", "gibbs", "nuts"),
        1000,
        has_components=True,
    ),
    "rbf": Family(
        "RBFNetworkClassifier", _rbf, ("laplace", "advi", "nuts"), 400, has_components=True
    ),
    "sdgm": Family("SDGMClassifier", _sdgm, ("laplace", "advi", "nuts"), 400, averages=True),
    "median_lvq": Family("MedianLVQClassifier", _median_lvq, ("gibbs",), 500),
}
"""Families by their names on the command line."""


def check_method(name: str, inference: str) -> None:
    """Refuse a way to draw that a family does not have; "auto" and "map" always exist.

    >>> check_method("median_lvq", "gibbs")
    """
    allowed = ("auto", *FAMILIES[name].methods, "map")
    if inference not in allowed:
        raise ValueError(
            f"--model {name} has no posterior by --inference {inference}; take one of "
            f"{', '.join(allowed)}."
        )
