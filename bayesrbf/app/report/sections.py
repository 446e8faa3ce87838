"""Sections of the report: columns, model, odd cells and rows, filled cells, intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import logit
from scipy.stats import false_discovery_control
from sklearn.base import clone

from bayesrbf.answers import rehearse as rehearsing
from bayesrbf.answers.scores import beyond_chance, improbable_labels
from bayesrbf.app.check import OPEN_WIDTH
from bayesrbf.app.report.families import FAMILIES, Drawn, Fitted
from bayesrbf.app.report.held_out import HeldOutRows
from bayesrbf.app.report.job import Job
from bayesrbf.app.report.learned import component_names
from bayesrbf.app.report.performance import Event
from bayesrbf.app.report.records import (
    Column,
    Described,
    Diagnostics,
    Doubt,
    Filled,
    Imputations,
    NovelRow,
    OddCell,
    Oddities,
    OddLabel,
    Reading,
    UnsureRow,
)
from bayesrbf.app.tails import tails_beside
from bayesrbf.app.words import between, clipped, exact, listing, number, percent, plural
from bayesrbf.base import names
from bayesrbf.base.priors import POOL_PRIOR, MixturePrior
from bayesrbf.base.tasks import run_tasks
from bayesrbf.families.hybrid.density import MixtureDensity
from bayesrbf.families.median_lvq.records import MedianLVQPrior
from bayesrbf.fit.held_out import grouped_folds, stratified_folds
from bayesrbf.fit.probabilities import entropy
from bayesrbf.fit.sensitivity import prior_sensitivity
from bayesrbf.inference.diagnose import effective_draws, rhat
from bayesrbf.mixture.cells import JudgedCells, cell_law, leave_one_cell_out
from bayesrbf.table.encode import encode, encode_labels
from bayesrbf.table.order import standardisation

if TYPE_CHECKING:
    import xarray as xr

    from bayesrbf.inference.diagnose import Finding


# A summary of every column, and what looks odd about it.


BANDS = 40
"""Most bands of rows in the picture of missing cells."""
BARS = 20
MOST_LEVEL_BARS = 12
NEAR = 0.999
"""Correlation above which two columns are reported as the same."""


def read_columns(job: Job) -> Reading:
    """Summarise the columns of a table, its missing cells and its oddities."""
    missing = job.X.isna().to_numpy()
    classes, labels = encode_labels(job.y)
    band = -(-len(job.X) // BANDS)
    starts = range(0, len(job.X), band)
    holes = np.stack([missing[start : start + band].mean(0) for start in starts])
    counts = np.bincount(labels[labels >= 0], minlength=classes.size)
    return Reading(
        rows=len(job.X),
        columns=tuple(_column(job, name) for name in job.X.columns),
        class_counts={str(c): int(n) for c, n in zip(classes, counts, strict=True)},
        hidden=int((labels < 0).sum()),
        holes=holes,
        band=band,
        patterns=len(np.unique(missing, axis=0)),
        notes=(*job.notes, *_near_duplicates(job)),
        too_good=job.too_good,
    )


def _column(job: Job, name: str) -> Column:
    """Summarise one column."""
    values = job.X[name]
    share = float(values.isna().mean())
    if not job.kinds[name].has_levels:
        numbers = values.dropna().to_numpy(dtype=float)
        content = "no value"
        if numbers.size:
            content = between(job.cell(name, numbers.min()), job.cell(name, numbers.max()))
        bars = _histogram(numbers)
        return Column(name, job.kinds[name].word, share, content, bars)
    levels = values.dropna().astype(str).value_counts()
    content = f"{plural(len(levels), 'level')}: {listing([clipped(v, 24) for v in levels.index])}"
    bars = levels.to_numpy(dtype=float)[:MOST_LEVEL_BARS]
    return Column(name, job.kinds[name].word, share, content, bars)


def _histogram(values: Float[np.ndarray, " value"]) -> Float[np.ndarray, " bar"]:
    """Counts in equal bins between the extremes."""
    if values.size == 0:
        return np.zeros(0)
    low, high = float(values.min()), float(values.max())
    if low == high:
        return np.array([float(values.size)])
    place = ((values / (high - low) - low / (high - low)) * BARS).astype(int)
    return np.bincount(np.clip(place, 0, BARS - 1), minlength=BARS).astype(float)


def _near_duplicates(job: Job) -> Iterator[str]:
    """Pairs of real columns with an absolute correlation close to one."""
    reals = job.lines
    if len(reals) < 2:
        return
    with np.errstate(all="ignore"):  # constant columns have no correlation
        related = job.X[reals].corr(min_periods=10).abs().to_numpy()
    pairs = np.argwhere(np.triu(related, 1) > NEAR)
    if len(pairs):
        named = [f"“{reals[i]}” and “{reals[j]}” ({number(related[i, j])})" for i, j in pairs]
        yield f"Nearly the same, by their correlation, are {listing(named)}."


# Describes the computation, the model and its priors.


GIVEN: Final[Mapping[str, str]] = {
    "stack": (
        "The graph is that of the pool: what members say about rows held out is given. Members "
        "have graphs of their own, but trees have none."
    ),
    "mixture": "Labels, components and missing cells are summed out exactly.",
    "rbf": "Components and missing cells are summed out exactly.",
    "sdgm": "Components are summed out exactly; missing cells were completed many times.",
    "median_lvq": "The dissimilarities of the rows are given.",
}


def read_diagnostics(
    refined: Any, findings: tuple[Finding, ...], heard: tuple[str, ...]
) -> Diagnostics:
    """Sentences on the fit, the findings of ``diagnose()``, and a line per free variable."""
    posterior = refined.posterior_[names.POSTERIOR]
    draws = refined.draws_
    worth = np.inf if draws is None else draws.worth
    chained = draws is not None and draws.method != "bootstrap"  # whose draws are made one by one
    variables = []
    for name in map(str, posterior.data_vars):
        if name == names.COVARIANCES:  # a function of the precisions, and large
            continue
        values = posterior[name].transpose("chain", "draw", ...).to_numpy().astype(float)
        by_chain = min(effective_draws(values, "bulk"), effective_draws(values, "tail"))
        least = float(np.minimum(by_chain, worth))
        size = int(np.prod(values.shape[2:], dtype=int))
        variables.append((name, size, rhat(values) if chained else np.nan, least))
    status: tuple[str, ...] = (
        f"Fit: {refined.status_} {plural(refined.n_iter_, 'iteration')}.",
        f"Out-of-fold temperature: log probabilities are multiplied by "
        f"{number(refined.temperature_)}.",
    )
    fit = refined.fitted_
    if not fit.__lacks__("prior"):
        some = fit.rows.take(slice(None, None, -(-fit.rows.n_obs // 2000)))  # as rows left out
        status += (f"Prior: {prior_sensitivity(fit, some).message}",)
    by_error = refined.model_.pools
    return Diagnostics(status, findings, tuple(variables), heard, draws is not None, by_error)


def read_described(job: Job, fitted: Fitted, refined: Any) -> Described:
    """Chosen settings, priors in words, and the call that fits again."""
    return Described(
        sentence=fitted.sentence,
        given=GIVEN[job.family],
        priors=_PRIORS[job.family](refined),
        trials=fitted.trials,
        facts=(*job.facts, ("model", fitted.call), ("seed", str(job.seed))),
    )


Priors = tuple[tuple[str, str], ...]


def _stack(model: Any) -> Priors:
    """Priors of weights and temperatures."""
    return (
        (
            "weights of the members",
            f"Dirichlet({number(1 + POOL_PRIOR.pseudo_rows)}) on every member",
        ),
        ("temperatures", f"log-normal around 1, with a log sd of {number(POOL_PRIOR.sd)}"),
    )


def _mixture(model: Any) -> Priors:
    """Priors of class probabilities, weights, covariances, means and levels."""
    hyper, structure = model.model_.density.hyperparameters, model.model_.density.specification
    lines = []
    if structure.n_classes > 1:
        text = f"Dirichlet({number(hyper.class_concentration)}) on every class"
        lines.append(("class probabilities", text))
    if structure.n_components > structure.n_classes:
        text = f"Dirichlet({number(hyper.weight_concentration)}) on every component"
        lines.append(("component weights", text))
    if structure.n_features:
        shared = "shared by all classes" if structure.tied else "one per component or class"
        lines += [
            (
                "covariances",
                f"{structure.shape}, {shared}: drawn towards the columns' own variances with the "
                f"strength of {number(hyper.degrees_of_freedom)} rows",
            ),
            (
                "means",
                "Normal around the columns' means with the strength of "
                f"{number(hyper.mean_precision)} rows",
            ),
        ]
    if structure.levels:
        lines.append(
            ("level probabilities", "Dirichlet: the columns' own frequencies, worth one row")
        )
    return tuple(lines)


def _rbf(model: Any) -> Priors:
    """Priors of the hidden and of the output layer."""
    prior = model.model_.hyperparameters
    output = f"Normal with precision {number(prior.l2)}"
    if prior.l1:
        output += f", times Laplace with rate {number(prior.l1)}"
    return (*_mixture(model), ("output weights", output))


def _sdgm(model: Any) -> Priors:
    """Priors of the weights that are left."""
    text = "Normal around 0; the precision of each maximises the evidence, infinite ones are gone"
    return (("weights", text),)


def _median_lvq(model: Any) -> Priors:
    """Priors of exemplars and width."""
    prior = MedianLVQPrior() if model.prior is None else model.prior
    width = f"{prior}" if model.sigma == "sample" else f"fixed at {number(model.sigma_)}"
    return (("exemplars", "every row of the class alike"), ("width of the kernel", width))


_PRIORS: Final[Mapping[str, Callable[[Any], Priors]]] = {
    "stack": _stack,
    "mixture": _mixture,
    "rbf": _rbf,
    "sdgm": _sdgm,
    "median_lvq": _median_lvq,
}


# Rehearses the report's intervals: how often such intervals hold a known truth, in words.


SURELY_NARROW: Final = 2.0
"""Standard errors from which intervals are told to be too narrow."""
REHEARSED_LEVEL: Final = 0.9
ONE_KIND: Final = (
    "These are intervals if the model is right: they know nothing of how other kinds of models "
    "differ. "
)


def read_intervals(job: Job, drawn: Drawn) -> str:
    """A sentence on the rehearsal's coverage, or on how to ask for a rehearsal."""
    if drawn.refined.draws_ is None:
        return (
            "No draws were made, so how often intervals hold the truth cannot be tried; "
            f"--inference {FAMILIES[job.family].methods[0]} makes draws."
        )
    if job.rehearse:
        return _rehearsed(job, drawn)
    if_right = ONE_KIND if drawn.refined.fitted_.assumes_model else ""
    return (
        f"{if_right}How often such intervals hold the truth was not tried here: --rehearse tries "
        "it, for the price of six more fits with their draws."
    )


