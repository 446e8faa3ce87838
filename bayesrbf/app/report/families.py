"""Families that a report can fit, their posterior draws, and their comparison with peers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from bayesrbf import Performance
from bayesrbf.answers.comparisons import score_as_probability
from bayesrbf.app.report import performance
from bayesrbf.app.report.held_out import (
    Fitter,
    HeldOutRows,
    Phase,
    class_frequencies,
    hold_out,
    rivals,
    silently,
)
from bayesrbf.app.report.job import Job
from bayesrbf.app.report.judgement import FREQUENCIES
from bayesrbf.app.report.options import ANYTHING, FamilyName
from bayesrbf.app.report.performance import Event, event_among
from bayesrbf.app.report.trust import gain
from bayesrbf.app.words import (
    aligned,
    clipped,
    ends,
    listing,
    number,
    percent,
    plural,
    spread,
    with_ends,
)
from bayesrbf.base.arrays import log_loss

if TYPE_CHECKING:
    from bayesrbf.families.hybrid.selection import MixtureCandidate


# The families that a report can fit: estimators, settings and ways to draw.


@dataclass(frozen=True)
class Fitted:
    """A fitted classifier and how it was chosen."""

    model: Any  # At its fitted point.
    call: str  # The constructor's call.
    message: str  # What was chosen, and why.
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
    drawn_at_mode: bool = False  # Whether a point fit has intervals: of draws around its mode.
    pools: bool = False  # Whether it pools members, and so holds its own rows out.


def common_settings(job: Job) -> dict[str, Any]:
    """Constructor arguments that all families share."""
    codes = [name for name in job.categorical if name not in job.said_kinds]
    return {
        "categorical_features": codes or None,
        "column_kinds": job.said_kinds or None,
        "random_state": job.seed,
    }


def _fixed(
    job: Job, estimator: str, settings: Settings, message: str, pools: bool = False
) -> Procedure:
    """The procedure of a family whose settings do not depend on labels.

    An estimator that pools members is given its folds: its rows held out judge it, too, by weights
    that the other folds chose. By time it is judged on later rows alone, and by centre on whole
    centres, which are not the rows that it holds out.
    """
    build = getattr(import_module("bayesrbf"), estimator)
    # other families use no missing indicators, whatever was said
    if job.missingness == "ignorable" and "missingness" in signature(build).parameters:
        settings = {**settings, "missingness": "ignorable"}

    def fit(X: pd.DataFrame, y: pd.Series) -> Fitted:
        cv = {"cv": job.splits_within(y).pairs()} if pools else {}
        groups = job.groups_of(y)
        model = build(**{**common_settings(job), **settings, **cv}).fit(X, y, groups=groups)
        out_of_fold = model.out_of_fold_ if pools and not job.judged_apart else None
        call = f"{estimator}({', '.join(f'{key}={value!r}' for key, value in settings.items())})"
        return Fitted(model, call, message, out_of_fold=out_of_fold)

    return fit


def _stack(job: Job) -> Procedure:
    """Procedure of a stack with all members that suit the table."""
    procedure = _fixed(job, "StackedClassifier", {}, "", pools=True)

    def fit(X: pd.DataFrame, y: pd.Series) -> Fitted:
        fitted = procedure(X, y)
        # Many rows add a member: the fit alone knows their number.
        return replace(fitted, message=f"A stack of {len(fitted.model.members_)} members.")

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
            (name, -score, rank == 0)
            for rank, (name, score) in enumerate(zip(names, scores, strict=True))
        )
        message = f"Among {len(names)} candidates the rule chose: {names[0]}."
        return replace(fitted, message=message, trials=trials)

    return fit


def _in_words(candidate: MixtureCandidate, job: Job) -> str:
    """Description of a mixture: its structure, and its use of unlabelled rows and missing cells."""
    facts = [f"{plural(max(candidate.n_components), 'component')} a class"]
    if len(job.categorical) < len(job.X.columns):
        shape = {"full": "full", "diag": "diagonal"}[candidate.covariance_type]
        shared = "shared" if candidate.shared_covariance else "own"
        facts[0] += f", {shared} {shape} covariances"
    if job.y.isna().any():
        weight = candidate.unlabelled_weight
        word = "not" if weight == 0 else "fully" if weight == 1 else "little"
        facts.append(f"rows without a label count {word}")
    if candidate.informative:
        facts.append("missing cells tell something")
    return "; ".join(facts)


def _rbf(job: Job) -> Procedure:
    """An RBF network with its defaults."""
    message = (
        "A network whose hidden layer is a mixture of ten components, shared by all classes, "
        "fitted jointly with its output layer."
    )
    return _fixed(job, "RBFNetworkClassifier", {}, message)


def _sdgm(job: Job) -> Procedure:
    """A sparse mixture with its defaults and a temperature."""
    message = (
        "A sparse discriminative mixture of three components a class, of which the evidence "
        "keeps what it needs; the more probable of two starts, because each takes long on tables "
        "with holes."
    )
    settings = {"prediction": "single-mode", "n_init": 2, "calibrate": True}
    return _fixed(job, "SDGMClassifier", settings, message)


def _median_lvq(job: Job) -> Procedure:
    """Exemplars under Gower's dissimilarity, and a temperature."""
    message = (
        "Two rows of each class stand for it, compared by Gower's dissimilarity; the width of "
        "the kernel was chosen by cross-validation."
    )
    return _fixed(job, "MedianLVQClassifier", {"calibrate": True}, message)


