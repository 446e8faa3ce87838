"""Predictive checks: tables drawn from a declared graph; and rehearsals of a fit."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from sklearn.base import clone
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from bayesrbf import table
from bayesrbf.base import names
from bayesrbf.base.arrays import draw_categories
from bayesrbf.base.tasks import run_tasks
from bayesrbf.families.estimator import Estimator
from bayesrbf.fit.arguments import row_groups
from bayesrbf.fit.asking import refuse
from bayesrbf.fit.calibration import fit_temperature, tempered
from bayesrbf.fit.drawing import Rehearsal
from bayesrbf.fit.reading import Reading
from bayesrbf.inference.draws import Draws
from bayesrbf.reading.notes import ColumnWarning

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

    from bayesrbf.families.classifier import Classifier


# Tables drawn from a declared graph beside the training table.


def predictive_check(estimator: Estimator, draws: int = 100, *, prior: bool = False) -> xr.DataTree:
    """Tables drawn from the declared graph beside the training table.

    Every drawn table has the same missing cells and hidden labels as the real one, so
    that the two can be compared. Row weights are not used.

    Parameters
    ----------
    estimator : MixtureDensity, HybridMixtureClassifier or RBF network
        Fitted; its graph has the cells of the rows.
    draws : int
        Number of tables of every chain; at most as many as the posterior
        has draws.
    prior : bool
        Draw the parameters from the prior and not from ``posterior_``.

    Returns
    -------
    xarray.DataTree
        ``posterior_predictive`` (or ``prior_predictive``) and
        ``observed_data``, one variable a column (categories and labels as
        codes) over the rows where it is observed; from a posterior also
        ``posterior`` and the ``log_likelihood`` of the whole rows. For
        ``az.plot_ppc_dist``, ``az.plot_ppc_pit`` and ``az.plot_loo_pit``.

    Raises
    ------
    ValueError
        If ``draws`` is below 1, the graph has no cells, or ``prior=True`` meets an objective other
        than the likelihood, such as the blend, the default of
        :class:`bayesrbf.HybridMixtureClassifier`: what it adds is no distribution of tables.
    """
    if draws < 1:
        raise ValueError(f"predictive_check(draws=...) must be at least 1; received {draws}.")
    check_is_fitted(estimator)
    fit = estimator.fitted_
    refuse(fit, f"predictive_check of a {fit.table.owner}", "rows")
    graph = fit.model.declare(fit.rows, fit.axes)
    if names.OBSERVED not in (node.name for node in graph.observed_RVs):
        raise ValueError(
            f"predictive_check draws tables, and the graph of a {fit.table.owner} has labels "
            "alone: posterior_['posterior_predictive'] has draws of these."
        )
    potentials = [potential.name for potential in graph.potentials]
    if prior and potentials:
        raise ValueError(
            f"predictive_check(prior=True) needs a graph that is a distribution of tables; that of "
            f"this {fit.table.owner} has the potentials {potentials}, "
            "which draws from the prior ignore: fit with objective='likelihood', or leave prior "
            "out to draw from the posterior."
        )
    last_real = fit.rows.real.shape[1]
    return drawn_tables(graph, fit.tree, last_real, draws=draws, prior=prior, seed=fit.table.seed)


def drawn_tables(
    model: pm.Model, tree: xr.DataTree, last_real: int, *, draws: int, prior: bool, seed: int
) -> xr.DataTree:
    """Tables drawn from a graph whose rows are one node, and the observed one, column by column.

    ``draws`` is the number of tables from the prior, or the maximum number of every chain of the
    posterior; then the tree has the draws of the parameters, too. Columns are the label (a code),
    real columns up to position ``last_real``, and codes of categories.
    """
    import pymc as pm
    import xarray as xr

    from bayesrbf.fit.trees import by_column

    groups = (names.CONSTANT_DATA, names.OBSERVED_DATA)  # of a classifier, and of a density
    of_cells = [tree.children[group].to_dataset() for group in groups]
    (observed,) = (group[names.OBSERVED] for group in of_cells if names.OBSERVED in group)
    positions = np.arange(observed.sizes[names.COLUMN])
    discrete = (positions == 0) | (positions > last_real)
    if names.CLASS_PROBABILITIES not in tree.children[names.POSTERIOR]:
        observed = observed.where(
            xr.DataArray(positions > 0, dims=names.COLUMN)
        )  # one class says nothing
    # one pass over few tables: compiling would cost more than it saves
    compiled = {"mode": "FAST_COMPILE"}
    if prior:
        made = pm.sample_prior_predictive(draws, model, random_seed=seed, compile_kwargs=compiled)
        drawn = made.children["prior_predictive"].to_dataset()[names.OBSERVED]
        return by_column(drawn, observed, discrete)
    # What the posterior itself is of comes first: of whole rows, where the graph draws these.
    scored = next(iter(tree.children[names.LOG_LIKELIHOOD].data_vars.values()))
    evaluated = scored[names.DRAW].to_numpy()
    spread = np.linspace(0, evaluated.size - 1, draws).astype(int)
    chosen = {names.DRAW: evaluated[np.unique(spread)]}
    thinned = tree.sel(chosen)
    made = pm.sample_posterior_predictive(
        thinned, model, random_seed=seed, progressbar=False, compile_kwargs=compiled
    )
    check = by_column(
        made.children["posterior_predictive"].to_dataset()[names.OBSERVED],
        observed,
        discrete,
        scored.sel(chosen).rename({scored.dims[-1]: names.OBS}),
    )
    check[names.POSTERIOR] = thinned.children[names.POSTERIOR]
    return check


# Intervals of a classifier, judged on the user's rows with labels whose truth is known.


def rehearse(
    estimator: Classifier,
    X: object,
    y: object,
    *,
    groups: object = None,
    inference: str | None = None,
    teachers: Sequence[str] | None = None,
    n_repeats: int = 2,
    random_state: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    progress_bar: bool = False,
    **options: object,
) -> xr.Dataset:
    """Measure how often intervals hold the truth on these rows, where the truth is known.

    Models of other families, the teachers, are fitted to the labelled rows. Their held-out
    probabilities, with a temperature, are the truth: labels of the same rows are drawn from them,
    clones of this classifier are fitted to these labels, and the intervals of ``uncertainty``
    are compared with the truth. The classifier itself does not change.

    Parameters
    ----------
    estimator : classifier of this package
        The classifier whose intervals are tried; it need not be fitted.
    X : array-like or frame of shape (n_obs, n_columns)
        Rows; cells may be missing.
    y : array-like of shape (n_obs,)
        Their labels. Rows whose label is hidden stay without one and are not counted.
    groups : array-like of shape (n_obs,), optional
        Group of each row, as ``fit`` takes it.
    inference : str, optional
        Method of ``refine``; None: that of the present draws, or of the constructor, or
        else ``"laplace"``.
    teachers : sequence of {"trees", "boosting", "process"}, optional
        Bagged trees, boosted trees, a Gaussian process; None: all that are not of the
        classifier's own kind.
    n_repeats : int
        Times that labels are drawn from each teacher; each costs a fit and its draws.
    random_state : int, numpy.random.Generator or None
        Source of teachers and labels; None: from ``random_state`` of the classifier where that
        is an int.
    n_jobs : int, optional
        Processes that share the fits; one by default.
    progress_bar : bool
        Show how far the fits are.
    **options : object
        Passed on to ``refine``, such as ``draws``.

    Returns
    -------
    xarray.Dataset
        ``coverage``, ``coverage_error`` and ``width`` over teacher and level (.5, .8, .9);
        ``overall_coverage``, ``overall_error`` and ``overall_width`` over level. Errors are
        standard errors between fits. Attributes ``sentence``, ``method``, ``n_repeats``.

    Raises
    ------
    ValueError
        If there are not two classes of two labelled rows each, a teacher is unknown, of the
        classifier's own kind or not there, ``n_repeats`` is below 1, or the method is unknown.
    """
    from bayesrbf.answers.teachers import TEACHERS

    rehearsal, owner = estimator.__rehearsal__(), type(estimator).__name__
    arguments = estimator.get_params(deep=False)
    drawn = vars(estimator)["fitted_"].draws if "fitted_" in vars(estimator) else None
    method = _method(arguments["inference"], drawn, rehearsal, inference)
    chosen = _teachers(owner, rehearsal, teachers)
    if n_repeats < 1:
        raise ValueError(f"rehearse(n_repeats=...) must be at least 1; received {n_repeats!r}.")
    check_consistent_length(X, y)
    classes, labels = table.encode_labels(y, unlabelled=arguments["unlabelled"])
    labelled = labels >= 0
    _check_classes(classes, labels[labelled])
    columns = table.learn_columns(X, **Reading(owner, arguments).features)
    rows = table.encode(X, columns).take(np.flatnonzero(labelled))
    cells = np.column_stack([rows.real, np.where(rows.codes < 0, np.nan, rows.codes)])
    categorical = np.arange(cells.shape[1]) >= rows.real.shape[1]
    if random_state is None and isinstance(arguments["random_state"], int):
        random_state = arguments["random_state"]
    rng = np.random.default_rng(random_state)
    seed = int(rng.integers(2**31))
    real = labels[labelled]
    of_rows, copies = row_groups(groups, X, "rehearse"), table.copies_of(rows)
    subjects = table.subjects_of(copies, None if of_rows is None else of_rows[labelled])
    numbered = None if subjects is None else subjects.numbers
    truths = [
        truth(TEACHERS[name](cells, categorical, real, seed, numbered), real) for name in chosen
    ]
    plays = [(p, drawn_labels(p, real, copies, rng)) for p in truths for _ in range(n_repeats)]

    def play(task: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        p, drawn = task
        return _played(estimator, X, classes[drawn], labelled, of_rows, p, method, options)

    figures = run_tasks(play, plays, "Rehearsal", n_jobs, progress_bar)
    shape = (len(chosen), n_repeats, -1)
    coverage, width = (np.reshape(values, shape) for values in zip(*figures, strict=True))
    return to_dataset(coverage, width, chosen, method)


def _method(
    inference: str, drawn: Draws | None, rehearsal: Rehearsal, requested: str | None
) -> str:
    """Method of the draws: requested, else of the fit, of ``inference``, or the default.

    ValueError if the rehearsal does not have the requested method.
    """
    if requested is not None and requested not in rehearsal.methods:
        names = " or ".join(map(repr, rehearsal.methods))
        raise ValueError(
            f"rehearse(inference=...) must be {names} for this classifier; received {requested!r}."
        )
    wishes = [requested, *([] if drawn is None else [drawn.method]), inference, rehearsal.method]
    return next(wish for wish in wishes if wish in rehearsal.methods)


def _teachers(owner: str, rehearsal: Rehearsal, requested: Sequence[str] | None) -> tuple[str, ...]:
    """Names of the teachers: the requested ones, or all unrelated to the model.

    ValueError for a requested name that is unknown or of the model's kind.
    """
    from bayesrbf.answers.teachers import TEACHERS

    allowed = tuple(name for name in TEACHERS if name not in rehearsal.kin)
    if requested is None:
        requested = allowed
    unknown = [name for name in requested if name not in allowed]
    if isinstance(requested, str) or unknown or not requested:
        raise ValueError(
            f"rehearse(teachers=...) must be a sequence out of {allowed}, the families that "
            f"{owner} has no part of; received {requested!r}."
        )
    return tuple(requested)


def _check_classes(classes: Shaped[np.ndarray, " label"], labels: np.ndarray) -> None:
    """ValueError unless two classes have two labelled rows each."""
    counts = np.bincount(labels)
    if (counts >= 2).sum() < 2:
        rows_by_class = dict(zip(classes.tolist(), counts.tolist(), strict=True))
        raise ValueError(
            "rehearse(y) needs at least two classes with two labelled rows each; received "
            f"labelled rows by class: {rows_by_class}."
        )


def _hidden_beside(drawn: np.ndarray, labelled: Bool[np.ndarray, " obs"]) -> np.ndarray:
    """Drawn labels in the places of known ones; the others stay hidden."""
    if labelled.all():
        return drawn
    y = np.full(labelled.size, None, dtype=object)
    y[labelled] = drawn
    return y


def _played(
    model: Classifier,
    X: object,
    drawn: Shaped[np.ndarray, " labelled"],
    labelled: Bool[np.ndarray, " obs"],
    groups: Shaped[np.ndarray, " obs"] | None,
    truth: Float[np.ndarray, "labelled label"],
    method: str,
    options: dict[str, object],
) -> tuple[Float[np.ndarray, " level"], Float[np.ndarray, " level"]]:
    """Coverage of ``truth`` and mean interval width at every level, of a clone fitted to labels.

    ``drawn`` are the labels of the ``labelled`` rows; means are over these rows and the classes.
    """
    # The truth is at the shares of these rows: a prevalence of use would move away from it.
    template = clone(model).set_params(inference="map", class_prior=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnWarning)  # the fit of the true labels told of them
        template.fit(X, _hidden_beside(drawn, labelled), groups=groups)
        fitted = template.refine(method, **options)
    uncertainties = [fitted.uncertainty(X, prob=level).isel(obs=labelled) for level in LEVELS]
    lower, upper = (
        np.stack([uncertainty[end].to_numpy() for uncertainty in uncertainties])
        for end in ("lower", "upper")
    )
    return covers(lower, upper, truth).mean(axis=(1, 2)), (upper - lower).mean(axis=(1, 2))


# A rehearsal: labels drawn from known probabilities, and how often intervals held these.


LEVELS: Final = (0.5, 0.8, 0.9)
"""Probabilities inside the intervals."""
SMALLEST: Final = 1e-3
"""Least probability of a class under a teacher, before it is tempered."""
ATTEMPTS: Final = 1000
"""Draws of the labels before an error, where a class keeps too few rows."""
MIN_PER_CLASS: Final = 2
"""Rows that every class keeps in drawn labels: folds need one on either side."""

_NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def truth(
    probabilities: Float[np.ndarray, "obs label"], labels: Int[np.ndarray, " obs"]
) -> Float[np.ndarray, "obs label"]:
    """Plausible class probabilities: a teacher's, tempered by labels that it has not seen."""
    logs = np.log(np.clip(probabilities, SMALLEST, 1.0))
    return np.exp(tempered(logs, fit_temperature(logs, labels, np.ones(labels.size))))


