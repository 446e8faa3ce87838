"""Stability of class probabilities: refits of the recipe to bootstrap samples."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from numbers import Integral, Real
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float, Int
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_consistent_length, has_fit_parameter

from bayesrbf.answers.performance import (
    THRESHOLDS,
    CalibrationCurve,
    calibration_curve,
    group_numbers,
    resampled,
)
from bayesrbf.answers.scores import decision_curve
from bayesrbf.base.arrays import Probabilities
from bayesrbf.base.tasks import run_tasks
from bayesrbf.fit.arguments import Rule, row_groups
from bayesrbf.fit.cross_validation import aligned_probabilities
from bayesrbf.table.encode import encode_labels

TRIES: Final = 100
"""Samples that are drawn for each refit, at most, until one has every class."""
SHARE: Final = Rule("a number strictly between 0 and 1", (), Real, 0.0, 1.0, "neither")
RULES: Final = {
    "refits": Rule("an integer of at least 2", kind=Integral, low=2.0),
    "threshold": SHARE,
    "level": SHARE,
}


@dataclass(frozen=True)
class EventStability:
    """Stability of the probabilities of an event, one class against the rest."""

    event: str
    threshold: float
    level: float
    happened: Bool[np.ndarray, " obs"]
    labelled: Bool[np.ndarray, " obs"]  # Rows by which calibration and net benefit are judged.
    probability: Float[np.ndarray, " obs"]  # By the fit to all rows.
    refits: Float[np.ndarray, "refit obs"]

    @property
    def error(self) -> Float[np.ndarray, " obs"]:
        """Mean distance of the refits from the fit to all rows: absolute prediction error."""
        return np.abs(self.refits - self.probability).mean(axis=0)

    @property
    def interval(self) -> Float[np.ndarray, "2 obs"]:
        """Ends of the instability interval of each row, beyond which as many refits lie each."""
        return np.quantile(self.refits, [0.5 - self.level / 2, 0.5 + self.level / 2], axis=0)

    @property
    def width(self) -> Float[np.ndarray, " obs"]:
        """Width of the instability interval of each row."""
        lower, upper = self.interval
        return upper - lower

    @property
    def changes(self) -> Float[np.ndarray, " obs"]:
        """Share of refits that decide a row otherwise: classification instability index."""
        decided, refit_decisions = self.probability >= self.threshold, self.refits >= self.threshold
        return (refit_decisions != decided).mean(axis=0)

    @property
    def figures(self) -> Mapping[str, float]:
        """Means over the rows, by their names in words."""
        return {
            "mean absolute prediction error": float(self.error.mean()),
            "mean width of instability intervals": float(self.width.mean()),
            "share of decisions that change": float(self.changes.mean()),
        }

    @cached_property
    def curves(self) -> tuple[CalibrationCurve | None, ...]:
        """Calibration of the fit to all rows, then of each refit."""
        y, every = self.happened[self.labelled], (self.probability, *self.refits)
        return tuple(calibration_curve(p[self.labelled], y) for p in every)

    @cached_property
    def net_benefits(self) -> Float[np.ndarray, "fit threshold"]:
        """Net benefit of the fit to all rows, then of each refit, at .01 to .99."""
        y, every = self.happened[self.labelled], (self.probability, *self.refits)
        return np.array([decision_curve(p[self.labelled], y, THRESHOLDS).model for p in every])


@dataclass(frozen=True)
class Stability:
    """Class probabilities by refits on bootstrap samples; the result of :func:`stability`.

    ``print`` shows the figures, and ``bayesrbf.plots.plot_stability`` draws them.

    Attributes
    ----------
    probabilities : ndarray of shape (n_obs, n_classes)
        By the fit to all rows.
    refits : ndarray of shape (n_refits, n_obs, n_classes)
        By each refit, of the same rows.
    failures : tuple of str
        Errors of the refits that failed. They are no part of ``refits``.
    events : tuple of records
        One event for two classes, every class against the rest for more. Each has ``error`` (mean
        absolute prediction error of each row), ``interval`` and ``width``, ``changes`` (share of
        refits that decide a row otherwise at ``threshold``), means of these as ``figures``, and
        ``curves`` (calibration) and ``net_benefits``, of the fit to all rows first.
    """

    probabilities: Probabilities
    refits: Float[np.ndarray, "refit obs label"]
    failures: tuple[str, ...]
    events: tuple[EventStability, ...]

    @property
    def largest(self) -> EventStability:
        """The event with the largest mean absolute prediction error."""
        return max(self.events, key=lambda event: event.error.mean())

    def __str__(self) -> str:
        n_refits, n_obs, _ = self.refits.shape
        lines = [f"{n_refits} refits on bootstrap samples of {n_obs} rows"]
        if self.failures:
            lines.append(f"{len(self.failures)} more failed, first with: {self.failures[0]}")
        for event in self.events:
            lines.append(
                f"{event.event}, at {event.threshold:g}; intervals of {100 * event.level:g} %"
            )
            lines += [f"  {name:<42} {figure:.4f}" for name, figure in event.figures.items()]
        return "\n".join(lines)


def stability(
    model: Any,
    X: object,
    y: object,
    *,
    refits: int = 200,
    event: object = None,
    threshold: float = 0.5,
    groups: object = None,
    level: float = 0.95,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Stability:
    r"""Refit a whole recipe on bootstrap samples of the rows, and compare its probabilities.

    With :math:`\hat p_i` the probability of row i by a fit to all rows, and :math:`\hat p_{bi}`
    that by refit b of B, the mean absolute prediction error of the row is

    .. math:: \frac{1}{B} \sum_b |\hat p_{bi} - \hat p_i|,

    its instability interval holds the central 95 % of the :math:`\hat p_{bi}`, and its
    classification instability index is the share of refits on whose side of the threshold
    :math:`\hat p_i` is not [1]_. Refits make every choice anew, which ``refine("bootstrap")`` does
    not: its draws keep structure, calibration and reading of the columns, and are not used here.

    Parameters
    ----------
    model : classifier
        Of this package or scikit-learn's; not fitted itself: clones are. If its ``fit`` takes
        ``groups``, the copies of a row that a sample holds are one group, so that no split within
        the recipe has them on both sides. Other recipes that hold rows out judge themselves by
        such copies, and may choose a fit that is too flexible.
    X : array-like or frame of shape (n_obs, n_columns)
        Rows, in memory.
    y : array-like of shape (n_obs,)
        Labels; what the model takes for hidden is hidden. Such rows are drawn and predicted, too.
    refits : int
        Number B of refits; at least 200 are usual.
    event : object, optional
        The class that is the event; by default the last of two, and each of more.
    threshold : float
        Probability of the event from which one acts.
    groups : array-like of shape (n_obs,), optional
        Group of each row, such as its patient: whole groups are drawn.
    level : float
        Share of the refits inside the instability intervals.
    random_state : int
        Seed of the samples. A sample without one of the classes is drawn again.
    n_jobs : int, optional
        Processes that share the refits; None: as joblib is told, else one.

    Returns
    -------
    Stability
        A frozen record; ``print`` shows its figures.

    Raises
    ------
    ValueError
        If rows, labels and groups do not fit together, or no refit succeeds.

    References
    ----------
    .. [1] Riley, Collins (2023), Stability of clinical prediction models developed using
       statistical or machine learning methods, Biometrical Journal 65, 2200302.

    Examples
    --------
    >>> import bayesrbf
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = np.where(X[:, 0] + rng.normal(size=200) > 0, "sick", "well")
    >>> found = bayesrbf.stability(LogisticRegression(), X, y, refits=20, event="sick")
    >>> found.refits.shape, [round(x, 3) for x in found.events[0].figures.values()]
    ((20, 200, 2), [0.032, 0.129, 0.034])
    """
    for name, value in {"refits": refits, "threshold": threshold, "level": level}.items():
        RULES[name].check(value, f"stability({name}=...)")
    check_consistent_length(X, y)
    classes, labels = encode_labels(y, unlabelled=model.get_params(deep=False).get("unlabelled"))
    known, group_names = classes.tolist(), row_groups(groups, X, "stability")
    if len(known) < 2 or (event is not None and event not in known):
        raise ValueError(
            f"stability(event=...) must be one of the classes of y, at least two; received "
            f"{event!r}, and y has {', '.join(map(str, known))}."
        )
    subjects = None if group_names is None else group_numbers(group_names)
    if group_names is not None and subjects is None and len({*map(str, group_names)}) == 1:
        raise ValueError("stability(groups=...) must name at least two groups; received one.")
    together = np.arange(labels.size) if subjects is None else subjects

    def fitted(rows: Int[np.ndarray, " some"]) -> Probabilities:
        more = {"groups": together[rows]} if has_fit_parameter(model, "groups") else {}
        refit = clone(model).fit(_safe_indexing(X, rows), _safe_indexing(y, rows), **more)
        return aligned_probabilities(refit, X, classes)

    def refitted(rows: Int[np.ndarray, " some"]) -> Probabilities | str:
        """Probabilities of all rows by a refit to a sample, or the message of its ValueError."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit to all rows says what is odd
            try:
                return fitted(rows)
            except ValueError as error:
                return " ".join(str(error).split())

    drawn, codes = resampled(subjects, labels.size, TRIES * refits, random_state), range(len(known))
    samples = list(islice((rows for rows in drawn if np.isin(codes, labels[rows]).all()), refits))
    if len(samples) < refits:
        raise ValueError(
            f"stability(...): of {TRIES * refits} bootstrap samples only {len(samples)} have every "
            "class; leave out classes that hardly any row or group has."
        )
    probabilities = fitted(np.arange(labels.size))
    answers = run_tasks(refitted, samples, "Refits", n_jobs)
    failures = tuple(answer for answer in answers if isinstance(answer, str))
    if len(failures) == refits:
        raise ValueError(f"stability(...): none of {refits} refits succeeded. {failures[0]}")
    found = np.array([answer for answer in answers if not isinstance(answer, str)])
    shown = [known.index(event)] if event is not None else range(int(len(known) == 2), len(known))

    def of_event(c: int) -> EventStability:
        """Stability of the probability of class ``c`` against the rest."""
        return EventStability(
            event=str(known[c]),
            threshold=float(threshold),
            level=float(level),
            happened=labels == c,
            labelled=labels >= 0,
            probability=probabilities[:, c],
            refits=found[..., c],
        )

    return Stability(probabilities, found, failures, tuple(map(of_event, shown)))
