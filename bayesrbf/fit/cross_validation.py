"""Cross-validation where labels are hidden: folds, scorers and probabilities of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int, Shaped
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import _safe_indexing, check_random_state

from bayesrbf.base.records import Stored
from bayesrbf.fit.arguments import row_groups
from bayesrbf.fit.held_out import folds_of, subject_folds
from bayesrbf.table.encode import encode_labels, read_labels
from bayesrbf.table.order import subjects_of

if TYPE_CHECKING:
    import pandas as pd

Scoring = str | Callable[..., float] | None
"""A name, a callable or None, as scikit-learn's ``scoring``."""


class LabelledKFold(BaseCrossValidator):
    """Folds of the labelled rows; rows without a label are in every training part.

    Rows of each class are assigned to the folds in turn, so that every fold has about the class
    frequencies of the table. The only row of a class is never held out. With ``groups`` whole
    groups are assigned, and no fold has rows of a group on both sides.

    Parameters
    ----------
    n_splits : int
        Number of folds, at least 2.
    shuffle : bool
        Whether the rows of a class are shuffled before they are assigned.
    random_state : int, RandomState instance or None
        Seed of the shuffling; None takes another order every time.
    unlabelled : object
        The value of ``y`` that stands for a hidden label, such as -1, beside NaN, None and
        pandas' NA, which always do.

    See Also
    --------
    labelled_scorer : A scorer that leaves rows without a label out of any test part.

    Examples
    --------
    Half of the labels are hidden; all rows teach, the other half is scored:

    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> from bayesrbf import HybridMixtureClassifier, LabelledKFold, labelled_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> y = np.where(np.arange(150) % 2, y, np.nan)
    >>> folds = LabelledKFold(3, shuffle=True, random_state=0)
    >>> scorer = labelled_scorer("neg_log_loss")
    >>> model = HybridMixtureClassifier(random_state=0)
    >>> bool(cross_val_score(model, X, y, cv=folds, scoring=scorer).mean() > -0.3)
    True
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        shuffle: bool = False,
        random_state: Stored[int | np.random.RandomState | None] = None,
        unlabelled: object = None,
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state
        self.unlabelled = unlabelled

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:
        """Count the folds.

        Parameters
        ----------
        X, y, groups : object
            Ignored.

        Returns
        -------
        int
            Number of folds.
        """
        return self.n_splits

    def split(
        self, X: object, y: object = None, groups: object = None
    ) -> Iterator[tuple[Int[np.ndarray, " train"], Int[np.ndarray, " test"]]]:
        """Positions of training and held-out rows of every fold.

        Parameters
        ----------
        X : object
            Ignored.
        y : array-like of shape (n_obs,)
            Labels, hidden where NaN, None, pandas' NA or ``unlabelled``.
        groups : array-like of shape (n_obs,), optional
            Group of each row; None and NaN: a row that is in no group.

        Yields
        ------
        train, test : ndarray of int
            Only labelled rows are in ``test``; all other rows are in ``train``, but for those
            without a label whose group is held out.

        Raises
        ------
        ValueError
            If there are fewer than two folds, no ``y``, or too few labelled rows for every fold.
        """
        if not isinstance(self.n_splits, Integral) or self.n_splits < 2:
            raise ValueError(
                f"LabelledKFold(n_splits=...) must be a whole number of at least 2; received "
                f"{self.n_splits!r}."
            )
        if y is None:
            raise ValueError("LabelledKFold.split needs y: it holds out rows that have a label.")
        labels = encode_labels(y, unlabelled=self.unlabelled)[1]
        seed = check_random_state(self.random_state).randint(2**31 - 1) if self.shuffle else None
        of_rows = row_groups(groups, labels, "LabelledKFold.split")
        subjects = None if of_rows is None else subjects_of(np.arange(labels.size), of_rows)
        folds = subject_folds(labels, subjects, int(self.n_splits), seed)
        if np.unique(folds[folds >= 0]).size < self.n_splits:
            raise ValueError(
                f"LabelledKFold(n_splits={self.n_splits}) needs as many labelled rows, or groups "
                f"of them, of classes with two rows and more; y has rows for "
                f"{np.unique(folds[folds >= 0]).size} folds. Take fewer folds."
            )
        yield from folds_of(folds, subjects)


@dataclass(frozen=True)
class LabelledScorer:
    """A scorer of the labelled rows among those it is given."""

    scorer: Scoring
    unlabelled: object

    def __call__(self, estimator: object, X: object, y: object, **options: object) -> float:
        """Score of the labelled rows; options of one entry a row are those of the same rows."""
        classes, codes = encode_labels(y, unlabelled=self.unlabelled)
        labelled = np.flatnonzero(codes >= 0)
        of_labelled = {
            name: value if value is None else _safe_indexing(value, labelled)
            for name, value in options.items()
        }
        scorer: Callable[..., float] = check_scoring(estimator, scoring=self.scorer)
        return scorer(
            estimator, _safe_indexing(X, labelled), classes[codes[labelled]], **of_labelled
        )


def labelled_scorer(scorer: Scoring = None, *, unlabelled: object = None) -> LabelledScorer:
    """Make a scorer leave out the rows whose label is hidden.

    Labels are handed on in their own type: whole numbers among missing cells, which an array can
    only hold as floats or objects, are whole numbers again.

    Parameters
    ----------
    scorer : str, callable or None
        What scikit-learn takes as ``scoring``: a name such as ``"neg_log_loss"``, a callable of
        estimator, X and y, or None for the estimator's own ``score``.
    unlabelled : object
        The value of ``y`` that stands for a hidden label, such as -1, beside NaN, None and
        pandas' NA, which always do.

    Returns
    -------
    callable
        For ``scoring`` of ``cross_val_score``, ``cross_validate`` and ``GridSearchCV``. It raises
        ValueError where no row has a label: :class:`LabelledKFold` holds out no such part.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from bayesrbf import HybridMixtureClassifier, labelled_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> unlabelled = np.where(np.arange(150) % 3, y, np.nan)
    >>> model = HybridMixtureClassifier(random_state=0).fit(X, unlabelled)
    >>> bool(labelled_scorer("accuracy")(model, X, unlabelled) > 0.9)
    True
    """
    return LabelledScorer(scorer, unlabelled)


def fitted_fold(
    classifier: Any,
    X: object,
    y: object,
    groups: object,
    fold: tuple[Int[np.ndarray, " train"], Int[np.ndarray, " test"]],
    classes: Shaped[np.ndarray, " label"],
) -> tuple[Any, Float[np.ndarray, "row label"]]:
    """A clone that has not seen the held-out rows, and what it says of them."""
    train, test = fold
    more = {} if groups is None else {"groups": _safe_indexing(groups, train)}
    model = clone(classifier).fit(_safe_indexing(X, train), _safe_indexing(y, train), **more)
    return model, aligned_probabilities(model, _safe_indexing(X, test), classes)


def aligned_probabilities(
    model: Any, X: object, classes: Shaped[np.ndarray, " label"]
) -> Float[np.ndarray, "row label"]:
    """Class probabilities; 0 for a class that was in none of the model's rows."""
    of_model = np.asarray(model.predict_proba(X), dtype=np.float64)
    p = np.zeros((len(of_model), classes.size))
    p[:, np.searchsorted(classes, model.classes_)] = of_model
    return p