def drawn_labels(
    truth: Float[np.ndarray, "obs label"],
    labels: Int[np.ndarray, " obs"],
    copies: Int[np.ndarray, " obs"],
    rng: np.random.Generator,
) -> Int[np.ndarray, " obs"]:
    """Codes of labels drawn from their probabilities ``truth``; none of the classes is lost.

    A row has the label of the row at its position in ``copies``, the first of its duplicates.

    They are drawn again until each class has two rows, or one if it has no more in ``labels``.
    ValueError if a thousand attempts do not bring that.
    """
    n_classes = truth.shape[1]
    least = np.minimum(np.bincount(labels, minlength=n_classes), MIN_PER_CLASS)
    for _ in range(ATTEMPTS):
        drawn = draw_categories(truth, rng)[copies]
        if (np.bincount(drawn, minlength=n_classes) >= least).all():
            return drawn
    raise ValueError(
        f"Labels of {len(truth)} rows were drawn {ATTEMPTS} times, and each time a class had fewer "
        f"than {MIN_PER_CLASS}: there are too few rows of some class. Leave that class out."
    )


def covers(
    lower: Float[np.ndarray, "*levels obs label"],
    upper: Float[np.ndarray, "*levels obs label"],
    truth: Float[np.ndarray, "obs label"],
) -> Bool[np.ndarray, "*levels obs label"]:
    """Whether each interval holds the truth, ends included."""
    return (lower <= truth) & (truth <= upper)


