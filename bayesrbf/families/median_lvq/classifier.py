"""Exemplar classifiers on dissimilarities: every prototype is a row of the training data."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, Self

import numpy as np
from jaxtyping import Float, Int, Real, Shaped
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from bayesrbf import table
from bayesrbf.base.records import Stored
from bayesrbf.base.rows import Observations, joined_rows
from bayesrbf.families.classifier import Classifier, Labels
from bayesrbf.families.estimator import AnyFit, fitting
from bayesrbf.families.median_lvq.dissimilarities import (
    PRECOMPUTED,
    Metric,
    WholeRows,
    check_values,
)
from bayesrbf.families.median_lvq.fitted import (
    FittedExemplars,
    Source,
    candidates_of,
    exemplar_log_joint,
    source_of,
)
from bayesrbf.families.median_lvq.records import (
    Dissimilarities,
    MedianLVQParameters,
    MedianLVQPrior,
    Prototypes,
    Sigma,
)
from bayesrbf.families.median_lvq.search import SearchSettings, fit_exemplars
from bayesrbf.fit.arguments import (
    SHARED,
    PerClass,
    Rule,
    components_per_class,
    instance,
    one_of,
    row_groups,
    row_weights,
)
from bayesrbf.fit.asking import new_rows, requires
from bayesrbf.fit.drawing import Rehearsal
from bayesrbf.fit.held_out import HeldOut, hold_out, masking_of, split_rows, warn_nothing_held_out
from bayesrbf.fit.reading import (
    Reading,
    read_labels,
    read_table,
    refuse_collection,
    warn_of_copies,
)
from bayesrbf.fit.stages import NO_CALIBRATION, Calibration
from bayesrbf.fit.table import FittedTable, RowReader, TrainingTable

if TYPE_CHECKING:
    import pandas as pd


# The exemplars that a prediction rests on, as a table.


def needed_rows(fit: FittedTable[FittedExemplars, None]) -> Int[np.ndarray, " needed"]:
    """Training rows that are an exemplar at the fitted point or in a draw, ascending."""
    exemplars = fit.model.parameters.exemplars
    if fit.draws is None:
        return np.unique(exemplars)
    drawn = np.rint(fit.draws.theta[..., : exemplars.size]).astype(np.intp)
    return np.union1d(exemplars, drawn)


def explanation(
    shares: Float[np.ndarray, "obs exemplar label"],
    dissimilarities: Float[np.ndarray, "obs exemplar"],
    exemplars: Shaped[np.ndarray, " exemplar"],
    classes: Shaped[np.ndarray, " label"],
    most: int,
) -> pd.DataFrame:
    """List the exemplars of every row, those first that count most.

    Shares are NaN where an exemplar is none of the class.

    >>> shares = np.array([[[0.2, np.nan], [np.nan, 0.8]]])
    >>> explanation(shares, np.array([[3.0, 1.0]]), np.array([4, 7]), np.array(["a", "b"]), 5)
       row  exemplar label  dissimilarity  responsibility
    0    0         7     b            1.0             0.8
    1    0         4     a            3.0             0.2
    """
    import pandas as pd

    n_obs, _, n_classes = shares.shape
    flat = shares.reshape(n_obs, -1)
    order = np.argsort(-flat, axis=1, kind="stable")[:, :most]  # NaN comes last
    rows = np.repeat(np.arange(n_obs), order.shape[1])
    entries = order.ravel()
    listed = ~np.isnan(flat[rows, entries])
    rows, entries = rows[listed], entries[listed]
    positions = entries // n_classes
    return pd.DataFrame(
        {
            "row": rows,
            "exemplar": exemplars[positions],
            "label": classes[entries % n_classes],
            "dissimilarity": dissimilarities[rows, positions],
            "responsibility": flat[rows, entries],
        }
    )


# Training rows: of a table, or compared whole.


GOWER: Final = "gower"


def read_whole(
    reading: Reading, metric: Metric, X: object, y: object, sample_weight: object, groups: object
) -> TrainingTable:
    """Training table of rows that are compared whole; duplicates are one independent subject."""
    refuse_collection(reading, X)
    shell = type(reading.owner, (BaseEstimator,), {})()
    whole = WholeRows(metric)
    raw = whole.read(X, shell, reset=True)
    if y is None:
        raise ValueError(f"{reading.owner}.fit requires y to be passed, but the target y is None.")
    labels = read_labels(reading, raw.whole, y, row_weights(sample_weight, raw.whole))
    of_rows = row_groups(groups, raw.whole, f"{reading.owner}.fit")
    row_indices = np.flatnonzero(labels.weights > 0)
    rows = replace(raw, labels=labels.codes, weights=labels.weights)
    rows = rows if row_indices.size == rows.n_obs else rows.take(row_indices)
    cells = _as_vectors(rows, whole)
    cells = _by_position(rows) if cells is None else cells
    weighed, repeated = table.with_subjects(
        cells, None if of_rows is None else of_rows[row_indices]
    )
    warn_of_copies(repeated, row_indices.size, reading.owner)
    return TrainingTable(
        reading.owner,
        None,
        replace(rows, weights=weighed.weights, subjects=weighed.subjects),
        row_indices,
        reading.seed,
        shell.n_features_in_,
        vars(shell).get("feature_names_in_"),
        classes=labels.classes,
        prevalence=labels.prevalence,
        repeated=repeated,
        whole=whole,
    )


def _as_vectors(rows: Observations, reader: RowReader | None) -> Observations | None:
    """Rows with cells by which duplicates are found; None without cells or numbers."""
    if not isinstance(reader, WholeRows) or rows.whole is None:
        return rows
    if reader.metric == PRECOMPUTED or rows.whole.dtype.kind != "f":
        return None
    return replace(rows, real=rows.whole.astype(np.float64), whole=None)


def _by_position(rows: Observations) -> Observations:
    """Rows with their index as the only cell, enough to split and match them."""
    positions = np.arange(rows.n_obs, dtype=np.float64)[:, None]
    return replace(rows, real=positions, codes=np.empty((rows.n_obs, 0), np.intp), whole=None)


def merged(training: TrainingTable) -> TrainingTable:
    """Training table of distinct rows, with ``copies``: every row's index among them."""
    observations, n_obs = training.rows, training.rows.n_obs
    cells = _as_vectors(observations, training.whole)
    if cells is None:
        return replace(training, copies=np.stack([training.row_indices, np.arange(n_obs)]))
    rows, positions = table.distinct(cells)
    first = np.full(rows.n_obs, n_obs)
    np.minimum.at(first, positions, np.arange(n_obs))
    if observations.whole is not None:
        rows = replace(rows, real=np.empty((rows.n_obs, 0)), whole=observations.whole[first])
    copies = np.stack([training.row_indices, positions])
    return replace(training, rows=rows, row_indices=training.row_indices[first], copies=copies)