QUICK_FOLDS: Final = 3
"""Folds at most where time counts more than the last of the log loss."""


FAMILIES: Final[Mapping[str, Family]] = {
    "stack": Family("StackedClassifier", _stack, ("laplace", "nuts"), 250, pools=True),
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
    "sdgm": Family("SDGMClassifier", _sdgm, ("laplace", "advi", "nuts"), 400, drawn_at_mode=True),
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


def refitted_as(job: Job) -> tuple[Job, str]:
    """The job that refits samples of the rows, and a sentence on its recipe.

    Copies of a row that a sample holds are a group: no split has them on both sides.
    """
    job = replace(job, groups=np.arange(len(job.X)) if job.groups is None else job.groups)
    if not FAMILIES[job.family].pools or job.folds <= QUICK_FOLDS:
        return job, "Each refit made every choice of the model anew."
    return replace(job, folds=QUICK_FOLDS), (
        f"To save time each refit weighed its members on {QUICK_FOLDS} folds, where the model "
        f"has {job.folds}, and so did the fit to all rows that refits are compared with here; "
        "in Python bayesrbf.stability takes the whole recipe."
    )


class Recipe(ClassifierMixin, BaseEstimator):
    """A procedure as a scikit-learn classifier; it finds its rows by the index of y."""

    def __init__(self, procedure: Procedure) -> None:
        self.procedure = procedure

    def fit(self, X: pd.DataFrame, y: pd.Series) -> Self:
        """Fit rows."""
        self.model_ = self.procedure(X, y).model
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: pd.DataFrame) -> Float[np.ndarray, "obs label"]:
        """Class probabilities of rows."""
        return self.model_.predict_proba(X)


# Families of this package and peers of scikit-learn on one table, by held-out log score.


UNKNOWN_SLOPE: Final = 2.0
"""A calibration slope whose interval reaches from below 0 to here is not known."""


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
    performance: Performance  # Of two classes one event, of more every class.


@dataclass(frozen=True)
class Comparison:
    """Contestants on the same folds, the best one first."""

    rows: int  # Held out, each once.
    folds: int
    contestants: Sequence[Contestant]
    prob: float = ANYTHING.level  # Inside the intervals.
    note: str = ""  # On the rows that are compared.

    @property
    def message(self) -> str:
        """The best contestant, and contestants whose interval of the difference holds 0."""
        best, *rivals = self.contestants
        near = [contestant.name for contestant in rivals if not contestant.behind_lower > 0]
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
        positions = [X.columns.get_loc(name) for name in job.categorical]
        codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
        columns = ColumnTransformer([("categorical", codes, positions)], remainder="passthrough")
        model = HistGradientBoostingClassifier(
            categorical_features=list(range(len(positions))), random_state=job.seed
        )
        return make_pipeline(columns, model).fit(X[labelled], y[labelled])

    return fit


def compare(job: Job, models: Sequence[FamilyName], *, phase: Phase = silently) -> Comparison:
    """Cross-validate all contestants, choices included, on the same folds."""
    fitters: dict[str, Fitter] = {name: _fitter(job, name) for name in models}
    fitters |= peers(job)
    held_out = hold_out(job.X, job.y, fitters, job.splits, phase)
    note = ""
    if job.score is not None:
        held_out, note = with_score(job.score, held_out, event_among(held_out, job.focus))
    return judged(held_out, job.subjects, note)