def to_dataset(
    coverage: Float[np.ndarray, "teacher repeat level"],
    width: Float[np.ndarray, "teacher repeat level"],
    teachers: Sequence[str],
    method: str,
) -> xr.Dataset:
    """Coverage, its standard error and mean width of the intervals, by teacher and overall.

    Rows of one fit err together, so standard errors are of the spread between fits: over repeats
    for a teacher, over all fits for the overall coverage.
    """
    import xarray as xr

    from bayesrbf.fit.row_answers import described

    by_teacher, overall = ("teacher", "level"), ("level",)
    n_teachers, n_repeats, n_levels = coverage.shape
    fits = coverage.reshape(-1, n_levels)
    mean, error = "teachers and repeats", "standard error of the"
    holds = "share of the teacher's probabilities that lie inside their intervals"
    by_repeat = f"{error} coverage over repeats (NaN: one repeat)"
    of_teachers = _standard_error(coverage.swapaxes(0, 1))
    variables = {
        "coverage": (by_teacher, coverage.mean(axis=1), holds),
        "coverage_error": (by_teacher, of_teachers, by_repeat),
        "width": (by_teacher, width.mean(axis=1), "mean width of the intervals"),
        "overall_coverage": (overall, fits.mean(axis=0), f"mean coverage over {mean}"),
        "overall_error": (overall, _standard_error(fits), f"{error} overall coverage over {mean}"),
        "overall_width": (overall, width.mean(axis=(0, 1)), f"mean width over {mean}"),
    }
    return xr.Dataset(
        described(variables),
        coords={"teacher": list(teachers), "level": list(LEVELS)},
        attrs={
            "sentence": sentence(LEVELS[-1], float(fits[:, -1].mean()), n_teachers),
            "method": method,
            "n_repeats": n_repeats,
        },
    )


def _standard_error(figures: Float[np.ndarray, "fit *rest"]) -> Float[np.ndarray, "*rest"]:
    """Standard error of the mean over fits; NaN for a single one."""
    if len(figures) == 1:
        return np.full(figures.shape[1:], np.nan)
    error: np.ndarray = figures.std(axis=0, ddof=1) / np.sqrt(len(figures))
    return error


def sentence(level: float, coverage: float, n_models: int) -> str:
    """Message on the coverage of the intervals."""
    models = "one other model" if n_models == 1 else f"{_NUMBERS[n_models]} other models"
    return (
        f"{100 * level:.0f} % intervals held the truth {100 * coverage:.0f} times in 100 when "
        f"labels of these rows were drawn from {models}."
    )