def rehearse(job: Job, drawn: Drawn, n_repeats: int = 2) -> xr.Dataset:
    """Rehearse the model as it was chosen and drawn."""
    model = drawn.refined
    if "missingness" in model.get_params() and not model.fitted_.uses_indicators:
        model = clone(model).set_params(missingness="ignorable")  # labels at random choose anew
    return rehearsing.rehearse(
        model,
        job.X,
        job.y,
        groups=job.groups,
        inference=drawn.refined.draws_.method,
        n_repeats=n_repeats,
        random_state=job.seed,
        **drawn.options,
    )


def _rehearsed(job: Job, drawn: Drawn) -> str:
    """The sentence of the rehearsal, and whether intervals are too narrow."""
    try:
        rehearsal = rehearse(job, drawn)
    except ValueError as error:
        # Labels drawn for a table with rare classes may allow no fit; the report does without.
        return f"How often these intervals hold the truth could not be tried: {error}"
    sentence = str(rehearsal.attrs["sentence"])
    at = rehearsal.sel(level=REHEARSED_LEVEL)
    most = float(at["overall_coverage"] + SURELY_NARROW * at["overall_error"])
    if most >= REHEARSED_LEVEL:
        return sentence
    return (
        f"{sentence} They are too narrow: {number(SURELY_NARROW)} standard errors more would be "
        f"{percent(most)}. Less is known than they show."
    )


