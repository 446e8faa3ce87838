"""How the fit of a mixture begins, and what is said of a singular end."""

from __future__ import annotations

from typing import Any

from bayesrbf.estimators.warning import warn
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.results import Fit
from bayesrbf.records.specification import MixtureSpecification
from bayesrbf.table import Columns


def mixture_specification(
    estimator: Any, rows: Observations, columns: Columns, component_class: tuple[int, ...]
) -> MixtureSpecification:
    """Structure of the mixture that an estimator asks for on a table."""
    return MixtureSpecification(
        n_features=rows.real.shape[1],
        levels=columns.n_levels,
        component_class=component_class,
        covariance_type=estimator.covariance_type,
        tied=getattr(estimator, "tied", False),
    )


def warm_start(estimator: Any, specification: MixtureSpecification) -> MixtureParameters | None:
    """The previous fit, in the user's units, where it is to be a start for this one."""
    previous = estimator.__dict__.get("model_") if estimator.warm_start else None
    if previous is None:
        return None
    if previous.specification != specification:
        raise ValueError(
            f"{type(estimator).__name__}(warm_start=True) needs the columns, classes and "
            f"components of the previous fit, {previous.specification}; received "
            f"{specification}. Use a new estimator."
        )
    return previous.start


def warn_of_floor(estimator: object, fit: Fit) -> None:
    """Warn where the smallest eigenvalues of a covariance had to be raised."""
    if fit.floored:
        warn(
            f"{type(estimator).__name__}: a covariance is singular to rounding, and its smallest "
            "eigenvalues were raised. Look for columns that are linear functions of others, "
            "or strengthen the prior."
        )
