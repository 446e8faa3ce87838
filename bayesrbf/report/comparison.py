"""Families of this package and peers of scikit-learn on one table, by held-out log score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from bayesrbf.posterior.scores import correct, log_loss
from bayesrbf.report.families import FAMILIES
from bayesrbf.report.job import Job
from bayesrbf.report.options import FamilyName
from bayesrbf.report.validate import (
    Fitter,
    HeldOutRows,
    Phase,
    behind_filled_columns,
    class_frequencies,
    hold_out,
    logistic_regression,
    silently,
)
from bayesrbf.report.words import aligned, listing, number, percent, plural, spread

FREQUENCIES: Final = "class frequencies"
SURELY_BEHIND: Final = 2.0
"""Standard errors from which a difference is told as one."""


@dataclass(frozen=True)
class Contestant:
    """One classifier on the rows held out; log losses are in nats a row."""

    name: str
    log_loss: float
    standard_error: float
    behind: float  # Log loss above that of the best one, on the same rows.
    behind_error: float  # Its standard error, from the differences row by row.
    share_right: float
    seconds: float  # Of all its fits and predictions.


@dataclass(frozen=True)
class Comparison:
    """Contestants on the same folds, the best one first."""

    rows: int  # Held out, each once.
    folds: int
    contestants: Sequence[Contestant]

    @property
    def sentence(self) -> str:
        """The best one, and who is not surely behind it."""
        best, *others = self.contestants
        near = [
            contestant.name
            for contestant in others
            if contestant.behind <= SURELY_BEHIND * contestant.behind_error
        ]
        head = f"{best.name} has the lowest log loss"
        if not near:
            return f"{head}, by more than {number(SURELY_BEHIND)} standard errors."
        others_near = listing(near, len(near))
        return f"{head}; within {number(SURELY_BEHIND)} standard errors: {others_near}."


def peers(job: Job) -> dict[str, Fitter]:
    """Classifiers of scikit-learn as they are commonly taken, and the class frequencies."""
    forest = RandomForestClassifier(500, min_samples_leaf=2, random_state=job.seed)
    return {
        "logistic regression": logistic_regression(job.categorical),
        "random forest": behind_filled_columns(forest, job.categorical),
        "histogram boosting": _boosting(job),
        FREQUENCIES: class_frequencies,
    }


def _boosting(job: Job) -> Fitter:
    """Histogram boosting with its own treatment of holes and categories, on labelled rows."""

    def fit(X: pd.DataFrame, y: pd.Series) -> Pipeline:
        labelled = y.notna().to_numpy()
        places = [X.columns.get_loc(name) for name in job.categorical]
        codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
        columns = ColumnTransformer([("categorical", codes, places)], remainder="passthrough")
        model = HistGradientBoostingClassifier(
            categorical_features=list(range(len(places))), random_state=job.seed
        )
        return make_pipeline(columns, model).fit(X[labelled], y[labelled])

    return fit


def compare(job: Job, models: Sequence[FamilyName], *, phase: Phase = silently) -> Comparison:
    """Hold every row out once of every contestant, choices included, on the same folds."""
    fitters: dict[str, Fitter] = {name: _fitter(job, name) for name in models}
    fitters |= peers(job)
    return judged(hold_out(job.X, job.y, fitters, splits=job.splits, phase=phase))


def _fitter(job: Job, name: FamilyName) -> Fitter:
    """A family with everything that it chooses, as the report fits it."""
    procedure = FAMILIES[name].procedure(job)

    def fit(X: pd.DataFrame, y: pd.Series) -> Any:
        try:
            return procedure(X, y).model
        except ValueError as error:
            raise ValueError(
                f"{name} cannot be fitted to a part of this table: {error} Leave it out: --model "
                "names those that take part."
            ) from error

    return fit


def judged(held_out: HeldOutRows) -> Comparison:
    """Held-out probabilities as a comparison."""
    rows = held_out.scored
    labels = held_out.labels[rows]
    p = {name: every[rows] for name, every in held_out.probabilities.items()}
    losses = {name: log_loss(own, labels) for name, own in p.items()}
    order = sorted(losses, key=lambda name: float(losses[name].mean()))
    best = losses[order[0]]
    return Comparison(
        rows=rows.size,
        folds=int(held_out.folds.max()) + 1,
        contestants=[
            Contestant(
                name=name,
                log_loss=float(losses[name].mean()),
                standard_error=_error(losses[name]),
                behind=float((losses[name] - best).mean()),
                behind_error=_error(losses[name] - best),
                share_right=float(correct(p[name], labels).mean()),
                seconds=held_out.seconds[name],
            )
            for name in order
        ],
    )


def _error(values: np.ndarray) -> float:
    """Standard error of a mean over rows."""
    return float(values.std(ddof=1) / np.sqrt(values.size))


def lines_of(comparison: Comparison) -> list[str]:
    """The comparison as text for a terminal."""
    table = [["model", "", "log loss", "± s.e.", "behind", "± s.e.", "right", "seconds"]]
    for contestant in comparison.contestants:
        behind = ["–", "–"]
        if contestant.behind:
            behind = [number(contestant.behind), spread(contestant.behind_error)]
        own = [number(contestant.log_loss), spread(contestant.standard_error)]
        took = f"{contestant.seconds:.1f}"
        table.append([contestant.name, "", *own, *behind, percent(contestant.share_right), took])
    return [
        f"{plural(comparison.rows, 'row')} held out once each, in "
        f"{plural(comparison.folds, 'fold')}; log loss in nats a row",
        *aligned(table),
        comparison.sentence,
    ]