# Judges a table by a density of its cells: odd cells, and rows unlike all others.


LISTED_CELLS: Final = 20
CELLS_BY_CHANCE: Final = 0.1
"""Share of the cells that look wrong that chance explains."""
MOST_NOVEL: Final = 10
LISTED_NOVELTY: Final = 0.98
"""Novelty from which a row is listed."""
FITS_IN_POOL: Final = 8
"""Fits side by side."""
SHAPE_WORDS: Final = {"tied": "shared", "diag": "diagonal"}
"""Covariances whose name is no word."""
NAMED_ATOMS: Final = 6
"""Columns whose atoms are named."""


@dataclass(frozen=True)
class JudgedTable:
    """Cells and rows of a table beside what a density of them and of the labels expects."""

    density: MixtureDensity
    table: pd.DataFrame
    """The cells it was fitted to, and the labels as one more column."""
    cells: xr.Dataset
    """Answer of ``surprise``; it conditions on the label and does not judge it."""
    novelty: Float[np.ndarray, " obs"]
    """Novelty of the rows without their labels."""
    sentence: str
    """Sentence on the density."""


def judge_table(job: Job) -> JudgedTable:
    """Fit a density to the cells and the labels, less what looks wrong, and judge all of them."""
    given = job.y.astype(object).where(job.y.notna(), None)
    labels = [None if label is None else str(label) for label in given]
    table = job.X.assign(**{job.target: labels})
    density = MixtureDensity(
        "cv",
        covariance_type="cv",
        prior="cv",
        column_maps="power",
        atoms="auto",
        trim=True,
        pool=FITS_IN_POOL,
        categorical_features=[*job.categorical, job.target],
        column_kinds=job.said_kinds,
        random_state=job.seed,
    ).fit(table)
    cells = density.surprise(table).sel(column=list(job.X.columns))
    unlabelled = density.novelty(table.assign(**{job.target: None}))
    return JudgedTable(density, table, cells, unlabelled, _described(density))