# The width of the kernel: candidates, and their choice by out-of-fold log loss.


SIGMA_GRID: Final = (0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.8)
"""Values of sigma squared that cross-validation tries, in median dissimilarities, ascending."""


def widths_to_try(
    objective: str, sigma: object, prior: MedianLVQPrior, scale: float
) -> tuple[Sigma | None, ...]:
    """Candidate widths of cross-validation; a single width where sigma is given or sampled.

    >>> widths_to_try("rslvq", 2, MedianLVQPrior(), 1.0)
    (2.0,)
    """
    if objective == "glvq":
        return (None,)
    if sigma == "sample":
        return (prior.resolve(scale),)
    if sigma == "cv":
        return tuple(float(np.sqrt(share * scale)) for share in SIGMA_GRID)
    return (float(sigma),)  # type: ignore[arg-type]  # checked before


def wider_ones(widths: Sequence[Sigma | None], chosen: Sigma | None) -> tuple[float, ...]:
    """Candidate widths above the chosen width, in descending order.

    >>> wider_ones((1.0, 2.0, 3.0), 1.0)
    (3.0, 2.0)
    """
    above = widths[widths.index(chosen) + 1 :]
    return tuple(width for width in reversed(above) if isinstance(width, float))


def choose_width(
    rows: Dissimilarities,
    prototypes: Prototypes,
    widths: Sequence[Sigma | None],
    settings: SearchSettings,
    training: TrainingTable,
    *,
    cv: object,
    calibrate: bool,
    masked: Source | None,
) -> tuple[Sigma | None, Calibration]:
    """Width with the smallest held-out log loss, and its calibration by missing fraction."""
    if len(widths) == 1 and not calibrate:
        return widths[0], NO_CALIBRATION
    predictions = held_out(rows, prototypes, widths, settings, training, cv=cv, masked=masked)
    if predictions is None:
        middle = "sigma is the middle of its grid and " if len(widths) > 1 else ""
        warn_nothing_held_out(training.owner, cv, f"{middle}the temperature is 1")
        return widths[len(widths) // 2], NO_CALIBRATION
    selection = predictions.selection(widths, calibrate=False)
    if not calibrate:
        return selection.chosen, NO_CALIBRATION
    return selection.chosen, predictions.of_candidate(selection.best).calibration()


def held_out(
    rows: Dissimilarities,
    prototypes: Prototypes,
    widths: Sequence[Sigma | None],
    settings: SearchSettings,
    training: TrainingTable,
    *,
    cv: object,
    masked: Source | None,
) -> HeldOut | None:
    """Class log joints of held-out rows under every width; None if no row is held out.

    A held-out row is no exemplar and has no likelihood. With the source ``masked``, which compares
    rows of a table, copies of the row with more and more masked cells are compared, too.
    """
    training_rows, classes = training.rows, training.class_labels
    masking = None
    if masked is None:
        training_rows = _by_position(training_rows)
    else:
        masking = masking_of(training_rows, training.read_columns, classes.size, settings.seed)

    def compare(
        test: Observations, chosen: Int[np.ndarray, " prototype"]
    ) -> Real[np.ndarray, "test prototype"]:
        if masked is None:
            return rows.values[_positions(test, training_rows)[:, None], chosen]
        return masked.to(test, chosen)

    def predict(
        fold: int, train: Observations, test: Observations
    ) -> Float[np.ndarray, "test width label"]:
        seeded = replace(settings, n_init=1, seed=settings.seed + 1 + fold)
        points = _searched(
            _restricted(rows, _positions(train, training_rows)), prototypes, widths, seeded
        )
        return np.stack(
            [
                exemplar_log_joint(compare(test, point.exemplars), prototypes, point)
                for point in points
            ],
            axis=1,
        )

    splits = split_rows(cv, training_rows, training.row_indices, settings.seed)
    return hold_out(splits, predict, classes, masking=masking)


def _positions(subset: Observations, rows: Observations) -> Int[np.ndarray, " subset"]:
    """Indices of the rows of ``subset`` among distinct ``rows``."""
    _, codes = table.distinct(joined_rows([rows, subset]))
    return np.argsort(codes[: rows.n_obs])[codes[rows.n_obs :]]


def _searched(
    rows: Dissimilarities,
    prototypes: Prototypes,
    widths: Sequence[Sigma | None],
    settings: SearchSettings,
) -> list[MedianLVQParameters]:
    """Exemplars under every width, each search started at the end of the next wider width.

    Wide kernels have fewer optima; and widths with a common start are compared with less noise
    than under independent starts.
    """
    points: list[MedianLVQParameters] = []
    for width in reversed(widths):
        start = points[-1].exemplars if points else None
        points.append(fit_exemplars(rows, prototypes, width, settings, start=start).parameters)
    return points[::-1]


def _restricted(rows: Dissimilarities, seen: Int[np.ndarray, " seen"]) -> Dissimilarities:
    """Dissimilarities with labels and candidates at the rows ``seen`` only."""
    labels = np.full(rows.n_obs, -1)
    labels[seen] = rows.labels[seen]
    return replace(rows, labels=labels, candidates=candidates_of(labels, rows.n_classes))


# Exemplar classifiers on dissimilarities: every prototype is a row of the training data.


class MedianLVQClassifier(Classifier):
    r"""Classifier by dissimilarity to exemplars, which are rows of the training data.

    .. math:: p(c | x) = \frac{\sum_{j \in c} e^{-d(x, \theta_j) / \sigma^2}}
        {\sum_j e^{-d(x, \theta_j) / \sigma^2}}

    The dissimilarity need not be symmetric or a metric. Prediction needs only the dissimilarities
    to the exemplars (:attr:`exemplar_columns`).

    Parameters
    ----------
    n_prototypes : int or mapping of class to int
        Number of prototypes of every class.
    objective : {"rslvq", "glvq"}
        Log likelihood of the labels, or sum of Sato and Yamada's margins, which are
        probabilities only if they are calibrated.
    metric : "gower", "precomputed", str or callable
        ``"gower"``: tables of real and categorical columns with holes; a missing cell counts as
        the mean difference of two training rows in its column. ``"precomputed"``: X holds
        ``d(x_n, x_m)``, of rows n to training rows m. For arrays: a name that scikit-learn knows,
        or a function of two rows.
    sigma : "cv", float or "sample"
        Width of the kernel: by cross-validated log loss, fixed, or free under ``prior``.
    prior : MedianLVQPrior, optional
        Prior of sigma; ``MedianLVQPrior()`` by default.
    unlabelled : object, optional
        What marks a hidden label beside NaN and None, such as -1; such a row has no
        likelihood and is no exemplar.
    class_prior : array-like of shape (n_classes,) or mapping of class to float, optional
        Class probabilities of use, in the order of ``classes_``; None: those of training.
    calibrate : bool
        Fit a temperature to out-of-fold log probabilities (or margins); under ``metric="gower"``
        with ``"rslvq"`` also temperatures and exponents of the class shares that depend on the
        missing fraction.
    cv : int, splitter or iterable of index pairs
        Folds for sigma and for the temperature. An integer assigns the rows of every class in turn;
        the only row of a class stays in every training fold.
    n_init : int
        Number of restarts.
    max_iter : int
        Maximum number of sweeps over the prototypes of a restart.
    random_state : int, RandomState or None
        Source of restarts, folds and draws; an int makes results repeatable.
    verbose : bool
        Show, in a terminal or a notebook, how far :meth:`fit` and :meth:`refine` are, and how long
        each stage still takes.
    categorical_features : array-like or "from_dtype", optional
        Positions, names or mask of the categorical columns under ``metric="gower"``. None: of
        frames by dtype, else none.
    column_kinds : dict of columns and kinds, optional
        What other columns are, by position or name: ``"count"``, ``"ordered"`` or
        ``"ordered:none<mild<severe"``, ``"angle:24"`` (with its period), ``"date"``, ``"real"``.
    handle_unknown : {"missing", "error"}
        What an unseen level is at predict, under ``metric="gower"``.
    inference : {"map", "gibbs"}
        Posterior made by ``fit``; :meth:`refine` makes one later.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    exemplars_ : ndarray of shape (n_prototypes,)
        Row of ``fit``'s X that each prototype is.
    exemplar_classes_ : ndarray of shape (n_prototypes,)
        Class of each prototype.
    sigma_ : float or None
        Width of the kernel, in the square root of the dissimilarity's unit; None for GLVQ.
    posterior_ : xarray.DataTree
        Posterior of the declared graph; one draw after ``inference="map"``. Its
        ``exemplars`` are positions along ``obs``, whose names are rows of ``fit``'s X.
    temperature_ : float
        Factor of the class log probabilities; 1 without calibration.
    status_ : str
        How the fit ended, in a sentence.
    converged_ : bool
        Whether it converged.
    n_iter_ : int
        Sweeps of the best restart, and its start.
    objective_ : float
        Objective of the fitted point.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the columns, where X had names.

    Notes
    -----
    A prototype's update costs a few multiplications a row and candidate, in compiled code. The
    training matrix holds ``n_obs**2`` numbers in the precision that it comes in, or float32 where
    it is computed here and would take more than 1 GiB. Dissimilarities of labelled rows to
    candidates and their kernels are held beside it where each takes at most 512 MiB; else the
    work needs some megabytes.

    References
    ----------
    .. [1] Nebel, Hammer, Villmann (2014), Supervised generative models for learning
       dissimilarity data, ESANN, section 3.
    .. [2] Seo, Obermayer (2003), Soft learning vector quantization, Neural
       Computation 15, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> X = [[0.0, "a"], [0.2, None], [3.0, "b"], [None, "b"], [0.1, "a"], [3.1, "b"]]
    >>> model = MedianLVQClassifier(sigma=0.5).fit(X, ["no", "no", "yes", "yes", "no", "yes"])
    >>> model.predict([[0.4, None], [None, "b"]])
    array(['no', 'yes'], dtype=object)

    Dissimilarities that come as a matrix are needed to the exemplars only:

    >>> words = np.array(["cat", "cart", "car", "dog", "dogs", "dig"])
    >>> def unlike(a, b):
    ...     return sum(x != y for x, y in zip(a.ljust(4), b.ljust(4)))
    >>> d = np.array([[unlike(a, b) for b in words] for a in words])
    >>> model = MedianLVQClassifier(1, metric="precomputed", sigma=1.0, random_state=0)
    >>> words[model.fit(d, ["c", "c", "c", "d", "d", "d"]).exemplar_columns]
    array(['cart', 'dogs'], dtype='<U4')
    >>> to_exemplars = [[unlike("curt", exemplar) for exemplar in ("cart", "dogs")]]
    >>> model.predict(model.from_exemplar_columns(to_exemplars))
    array(['c'], dtype=object)
    """

    fitted_: FittedTable[FittedExemplars, None]

    _mean_is_better = True
    _rules = SHARED | {
        "objective": one_of("rslvq", "glvq"),
        "sigma": Rule(
            "'cv', 'sample' or a number from 1e-100 to 1e100",
            ("cv", "sample"),
            numbers.Real,
            low=1e-100,
            high=1e100,
            closed="both",
        ),
        "prior": instance(MedianLVQPrior, "a MedianLVQPrior"),
        "inference": one_of("map", "gibbs"),
    }

    def __init__(
        self,
        n_prototypes: Stored[int | PerClass[int]] = 2,
        *,
        objective: Stored[Literal["rslvq", "glvq"]] = "rslvq",
        metric: Stored[Metric] = GOWER,
        sigma: Stored[Literal["cv", "sample"] | float] = "cv",
        prior: Stored[MedianLVQPrior | None] = None,
        unlabelled: object = None,
        class_prior: object = None,
        calibrate: Stored[bool] = True,
        cv: object = 5,
        n_init: Stored[int] = 4,
        max_iter: Stored[int] = 100,
        random_state: Stored[int | np.random.RandomState | None] = None,
        verbose: Stored[bool] = False,
        categorical_features: object = None,
        column_kinds: object = None,
        handle_unknown: Stored[Literal["missing", "error"]] = "missing",
        inference: Stored[Literal["map", "gibbs"]] = "map",
    ) -> None:
        self.n_prototypes = n_prototypes
        self.objective = objective
        self.metric = metric
        self.sigma = sigma
        self.prior = prior
        self.unlabelled = unlabelled
        self.class_prior = class_prior
        self.calibrate = calibrate
        self.cv = cv
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose
        self.categorical_features = categorical_features
        self.column_kinds = column_kinds
        self.handle_unknown = handle_unknown
        self.inference = inference

    # ---- fitting

    @fitting
    def fit(
        self, X: object, y: object, sample_weight: object = None, groups: object = None
    ) -> Self:
        """Find the exemplars, choose sigma, calibrate, and draw if ``inference`` asks.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; under ``metric="precomputed"`` the square matrix of their
            dissimilarities, rows to columns.
        y : array-like of shape (n_obs,)
            Class labels; NaN and None are hidden.
        sample_weight : array-like of shape (n_obs,), optional
            Row weights, at least 0: a row of weight 2 counts twice, and no split parts it.
        groups : array-like of shape (n_obs,), optional
            Group of each row, such as its patient: no split that the fit makes has rows of one
            group on both sides, and the bootstrap weighs them together.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If an argument, the rows, the labels or the weights cannot be used.
        """
        reading = self._reading()
        if self.metric == GOWER:
            training = read_table(reading, X, y, sample_weight, groups)
        else:
            training = read_whole(reading, self.metric, X, y, sample_weight, groups)
        training = merged(training)
        rows, classes, owner = training.rows, training.class_labels, training.owner
        source = source_of(training)
        compared = source.to(rows, np.arange(rows.n_obs))
        check_values(compared)
        dissimilarities = Dissimilarities(
            compared, rows.labels, rows.weights, candidates_of(rows.labels, classes.size)
        )
        prototypes = Prototypes(
            components_per_class(self.n_prototypes, classes, owner, "n_prototypes")
        )
        prior = MedianLVQPrior() if self.prior is None else self.prior
        widths = widths_to_try(self.objective, self.sigma, prior, dissimilarities.scale)
        settings = SearchSettings(self.n_init, self.max_iter, training.seed)
        # Margins are not calibrated: the nearest exemplar decides.
        masks = self.calibrate and self.metric == GOWER and self.objective == "rslvq"
        width, calibration = choose_width(
            dissimilarities,
            prototypes,
            widths,
            settings,
            training,
            cv=self.cv,
            calibrate=self.calibrate,
            masked=source if masks else None,
        )
        wider = wider_ones(widths, width)
        fit = fit_exemplars(dissimilarities, prototypes, width, settings, wider=wider)
        model = FittedExemplars(source, dissimilarities, prototypes, fit.parameters, width)
        outcome = fit.status, fit.trace
        self.fitted_ = self._ended(training, model, None, outcome, calibration=calibration)
        return self

    def _check_arguments(self) -> None:
        """Raise ValueError for arguments that need a likelihood under GLVQ, which has none."""
        super()._check_arguments()
        if self.objective != "glvq":
            return
        owner = f"{type(self).__name__}(objective='glvq'"
        for name, default in (("sigma", "cv"), ("prior", None), ("inference", "map")):
            received = getattr(self, name)
            if received != default:
                raise ValueError(
                    f"{owner}) has no likelihood and so no {name}; leave it at {default!r}, or use "
                    f"objective='rslvq'. Received {name}={received!r}."
                )
        if self.class_prior is not None and not self.calibrate:
            raise ValueError(
                f"{owner}, class_prior=...) needs calibrate=True: margins are no probabilities "
                "before."
            )

    @requires("likelihood", "rows")
    def refine(self, method: str = "gibbs", **options: object) -> Self:
        """Draw exemplars (and sigma, if it is free) from the posterior.

        Parameters
        ----------
        method : {"gibbs"}
            Every exemplar from its full conditional, sigma along a slice: exact.
        **options : object
            ``draws`` (500 a chain), ``tune`` (200), ``thin`` (4), ``chains`` (4),
            ``random_state``, ``progress_bar``; see :func:`bayesrbf.inference.nuts.gibbs`.

        Returns
        -------
        self
            With the draws in ``posterior_``.

        Raises
        ------
        ValueError
            If the method is unknown.
        """
        return super().refine(method, **options)

    def __lacks__(self, need: str) -> str:
        """Message on why the estimator lacks ``need``, such as a likelihood; else empty."""
        margins = self.objective == "glvq"
        match need:
            case "density":
                return "exemplars only compare them: fit a MixtureDensity for it"
            case "columns" if self.metric != GOWER:
                reason = f"metric={self.metric!r} compares whole rows"
                return f"{reason}: use metric='gower', or responsible_exemplars"
            case "likelihood" if margins:
                return "objective='glvq' has none: use objective='rslvq'"
            case "margins" if not margins:
                return "objective='rslvq' has none: use predict_log_proba"
            case "probabilities" if margins and not self.calibrate:
                reason = "objective='glvq' has none under calibrate=False"
                return f"{reason}: use decision_function, calibrate=True or objective='rslvq'"
            case _:
                return ""

    def _check_method(self, method: str) -> None:
        """Raise ValueError for any method but Gibbs sampling: exemplars are discrete."""
        if method != "gibbs":
            raise ValueError(
                f"refine(method) must be 'gibbs' for {type(self).__name__}, whose exemplars are "
                f"discrete; received {method!r}."
            )

    def _drawn(self, fit: AnyFit, method: str, options: dict[str, object]) -> AnyFit:
        """Fewer draws than of continuous parameters: an exact sweep goes far."""
        return super()._drawn(fit, method, {"draws": 500, "tune": 200, **options})

    # ---- which training rows predicting needs

    @property
    def exemplar_columns(self) -> Int[np.ndarray, " needed"]:
        """Rows of ``fit``'s X to which a new row must be compared, ascending.

        Those of the fitted exemplars and, after :meth:`refine`, of all draws.
        """
        fit = self._fit
        return np.sort(fit.table.row_indices[needed_rows(fit)])

    def from_exemplar_columns(self, D: object) -> Float[np.ndarray, "obs train"]:
        """Return a matrix of full width: D in the exemplars' columns, NaN elsewhere.

        Parameters
        ----------
        D : array-like of shape (n_obs, n_needed)
            Dissimilarities of rows to the training rows of :attr:`exemplar_columns`, in that order.

        Returns
        -------
        ndarray of shape (n_obs, n_train)
            What every method takes as X under ``metric="precomputed"``.

        Raises
        ------
        ValueError
            If the metric is another, or D is not one column an exemplar.
        """
        check_is_fitted(self)
        columns, values = self.exemplar_columns, np.asarray(D)
        if self.metric != PRECOMPUTED:
            raise ValueError(
                "from_exemplar_columns is for metric='precomputed'; the metric "
                f"{self.metric!r} compares rows to the exemplars itself: give it rows."
            )
        if values.ndim != 2 or values.shape[1] != columns.size:
            raise ValueError(
                f"from_exemplar_columns(D) needs one column for each of the {columns.size} rows "
                f"of exemplar_columns; received shape {values.shape}."
            )
        matrix = np.full((len(values), self.n_features_in_), np.nan)
        matrix[:, columns] = values
        return matrix

    # ---- parts of the fit

    @property
    def exemplars_(self) -> Int[np.ndarray, " prototype"]:
        """Row of ``fit``'s X that each prototype is."""
        fit = self._fit
        return fit.table.row_indices[fit.model.parameters.exemplars]

    @property
    def exemplar_classes_(self) -> Shaped[np.ndarray, " prototype"]:
        """Class of each prototype."""
        return self.classes_[list(self.fitted_.model.prototypes.classes)]

    @property
    def sigma_(self) -> float | None:
        """Width of the kernel; None for GLVQ."""
        return self._fit.model.parameters.sigma

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        precomputed, mixed = self.metric == PRECOMPUTED, self.metric == GOWER
        tags.input_tags.pairwise = precomputed
        tags.input_tags.positive_only = precomputed
        tags.input_tags.allow_nan = mixed or self.metric == "nan_euclidean"
        tags.input_tags.categorical = mixed
        tags.input_tags.string = mixed
        return tags

    # ---- predicting

    def predict(self, X: object) -> Labels:
        """Most probable class of each row; that of the nearest exemplar for GLVQ.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; under ``metric="precomputed"`` their dissimilarities to the training
            rows, of which only :attr:`exemplar_columns` are looked at.

        Returns
        -------
        ndarray of shape (n_obs,)
            Class labels.
        """
        if self.objective == "rslvq" or self.calibrate:
            return super().predict(X)
        nearest: Labels = self.classes_[self._margins(X).argmax(axis=1)]
        return nearest

    def _margins(self, X: object) -> Float[np.ndarray, "obs label"]:
        """Margins of GLVQ, class by class."""
        fit = self._fit
        return fit.model.class_log_joint(new_rows(fit, X).cells)

    @requires("margins")
    def decision_function(self, X: object) -> Float[np.ndarray, "obs *label"]:
        """Margins of GLVQ, from -1 to 1, before temperature and ``class_prior``.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows, as for :meth:`predict`.

        Returns
        -------
        ndarray of shape (n_obs,) or (n_obs, n_classes)
            For two classes that of the second.
        """
        margins = self._margins(X)
        return margins[:, 1] if self.classes_.size == 2 else margins

    @requires("likelihood")
    def responsible_exemplars(self, X: object, most: int = 5) -> pd.DataFrame:
        r"""List the training rows that decide the class probabilities of each row.

        The responsibility :math:`e^{-d(x, \theta_j) / \sigma^2} / \sum_k e^{-d(x, \theta_k) /
        \sigma^2}` of an exemplar is its share in the probabilities, before calibration and
        ``class_prior``; after :meth:`refine` its mean over the draws.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows, as for :meth:`predict`.
        most : int
            Most exemplars of a row.

        Returns
        -------
        pandas.DataFrame
            One line an exemplar, those first that count most: ``row`` of X,
            ``exemplar`` (row of ``fit``'s X), its ``label``, ``dissimilarity``,
            ``responsibility``.
        """
        fit = self._fit
        log_posterior, model, needed = fit.log_posterior, fit.model, needed_rows(fit)
        columns = model.compared(new_rows(fit, X).cells, needed)
        theta = fit.point[None] if fit.draws is None else fit.draws.theta
        points = theta.reshape(-1, log_posterior.dimension)
        mean = model.mean_responsibilities(log_posterior, columns, needed, points)
        return explanation(mean, columns, fit.table.row_indices[needed], fit.classes, most)

    def __rehearsal__(self) -> Rehearsal:
        """Settings of rehearsals for this kind of classifier."""
        return Rehearsal("gibbs", methods=("gibbs",))  # exemplars are discrete
