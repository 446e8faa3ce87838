"""A new table held against the training table: the check, and what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from bayesrbf.new_rows.drift_remarks import drift_remarks
from bayesrbf.new_rows.remarks import Remark, lines_of_remarks
from bayesrbf.new_rows.training_cells import loaded, named_cells
from bayesrbf.report.words import plural

if TYPE_CHECKING:
    from bayesrbf.estimators.estimator import Estimator
    from bayesrbf.table import Columns


@dataclass(frozen=True)
class DriftCheck:
    """What differs between new rows and the training table: what :func:`check` returns.

    ``print`` shows it as text.

    Attributes
    ----------
    rows : int
        Number of new rows.
    remarks : tuple of Remark
        What was noticed, as records with ``topic``, ``sentence`` and ``is_finding``: whether
        chance does not explain it.
    """

    rows: int
    remarks: tuple[Remark, ...]

    @property
    def findings(self) -> tuple[Remark, ...]:
        """The remarks that chance does not explain."""
        return tuple(remark for remark in self.remarks if remark.is_finding)

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join([plural(self.rows, "row"), *lines_of_remarks(self.remarks)])


def check(
    estimator: Estimator | str | PathLike[str], X: object, *, dates: Sequence[str] = ()
) -> DriftCheck:
    """Hold new rows against the training table: what differs, and what chance does not explain.

    Looks for absent columns, levels that training did not have, more missing cells, columns that
    were exchanged or are in other units, cells and rows that stand out, and, where the estimator
    is a classifier, class frequencies that changed. No labels are needed.

    Parameters
    ----------
    estimator : fitted estimator or path-like
        What was fitted, or a file that ``save`` wrote. It holds the training table.
    X : array-like or frame of shape (n_obs, n_columns)
        New rows. Columns are found by name: one that is absent counts as missing, and one that
        the estimator does not know is not looked at.
    dates : sequence of str
        Columns of dates as numbers of days since 2000-01-01, which may move on.

    Returns
    -------
    DriftCheck
        A frozen record: ``findings`` are beyond chance, ``remarks`` has everything, ``print``
        shows it, and ``to_dict`` has it as plain values.

    Raises
    ------
    ValueError
        If X cannot be read or has none of the columns, or if the estimator compares rows by a
        metric that knows no columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import bayesrbf
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = bayesrbf.HybridMixtureClassifier(1, cv=3, random_state=0).fit(X[::2], y[::2])
    >>> bayesrbf.check(model, X[1::2]).findings
    ()
    >>> inches = X[1::2].assign(**{"petal length (cm)": X["petal length (cm)"] / 2.54})
    >>> [one.topic for one in bayesrbf.check(model, inches).findings]
    ['unit']
    """
    fitted: Estimator = loaded(estimator)
    check_is_fitted(fitted)
    columns = _columns_of(fitted)
    cells = named_cells(X, columns)
    remarks = drift_remarks(fitted, columns, cells, dates)
    return DriftCheck(len(cells), tuple(remarks))


def _columns_of(estimator: Estimator) -> Columns:
    """What the columns of the training table are; an error where rows are compared whole."""
    try:
        return estimator.columns_
    except AttributeError:
        raise ValueError(
            f"check compares columns, and this {type(estimator).__name__} compares whole rows by "
            "a metric that knows none; check the table by an estimator that has columns."
        ) from None