def with_score(points: pd.Series, held_out: HeldOutRows, event: Event) -> tuple[HeldOutRows, str]:
    """The held-out rows with the score as one more classifier, and a note."""
    rows, c = held_out.scored, event.column
    happened = held_out.labels[rows] == c
    p, conversion = score_as_probability(
        points.to_numpy(dtype=float)[rows], happened, held_out.folds[rows]
    )
    both = np.full((held_out.labels.size, 2), np.nan)
    folds = held_out.folds.copy()
    both[rows, c], both[rows, 1 - c] = p, 1 - p
    folds[rows[np.isnan(p)]] = -1
    name = f"score {points.name}"
    every = {**held_out.probabilities, name: both}
    seconds = {**held_out.seconds, name: 0.0}
    left = f"{plural(int((~np.isnan(p)).sum()), 'row')} with a score"
    note = f"All fits are as without it, and {left} are compared; {conversion}."
    return replace(held_out, folds=folds, probabilities=every, seconds=seconds), note


def _fitter(job: Job, name: FamilyName) -> Fitter:
    """Fitter of a family with all of its choices, as the report fits it."""
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


def judged(
    held_out: HeldOutRows, groups: Int[np.ndarray, " obs"] | None = None, note: str = ""
) -> Comparison:
    """Held-out probabilities as a comparison."""
    rows = held_out.scored
    subjects = None if groups is None else groups[rows]
    losses = {
        name: log_loss(p[rows], held_out.labels[rows]) for name, p in held_out.probabilities.items()
    }
    order = sorted(losses, key=lambda name: float(losses[name].mean()))
    alone = {name: gain(0 * loss, loss, subjects) for name, loss in losses.items()}
    behind = {name: gain(losses[order[0]], loss, subjects) for name, loss in losses.items()}
    of = {name: performance.compute(held_out, ANYTHING, name, None, groups).model for name in order}
    return Comparison(
        rows=rows.size,
        folds=int(held_out.folds.max()) + 1,
        contestants=[
            Contestant(
                name=name,
                log_loss=alone[name].mean,
                standard_error=alone[name].error,
                behind=behind[name].mean,
                behind_error=behind[name].error,
                behind_lower=behind[name].interval.lower,
                behind_upper=behind[name].interval.upper,
                share_right=of[name].accuracy.value,
                seconds=held_out.seconds[name],
                performance=of[name],
            )
            for name in order
        ],
        note=note,
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
        loss = [number(contestant.log_loss), spread(contestant.standard_error)]
        took = f"{contestant.seconds:.1f}"
        table.append([contestant.name, "", *loss, *behind, percent(contestant.share_right), took])
    return [
        f"{plural(comparison.rows, 'row')} held out once each, in "
        f"{plural(comparison.folds, 'fold')}; log loss in nats a row",
        *aligned(table),
        *(aligned(events) if (events := _of_event(comparison)) else []),
        *([comparison.note] if comparison.note else []),
        comparison.message,
    ]


def _of_event(comparison: Comparison) -> list[list[str]]:
    """Figures of the event of two classes as rows of text; none of more."""
    events = comparison.contestants[0].performance.events
    if len(events) > 1:
        return []
    table = [[f"event: {clipped(events[0].event, 24)}", "", "AUROC", "Brier", "O:E", "slope"]]
    for contestant in comparison.contestants:
        event = contestant.performance.events[0]
        figures = event.auroc, event.brier, event.observed_to_expected, event.slope
        written = [with_ends(figure) for figure in figures]
        if event.slope.lower < 0 and event.slope.upper > UNKNOWN_SLOPE:
            written[-1] = "–"
        table.append([contestant.name, "", *written])
    return table


# Which method gives the report its posterior, and the sentence that says why.


SWEEPS: Final[dict[str, Any]] = {"tune": 400, "thin": 1}
AFFORDABLE: Final = 2_000_000
"""Multiply-adds of a sweep up to which all sweeps of four chains take about a minute."""
MAX_CURVED: Final = 2_000
"""Coordinates up to which the second derivatives of a network take at most some minutes."""
BYTES: Final = 20_000_000
"""Most bytes of the draws of a model; fewer draws are kept where they take more."""
MIN_DRAWS: Final = 50  # Per chain, however large they are.

METHOD_NAMES: Final = {
    "laplace": "Laplace's approximation, a Gaussian at the mode",
    "advi": "A variational approximation, the Gaussian of least divergence",
    "gibbs": "Gibbs sampling, from the exact posterior",
    "nuts": "The No-U-Turn sampler, from the exact posterior",
}


COMPARED: Final = (
    "A small stack was fitted to the same rows. Intervals count how wrong its pool may be, given "
    "the labels of rows held out, and how far this model is from it."
)
OF_ERROR: Final = (
    "Those are the weights and temperatures of the stack. Intervals are of the error of its "
    "probabilities, given the labels of rows held out."
)


@dataclass(frozen=True)
class Drawn:
    """A fitted classifier without and with its posterior."""

    model: Any
    refined: Any  # At its fitted point, too, if ``"map"`` was asked for.
    message: str  # How the posterior was made, and why.
    options: Mapping[str, Any] = field(default_factory=dict)  # That it was drawn with.


def draw_posterior(job: Job, model: Any) -> Drawn:
    """Draw by the method asked for, or by the best one that takes about a minute."""
    refined = copy.copy(model)
    method, why = choose_method(job, model)
    if method == "map":
        intervals = "There are no intervals and no kinds of uncertainty."
        if FAMILIES[job.family].drawn_at_mode:
            intervals = (
                "Intervals and kinds of uncertainty are those of what the fit itself averages over."
            )
        return Drawn(model, refined, f"A point estimate, {why} {intervals}")
    usual = FAMILIES[job.family].draws
    size = refined.model_.log_posterior(refined.rows_).dimension
    draws = _draws_kept(usual, size) if job.draws is None else job.draws
    sweeps = SWEEPS if job.family == "mixture" and method == "gibbs" else {}
    if sweeps and job.draws is None:
        sweeps = {**sweeps, "thin": -(-usual // draws)}
    options = {"draws": draws, **sweeps}
    compared = refined.fitted_.comparable
    if compared:
        options["model_uncertainty"] = "pool"
    refined.refine(method, **options)
    if not refined.draws_.complete:  # what was drawn is no answer to what was asked
        raise KeyboardInterrupt
    amount = plural(len(refined.draws_.theta) * draws, "draw")
    message = f"{METHOD_NAMES[method]}: {amount} in {plural(size, 'coordinate')}, {why}"
    if compared:
        message = f"{message} {COMPARED}"
    if FAMILIES[job.family].pools:
        message = f"{message} {OF_ERROR}"
    return Drawn(model, refined, message, options)


def _draws_kept(usual: int, size: int) -> int:
    """Draws of each of four chains that fit into ``BYTES``, by the number of coordinates.

    >>> _draws_kept(1000, 30), _draws_kept(1000, 3774)
    (1000, 165)
    """
    return min(usual, max(MIN_DRAWS, BYTES // (4 * 8 * size)))


def choose_method(job: Job, model: Any) -> tuple[str, str]:
    """The method ("map" for none) and the end of the sentence that says why.

    The cost is known from sizes alone, so that the same table always gets the same method.
    """
    if job.inference != "auto":
        quick = job.quick and job.inference == "map" and not FAMILIES[job.family].pools
        return job.inference, f"because {'--quick' if quick else 'it'} was asked for."
    if job.family == "mixture":
        return _of_mixture(model)
    family = FAMILIES[job.family]
    method = family.methods[0]
    if family.pools:
        return method, "because that takes seconds, and intervals are the same by any method."
    if method == "gibbs":
        return method, "because exemplars are discrete."
    if none := _too_many(model, method):
        return "map", none
    return method, "because that takes seconds; --inference nuts draws from the exact posterior."


def _too_many(model: Any, method: str) -> str:
    """Why second derivatives would take many minutes; empty where they do not."""
    size = model.model_.log_posterior(model.rows_).dimension
    if size <= MAX_CURVED:
        return ""
    return (
        f"because the curvature in {plural(size, 'coordinate')} would take many minutes; "
        f"--inference {method} takes them."
    )


def _of_mixture(model: Any) -> tuple[str, str]:
    """Gibbs sampling where its sweeps, each about an iteration of EM, are cheap."""
    structure = model.model_.density.specification
    whole = bool(np.all(model.rows_.weights == np.round(model.rows_.weights)))
    if not whole and (none := _too_many(model, "laplace")):
        return "map", none
    if not whole:
        return "laplace", (
            "because rows without a label count as a part of a row, and Gibbs sampling needs whole "
            "ones; --inference nuts draws from the exact posterior."
        )
    width = structure.n_features ** (1 if structure.independent else 2) + len(structure.levels)
    cost = model.rows_.n_obs * structure.n_components * width
    rows = plural(model.rows_.n_obs, "row")
    if cost <= AFFORDABLE:
        return "gibbs", f"because a sweep over {rows} is cheap: all of them take about a minute."
    if none := _too_many(model, "laplace"):
        return "map", none
    return "laplace", (
        f"because sweeps over {rows} would take more than about a minute; --inference gibbs or "
        "--inference nuts draws from the exact posterior."
    )
