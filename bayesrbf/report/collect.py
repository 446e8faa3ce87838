"""From a table to everything that the report says about it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesrbf import names
from bayesrbf.estimators.mixture.hybrid import HybridMixtureClassifier
from bayesrbf.inference.diagnose import PosteriorWarning, effective_draws, rhat
from bayesrbf.posterior.calibration import calibration
from bayesrbf.posterior.recalibration import calibration_slope
from bayesrbf.posterior.scores import brier, correct, log_loss, mean_over_folds
from bayesrbf.report.choose import Choice, choose_mixture
from bayesrbf.report.columns import read_columns
from bayesrbf.report.doubts import left_out, read_doubt, read_oddities
from bayesrbf.report.job import Job
from bayesrbf.report.learned import read_imputations, read_learned
from bayesrbf.report.model_records import Described, Diagnostics
from bayesrbf.report.plate import nodes_of
from bayesrbf.report.records import Report, Score
from bayesrbf.report.row_records import Check
from bayesrbf.report.sampling import Drawn, draw_posterior
from bayesrbf.report.validate import (
    HeldOut,
    Track,
    chosen_mixture,
    class_frequencies,
    hold_out,
    logistic_regression,
    silently,
)
from bayesrbf.report.words import number, plural

if TYPE_CHECKING:
    import xarray as xr

FOR_DEVELOPERS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning)
MODEL, FREQUENCIES, LOGISTIC = "this model", "class frequencies", "logistic regression"


@dataclass(frozen=True)
class Outcome:
    """Everything that a report run made.

    Attributes
    ----------
    report : Report
        What the page says.
    model : HybridMixtureClassifier
        The fitted classifier, with its posterior.
    held_out : HeldOut
        Held-out probabilities.
    uncertainty : xarray.Dataset
        Posterior summary of every row.
    """

    report: Report
    model: HybridMixtureClassifier
    held_out: HeldOut
    uncertainty: xr.Dataset


def collect(job: Job, track: Track = silently) -> Outcome:
    """Fit, cross-validate and look at a table from every side.

    Parameters
    ----------
    job : Job
        The table and how to look at it.
    track : callable
        Shows progress.

    Returns
    -------
    Outcome
        The report and what it is about.
    """
    common = {"categorical_features": job.categorical or None, "random_state": job.seed}
    with _heard() as heard:
        held_out = _validated(job, common, track)
        for _ in track((None,), "Fitting the whole table", 1):
            choice = choose_mixture(job.X, job.y, common, seed=job.seed)
            settings: dict[str, Any] = {**common, **choice.settings, "calibrate": True}
            model = HybridMixtureClassifier(**settings).fit(job.X, job.y)
        for _ in track((None,), "Drawing the posterior", 1):
            drawn = draw_posterior(job, model)
            uncertainty = drawn.refined.uncertainty(job.X)
    report = _look(job, choice, drawn, held_out, uncertainty, tuple(heard), track)
    return Outcome(report, drawn.refined, held_out, uncertainty)


@contextmanager
def _heard() -> Iterator[list[str]]:
    """Collect warnings as distinct sentences: the report prints them."""
    sentences: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield sentences
    meant = [one for one in caught if not issubclass(one.category, FOR_DEVELOPERS)]
    sentences += dict.fromkeys(" ".join(str(one.message).split()) for one in meant)


def _validated(job: Job, common: Mapping[str, Any], track: Track) -> HeldOut:
    """Held-out probabilities of the model and both yardsticks."""
    fitters = {
        MODEL: chosen_mixture(common, job.seed),
        FREQUENCIES: class_frequencies,
        LOGISTIC: logistic_regression(job.categorical),
    }
    return hold_out(job.X, job.y, fitters, n_folds=job.folds, seed=job.seed, track=track)


def _look(
    job: Job,
    choice: Choice,
    drawn: Drawn,
    held_out: HeldOut,
    uncertainty: xr.Dataset,
    heard: tuple[str, ...],
    track: Track,
) -> Report:
    """Every section from the fitted model."""
    found: dict[str, Any] = {}
    model, refined = drawn.model, drawn.refined
    cells = left_out(job, model)
    sections: dict[str, Callable[[], Any]] = {
        "scores": lambda: tuple(score(held_out, name) for name in held_out.probabilities),
        "reading": lambda: read_columns(job),
        "doubt": lambda: read_doubt(job, model, held_out, uncertainty),
        "oddities": lambda: read_oddities(job, model, cells, held_out),
        "learned": lambda: read_learned(job, model, refined),
        "imputations": lambda: read_imputations(job, refined, cells),
        "diagnostics": lambda: _diagnostics(refined, heard),
        "described": lambda: _described(job, choice, refined),
    }
    for name, make in track(sections.items(), "Looking at rows, cells and columns", len(sections)):
        found[name] = make()
    return Report(
        title=job.title,
        target=job.target,
        classes=tuple(map(str, held_out.classes)),
        inference=drawn.sentence,
        folds=int(held_out.folds.max()) + 1,
        confusion=_confusion(held_out),
        check=_check(job, uncertainty),
        **found,
    )


def score(held_out: HeldOut, name: str) -> Score:
    """Scores and calibration of one classifier on the held-out rows.

    Parameters
    ----------
    held_out : HeldOut
        Held-out probabilities.
    name : str
        The classifier.

    Returns
    -------
    Score
        Means and standard errors over folds.
    """
    rows = held_out.scored
    p, labels, folds = (
        held_out.probabilities[name][rows],
        held_out.labels[rows],
        held_out.folds[rows],
    )
    return Score(
        name=name,
        log_loss=mean_over_folds(log_loss(p, labels), folds),
        brier=mean_over_folds(brier(p, labels), folds),
        accuracy=mean_over_folds(correct(p, labels), folds),
        slope=calibration_slope(p, labels),
        calibration=calibration(p, labels),
    )


def _confusion(held_out: HeldOut) -> np.ndarray:
    """Held-out rows by true and by most probable class."""
    rows, n_classes = held_out.scored, len(held_out.classes)
    predicted = held_out.probabilities[MODEL][rows].argmax(1)
    pairs = held_out.labels[rows] * n_classes + predicted
    return np.bincount(pairs, minlength=n_classes**2).reshape(n_classes, n_classes)


def _diagnostics(refined: HybridMixtureClassifier, heard: tuple[str, ...]) -> Diagnostics:
    """Sentences, figures, and a line per free variable."""
    with warnings.catch_warnings():  # the report shows every finding, good or bad
        warnings.simplefilter("ignore", PosteriorWarning)
        found = refined.diagnose()
    posterior = refined.posterior_[names.POSTERIOR]
    variables = []
    for name in map(str, posterior.data_vars):
        if name == names.COVARIANCES:  # a function of the precisions, and large
            continue
        values = posterior[name].transpose("chain", "draw", ...).to_numpy()
        least = min(effective_draws(values, "bulk"), effective_draws(values, "tail"))
        size = int(np.prod(values.shape[2:], dtype=int))
        variables.append((name, size, rhat(values), least))
    status = (
        f"Fit: {refined.status_} {plural(refined.n_iter_, 'iteration')}.",
        f"Out-of-fold temperature: log probabilities are multiplied by "
        f"{number(refined.temperature_)}.",
    )
    figures = zip(found["row"], found["value"], found["sentence"], strict=True)
    return Diagnostics(
        status=status,
        findings=tuple((str(row), float(value), str(text)) for row, value, text in figures),
        variables=tuple(variables),
        warnings=heard,
    )


def _described(job: Job, choice: Choice, refined: HybridMixtureClassifier) -> Described:
    """The declared graph, its priors in words, and what is needed to run again."""
    nodes, sizes = nodes_of(refined.declare())
    trials = tuple((t.name, t.log_loss, t.name == choice.name) for t in choice.trials)
    settings = ", ".join(f"{key}={value!r}" for key, value in choice.settings.items())
    facts = (
        *job.facts,
        ("model", f"HybridMixtureClassifier({settings}, calibrate=True)"),
        ("seed", str(job.seed)),
    )
    return Described(nodes, sizes, _priors(refined), trials, facts)


def _priors(refined: HybridMixtureClassifier) -> tuple[tuple[str, str], ...]:
    """Every prior in words and numbers."""
    hyper, structure = refined._mixture.hyperparameters, refined._mixture.specification
    nu, kappa = number(hyper.degrees_of_freedom), number(hyper.mean_precision)
    lines = [
        (
            "class probabilities",
            f"Dirichlet({number(hyper.class_concentration)}) on every class",
        )
    ]
    if structure.n_components > structure.n_classes:
        text = f"Dirichlet({number(hyper.weight_concentration)}) on every component"
        lines.append(("component weights", text))
    if structure.n_features:
        shared = "shared by all classes" if structure.tied else "one per component or class"
        lines += [
            (
                "covariances",
                f"{structure.shape}, {shared}: drawn towards the columns' own variances with the "
                f"strength of {nu} rows",
            ),
            (
                "means",
                f"Normal around the columns' means with the strength of {kappa} rows",
            ),
        ]
    if structure.levels:
        lines.append(
            ("level probabilities", "Dirichlet: the columns' own frequencies, worth one row")
        )
    return tuple(lines)


def _check(job: Job, uncertainty: xr.Dataset) -> Check | None:
    """Hidden labels against their truth, where it is known."""
    if job.truth is None:
        return None
    hidden = job.y.isna().to_numpy()
    if not hidden.any():
        return None
    classes = [str(label) for label in uncertainty[names.LABEL].to_numpy()]
    labels = np.array([classes.index(str(label)) for label in job.truth.y[hidden]])
    p = uncertainty["mean"].to_numpy()[hidden]
    given = p[np.arange(labels.size), labels]
    return Check(
        rows=int(hidden.sum()),
        log_loss=float(log_loss(p, labels).mean()),
        accuracy=float(correct(p, labels).mean()),
        outside=int((given < 0.05).sum()),
    )