def _described(density: MixtureDensity) -> str:
    """The chosen density in words, and the columns with atoms."""
    best, n = density.candidates_[0], len(density.candidates_)
    shape = SHAPE_WORDS.get(best.covariance_type, best.covariance_type)
    parts = sum(candidate.share > 0 for candidate in density.candidates_)
    chosen = f" with {parts} of {n} settings that were tried on rows held out" if n > 1 else ""
    sentence = (
        f"The density is an average of fits{chosen}; the best one has "
        f"{plural(best.n_components, 'component')} and {shape} covariances."
    )
    atoms = [
        f"{percent(share)} of {clipped(name, 30)} are exactly {exact(value)}"
        for name, values in density.atoms_.items()
        for value, share in values.items()
    ]
    if all(candidate.n_components == 1 for candidate in density.candidates_ if candidate.share > 0):
        sentence += " One component knows no classes: a label says nothing of the cells of its row."
    repeated = f" Values that repeat have a share of their own: {listing(atoms, NAMED_ATOMS)}."
    return f"{sentence}{repeated if atoms else ''}"


def odd_cells(job: Job, judged: JudgedTable) -> tuple[tuple[OddCell, ...], int]:
    """Cells that look wrong, the least probable first, and how many there are.

    A tail is that of the cell among all cells of the table. Of the cells that are found at most one
    in ten is there by chance (Benjamini and Hochberg).
    """
    surprise = -judged.cells["log_tail"].to_numpy()
    observed = ~np.isnan(surprise)
    tails = np.full(surprise.shape, np.nan)
    tails[observed] = tails_beside(surprise[observed], surprise[observed])
    odd = np.zeros(surprise.shape, dtype=bool)
    if observed.any():
        odd[observed] = false_discovery_control(tails[observed]) <= CELLS_BY_CHANCE
    places = np.argwhere(odd)
    places = places[np.argsort(tails[odd], kind="stable")]
    listed = tuple(
        _odd_cell(job, judged.cells, row, column, float(tails[row, column]))
        for row, column in places[:LISTED_CELLS].tolist()
    )
    return listed, len(places)


def _odd_cell(job: Job, cells: xr.Dataset, row: int, column: int, tail: float) -> OddCell:
    """One cell in words, with the probability of cells that are no more likely."""
    name, here = job.X.columns[column], cells.isel(obs=row, column=column)
    value, expected = job.X.iloc[row, column], str(here["expected"].item())
    if not job.kinds[name].has_levels:
        value = job.cell(name, float(value))
        expected = job.cell(name, float(here["expected"]))
        if not np.isnan(here["lower"]):
            expected = between(*(job.cell(name, float(here[end])) for end in ("lower", "upper")))
    return OddCell(job.row(row), str(name), str(value), expected, tail)


def novel_rows(job: Job, judged: JudgedTable) -> tuple[NovelRow, ...]:
    """Rows unlike all others, the least probable cells first among equals.

    Of each, its least probable cell is hidden and the row judged anew.
    """
    log_tail = judged.cells["log_tail"].to_numpy()
    order = np.lexsort((np.nansum(log_tail, axis=1), -judged.novelty))[:MOST_NOVEL]
    rows = order[judged.novelty[order] >= LISTED_NOVELTY]
    rows = rows[~np.isnan(log_tail[rows]).all(axis=1)]
    if not rows.size:
        return ()
    least = np.nanargmin(log_tail[rows], axis=1)
    table = judged.table.iloc[rows].assign(**{job.target: None})
    hidden = table.mask(least[:, None] == np.arange(table.shape[1]))
    novel = []
    for row, column, without in zip(rows, least, judged.density.novelty(hidden), strict=True):
        tail = float(np.exp(log_tail[row, column]))
        cell = _odd_cell(job, judged.cells, int(row), int(column), tail)
        novel.append(
            NovelRow(
                row=cell.row,
                novelty=float(judged.novelty[row]),
                column=cell.column,
                value=cell.value,
                expected=cell.expected,
                without=float(without),
                alone=bool(without < LISTED_NOVELTY),
            )
        )
    return tuple(novel)


