"""Families of this package and peers of scikit-learn on one table, by held-out log score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from bayesrbf.posterior.held_out import LEVEL, mean, standard_error
from bayesrbf.posterior.scores import correct, log_loss
from bayesrbf.report.families import FAMILIES
from bayesrbf.report.job import Job
from bayesrbf.report.options import FamilyName
from bayesrbf.report.validate import (
    Fitter,
    HeldOutRows,
    Phase,
    class_frequencies,
    hold_out,
    rivals,
    silently,
)
from bayesrbf.report.words import aligned, ends, listing, number, percent, plural, spread

FREQUENCIES: Final = "class frequencies"


@dataclass(frozen=True)
class Contestant:
    """One classifier on the rows held out; log losses are in nats a row."""

    name: str
    log_loss: float
    standard_error: float
    behind: float  # Log loss above that of the best one, on the same rows.
    behind_error: float  # Its standard error, from the differences row by row.
    behind_lower: float  # Ends of its interval.
    behind_upper: float
    share_right: float
    seconds: float  # Of all its fits and predictions.


@dataclass(frozen=True)
class Comparison:
    """Contestants on the same folds, the best one first."""

    rows: int  # Held out, each once.
    folds: int
    contestants: Sequence[Contestant]
    prob: float = LEVEL  # Inside the intervals.

    @property
    def sentence(self) -> str:
        """The best one, and who is not surely behind it."""
        best, *others = self.contestants
        near = [contestant.name for contestant in others if not contestant.behind_lower > 0]
        head = f"{best.name} has the lowest log loss"
        if not near:
            return f"{head}; the {percent(self.prob)} intervals of all differences are above 0."
        others_near = listing(near, len(near))
        interval = f"{percent(self.prob)} interval"
        return f"{head}; the {interval} of the difference holds 0 for {others_near}."


def peers(job: Job) -> dict[str, Fitter]:
    """Classifiers of scikit-learn, the rivals of the report among them, and the frequencies."""
    return {**rivals(job), "histogram boosting": _boosting(job), FREQUENCIES: class_frequencies}


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
    behind = {name: mean(own - losses[order[0]]) for name, own in losses.items()}
    return Comparison(
        rows=rows.size,
        folds=int(held_out.folds.max()) + 1,
        contestants=[
            Contestant(
                name=name,
                log_loss=float(losses[name].mean()),
                standard_error=standard_error(losses[name]),
                behind=behind[name].value,
                behind_error=standard_error(losses[name] - losses[order[0]]),
                behind_lower=behind[name].lower,
                behind_upper=behind[name].upper,
                share_right=float(correct(p[name], labels).mean()),
                seconds=held_out.seconds[name],
            )
            for name in order
        ],
    )


def lines_of(comparison: Comparison) -> list[str]:
    """The comparison as text for a terminal."""
    interval = f"{percent(comparison.prob)} interval"
    table = [["model", "", "log loss", "± s.e.", "behind", interval, "right", "seconds"]]
    for contestant in comparison.contestants:
        behind = ["–", "–"]
        if contestant.behind:
            between = ends(contestant.behind_lower, contestant.behind_upper)
            behind = [number(contestant.behind), between]
        own = [number(contestant.log_loss), spread(contestant.standard_error)]
        took = f"{contestant.seconds:.1f}"
        table.append([contestant.name, "", *own, *behind, percent(contestant.share_right), took])
    return [
        f"{plural(comparison.rows, 'row')} held out once each, in "
        f"{plural(comparison.folds, 'fold')}; log loss in nats a row",
        *aligned(table),
        comparison.sentence,
    ]
