r"""Stability of class probabilities: what the same recipe says had it learnt from other rows.

The whole recipe is fitted again to bootstrap samples of the rows, and every refit predicts the
rows of the table. How far refits are from the fit to all rows is told row by row [1]_. Rows are
predicted by fits that have seen some of them: figures of performance are for comparison among the
refits, and are better than on new rows.

.. [1] Riley, Collins (2023), Stability of clinical prediction models developed using statistical
   or machine learning methods, Biometrical Journal 65, 2200302.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from numbers import Integral, Real
from typing import Any, Final, Self

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
from bayesrbf.answers.scores import Positive, Score, decision_curve
from bayesrbf.base.arrays import Labels, Probabilities
from bayesrbf.base.tasks import run_tasks
from bayesrbf.fit.arguments import Rule, row_groups
from bayesrbf.fit.held_out import aligned_probabilities
from bayesrbf.table.encode import encode_labels

INSTABILITY_LEVEL: Final = 0.95
"""Share of the refits inside an instability interval."""
TRIES: Final = 100
"""Samples that are drawn for each refit, at most, until one has every class."""
SHARE: Final = Rule("a number strictly between 0 and 1", (), Real, 0.0, 1.0, "neither")
RULES: Final = {
    "refits": Rule("an integer of at least 2", kind=Integral, low=2.0),
    "threshold": SHARE,
    "level": SHARE,
}

Rows = Int[np.ndarray, " some"]
"""Positions of rows, some of them repeated."""


@dataclass(frozen=True)
class EventStability:
    """Stability of the probabilities of an event, one class against the rest."""

    event: str
    threshold: float
    level: float
    probability: Float[np.ndarray, " obs"]
    """By the fit to all rows."""
    refits: Float[np.ndarray, "refit obs"]
    """By the refits, of the same rows."""
    curve: CalibrationCurve | None
    """Of the fit to all rows, on the labelled rows; so are the next three."""
    curves: tuple[CalibrationCurve | None, ...]
    """Of the refits."""
    net_benefit: Float[np.ndarray, " threshold"]
    """At the probabilities ``thresholds``."""
    net_benefits: Float[np.ndarray, "refit threshold"]
    thresholds: Float[np.ndarray, " threshold"]

    @property
    def error(self) -> Float[np.ndarray, " obs"]:
        """Mean distance of the refits from the fit to all rows: absolute prediction error."""
        distance: Float[np.ndarray, " obs"] = np.abs(self.refits - self.probability).mean(axis=0)
        return distance

    @property
    def mape(self) -> float:
        """Mean absolute prediction error over all rows."""
        return float(self.error.mean())

    @property
    def interval(self) -> Float[np.ndarray, "2 obs"]:
        """Ends of the instability interval of each row, which leave out as many refits each."""
        ends: Float[np.ndarray, "2 obs"]
        ends = np.quantile(self.refits, [0.5 - self.level / 2, 0.5 + self.level / 2], axis=0)
        return ends

    @property
    def width(self) -> Float[np.ndarray, " obs"]:
        """Width of the instability interval of each row."""
        width: Float[np.ndarray, " obs"] = np.diff(self.interval, axis=0)[0]
        return width

    @property
    def changes(self) -> Float[np.ndarray, " obs"]:
        """Share of refits that decide a row otherwise: classification instability index."""
        decided, others = self.probability >= self.threshold, self.refits >= self.threshold
        share: Float[np.ndarray, " obs"] = (others != decided).mean(axis=0)
        return share

    @property
    def changed(self) -> float:
        """Mean classification instability index over all rows."""
        return float(self.changes.mean())

    @property
    def icis(self) -> Float[np.ndarray, " refit"]:
        """Mean distance of curve and probability (ICI) of each refit; NaN without a curve."""
        return np.array([np.nan if one is None else one.ici for one in self.curves])


def event_stability(
    event: str,
    probability: Score,
    refits: Float[np.ndarray, "refit obs"],
    happened: Positive,
    labelled: Bool[np.ndarray, " obs"],
    threshold: float = 0.5,
    level: float = INSTABILITY_LEVEL,
) -> EventStability:
    """Compare refits with the fit to all rows; curves are of the labelled rows."""
    y = happened[labelled]

    def benefit(p: Score) -> Float[np.ndarray, " threshold"]:
        return decision_curve(p[labelled], y, THRESHOLDS).model

    return EventStability(
        event=event,
        threshold=threshold,
        level=level,
        probability=probability,
        refits=refits,
        curve=calibration_curve(probability[labelled], y),
        curves=tuple(calibration_curve(one[labelled], y) for one in refits),
        net_benefit=benefit(probability),
        net_benefits=np.array([benefit(one) for one in refits]),
        thresholds=THRESHOLDS,
    )


@dataclass(frozen=True)
class Stability:
    """Class probabilities by refits on bootstrap samples; the result of :func:`stability`.

    ``print`` shows the figures, and ``bayesrbf.plots.plot_stability`` draws them.

    Attributes
    ----------
    classes : tuple of str
        Classes in the order of the last axis of the probabilities.
    probabilities : ndarray of shape (n_obs, n_classes)
        By the fit to all rows.
    refits : ndarray of shape (n_refits, n_obs, n_classes)
        By each refit, of the same rows.
    failures : tuple of str
        Errors of the refits that failed. They are no part of ``refits``.
    events : tuple of records
        One event for two classes, every class against the rest for more. Each has ``error`` and
        ``mape`` (mean absolute prediction error of each row, and over all rows), ``interval`` and
        ``width``, ``changes`` and ``changed`` (share of refits that decide a row otherwise at
        ``threshold``), ``curve`` and ``curves`` (calibration), ``icis``, ``net_benefit`` and
        ``net_benefits`` at ``thresholds``.
    """

    classes: tuple[str, ...]
    probabilities: Probabilities
    refits: Float[np.ndarray, "refit obs label"]
    failures: tuple[str, ...]
    events: tuple[EventStability, ...]

    @classmethod
    def of(
        cls,
        fit: Callable[[Rows], Any],
        X: object,
        y: object,
        *,
        hidden: object = None,
        units: Int[np.ndarray, " obs"] | None = None,
        refits: int,
        shown: Sequence[int] | None = None,
        threshold: float = 0.5,
        level: float = INSTABILITY_LEVEL,
        seed: int = 0,
        n_jobs: int | None = None,
    ) -> Self:
        """Fit a recipe, which maps rows to a fitted classifier, to all rows and to samples.

        Rows of one of the ``units`` are drawn together; ``shown`` are the classes that are events.
        """
        classes, labels = encode_labels(y, unlabelled=hidden)
        samples = bootstrap_samples(labels, units, refits, seed)
        whole = aligned_probabilities(fit(np.arange(labels.size)), X, classes)

        def answer(rows: Rows) -> Probabilities | str:
            with warnings.catch_warnings():
                # The fit to all rows has said what is odd; of a sample it is no news.
                warnings.simplefilter("ignore")
                try:
                    return aligned_probabilities(fit(rows), X, classes)
                except ValueError as error:
                    return " ".join(str(error).split())

        answers = run_tasks(answer, samples, "Refits", n_jobs)
        failures = tuple(one for one in answers if isinstance(one, str))
        if len(failures) == refits:
            raise ValueError(f"stability(...): none of {refits} refits succeeded. {failures[0]}")
        found = np.array([one for one in answers if not isinstance(one, str)])
        names = tuple(map(str, classes.tolist()))
        shown = ([1] if len(names) == 2 else range(len(names))) if shown is None else shown
        events = tuple(
            event_stability(
                names[c],
                whole[:, c],
                found[..., c],
                labels == c,
                labels >= 0,
                threshold=threshold,
                level=level,
            )
            for c in shown
        )
        return cls(names, whole, found, failures, events)

    @property
    def changes(self) -> Float[np.ndarray, " obs"]:
        """Share of refits under which another class of a row is the most probable one."""
        others = self.refits.argmax(axis=2) != self.probabilities.argmax(axis=1)
        share: Float[np.ndarray, " obs"] = others.mean(axis=0)
        return share

    @property
    def largest(self) -> EventStability:
        """The event whose probability moves most."""
        return max(self.events, key=lambda one: one.mape)

    def __str__(self) -> str:
        n_refits, n_obs, _ = self.refits.shape
        lines = [f"{n_refits} refits on bootstrap samples of {n_obs} rows"]
        if self.failures:
            lines.append(f"{len(self.failures)} more failed, first with: {self.failures[0]}")
        for one in self.events:
            net = one.net_benefits[:, np.abs(one.thresholds - one.threshold).argmin()]
            told = {
                "mean absolute prediction error (MAPE)": f"{one.mape:.4f}",
                "of nine rows in ten at most": f"{np.quantile(one.error, 0.9):.4f}",
                f"mean width of {100 * one.level:g} % intervals": f"{one.width.mean():.4f}",
                f"decisions at {one.threshold:g} that change": f"{100 * one.changed:.2f} %",
                f"net benefit at {one.threshold:g}": f"{net.min():.4f} to {net.max():.4f}",
            }
            if not np.isnan(one.icis).all():
                least, most = np.nanmin(one.icis), np.nanmax(one.icis)
                told["ICI"] = f"{least:.4f} to {most:.4f}"
            lines += [one.event, *(f"  {name:<42} {figure}" for name, figure in told.items())]
        return "\n".join(lines)


def bootstrap_samples(
    labels: Labels, units: Int[np.ndarray, " obs"] | None, refits: int, seed: int
) -> list[Rows]:
    """Rows of every refit: whole units, as many as there are; a sample has every class.

    >>> labels, units = np.array([0, 1, 0, 1]), np.array([7, 7, 8, 8])
    >>> [one.tolist() for one in bootstrap_samples(labels, units, 2, seed=1)]
    [[0, 1, 2, 3], [2, 3, 2, 3]]
    """
    present = np.unique(labels[labels >= 0])
    drawn = resampled(units, labels.size, TRIES * refits, seed)
    whole = (rows for rows in drawn if np.isin(present, labels[rows]).all())
    samples = list(islice(whole, refits))
    if len(samples) < refits:
        raise ValueError(
            f"stability(...): of {TRIES * refits} bootstrap samples only {len(samples)} have every "
            "class; leave out classes that hardly any row or group has."
        )
    return samples


def stability(
    model: Any,
    X: object,
    y: object,
    *,
    refits: int = 200,
    event: object = None,
    threshold: float = 0.5,
    groups: object = None,
    level: float = INSTABILITY_LEVEL,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Stability:
    r"""Refit a whole recipe on bootstrap samples of the rows, and compare its probabilities.

    With :math:`\hat p_i` the probability of row i by a fit to all rows, and :math:`\hat p_{bi}`
    that by refit b of B, the mean absolute prediction error of the row is

    .. math:: \frac{1}{B} \sum_b |\hat p_{bi} - \hat p_i|,

    its instability interval holds the central 95 % of the :math:`\hat p_{bi}`, and its
    classification instability index is the share of refits on whose side of the threshold
    :math:`\hat p_i` is not [1]_. Calibration and decision curves of the refits are on the rows of
    the table. Refits make every choice anew, which ``refine("bootstrap")`` does not: its draws keep
    structure, calibration and the reading of the columns, so they are not used here.

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
    >>> sick = found.events[0]
    >>> found.refits.shape, round(sick.mape, 3), round(sick.changed, 3)
    ((20, 200, 2), 0.032, 0.03)
    """
    asked = {"refits": refits, "threshold": threshold, "level": level}
    for name, value in asked.items():
        RULES[name].check(value, f"stability({name}=...)")
    check_consistent_length(X, y)
    hidden = model.get_params(deep=False).get("unlabelled")
    classes, labels = encode_labels(y, unlabelled=hidden)
    known = classes.tolist()
    if len(known) < 2 or (event is not None and event not in known):
        raise ValueError(
            f"stability(event=...) must be one of the classes of y, at least two; received "
            f"{event!r}, and y has {', '.join(map(str, known)) or 'no label'}."
        )
    given = row_groups(groups, X, "stability")
    units = None if given is None else group_numbers(given)
    if given is not None and units is None and len({*map(str, given)}) == 1:
        raise ValueError("stability(groups=...) must name at least two groups; received one.")
    together = np.arange(labels.size) if units is None else units

    def fit(rows: Rows) -> Any:
        more = {"groups": together[rows]} if has_fit_parameter(model, "groups") else {}
        return clone(model).fit(_safe_indexing(X, rows), _safe_indexing(y, rows), **more)

    return Stability.of(
        fit,
        X,
        y,
        hidden=hidden,
        units=units,
        refits=int(refits),
        shown=None if event is None else [known.index(event)],
        threshold=float(threshold),
        level=float(level),
        seed=random_state,
        n_jobs=n_jobs,
    )
