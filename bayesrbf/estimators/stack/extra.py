"""Members of a stack that other libraries made: any classifier with probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from bayesrbf import table
from bayesrbf.fitted.stack.members import OtherMember
from bayesrbf.fitted.stack.recipes import MEMBERS, TREES
from bayesrbf.numerics.stack.pooling import LEAST_MEMBER_PROBABILITY
from bayesrbf.records.mixture import Observations


@dataclass(frozen=True)
class ExtraMember:
    """A classifier that is given the table as the user gave it."""

    name: str
    estimator: Any
    """Not fitted as a recipe, fitted as a member."""
    columns: table.Columns
    template: object
    """Container of the table, without rows."""

    def fit(self, rows: Observations) -> ExtraMember:
        """Fit a clone to the labelled rows."""
        labelled = rows.take(np.flatnonzero(rows.labels >= 0))
        estimator, weighted = clone(self.estimator), {}
        if has_fit_parameter(estimator, "sample_weight"):
            weighted = {"sample_weight": labelled.weights}
        elif np.allclose(whole := np.round(labelled.weights), labelled.weights):
            copies = np.repeat(np.arange(labelled.n_obs), whole.astype(int))
            labelled = labelled.take(copies)
        else:
            raise ValueError(
                f"StackedClassifier(extra=...): {self.name} takes no sample_weight, but the rows "
                "have weights that are no whole numbers; leave it out, or fit without weights."
            )
        estimator.fit(self._table(labelled), labelled.labels, **weighted)
        return ExtraMember(self.name, estimator, self.columns, self.template)

    def class_log_joint(self, rows: Observations, n_classes: int) -> Float[np.ndarray, "obs label"]:
        """Log class probabilities; a class that it has not seen is next to impossible."""
        probabilities = np.zeros((rows.n_obs, n_classes))
        probabilities[:, self.estimator.classes_] = self.estimator.predict_proba(self._table(rows))
        return np.log(np.maximum(probabilities, LEAST_MEMBER_PROBABILITY))

    def _table(self, rows: Observations) -> object:
        """Rows in the container of the user."""
        return table.decode(rows.real, rows.codes, self.columns, self.template)


def extra_members(
    extra: object, columns: table.Columns, template: object
) -> tuple[OtherMember, ...]:
    """Name the classifiers that a user adds to a stack."""
    members: list[ExtraMember] = []
    for item in [] if extra is None else list(extra):  # type: ignore[call-overload]
        name, estimator = item if isinstance(item, tuple) else (type(item).__name__, item)
        if not (hasattr(estimator, "fit") and hasattr(estimator, "predict_proba")):
            raise ValueError(
                "StackedClassifier(extra=...) must hold classifiers with predict_proba, or pairs "
                f"of a name and such a classifier; received {item!r}."
            )
        members.append(ExtraMember(str(name), estimator, columns, template))
    names = [member.name for member in members]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(
            f"StackedClassifier(extra=...) has two members {sorted(twice)[0]!r}; give each a name, "
            "as in extra=[('trees', ...), ('deep trees', ...)]."
        )
    if taken := sorted(set(names) & {*MEMBERS, *TREES}):
        raise ValueError(
            f"StackedClassifier(extra=...) has a member {taken[0]!r}, as stacks have one of their "
            f"own; give it another name, as in extra=[('my {taken[0]}', ...)]."
        )
    return tuple(members)


def kin_of_extra(extra: object) -> tuple[str, ...]:
    """Teachers of a rehearsal that are of the same kind as a classifier that a user adds."""
    from bayesrbf.solvers.teachers import kin_of  # scikit-learn's ensembles, which a fit needs not

    given: list[object] = [] if extra is None else list(extra)  # type: ignore[call-overload]
    return kin_of(one[-1] if isinstance(one, tuple) else one for one in given)
