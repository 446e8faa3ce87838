"""Exemplar classifiers on dissimilarities: every prototype is a row of the training data."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self

import numpy as np
from jaxtyping import Float, Int, Real, Shaped
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, _safe_indexing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bayesrbf import table
from bayesrbf.answers.rehearse import Rehearsal, rehearsal_of
from bayesrbf.base.records import Stored
from bayesrbf.base.rows import Observations, Units, joined_rows
from bayesrbf.families.median_lvq.dissimilarities import (
    GOWER,
    PRECOMPUTED,
    Metric,
    check_values,
    comparable_rows,
    learn_gower,
    pairwise,
)
from bayesrbf.families.median_lvq.fitted import (
    ComparedRows,
    FittedExemplars,
    MatrixSource,
    SearchSettings,
    TableSource,
    VectorSource,
    candidates_of,
    exemplar_log_joint,
    search,
)
from bayesrbf.families.median_lvq.records import (
    Dissimilarities,
    MedianLVQParameters,
    MedianLVQPrior,
    Prototypes,
    Sigma,
)
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
from bayesrbf.fit.asking import ask, new_rows
from bayesrbf.fit.classifier import Classifier, Labels
from bayesrbf.fit.estimator import AnyFit, Calibrated, calibrated
from bayesrbf.fit.held_out import HeldOut, hold_out, masking_of, split_rows
from bayesrbf.fit.reading import doubts_of, read_labels, refuse_collection, warn_of_copies
from bayesrbf.fit.table import FittedTable, TrainingTable
from bayesrbf.reading.notes import warn

if TYPE_CHECKING:
    import pandas as pd


# The exemplars that a prediction rests on, as a table.


def responsible_exemplars(
    fit: FittedTable[FittedExemplars, None], X: object, most: int = 5
) -> pd.DataFrame:
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
    rows, log_posterior, model = new_rows(fit, X).cells, fit.log_posterior, fit.model
    theta = fit.point[None] if fit.draws is None else fit.draws.theta
    points = theta.reshape(-1, log_posterior.dimension)
    mean = model.mean_responsibilities(log_posterior, rows, points)
    return explanation(mean, rows.real, fit.table.kept[model.needed], fit.classes, most)


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
    places = entries // n_classes
    return pd.DataFrame(
        {
            "row": rows,
            "exemplar": exemplars[places],
            "label": classes[entries % n_classes],
            "dissimilarity": dissimilarities[rows, places],
            "responsibility": flat[rows, entries],
        }
    )


# Where dissimilarities come from: a matrix, Gower's on a table with holes, or a metric.


Groups = Shaped[np.ndarray, " obs"] | None

LARGEST_DOUBLE: Final = 2**27
"""Entries (1 GiB) beyond which a matrix computed here is held in float32."""


def from_matrix(
    X: Real[np.ndarray, "obs obs"],
    labels: Int[np.ndarray, " obs"],
    weights: Float[np.ndarray, " obs"],
    groups: Groups,
) -> ComparedRows:
    """Take the dissimilarities as they were given, without the rows that weigh nothing."""
    kept = np.flatnonzero(weights > 0)
    values = X if kept.size == weights.size else X[np.ix_(kept, kept)]
    copies = np.stack([kept, np.arange(kept.size)])
    rows, _ = _weighed(
        np.arange(kept.size, dtype=np.float64)[:, None], labels, weights, kept, groups
    )
    return ComparedRows(
        MatrixSource(kept), values, rows.labels, rows.weights, rows.units, kept, copies
    )


def from_table(
    X: object,
    labels: Int[np.ndarray, " obs"],
    weights: Float[np.ndarray, " obs"],
    groups: Groups,
    *,
    kinds: dict[str, Any],
    handle_unknown: str,
) -> ComparedRows:
    """Compare the distinct rows of a table with holes by Gower's dissimilarity."""
    positive = np.flatnonzero(weights > 0)
    X = X if positive.size == weights.size else _safe_indexing(X, positive)
    columns = table.learn_columns(X, **kinds)
    encoded = table.encode(X, columns)
    given = replace(encoded, labels=labels[positive], weights=weights[positive])
    given, repeated = table.with_units(given, None if groups is None else groups[positive])
    rows, first, place = _distinct(given)
    # Sums over columns in one order, whatever the table's: ties must stay ties.
    order = table.canonical_order(rows)
    canonical = rows.reordered(order)
    gower = learn_gower(canonical)
    values = gower.between(canonical, canonical, _dtype(rows.n_obs))
    source = TableSource(columns, gower, canonical, handle_unknown, order)
    copies = np.stack([positive, place])
    return ComparedRows(
        source,
        values,
        rows.labels,
        rows.weights,
        rows.units,
        positive[first],
        copies,
        repeated,
    )


