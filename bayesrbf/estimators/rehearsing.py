"""Intervals of a classifier, judged on the user's rows with labels whose truth is known."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Shaped
from sklearn.base import clone
from sklearn.utils import check_consistent_length

from bayesrbf import table
from bayesrbf.estimators.arguments import row_groups
from bayesrbf.estimators.reading import Reading
from bayesrbf.estimators.warning import ColumnWarning
from bayesrbf.fitted.drawing import METHODS
from bayesrbf.fitted.tasks import run_tasks
from bayesrbf.inference.draws import Draws

if TYPE_CHECKING:
    import xarray as xr

    from bayesrbf.estimators.classifier import Classifier


@dataclass(frozen=True)
class Rehearsal:
    """Settings of rehearsals for one kind of classifier: default method, and teachers left out."""

    method: str = "laplace"
    """How draws are made where nothing else is asked for."""
    kin: tuple[str, ...] = ()
    """Teachers of the classifier's own kind; they would flatter it, and are left out."""
    methods: tuple[str, ...] = (*(name for name in METHODS if name != "gibbs"), "bootstrap")
    """Methods that can draw: only mixtures and exemplars have Gibbs sweeps."""


@singledispatch
def rehearsal_of(estimator: object) -> Rehearsal:
    """Settings of rehearsals for the kind of a classifier; a kind registers its own."""
    return Rehearsal()


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
        else ``"bootstrap"`` for a stack and ``"laplace"`` for all others.
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
    from bayesrbf.posterior.rehearsal import drawn_labels, to_dataset, truth
    from bayesrbf.solvers.teachers import TEACHERS

    own, owner = rehearsal_of(estimator), type(estimator).__name__
    arguments = estimator.get_params(deep=False)
    drawn = vars(estimator)["fitted_"].draws if "fitted_" in vars(estimator) else None
    method = _method(arguments["inference"], drawn, own, inference)
    chosen = _teachers(owner, own, teachers)
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
    units = table.units_of(copies, None if of_rows is None else of_rows[labelled])
    numbered = None if units is None else units.numbers
    truths = [
        truth(TEACHERS[name](cells, categorical, real, seed, numbered), real) for name in chosen
    ]
    plays = [(p, drawn_labels(p, real, copies, rng)) for p in truths for _ in range(n_repeats)]

    def play(one: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        p, drawn = one
        return _played(estimator, X, classes[drawn], labelled, of_rows, p, method, options)

    figures = run_tasks(play, plays, "Rehearsal", n_jobs, progress_bar)
    shape = (len(chosen), n_repeats, -1)
    coverage, width = (np.reshape(one, shape) for one in zip(*figures, strict=True))
    return to_dataset(coverage, width, chosen, method)


def _method(inference: str, drawn: Draws | None, own: Rehearsal, asked: str | None) -> str:
    """The method asked for, or that of the draws, of the constructor, or of the kind."""
    if asked is not None and asked not in own.methods:
        names = " or ".join(map(repr, own.methods))
        raise ValueError(
            f"rehearse(inference=...) must be {names} for this classifier; received {asked!r}."
        )
    wishes = [asked, *([] if drawn is None else [drawn.method]), inference, own.method]
    return next(wish for wish in wishes if wish in own.methods)


def _teachers(owner: str, own: Rehearsal, asked: Sequence[str] | None) -> tuple[str, ...]:
    """Names of the teachers: those asked for, or all that are no kin of the model."""
    from bayesrbf.solvers.teachers import TEACHERS

    others = tuple(name for name in TEACHERS if name not in own.kin)
    if asked is None:
        asked = others
    unknown = [name for name in asked if name not in others]
    if isinstance(asked, str) or unknown or not asked:
        raise ValueError(
            f"rehearse(teachers=...) must be a sequence out of {others}, the families that "
            f"{owner} has no part of; received {asked!r}."
        )
    return tuple(asked)


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
    """Coverage and mean width at every level, of a clone that was fitted to drawn labels."""
    from bayesrbf.posterior.rehearsal import LEVELS, covers

    # The truth is at the shares of these rows: a prevalence of use would move away from it.
    asked = clone(model).set_params(inference="map", class_prior=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnWarning)  # the fit of the true labels told of them
        asked.fit(X, _hidden_beside(drawn, labelled), groups=groups)
        fitted = asked.refine(method, **options)
    uncertainties = [fitted.uncertainty(X, prob=level).isel(obs=labelled) for level in LEVELS]
    lower, upper = (
        np.stack([one[end].to_numpy() for one in uncertainties]) for end in ("lower", "upper")
    )
    return covers(lower, upper, truth).mean(axis=(1, 2)), (upper - lower).mean(axis=(1, 2))