# Uncertain rows and what would help; rows, cells and labels that look wrong.


LISTED_ROWS = 20
NEAREST = 5
"""Rows that are listed where fewer are undecided."""
THRESHOLD = 0.9
"""A row counts as unsure where its most probable class has less than this probability."""
WORTH = 0.05
"""Share of the entropy that a measurement must remove to be suggested."""
LEAST_DOUBT = 1e-15
"""Entropy of a row that shares of doubt are taken of, in nats."""
LACK_OF_DATA = 0.5
"""Share of epistemic entropy from which more labelled rows are suggested: most of the doubt."""
UNLIKELY_LABEL = 0.05
"""Held-out probability below which labels are counted beside what chance puts there."""
LABELS_BY_CHANCE = 0.1
"""Share of the listed labels that chance explains."""


def held_out_uncertainty(
    fit: Any, held_out: HeldOutRows, uncertainty: xr.Dataset
) -> tuple[Int[np.ndarray, " row"], xr.Dataset]:
    """Positions of the rows whose label no fit behind their answer had seen, and these answers.

    Labelled rows were held out; of rows without a label ``uncertainty`` has the answers. Where
    rows that were held out have no interval, no row has one.
    """
    own, prob = next(iter(held_out.probabilities.values())), float(uncertainty.attrs["prob"])
    answers = {name: values.to_numpy().copy() for name, values in uncertainty.data_vars.items()}
    found = fit.held_out_summary(own, prob)
    rows = held_out.scored if found is None else found[0]
    answers[names.PROBABILITY][rows] = own[rows]
    answers["total_entropy"][rows] = entropy(own[rows])
    spreads = ("lower", "upper", "aleatoric_entropy", "epistemic_entropy")
    for name in spreads:
        values = np.nan if found is None else getattr(found[1], name.removesuffix("_entropy"))
        answers[name][rows if found else slice(None)] = values
    known = np.union1d(rows, np.flatnonzero(held_out.labels < 0))
    return known, uncertainty.assign(
        {name: (uncertainty[name].dims, values) for name, values in answers.items()}
    ).isel(obs=known)


def read_doubt(
    job: Job,
    model: Any,
    density: Any,
    judged: JudgedTable,
    held_out: HeldOutRows,
    known: Int[np.ndarray, " row"],
    uncertainty: xr.Dataset,
    event: Event | None = None,
) -> Doubt:
    """Uncertain rows, why they are, and what would help.

    For an event they are those whose probability is nearest to the threshold in use, else those
    of most entropy. ``uncertainty`` is that of the rows at the positions ``known``.

    Nearest components and the worth of a measurement need a density.
    """
    total = uncertainty["total_entropy"].to_numpy()
    epistemic = np.nan_to_num(uncertainty["epistemic_entropy"].to_numpy())
    order, undecided = -total, None
    if event is not None:
        p, lower, upper = (
            uncertainty[name].to_numpy()[:, event.column]
            for name in (names.PROBABILITY, "lower", "upper")
        )
        order = np.abs(logit(np.clip(p, LEAST_DOUBT, 1 - LEAST_DOUBT)) - logit(event.threshold))
        undecided = int(((lower < event.threshold) & (event.threshold < upper)).sum())
        undecided = None if np.isnan(lower).all() else undecided
    # Rows that are settled are no doubt; some of them show how far they are from it.
    listed = LISTED_ROWS if undecided is None else int(np.clip(undecided, NEAREST, LISTED_ROWS))
    worst = np.argsort(order, kind="stable")[:listed]
    own = next(iter(held_out.probabilities.values()))
    scored, labels = held_out.scored, held_out.labels[known]
    right = uncertainty[names.PROBABILITY].to_numpy().argmax(1) == labels
    outcome = np.where(labels >= 0, right, -1)
    rows = _unsure(job, model, density, uncertainty.isel(obs=worst), known[worst], event)
    return Doubt(
        aleatoric=total - epistemic,
        epistemic=epistemic,
        outcome=outcome,
        rows=rows,
        judged=scored.size,
        below=int((own[scored].max(1) < THRESHOLD).sum()),
        threshold=THRESHOLD,
        novel=novel_rows(job, judged),
        event=event,
        undecided=undecided,
    )