def from_vectors(
    X: Shaped[np.ndarray, "obs column"],
    labels: Int[np.ndarray, " obs"],
    weights: Float[np.ndarray, " obs"],
    groups: Groups,
    metric: Metric,
) -> ComparedRows:
    """Compare the distinct rows of an array by a metric."""
    first = np.flatnonzero(weights > 0)
    floats = X.dtype.kind == "f"
    cells = X[first].astype(np.float64) if floats else np.arange(first.size, dtype=np.float64)
    rows, repeated = _weighed(cells.reshape(first.size, -1), labels, weights, first, groups)
    copies = np.stack([first, np.arange(first.size)])
    if floats:
        rows, places, copies[1] = _distinct(rows)
        first = first[places]
    values = pairwise(X[first], X[first], metric, _dtype(first.size))
    return ComparedRows(
        VectorSource(X[first], metric),
        values,
        rows.labels,
        rows.weights,
        rows.units,
        first,
        copies,
        repeated,
    )


def _weighed(
    cells: Float[np.ndarray, "kept column"],
    labels: Int[np.ndarray, " obs"],
    weights: Float[np.ndarray, " obs"],
    kept: Int[np.ndarray, " kept"],
    groups: Groups,
) -> tuple[Observations, int]:
    """The kept rows with their units, and how many are copies."""
    nothing = np.empty((kept.size, 0), dtype=np.intp)
    rows = Observations(cells, nothing, labels[kept], weights[kept])
    return table.with_units(rows, None if groups is None else groups[kept])


def _distinct(
    rows: Observations,
) -> tuple[Observations, Int[np.ndarray, " distinct"], Int[np.ndarray, " obs"]]:
    """Distinct rows, where each stood first, and the place of every row among them."""
    distinct, inverse = table.distinct(rows)
    first = np.full(distinct.n_obs, rows.n_obs)
    np.minimum.at(first, inverse, np.arange(rows.n_obs))
    return distinct, first, inverse


def _dtype(n_obs: int) -> type[np.floating]:
    """The type in which a square matrix of so many rows is held."""
    return np.float64 if n_obs**2 <= LARGEST_DOUBLE else np.float32


# The width of the kernel: candidates, and their choice by out-of-fold log loss.


SIGMA_GRID: Final = (0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.8)
"""Values of sigma squared that cross-validation tries, in median dissimilarities, ascending."""