def held_out_probabilities(
    estimator: Any,
    X: object,
    y: object,
    *,
    cv: object = 5,
    groups: object = None,
    random_state: int = 0,
) -> pd.DataFrame:
    """Class probabilities of the labelled rows, each by a fit that had not seen it.

    It is scikit-learn's ``cross_val_predict`` where labels are hidden: rows without a label teach
    every fit, and have no line.

    Parameters
    ----------
    estimator : classifier
        Not fitted itself: a clone is fitted for every fold.
    X : array-like or frame of shape (n_obs, n_columns)
        Rows.
    y : array-like of shape (n_obs,)
        Labels; what the estimator takes for hidden is hidden.
    cv : int or splitter
        Number of folds of :class:`LabelledKFold`, or a splitter such as it.
    groups : array-like of shape (n_obs,), optional
        Group of each row, such as its patient: no group is on both sides of a split.
    random_state : int
        Seed of the folds.

    Returns
    -------
    pandas.DataFrame
        One line for every row that was held out, by its entry in the index of the frame X, or its
        position in any other table; one column a class.

    Raises
    ------
    ValueError
        If there are too few labelled rows for every fold.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import bayesrbf
    >>> X, y = load_iris(return_X_y=True)
    >>> y = np.where(np.arange(150) % 2, y, np.nan)
    >>> model = bayesrbf.HybridMixtureClassifier(random_state=0)
    >>> p = bayesrbf.held_out_probabilities(model, X, y, cv=3)
    >>> p.shape, bool((p.idxmax(axis=1) == y[p.index]).mean() > 0.9)
    ((75, 3), True)
    """
    import pandas as pd

    unlabelled = getattr(estimator, "unlabelled", None)
    classes, _ = encode_labels(y, unlabelled=unlabelled)
    splitter: Any = cv
    if isinstance(cv, Integral):
        splitter = LabelledKFold(
            int(cv), shuffle=True, random_state=random_state, unlabelled=unlabelled
        )
    folds = list(splitter.split(X, y, groups))
    probabilities = [fitted_fold(estimator, X, y, groups, fold, classes)[1] for fold in folds]
    rows = np.concatenate([test for _, test in folds])
    order = np.argsort(rows, kind="stable")
    index = X.index[rows[order]] if isinstance(X, pd.DataFrame) else rows[order]
    return pd.DataFrame(np.concatenate(probabilities)[order], index, classes)


def refuse_unlabelled(y: object, unlabelled: object, owner: str) -> None:
    """ValueError if a label is hidden; it says how to score such rows."""
    n_unlabelled = int(read_labels(y, unlabelled)[1].sum())
    if n_unlabelled:
        marked = "" if unlabelled is None else f"unlabelled={unlabelled!r}"
        raise ValueError(
            f"{owner}.score needs labels, and {n_unlabelled} of the rows to be scored have none. "
            f"To cross-validate, take cv=LabelledKFold({marked}) and scoring="
            f"labelled_scorer({marked}) of bayesrbf: rows without a label then teach and are not "
            "scored."
        )
