"""Conformal sets of classes around any classifier, by the number of missing cells."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.stats import beta
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.model_selection import check_cv
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from bayesrbf import table
from bayesrbf.base.records import Stored
from bayesrbf.base.rows import Subjects
from bayesrbf.base.tasks import run_tasks
from bayesrbf.fit.arguments import Rule, one_of
from bayesrbf.fit.cross_validation import aligned_probabilities, fitted_fold
from bayesrbf.fit.held_out import folds_of, subject_folds
from bayesrbf.fit.reading import LARGEST_SEED, subjects_in

if TYPE_CHECKING:
    import pandas as pd


# Groups of rows by their number of missing cells, and how often sets held the true class.
#
# A p value of a conformal set is a rank among the calibration rows of a group. With n of them the
# least p value is :math:`1 / (n + 1)`, so a level :math:`l` rules nothing out unless
# :math:`n \ge 1 / (1 - l) - 1`.


RANKS: Final = 5
"""Calibration rows that a group has, in the mean, beyond the boundary of its sets."""

Counts = Int[np.ndarray, " obs"]


def rows_needed(level: float) -> int:
    """Calibration rows that a group should have for sets of a level.

    >>> rows_needed(0.9), rows_needed(0.95)
    (50, 100)
    """
    return int(np.ceil(np.round(RANKS / (1 - level), 6)))


def merged(missing: Counts, least: int) -> Int[np.ndarray, " group"]:
    """Smallest number of missing cells of each group of rows; a group has at least ``least`` rows.

    Numbers are gone through from 0 on; a group is closed when it has enough rows, and the rows left
    at the end join the last group. Of fewer rows than ``least`` there is one group.

    >>> merged(np.array([0, 0, 1, 2, 2, 3]), least=2)
    array([0, 1])
    """
    numbers, counts = np.unique(missing, return_counts=True)
    starts, size = [0], 0
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        if size >= least:
            starts.append(number)
            size = 0
        size += count
    if size < least and len(starts) > 1:
        starts.pop()
    return np.array(starts)


def group_of(missing: Counts, starts: Int[np.ndarray, " group"]) -> Counts:
    """Position of the group of each row.

    >>> group_of(np.array([0, 1, 7]), np.array([0, 2]))
    array([0, 0, 1])
    """
    groups: Counts = np.searchsorted(starts, missing, side="right") - 1
    return groups


def group_names(starts: Int[np.ndarray, " group"]) -> tuple[str, ...]:
    """Numbers of missing cells of every group, in words.

    >>> group_names(np.array([0, 1, 4]))
    ('0', '1 to 3', '4 or more')
    """
    lasts = [*(starts[1:] - 1).tolist(), None]
    return tuple(
        f"{first} or more"
        if last is None
        else str(first)
        if first == last
        else f"{first} to {last}"
        for first, last in zip(starts.tolist(), lasts, strict=True)
    )


def counted(covers: Bool[np.ndarray, " obs"], prob: float = 0.95) -> tuple[float, float, float]:
    """Share of rows whose set has their class, and ends of its Clopper-Pearson interval.

    All are NaN without rows.

    >>> counted(np.array([True, True, True, False]))
    (0.75, 0.194, 0.994)
    """
    n, k = covers.size, int(covers.sum())
    if n == 0:
        return np.nan, np.nan, np.nan
    tail = (1 - prob) / 2
    lower = beta.ppf(tail, k, n - k + 1) if k else 0.0
    upper = beta.ppf(1 - tail, k + 1, n - k) if k < n else 1.0
    return k / n, float(lower), float(upper)


def scores_of(
    probabilities: Float[np.ndarray, "obs label"], labels: Int[np.ndarray, " obs"]
) -> Float[np.ndarray, " obs"]:
    """Nonconformity of the true class of each row: one less its probability."""
    return 1 - probabilities[np.arange(labels.size), labels]


# Conformal p values.


Groups = Int[np.ndarray, " obs"]


def p_values(
    calibration: Sequence[Float[np.ndarray, " _"]],
    calibration_groups: Sequence[Int[np.ndarray, " _"]],
    scores: Sequence[Float[np.ndarray, "obs label"]],
    groups: Groups,
) -> Float[np.ndarray, "obs label"]:
    r"""Conformal p value of every new row and class, by the calibration rows of its group.

    Every fold k has a model, held-out rows :math:`S_k` with the scores a of their labels, and the
    scores that the model gives every class of the new rows. As in cross-conformal prediction,

    .. math:: p(c) = \frac{1 + \sum_k |\{i \in S_k : a_i \ge a^{(k)}(c)\}|}{1 + \sum_k |S_k|}.
    """
    stranger, n = np.zeros(scores[0].shape), np.zeros(groups.size)
    for fold_scores, fold_groups, new_scores in zip(
        calibration, calibration_groups, scores, strict=True
    ):
        for group in np.unique(groups):
            group_scores, rows = np.sort(fold_scores[fold_groups == group]), groups == group
            stranger[rows] += group_scores.size - np.searchsorted(group_scores, new_scores[rows])
            n[rows] += group_scores.size
    return (1 + stranger) / (1 + n)[:, None]


# Sets of classes that a row cannot be ruled out of, around any classifier.


_RULES: Final = {
    "mondrian": one_of("missing", None),
    "level": Rule("a number between 0 and 1", kind=Real, low=0.0, high=1.0, closed="neither"),
}
_FOLDS: Final = Rule("at least 2 folds, or a splitter", kind=Integral, low=2.0)
ROUNDING_OF_LEVEL: Final = 1e-9
"""A p-value exceeds one less the level only by more than this."""
Rows = Int[np.ndarray, " row"]
Fold = tuple[np.ndarray, np.ndarray]
"""Positions of the rows that a model is fitted to, and of those that calibrate it."""


class ConformalSets(MetaEstimatorMixin, BaseEstimator):
    r"""Sets of classes that contain the true class in a given share of rows, for any classifier.

    The score of a row and a class is :math:`a(x, c) = 1 - p(c \mid x)`. A class is left out of the
    set of a row if too few calibration rows have so high a score for their own class. With
    :math:`S_k` the rows held out of model k that have about as many missing cells as x,

    .. math:: p(x, c) = \frac{1 + \sum_k |\{i \in S_k : a_k(x_i, y_i) \ge a_k(x, c)\}|}
        {1 + \sum_k |S_k|}, \qquad C_l(x) = \{c : p(x, c) > 1 - l\}.

    No row calibrates a model that was fitted to it: its score would be too good, and the sets too
    small. The guarantee needs labelled and new rows that are exchangeable. With one split, the set
    of a new row of any group contains its class with a probability of at least l. Over K folds the
    proof gives slightly less than :math:`1 - 2 (1 - l)` [2]_; the observed coverage is about l. The
    groups depend only on the numbers of missing cells of the labelled rows, not on labels or
    scores.

    Parameters
    ----------
    classifier : estimator
        Any classifier with ``predict_proba``. Clones of it are fitted; it stays as it is.
    cv : int or splitter
        Folds of the labelled rows: each is held out once, and every row calibrates. A splitter of
        one split, such as ``ShuffleSplit(1, test_size=0.3)``, costs one fit, has the full
        guarantee, and calibrates on fewer rows.
    mondrian : {"missing", None}
        Compare a row with those that lack about as many cells; None: with all.
    level : float
        Level that groups are made for: numbers of missing cells are merged until each group has
        ``5 / (1 - level)`` labelled rows. At levels far above it sets hold every class.
    random_state : int, RandomState or None
        Seed of the folds.
    n_jobs : int, optional
        Processes that share the fits; one by default.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    models_ : list of estimator
        The classifier fitted without each fold.
    groups_ : dict of str to int
        Calibration rows by number of missing cells, in groups.

    References
    ----------
    .. [1] Vovk, Gammerman, Shafer (2005), Algorithmic learning in a random world. Springer.
    .. [2] Vovk, Nouretdinov, Manokhin, Gammerman (2018), Cross-conformal predictive
       distributions. PMLR 91, 37-51; Barber, Candes, Ramdas, Tibshirani (2021), Predictive
       inference with the jackknife+, Annals of Statistics 49, 486-507.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesrbf import HybridMixtureClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["a", "b"], 100)
    >>> X = rng.normal(size=(200, 2)) + 1.5 * (y == "b")[:, None]
    >>> X[::3, 1] = np.nan
    >>> mixture = HybridMixtureClassifier(covariance_type="diag", random_state=0)
    >>> sets = ConformalSets(mixture, random_state=0).fit(X, y)
    >>> sets.predict_set([[0.0, 0.0], [0.75, np.nan], [3.0, 3.0]])
           a      b
    0   True  False
    1   True   True
    2  False   True
    """

    classes_: Shaped[np.ndarray, " label"]
    groups_: dict[str, int]
    models_: list[Any]
    _edges: Int[np.ndarray, " group"]
    _groups: list[Rows]
    _scores: list[Float[np.ndarray, " row"]]

    def __init__(
        self,
        classifier: Any,
        *,
        cv: object = 5,
        mondrian: str | None = "missing",
        level: float = 0.9,
        random_state: Stored[int | np.random.RandomState | None] = None,
        n_jobs: int | None = None,
    ) -> None:
        self.classifier = classifier
        self.cv = cv
        self.mondrian = mondrian
        self.level = level
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: object, y: object, groups: object = None) -> Self:
        """Fit the classifier without each fold, and score the labelled rows that were held out.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; cells may be missing.
        y : array-like of shape (n_obs,)
            Labels. Rows whose label is hidden are in every fit, and calibrate nothing.
        groups : array-like of shape (n_obs,), optional
            Group of each row: no split that is made here has rows of one on both sides.

        Returns
        -------
        self
            The fitted sets.

        Raises
        ------
        ValueError
            If an argument, the table or the labels cannot be used, or no labelled row is held out.
        """
        for name, rule in _RULES.items():
            rule.check(getattr(self, name), f"ConformalSets({name}=...)")
        check_consistent_length(X, y)
        classes, labels = self._read_labels(y)
        missing = table.missing_per_row(X)
        folds = self._folds(labels, subjects_in(X, groups, "ConformalSets.fit")[0])
        of_rows = groups if has_fit_parameter(self.classifier, "groups") else None
        fit = partial(fitted_fold, self.classifier, X, y, of_rows, classes=classes)
        fits = run_tasks(fit, folds, "Fitting folds", self.n_jobs)
        held_out = [rows for _, rows in folds]
        scores = [scores_of(p, labels[rows]) for (_, p), rows in zip(fits, held_out, strict=True)]
        edges = merged(missing[np.concatenate(held_out)], rows_needed(float(self.level)))
        sizes = np.bincount(group_of(missing[np.concatenate(held_out)], edges))
        self.classes_, self.models_ = classes, [model for model, _ in fits]
        self._scores, self._edges = scores, edges
        self._groups = [self._compared(missing[rows]) for rows in held_out]
        self.groups_ = dict(zip(group_names(edges), sizes.tolist(), strict=True))
        return self

    def predict_p(self, X: object) -> pd.DataFrame:
        """Conformal p value of each row for each class.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; cells may be missing.

        Returns
        -------
        DataFrame of shape (n_obs, n_classes)
            p values, rows named as in X, one column for each class. For at most a share u of new
            rows, the p value of the true class is at most u.
        """
        import pandas as pd

        check_is_fitted(self)
        scores = [1 - aligned_probabilities(model, X, self.classes_) for model in self.models_]
        compared = self._compared(table.missing_per_row(X))
        p = p_values(self._scores, self._groups, scores, compared)
        return pd.DataFrame(p, table.row_names(X, len(p)), self.classes_)

    def predict_set(self, X: object, level: float | None = None) -> pd.DataFrame:
        """Set of classes of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; cells may be missing.
        level : float, optional
            Share of rows whose class is to be in its set; None: that of the constructor.

        Returns
        -------
        DataFrame of bool, shape (n_obs, n_classes)
            Whether the class is in the set of the row. Sets grow with the level. A set can be
            empty: if the classifier is right more often than the level requires, the most doubtful
            rows have no class in their sets.

        Raises
        ------
        ValueError
            If the level is not between 0 and 1.
        """
        if level is None:
            level = self.level
        _RULES["level"].check(level, "predict_set(level=...)")
        return self.predict_p(X) > 1 - level + ROUNDING_OF_LEVEL

    def coverage(self, X: object, y: object, level: float | None = None) -> pd.DataFrame:
        """Coverage of the sets of new rows, by number of missing cells.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows that are not those of the fit.
        y : array-like of shape (n_obs,)
            Their labels; rows whose label is hidden are left out.
        level : float, optional
            Level of the sets; None: that of the constructor.

        Returns
        -------
        DataFrame
            One row a group of numbers of missing cells, and one for all rows: ``rows``, the share
            ``covered``, ``lower`` and ``upper`` ends of its exact binomial interval of 95 % and
            mean ``size`` of the sets, in classes.

        Raises
        ------
        ValueError
            If no label is known, or the level is not between 0 and 1.
        """
        import pandas as pd

        check_is_fitted(self)
        check_consistent_length(X, y)
        classes, labels = self._read_labels(y)
        labelled = np.flatnonzero(labels >= 0)
        sets = self.predict_set(X, level).to_numpy()[labelled]
        is_label = classes[labels[labelled]][:, None] == self.classes_
        covers, size = (sets & is_label).any(axis=1), sets.sum(axis=1)
        group = group_of(table.missing_per_row(X)[labelled], self._edges)
        masks = {name: group == g for g, name in enumerate(self.groups_)} | {"all": group >= 0}
        lines = {
            name: (rows.sum(), *counted(covers[rows]), size[rows].mean() if rows.any() else np.nan)
            for name, rows in masks.items()
        }
        frame = pd.DataFrame.from_dict(
            lines, orient="index", columns=["rows", "covered", "lower", "upper", "size"]
        )
        return frame.rename_axis("missing cells")

    def _read_labels(self, y: object) -> tuple[Shaped[np.ndarray, " label"], Rows]:
        """Classes and codes, labels hidden where the classifier takes them for hidden."""
        return table.encode_labels(y, unlabelled=getattr(self.classifier, "unlabelled", None))

    def _compared(self, missing: Rows) -> Rows:
        """Group of calibration rows that each row is compared with."""
        if self.mondrian is None:
            return np.zeros_like(missing)
        return group_of(missing, self._edges)

    def _folds(self, labels: Rows, subjects: Subjects | None) -> list[Fold]:
        """Positions of the rows to fit to and of the labelled rows held out, fold by fold.

        Rows without a label are among the rows to fit to. ValueError if no row is held out.
        """
        labelled = np.flatnonzero(labels >= 0)
        if isinstance(self.cv, Integral):
            _FOLDS.check(self.cv, "ConformalSets(cv=...)")
            seed = int(check_random_state(self.random_state).randint(LARGEST_SEED))
            folds = folds_of(subject_folds(labels, subjects, int(self.cv), seed), subjects)
        else:
            unlabelled = np.flatnonzero(labels < 0)
            splits = check_cv(self.cv, labels[labelled], classifier=True).split(
                labelled, labels[labelled]
            )
            folds = [
                (np.append(labelled[train], unlabelled), labelled[test]) for train, test in splits
            ]
        if not folds:
            raise ValueError(
                f"ConformalSets(cv={self.cv!r}) holds out no labelled row: the only row of a class "
                "never is. Label more rows, or give other splits."
            )
        return folds