def _unsure(
    job: Job,
    model: Any,
    density: Any,
    uncertainty: xr.Dataset,
    worst: Int[np.ndarray, " row"],
    event: Event | None,
) -> tuple[UnsureRow, ...]:
    """The least sure rows in words: by the probability of the event, or of the likeliest class.

    ``worst`` are their positions in the table.
    """
    nearest = _nearest(job.X.iloc[worst], density)
    # Shares of the model's own doubt: the draws have another, of which a gain is no part.
    own = np.maximum(entropy(model.predict_proba(job.X.iloc[worst])), LEAST_DOUBT)
    worth = None
    if density is not None or FAMILIES[job.family].pools:
        worth = model.acquire(job.X.iloc[worst])["gain"].to_pandas() / own[:, None]
    result = []
    for place, row in enumerate(worst):
        here = uncertainty.isel(obs=place)
        p = here[names.PROBABILITY].to_numpy()
        best = said = int(p.argmax())
        if event is not None:
            best = event.column
            said = best if p[best] >= event.threshold else 1 - best
        lower, upper = float(here["lower"][best]), float(here["upper"][best])
        total = max(float(here["total_entropy"]), LEAST_DOUBT)
        epistemic = float(here["epistemic_entropy"])
        given = job.y.iloc[row]
        result.append(
            UnsureRow(
                row=job.row(int(row)),
                given="" if pd.isna(given) else str(given),
                predicted=job.focus.action(model.classes_[said]),
                probability=float(p[best]),
                lower=lower,
                upper=upper,
                aleatoric=float(here["aleatoric_entropy"]),
                epistemic=epistemic,
                component=nearest[place],
                help=what_would_help(
                    {} if worth is None else worth.iloc[place],
                    epistemic / total,
                    (lower, upper),
                    event is not None and (upper < event.threshold or lower > event.threshold),
                ),
            )
        )
    return tuple(result)


def _nearest(X: pd.DataFrame, density: Any) -> list[str]:
    """The component with the largest responsibility for each row; empty without a density."""
    if density is None:
        return [""] * len(X)
    components = component_names(density)
    shares = np.asarray(density.transform(X))
    return [components[component] for component in shares.argmax(axis=1)]


def what_would_help(
    worth: Mapping[str, float] | pd.Series,
    epistemic: float,
    interval: tuple[float, float] = (np.nan, np.nan),
    decided: bool = False,
) -> str:
    """Advice for one row in words: refer it, or what would make its prediction surer.

    Where the interval is on one side of the threshold, which is ``decided``, nothing is advised.

    ``worth`` is the share of the doubt that a missing cell takes away, NaN where it is observed;
    ``epistemic`` is the share of the doubt that is about the model, NaN without draws, as the ends
    of the interval are.
    """
    if decided:
        return "nothing: its interval is on one side of the threshold"
    lower, upper = interval
    # Classes overlap where no probability inside of the interval is sure.
    unsure = lower > 1 - THRESHOLD and upper < THRESHOLD
    surer = _surer(worth, epistemic, unsure)
    is_open = upper - lower > OPEN_WIDTH
    return f"refer: the interval leaves every answer open; {surer}" if is_open else surer


def _surer(worth: Mapping[str, float] | pd.Series, epistemic: float, overlap: bool) -> str:
    """The cell, the rows or the kind of measurement that would take doubt away."""
    gains = {name: gain for name, gain in worth.items() if gain == gain}
    best = max(gains, key=gains.__getitem__, default=None)
    if best is not None and gains[best] > WORTH:
        share = percent(min(float(gains[best]), 1.0))
        return f"measure {clipped(best, 30)}: takes away about {share} of the doubt"
    if epistemic > LACK_OF_DATA or (epistemic == epistemic and not overlap):
        return "more labelled rows like it"
    if epistemic != epistemic:
        return "unknown: without intervals of rows held out kinds of doubt cannot be told apart"
    return "another kind of measurement: the classes overlap here"


def read_oddities(job: Job, judged: JudgedTable, held_out: HeldOutRows) -> Oddities:
    """Cells and labels that look wrong, least probable first."""
    cells, n_odd = odd_cells(job, judged)
    rows = held_out.scored
    own = next(iter(held_out.probabilities.values()))[rows]
    labels = held_out.labels[rows]
    listed = tuple(
        OddLabel(
            row=job.row(int(rows[i])),
            given=str(held_out.classes[labels[i]]),
            suggested=str(held_out.classes[own[i].argmax()]),
            probability=float(own[i, labels[i]]),
        )
        for i in beyond_chance(own, labels, LABELS_BY_CHANCE)[:LISTED_ROWS]
        if own[i, labels[i]] < UNLIKELY_LABEL
    )
    improbable = improbable_labels(own, labels, UNLIKELY_LABEL)
    return Oddities(cells, n_odd, listed, improbable, UNLIKELY_LABEL, judged.sentence)