def widths_to_try(
    objective: str, sigma: object, prior: MedianLVQPrior, scale: float
) -> tuple[Sigma | None, ...]:
    """Widths among which cross-validation chooses; one where there is no choice.

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
    """Widths among those tried that lie above the chosen one, from the widest on.

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
    *,
    cv: object,
    kept: Int[np.ndarray, " obs"],
    units: Units | None,
    classes: np.ndarray,
    calibrate: bool,
    masked: TableSource | None,
    owner: str,
) -> tuple[Sigma | None, Calibrated]:
    """Width of least held-out log loss, and what calibrates it: for all rows, for hidden cells."""
    if len(widths) == 1 and not calibrate:
        return widths[0], {}
    predictions = held_out(
        rows,
        prototypes,
        widths,
        settings,
        cv=cv,
        kept=kept,
        units=units,
        classes=classes,
        masked=masked,
    )
    if predictions is None:
        middle = "sigma is the middle of its grid and " if len(widths) > 1 else ""
        warn(
            f"{owner}: no labelled row could be held out by cv={cv} (the only row of a class "
            f"never is), so {middle}the temperature is 1; label more rows, or give sigma and "
            "calibrate=False."
        )
        return widths[len(widths) // 2], {}
    selection = predictions.selection(widths, calibrate=False)
    if not calibrate:
        return selection.chosen, {}
    return selection.chosen, calibrated(predictions.of_candidate(selection.best))


def held_out(
    rows: Dissimilarities,
    prototypes: Prototypes,
    widths: Sequence[Sigma | None],
    settings: SearchSettings,
    *,
    cv: object,
    kept: Int[np.ndarray, " obs"],
    units: Units | None,
    classes: np.ndarray,
    masked: TableSource | None,
) -> HeldOut | None:
    """Class log joints of rows that the exemplars were not searched for with.

    A row that is held out is no exemplar and has no likelihood. With a table to be ``masked`` it is
    compared with more and more of its cells hidden, too.
    """
    if masked is None:  # rows go by their position, which is all that folds need to know of them
        positions = np.arange(rows.n_obs, dtype=np.float64)[:, None]
        no_codes = np.empty((rows.n_obs, 0), dtype=np.intp)
        given, masking = Observations(positions, no_codes, rows.labels, rows.weights), None
    else:
        given = masked.cells
        masking = masking_of(given, masked.columns, classes.size, settings.seed)

    def compare(
        test: Observations, chosen: Int[np.ndarray, " prototype"]
    ) -> Real[np.ndarray, "test prototype"]:
        if masked is None:
            return rows.values[_places(test, given)[:, None], chosen]
        return masked.to_cells(test, chosen).real

    def predict(
        fold: int, train: Observations, test: Observations
    ) -> Float[np.ndarray, "test width label"]:
        seeded = replace(settings, n_init=1, seed=settings.seed + 1 + fold)
        points = _searched(_restricted(rows, _places(train, given)), prototypes, widths, seeded)
        return np.stack(
            [
                exemplar_log_joint(compare(test, point.exemplars), prototypes, point)
                for point in points
            ],
            axis=1,
        )

    splits = split_rows(cv, replace(given, units=units), kept, settings.seed)
    return hold_out(splits, predict, classes, masking=masking)


def _places(part: Observations, rows: Observations) -> Int[np.ndarray, " part"]:
    """Where each row of a part stands among distinct rows."""
    _, codes = table.distinct(joined_rows([rows, part]))
    return np.argsort(codes[: rows.n_obs])[codes[rows.n_obs :]]


def _searched(
    rows: Dissimilarities,
    prototypes: Prototypes,
    widths: Sequence[Sigma | None],
    settings: SearchSettings,
) -> list[MedianLVQParameters]:
    """Exemplars under every width: a search starts where that of the next wider one ended.

    Wide kernels leave fewer optima; and widths that share their start are compared with less
    noise than by starts of their own.
    """
    points: list[MedianLVQParameters] = []
    for width in reversed(widths):
        start = points[-1].exemplars if points else None
        points.append(search(rows, prototypes, width, settings, start=start).parameters)
    return points[::-1]


def _restricted(rows: Dissimilarities, seen: Int[np.ndarray, " seen"]) -> Dissimilarities:
    """Dissimilarities of all rows, of which only some have a label or may be exemplars."""
    labels = np.full(rows.n_obs, -1)
    labels[seen] = rows.labels[seen]
    return replace(rows, labels=labels, candidates=candidates_of(labels, rows.n_classes))


# Exemplar classifiers on dissimilarities: every prototype is a row of the training data.


def _gives_probabilities(estimator: MedianLVQClassifier) -> bool:
    """Whether scores are probabilities: margins are none before they are calibrated."""
    if estimator.objective == "rslvq" or estimator.calibrate:
        return True
    raise AttributeError(
        "objective='glvq' has no probabilities under calibrate=False; use decision_function, "
        "calibrate=True or objective='rslvq'."
    )


def _hides_cells(estimator: MedianLVQClassifier) -> bool:
    """Whether a row without some of its cells has probabilities, too."""
    if estimator.metric == GOWER:
        return _gives_probabilities(estimator)
    raise AttributeError(
        f"metric={estimator.metric!r} compares whole rows, and explain hides cells; use "
        "metric='gower', or responsible_exemplars."
    )


def _has_density(estimator: MedianLVQClassifier) -> bool:
    """Whether something says what rows look like: rows are compared only."""
    raise AttributeError(f"{type(estimator).__name__} compares rows and has no density of them.")


def _gives_margins(estimator: MedianLVQClassifier) -> bool:
    """Whether there are margins, which are no probabilities."""
    return bool(estimator.objective == "glvq")


def _has_kernel(estimator: MedianLVQClassifier) -> bool:
    """Whether exemplars share in the answer: under margins only the nearest count."""
    return bool(estimator.objective == "rslvq")


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
        with ``"rslvq"`` also temperatures and pulls to the class shares that depend on the share
        of missing cells.
    cv : int, splitter or iterable of index pairs
        Folds for sigma and for the temperature. An integer deals the rows of every class in turn;
        the only row of a class stays in every training fold.
    n_init : int
        Number of restarts.
    max_iter : int
        Most sweeps over the prototypes of a restart.
    random_state : int, RandomState or None
        Source of restarts, folds and draws; an int makes results repeatable.
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
    lower_bound_ : float
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
        self.categorical_features = categorical_features
        self.column_kinds = column_kinds
        self.handle_unknown = handle_unknown
        self.inference = inference

    # ---- fitting

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
        return self._take(lambda: self._fitted_to(X, y, sample_weight, groups))

    def _fitted_to(
        self, X: object, y: object, sample_weight: object, groups: object
    ) -> FittedTable[FittedExemplars, None]:
        """Compare the training rows, choose the width, find the exemplars and calibrate."""
        reading = self._reading()
        owner = reading.owner
        refuse_collection(owner, X)
        shell = type(owner, (BaseEstimator,), {})()  # takes the columns of X
        given = comparable_rows(X, self.metric, shell, reset=True)
        if y is None:
            raise ValueError(f"{owner}.fit requires y to be passed, but the target y is None.")
        labels = read_labels(reading, given, y, row_weights(sample_weight, given))
        classes: Any = labels.classes
        seed = reading.seed
        of_rows = row_groups(groups, given, f"{owner}.fit")
        compared = self._compare(given, labels.codes, labels.weights, of_rows)
        rows = Dissimilarities(
            compared.values,
            compared.labels,
            compared.weights,
            candidates_of(compared.labels, classes.size),
        )
        prototypes = Prototypes(
            components_per_class(self.n_prototypes, classes, owner, "n_prototypes")
        )
        prior = MedianLVQPrior() if self.prior is None else self.prior
        widths = widths_to_try(self.objective, self.sigma, prior, rows.scale)
        settings = SearchSettings(self.n_init, self.max_iter, seed)
        source: Any = compared.source  # margins are pulled nowhere: the nearest exemplar decides
        masks = self.calibrate and self.metric == GOWER and self.objective == "rslvq"
        width, probabilities = choose_width(
            rows,
            prototypes,
            widths,
            settings,
            cv=self.cv,
            kept=compared.kept,
            units=compared.units,
            classes=classes,
            calibrate=self.calibrate,
            masked=source if masks else None,
            owner=owner,
        )
        probabilities["averages"] = not self.calibrate
        fit = search(rows, prototypes, width, settings, wider=wider_ones(widths, width))
        needed = np.unique(fit.parameters.exemplars)
        model = FittedExemplars(source, rows, prototypes, fit.parameters, width, needed)
        no_cells = np.empty((rows.n_obs, 0)), np.empty((rows.n_obs, 0), dtype=np.intp)
        training = TrainingTable(
            owner,
            None,
            Observations(*no_cells, compared.labels, compared.weights, units=compared.units),
            compared.kept,
            seed,
            shell.n_features_in_,
            vars(shell).get("feature_names_in_"),
            classes=classes,
            prevalence=labels.prevalence,
            copies=compared.copies,
            repeated=compared.repeated,
        )
        if self.metric == GOWER:
            columns = source.columns
            training = replace(training, columns=columns, doubts=doubts_of(reading, given, columns))
            none = table.encode(given, columns).take(np.arange(0))
            template = training.decoded((none.real, none.codes), given)
            training = replace(training, template=template)
        return self._ended(
            training,
            model,
            None,
            (fit.status, fit.trace),
            **probabilities,
        )

    def _check_arguments(self) -> None:
        """GLVQ has no likelihood: what asks for one is refused."""
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

    def _compare(
        self,
        X: Any,
        labels: Int[np.ndarray, " obs"],
        weights: Float[np.ndarray, " obs"],
        groups: Groups,
    ) -> ComparedRows:
        """Dissimilarities of the training rows that weigh something."""
        if self.metric == PRECOMPUTED:
            compared = from_matrix(X, labels, weights, groups)
        elif self.metric == GOWER:
            compared = from_table(
                X,
                labels,
                weights,
                groups,
                kinds={
                    "categorical_features": self.categorical_features,
                    "column_kinds": self.column_kinds,
                },
                handle_unknown=self.handle_unknown,
            )
        else:
            compared = from_vectors(X, labels, weights, groups, self.metric)
        check_values(compared.values, type(self).__name__)
        warn_of_copies(compared.repeated, len(compared.copies[0]), type(self).__name__)
        return compared

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

    def _check_method(self, method: str) -> None:
        """Exemplars are discrete."""
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
        return np.sort(fit.table.kept[fit.model.needed])

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
        return fit.table.kept[fit.model.parameters.exemplars]

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

    predict_log_proba = available_if(_gives_probabilities)(Classifier.predict_log_proba)
    predict_proba = available_if(_gives_probabilities)(Classifier.predict_proba)
    predict_posterior = available_if(_has_kernel)(Classifier.predict_posterior)
    uncertainty = available_if(_has_kernel)(Classifier.uncertainty)
    explain = available_if(_hides_cells)(Classifier.explain)
    decide = available_if(_gives_probabilities)(Classifier.decide)

    score_samples = available_if(_has_density)(Classifier.score_samples)
    novelty = available_if(_has_density)(Classifier.novelty)
    impute = available_if(_has_density)(Classifier.impute)
    surprise = available_if(_has_density)(Classifier.surprise)
    conditional = available_if(_has_density)(Classifier.conditional)
    dependence = available_if(_has_density)(Classifier.dependence)
    acquire = available_if(_has_density)(Classifier.acquire)

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

    @available_if(_gives_margins)  # type: ignore[untyped-decorator]
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

    responsible_exemplars = available_if(_has_kernel)(ask(responsible_exemplars))


@rehearsal_of.register
def _(estimator: MedianLVQClassifier) -> Rehearsal:
    return Rehearsal("gibbs", methods=("gibbs",))  # exemplars are discrete
