"""Learning curve: log loss of a recipe by number of rows, on tables drawn from a density."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import xlogy
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from bayesrbf.answers.rehearse import drawn_labels
from bayesrbf.base.arrays import MIN_SCORED_PROBABILITY
from bayesrbf.base.tasks import run_tasks
from bayesrbf.fit.arguments import integer
from bayesrbf.fit.calibration import calibration_slope

FACTORS: Final = (0.5, 1.0, 2.0, 4.0)
MIN_SHOWN_LOSS: Final = 0.0005  # Nats: smaller means would be written as 0.000.
TESTED: Final = 1000  # Drawn rows by which every fit is judged.


@dataclass(frozen=True)
class LearningCurve:
    """Figures of refits by number of rows; the result of :func:`learning_curve`.

    ``print`` shows their means and, in brackets, where the central 80 % of the refits are.

    Attributes
    ----------
    n_obs : int
        Rows of the table.
    sizes : ndarray of shape (n_sizes,)
        Rows of the drawn tables.
    log_loss : float
        That of the truth, in nats a row: no recipe is better.
    excess, slope, width : ndarray of shape (n_sizes, n_repeats)
        Log loss above that of the truth, calibration slope, mean width of 90 % intervals; as
        ``figures`` their means and where the central 80 % are.
    """

    n_obs: int
    sizes: Int[np.ndarray, " size"]
    log_loss: float
    excess: Float[np.ndarray, "size repeat"]
    slope: Float[np.ndarray, "size repeat"]
    width: Float[np.ndarray, "size repeat"]

    @property
    def sentence(self) -> str:
        """Message on the number of further rows that halve the excess, by a power law."""
        # By chance the mean excess may be negative, which has no logarithm.
        means = np.maximum(self.excess.mean(axis=1), MIN_SCORED_PROBABILITY)
        power, level = np.polyfit(np.log(self.sizes), np.log(means), 1)
        more = self.n_obs * np.expm1(min(-np.log(2) / power, 99)) if power < 0 else np.inf
        now, most = np.exp(level) * self.n_obs**power, self.sizes.max()
        if now < MIN_SHOWN_LOSS:
            return f"With {self.n_obs:,} rows log loss is that of truth, to three decimals."
        message = f"{most:,} rows do not halve that."
        if self.n_obs + more <= most:
            message = f"about {float(f'{more:.1g}'):,.0f} rows more halve that."
        return (
            f"With {self.n_obs:,} rows log loss is about {now:.3f} above that of truth; {message}"
        )

    @property
    def figures(self) -> Mapping[str, Float[np.ndarray, "size 3"]]:
        """Mean and ends of the central 80 % of the refits of each size, by names in words."""
        names = "log loss above truth", "calibration slope", "width of intervals"
        return {
            name: np.column_stack([values.mean(axis=1), *np.quantile(values, [0.1, 0.9], axis=1)])
            for name, values in zip(names, (self.excess, self.slope, self.width), strict=True)
        }

    def __str__(self) -> str:
        lines = ["   rows  " + "".join(f"{name:<24}" for name in self.figures)]
        for size, *intervals in zip(self.sizes, *self.figures.values(), strict=True):
            cells = (f"{a:.3f} ({b:.3f} to {c:.3f})".ljust(24) for a, b, c in intervals)
            lines.append(f"{size:>7,}  {''.join(cells)}")
        return "\n".join([*lines, self.sentence])


def learning_curve(
    model: Any,
    X: Any,
    *,
    density: Any = None,
    recipe: Any = None,
    sizes: Sequence[int] | None = None,
    repeats: int = 5,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> LearningCurve:
    r"""Refit a recipe to drawn tables of several sizes, whose truth is known.

    Cells are drawn from a density and hidden as in rows of X; labels from the model's
    probabilities :math:`p` of what is left. The log loss of a refit :math:`q` is above that of the
    truth by the mean of :math:`\sum_c p_c \ln(p_c / q_c)` over 1000 further rows.

    Parameters
    ----------
    model : classifier of this package
        Fitted; it stands for the truth.
    X : frame or array of shape (n_obs, n_columns)
        Its training rows: their number, and which of their cells are missing.
    density : fitted estimator with ``sample``, optional
        What cells are drawn from, such as a :class:`MixtureDensity` of X; by default the model.
        Columns of it that X lacks, such as labels, are left out.
    recipe : classifier of this package, optional
        What is refitted; by default the model's own, which the truth favours: it is of its kind.
    sizes : sequence of int, optional
        At least two numbers of rows; by default half, once, twice and four times those of X.
    repeats : int
        Tables of each size; each costs a fit and its draws.
    random_state, n_jobs : int
        Source of the tables, and processes that share the fits.

    Returns
    -------
    LearningCurve
        A frozen record with a ``sentence``; ``print`` shows it.

    Raises
    ------
    ValueError
        If there are not two sizes, nothing draws rows, or a table has hardly a row of a class.

    Examples
    --------
    >>> import bayesrbf
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0], [2]], 30, axis=0)
    >>> model = bayesrbf.HybridMixtureClassifier(1, random_state=0)
    >>> model = model.fit(X, np.repeat(["well", "sick"], 30))
    >>> found = bayesrbf.learning_curve(model, X, sizes=[30, 300], repeats=2)
    >>> few, many = found.excess.mean(axis=1)
    >>> found.excess.shape, bool(many < few)
    ((2, 2), True)
    """
    n_obs, classes = len(X), np.asarray(model.classes_)
    requested = [factor * n_obs for factor in FACTORS] if sizes is None else sizes
    counts = sorted({round(n) for n in requested})
    if len(counts) < 2 or counts[0] < 2:
        raise ValueError(
            "learning_curve(sizes=...) must be at least two different numbers of rows, each at "
            f"least 2; received {counts}."
        )
    integer().check(repeats, "learning_curve(repeats=...)")
    source = model if density is None else density
    if not hasattr(source, "sample"):
        raise ValueError(
            "learning_curve(density=...) must have the method sample, which a "
            f"{type(source).__name__} has not: give a MixtureDensity that is fitted to X."
        )
    template = clone(model if recipe is None else recipe)
    template.set_params(inference="map", class_prior=None, random_state=random_state)
    rng = np.random.default_rng(random_state)
    refit_sizes = np.repeat(counts, repeats)
    n_drawn = TESTED + int(refit_sizes.sum())
    drawn = copy(source).set_params(random_state=random_state).sample(n_drawn)
    drawn = drawn[0] if isinstance(drawn, tuple) else drawn
    frame = pd.DataFrame(drawn)
    holes = pd.isna(pd.DataFrame(X))
    if frame.shape[1] > holes.shape[1]:
        if not set(holes.columns) <= set(frame.columns):
            raise ValueError(
                "learning_curve(density=...) must have the columns of X by their names, or no "
                f"others: fit it to X. It draws {list(frame.columns)}, and X has "
                f"{list(holes.columns)}."
            )
        frame = frame[holes.columns]
    if not frame.isna().any(axis=None):  # else the density has drawn which cells are missing
        frame = frame.mask(holes.to_numpy()[rng.integers(n_obs, size=len(frame))])
    rows = frame.to_numpy() if isinstance(drawn, np.ndarray) else frame
    p = model.predict_proba(rows)
    truth = p[:TESTED]
    codes = np.arange(classes.size)
    tested = _safe_indexing(rows, np.arange(TESTED))
    row_indices = np.split(np.arange(TESTED, len(rows)), refit_sizes.cumsum()[:-1])
    tables = [
        (i, drawn_labels(p[i], np.resize(codes, i.size), np.arange(i.size), rng))
        for i in row_indices
    ]

    def figures(sample: tuple[np.ndarray, np.ndarray]) -> tuple[float, float, float]:
        """Excess log loss in nats, calibration slope and interval width of a refit to a sample."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit of the model told of them
            refit = clone(template).fit(_safe_indexing(rows, sample[0]), classes[sample[1]])
            refit.refine(template.__rehearsal__().method, draws=100)
            q, intervals = refit.predict_proba(tested), refit.uncertainty(tested, prob=0.9)
        excess = xlogy(truth, truth) - xlogy(truth, np.maximum(q, MIN_SCORED_PROBABILITY))
        # Every row has every class, with the weight of its true probability.
        slope, _ = calibration_slope(
            q.repeat(classes.size, axis=0), np.tile(codes, TESTED), weights=truth.ravel()
        )
        width = float((intervals.upper - intervals.lower).mean())
        return float(excess.sum(axis=1).mean()), slope, width

    found = np.array(run_tasks(figures, tables, "Learning curve", n_jobs)).T
    excess, slope, width = found.reshape(3, len(counts), repeats)
    entropy = -float(xlogy(truth, truth).sum(axis=1).mean())
    return LearningCurve(n_obs, np.array(counts), entropy, excess, slope, width)