# Missing cells as the density fills them in, and how well it fills cells that are known.


MOST_FILLED_ROWS = 2_000
NOMINAL = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
COMPLETED_TABLES = 100
"""Completed tables behind the intervals of missing cells."""
EXAMPLES = 12


@dataclass(frozen=True)
class HeldOutCells:
    """Observed real cells, filled in by fits that had not seen their rows."""

    tail: Float[np.ndarray, " cell"]
    """Probability, given the rest of the row, of a cell at least as extreme."""
    miss: Float[np.ndarray, " cell"]  # Cell less its expectation, in column standard deviations.
    from_mean: Float[np.ndarray, " cell"]
    """Cell less its column's mean in the rows of the fit, in the same unit."""


def fill_held_out(job: Job, judged: JudgedTable) -> HeldOutCells:
    """Fit without each fold and fill in its cells one at a time, as ``impute`` would.

    The folds hold rows without a label out, too. Settings are the best of the whole table, of all
    fits of the pool: choosing them anew takes many times as long as the fits. Cells of a column
    without a value in the rows of a fit are left out.
    """
    table, density = judged.table, judged.density
    hidden = job.labels.max() + 1
    dealt = np.where(job.labels < 0, hidden, job.labels)
    folds = stratified_folds(dealt, job.folds, job.seed)
    if job.groups is not None:
        folds = grouped_folds(dealt, job.groups, job.folds, job.seed)
    reals = job.lines
    tail, expected, mean = (np.full((len(job.X), len(reals)), np.nan) for _ in range(3))
    best = density.candidates_[0]
    prior = MixturePrior().weakened(best.strength, density.fitted_.model.specification)
    fresh = clone(density).set_params(
        n_components=best.n_components, covariance_type=best.covariance_type, prior=prior
    )

    def filled_in(fold: int) -> tuple[np.ndarray, np.ndarray]:
        fitted = clone(fresh).fit(table[folds != fold])
        fills = left_out(fitted, table[folds == fold])
        tail, expected = np.full((2, len(fills.tail), len(reals)), np.nan)
        columns = fitted.columns_
        feature_of = {columns.names[i]: at for i, at in columns.number_features.items()}
        there = [place for place, name in enumerate(reals) if name in feature_of]
        places = [feature_of[reals[place]] for place in there]
        tail[:, there], expected[:, there] = fills.tail[:, places], fills.expected[:, places]
        return tail, expected

    numbers = np.unique(folds[folds >= 0]).tolist()
    for fold, fills in zip(numbers, run_tasks(filled_in, numbers, "Filling in"), strict=True):
        out = folds == fold
        tail[out], expected[out] = fills
        mean[out] = job.X.loc[~out, reals].mean()
    cells = job.X[reals].to_numpy(dtype=float)
    scale = standardisation(cells, np.ones(len(cells))).scale
    filled = ~np.isnan(tail)
    return HeldOutCells(
        tail[filled], ((cells - expected) / scale)[filled], ((cells - mean) / scale)[filled]
    )


def left_out(density: MixtureDensity, table: pd.DataFrame) -> JudgedCells:
    """Every observed cell given the rest of its row."""
    mixture = density.fitted_.model
    rows = mixture.standardise(encode(table, density.columns_))
    return leave_one_cell_out(rows, cell_law(mixture, density.columns_))


def read_imputations(job: Job, judged: JudgedTable, cells: HeldOutCells | None) -> Imputations:
    """Missing cells with intervals, and the coverage of such intervals.

    Coverage is that of the missing cells where they are known; else that of observed cells of rows
    held out of the fit.
    """
    missing = (job.X.isna() & job.X.notna().any()).to_numpy()  # an empty column stays empty
    holes = np.flatnonzero(missing.any(1))
    holes = (
        holes[np.unique(np.linspace(0, max(len(holes) - 1, 0), MOST_FILLED_ROWS).astype(int))]
        if holes.size
        else holes
    )
    if cells is None:
        return _against_truth(job, int(missing.sum()), _Completed.of(holes, judged, job), holes)
    tables = _Completed.of(holes, judged, job) if holes.size else None
    tail = cells.tail
    covered = np.array([(tail >= 1 - p).mean() if tail.size else np.nan for p in NOMINAL])
    return Imputations(
        missing=int(missing.sum()),
        examples=() if tables is None else _examples(job, tables, holes),
        nominal=NOMINAL,
        covered=covered,
        n_checked=int(tail.size),
        hidden_truth=False,
        truth=np.zeros(0),
        filled=np.zeros(0),
        error=_errors(cells.miss, cells.from_mean),
    )


class _Completed:
    """Completed tables; real columns also as one array."""

    def __init__(self, tables: list[pd.DataFrame], reals: list[str], X: pd.DataFrame) -> None:
        self.X, self.reals, self.tables = X, reals, tables
        self.values = np.stack([table[reals].to_numpy(dtype=float) for table in tables])
        self.missing = X[reals].isna().to_numpy()

    @classmethod
    def of(cls, rows: Int[np.ndarray, " row"], judged: JudgedTable, job: Job) -> _Completed:
        """Draw completions of some rows."""
        reals = job.lines
        tables = judged.density.impute(judged.table.iloc[rows], draws=COMPLETED_TABLES)
        return cls(tables, reals, job.X.iloc[rows])


def _errors(misses: np.ndarray, from_mean: np.ndarray) -> tuple[tuple[str, float], ...]:
    """Root mean squared errors of the model and of column means."""
    if misses.size == 0:
        return ()
    return (
        ("this density, from the rest of the row", float(np.sqrt(np.mean(misses**2)))),
        ("the column's mean", float(np.sqrt(np.mean(from_mean**2)))),
    )


def _against_truth(job: Job, missing: int, drawn: _Completed, rows: np.ndarray) -> Imputations:
    """Coverage and error where the hidden cells are known."""
    assert job.truth is not None
    truth = job.truth.X[drawn.reals].iloc[rows].to_numpy(dtype=float)
    observed = job.X[drawn.reals]
    centre, scale = observed.mean().to_numpy(), observed.std().to_numpy()
    rank = ((drawn.values < truth).sum(0) + 0.5) / (len(drawn.values) + 1)
    depth = np.abs(2 * rank - 1)[drawn.missing]
    true = ((truth - centre) / scale)[drawn.missing]
    filled = ((drawn.values.mean(0) - centre) / scale)[drawn.missing]
    return Imputations(
        missing=missing,
        examples=_examples(job, drawn, rows),
        nominal=NOMINAL,
        covered=np.array([(depth <= p).mean() for p in NOMINAL]),
        n_checked=int(depth.size),
        hidden_truth=True,
        truth=true,
        filled=filled,
        error=_errors(true - filled, true),
    )


def _examples(job: Job, drawn: _Completed, rows: np.ndarray) -> tuple[Filled, ...]:
    """A few missing cells, chosen at random."""
    places = np.argwhere((drawn.X.isna() & job.X.notna().any()).to_numpy())
    chosen = np.random.default_rng(job.seed).permutation(len(places))[:EXAMPLES]
    return tuple(_filled(job, drawn, rows, *places[i].tolist()) for i in np.sort(chosen))


def _filled(job: Job, drawn: _Completed, rows: np.ndarray, place: int, column: int) -> Filled:
    """One missing cell in words."""
    name = drawn.X.columns[column]
    true: Any = "" if job.truth is None else job.truth.X[name].iloc[rows[place]]
    if name in drawn.reals:
        values = drawn.values[:, place, drawn.reals.index(name)]
        low, high = np.quantile(values, [0.05, 0.95])
        value = job.mean(name, float(values.mean()))
        interval = between(job.cell(name, float(low)), job.cell(name, float(high)))
        truth = "" if job.truth is None else job.cell(name, float(true))
    elif not job.kinds[name].has_levels:  # on a circle
        kind = job.kinds[name]
        cells = np.array([table[name].iloc[place] for table in drawn.tables], dtype=float)
        mean = kind.encode(cells).mean(axis=0, keepdims=True)
        value = job.mean(name, float(kind.decode(mean)[0]))
        interval = f"± {job.mean(name, float(kind.deviation(mean)[0]))}"
        truth = "" if job.truth is None else job.cell(name, float(true))
    else:
        levels = pd.Series([table[name].iloc[place] for table in drawn.tables]).value_counts()
        value, interval = str(levels.index[0]), percent(levels.iloc[0] / levels.sum())
        truth = str(true)
    return Filled(job.row(int(rows[place])), str(name), value, interval, truth)
