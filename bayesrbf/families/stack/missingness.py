r"""Evidence of a row's missing indicators about its class, where rows come as in training.

A row has the missing indicators m: which of its cells are missing, and which were measured. With q
the pool, whose calibration by the missing fraction ignores why cells are missing,

.. math:: p(c | x_o, m) \propto q(c | x_o)^t \, e^{a_c} \, \rho_c(m)^s, \quad
    \rho_c(m) = \frac{p(m | c)}{p(m)},

with a mixture of the indicators in every class, and :math:`t \le 1, a, s \ge 0` fitted to held-out
rows as they came, by their plain weights. Cells of a new row may also be missing for other reasons,
each with the same unknown probability. What is reported is

.. math:: f(m) \, p(c | x_o, m) + (1 - f(m)) \, q(c | x_o), \quad
    f = \frac{(1 - \epsilon) \, p(m)}{(1 - \epsilon) \, p(m) + \epsilon \, B(k + 1, J - k + 1)}

with k of J cells missing: f is how familiar the pattern is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import minimize
from scipy.special import betaln, expit, logsumexp

from bayesrbf import table
from bayesrbf.base.arrays import log_scores, log_softmax, mean_and_error, one_hot
from bayesrbf.base.priors import POOL_PRIOR, MixturePrior
from bayesrbf.base.records import ANY_NUMBER, MAX_LOG, Requirements, stored, within
from bayesrbf.base.rows import MixtureSpecification, Observations
from bayesrbf.mixture.fitted import FittedMixture, Solver, component_class, fit_mixture_rows
from bayesrbf.table.columns import Columns

if TYPE_CHECKING:
    from bayesrbf.fit.held_out import HeldOut

OTHER_REASONS: Final = 0.05
"""Share of the rows whose cells are missing for other reasons, as the prior has it. Of .02 to .3 it
was best for rows as they came and, at a quarter of the weight, with more missing cells, on 35 of 37
choices with one group of tables left out."""
COMPONENTS: Final = 3
"""Most components of a class: columns that are missing together are one piece of evidence."""
MIN_CELLS: Final = 5
"""Minimum number of missing cells, and of measured ones, of an evident column."""
MIN_GAIN: Final = -0.5
"""Gain of held-out rows, in standard errors, above which the indicators are evidence. Useless
evidence has an exponent near 0 and costs little; of 150 rows useful evidence often fails to gain
a standard error."""
NAMED: Final = 3
"""Maximum number of columns in the message on missing fractions."""


# Patterns of missing cells: their density, and their evidence about the class.


@stored
class MissingPatterns:
    """Which cells are missing in each class."""

    columns: Int[np.ndarray, " column"]
    """Positions in the table of the columns that had a cell in training."""
    features: Int[np.ndarray, " column"]
    """First number or code of each of them, codes after the numbers; 0 of one without any, whose
    rows say themselves what is missing."""
    frequencies: Float[np.ndarray, " column"]
    """Share of the training rows in which each is missing."""
    evident: Int[np.ndarray, " evident"]
    """Indices into these columns: columns whose indicators are evidence."""
    mixture: FittedMixture
    """Mixture of the indicators that are evidence."""

    def indicators(self, rows: Observations) -> Int[np.ndarray, "obs column"]:
        """1 where a cell is missing, 0 where it was measured, -1 where the package hides it."""
        if rows.missing is not None:
            return rows.missing[:, self.columns]
        missing = np.column_stack([np.isnan(rows.real), rows.codes < 0])
        return missing[:, self.features].astype(np.intp)

    def log_evidence(
        self, indicators: Int[np.ndarray, "obs column"]
    ) -> Float[np.ndarray, "obs label"]:
        """Log of ``p(m | c) / p(m)`` in nats."""
        rows = _coded(indicators[:, self.evident])
        nothing = _coded(np.full((1, self.evident.size), -1))
        log_joint = self.mixture.class_log_joint(rows)
        log_density = logsumexp(log_joint, axis=1, keepdims=True)
        return log_joint - self.mixture.class_log_joint(nothing) - log_density

    def familiarity(self, indicators: Int[np.ndarray, "obs column"]) -> Float[np.ndarray, " obs"]:
        r"""Probability f that a row's cells are missing for the same reasons as in training.

        .. math:: f = \frac{(1 - \epsilon) \, p(m)}
            {(1 - \epsilon) \, p(m) + \epsilon \, B(k + 1, J - k + 1)}

        with the probability p(m) of the row's indicators m in training, k of J cells missing, and
        the share :math:`\epsilon` of rows with other reasons, ``OTHER_REASONS``. Under other
        reasons every cell is missing with one unknown probability. An indicator is 1 for a
        missing cell, 0 for a measured cell, and -1 for a hidden cell, which does not count.

        A column that is not evident counts with its share of missing cells in training. So f is 0
        for a hole in such a column without holes in training. f is also 0 for a row without a
        measured cell, as only the class shares are known of such a row.
        """
        n_missing, n_measured = (indicators == 1).sum(axis=1), (indicators == 0).sum(axis=1)
        without_evidence = np.delete(np.arange(self.columns.size), self.evident)
        with np.errstate(divide="ignore"):  # a column never, or always, missing in training
            logs = np.log(np.stack([1 - self.frequencies, self.frequencies]))[:, without_evidence]
        rest = indicators[:, without_evidence]
        of_others = np.where(rest == 1, logs[1], np.where(rest == 0, logs[0], 0.0)).sum(axis=1)
        as_trained = of_others + self.mixture.log_density(_coded(indicators[:, self.evident]))
        log_odds = np.log(1 / OTHER_REASONS - 1) + as_trained
        log_odds -= betaln(n_missing + 1, n_measured + 1)
        return np.where(n_measured > 0, expit(log_odds), 0.0)

    def __laws__(self) -> Requirements:
        n, seen = self.columns.size, self.mixture.specification
        yield within(self.columns, 0) and within(self.features, 0), "positions of columns"
        yield within(self.frequencies, 0, 1), "frequencies of missing cells"
        yield within(self.evident, 0, n) and self.evident.size > 0, "columns with evidence"
        yield seen.n_features == 0 and seen.levels == (2,) * self.evident.size, "its indicators"


def _coded(indicators: Int[np.ndarray, "obs column"]) -> Observations:
    """Indicators as rows of categorical columns, without labels."""
    n = len(indicators)
    return Observations(np.zeros((n, 0)), indicators, np.full(n, -1), np.ones(n))


def evident_columns(
    rows: Observations, columns: Columns
) -> tuple[Int[np.ndarray, " column"], Int[np.ndarray, " evident"]]:
    """Positions of the columns that had a cell in training, and indices of the evident ones.

    An evident column has at least ``MIN_CELLS`` missing cells, and as many measured ones.

    >>> from bayesrbf.table import encode, learn_columns
    >>> X = [[number, None if number % 2 else "a"] for number in range(12)]
    >>> columns = learn_columns(X)
    >>> evident_columns(encode(X, columns), columns)
    (array([0, 1]), array([1]))
    """
    positions = np.array(columns.with_indicators, dtype=np.intp)
    observed = table.observed_cells(rows, columns)[:, positions]
    enough = np.minimum(observed.sum(axis=0), (~observed).sum(axis=0)) >= MIN_CELLS
    return positions, np.flatnonzero(enough)


def fit_patterns(
    rows: Observations,
    columns: Columns,
    evident: Int[np.ndarray, " evident"],
    n_classes: int,
    prior: MixturePrior,
    solver: Solver,
) -> MissingPatterns:
    """Missing patterns of the classes: a mixture of the indicators of the ``evident`` columns.

    ``evident`` are indices among the columns that had a cell, as in :func:`evident_columns`.
    """
    positions, _ = evident_columns(rows, columns)
    missing = ~table.observed_cells(rows, columns)[:, positions]
    codes = missing[:, evident].astype(np.intp)
    alone = Observations(np.zeros((rows.n_obs, 0)), codes, rows.labels, rows.weights)
    alone = table.distinct(alone)[0]
    classes = component_class(alone, n_classes, COMPONENTS)
    specification = MixtureSpecification(0, (2,) * evident.size, classes)
    mixture = fit_mixture_rows(alone, specification, prior, solver)[0]
    frequencies = np.average(missing, axis=0, weights=rows.weights)
    n_reals = len(columns.real_positions)
    first = [
        0
        if position in columns.of_one_class
        else n_reals + columns.code_of[position]
        if position in columns.code_of
        else columns.features[position].start
        for position in positions.tolist()
    ]
    return MissingPatterns(positions, np.array(first, dtype=np.intp), frequencies, evident, mixture)


# What held-out rows make of this evidence.


@stored
class Missingness:
    """Class probabilities of rows whose cells are missing for the reasons of training."""

    patterns: MissingPatterns
    temperature: float
    """Exponent of the pool: at most 1, for members may have seen a part of the evidence."""
    offsets: Float[np.ndarray, " label"] = field(metadata=ANY_NUMBER)
    """Offsets of the classes in nats; NaN of a class that was never held out."""
    exponent: float
    """Exponent of the evidence; 0 where held-out rows lose by it."""
    evidence: Float[np.ndarray, "held label"]
    """Log evidence about held-out rows, by patterns of the other folds."""
    familiarity: Float[np.ndarray, " held"]
    """Familiarity of the patterns of held-out rows."""

    def given_patterns(
        self, log_q: Float[np.ndarray, "obs label"], evidence: Float[np.ndarray, "obs label"]
    ) -> Float[np.ndarray, "obs label"]:
        """``log p(c | x_o, m)`` in nats; a class that was never held out keeps its probability."""
        judged = ~np.isnan(self.offsets)
        log_p, of_judged = log_q.copy(), log_q[:, judged]
        logits = self.temperature * of_judged + self.offsets[judged]
        logits += self.exponent * evidence[:, judged]
        share = logsumexp(of_judged, axis=1, keepdims=True)
        log_p[:, judged] = share + log_softmax(logits, axis=-1)
        return log_p

    def reported(
        self, log_q: Float[np.ndarray, "obs label"], rows: Observations
    ) -> Float[np.ndarray, "obs label"]:
        """Reported class log probabilities of rows, from log probabilities of the pool."""
        indicators = self.patterns.indicators(rows)
        familiarity = self.patterns.familiarity(indicators)
        return self._mixed(log_q, self.patterns.log_evidence(indicators), familiarity)

    def reported_held_out(
        self, log_q: Float[np.ndarray, "held label"]
    ) -> Float[np.ndarray, "held label"]:
        """Reported class log probabilities of held-out rows, from log probabilities of the pool."""
        return self._mixed(log_q, self.evidence, self.familiarity)

    def _mixed(
        self,
        log_q: Float[np.ndarray, "obs label"],
        evidence: Float[np.ndarray, "obs label"],
        familiarity: Float[np.ndarray, " obs"],
    ) -> Float[np.ndarray, "obs label"]:
        """Log of ``f p(c | x_o, m) + (1 - f) q(c | x_o)``, with the familiarity f."""
        with np.errstate(divide="ignore"):  # a familiarity of 0 or 1 leaves one term
            log_f, rest = np.log(familiarity)[:, None], np.log1p(-familiarity)[:, None]
        return np.logaddexp(log_f + self.given_patterns(log_q, evidence), rest + log_q)

    def take(self, rows: Bool[np.ndarray, " held"]) -> Missingness:
        """The fit with the evidence and familiarity of some held-out rows."""
        return replace(self, evidence=self.evidence[rows], familiarity=self.familiarity[rows])

    def with_rows_of(self, other: Missingness) -> Missingness:
        """The fit, about the held-out rows of another."""
        return replace(self, evidence=other.evidence, familiarity=other.familiarity)

    def fitted(
        self, held: HeldOut, log_q: Float[np.ndarray, "held label"], with_evidence: bool
    ) -> Missingness:
        """Copy with temperature, offsets and exponent fitted to held-out rows that have a cell.

        Maximum a posteriori under ``log t, a_c, s ~ Normal(0, 1/2)``, the first at most 0 and
        the last at least 0. Without evidence t is 1 and s is 0.
        """
        judged, codes = np.unique(held.labels, return_inverse=True)
        target = one_hot(codes[:, None], (judged.size,))
        weights = held.weights * (self.familiarity > 0)
        log_q, evidence = log_q[:, judged], self.evidence[:, judged]
        precision = POOL_PRIOR.sd**-2

        def falling(point: np.ndarray) -> tuple[float, np.ndarray]:
            """Negative log posterior of (log t, offsets, exponent) in nats, and its gradient."""
            t = np.exp(point[0])
            log_p = log_softmax(t * log_q + point[1:-1] + point[-1] * evidence, axis=-1)
            off = weights[:, None] * (target - np.exp(log_p))
            value = weights @ (target * log_p).sum(axis=1) - precision / 2 * (point @ point)
            slopes = [t * (off * log_q).sum()], off.sum(axis=0), [(off * evidence).sum()]
            return -float(value), precision * point - np.concatenate(slopes)

        free = None if with_evidence else 0.0
        bounds = [(free, 0.0), *[(None, None)] * judged.size, (0.0, free)]
        start = np.zeros(judged.size + 2)
        mode = minimize(falling, start, jac=True, method="L-BFGS-B", bounds=bounds).x
        offsets = np.full(self.offsets.size, np.nan)
        offsets[judged] = mode[1:-1]
        t, s = float(np.exp(mode[0])), float(mode[-1])
        return replace(self, temperature=t, offsets=offsets, exponent=s)

    def __laws__(self) -> Requirements:
        n_classes = self.patterns.mixture.n_classes
        yield 0 < self.temperature <= 1 and within(self.exponent, 0, MAX_LOG), "exponents"
        judged = self.offsets[~np.isnan(self.offsets)]
        has_offsets = self.offsets.size == n_classes and judged.size > 0
        yield has_offsets and within(abs(judged), 0, MAX_LOG), "a finite offset of every class"
        yield within(self.familiarity, 0, 1), "familiarities"
        same = self.evidence.shape == (self.familiarity.size, n_classes)
        yield same and within(abs(self.evidence), 0, MAX_LOG), "evidence about held-out rows"


def fit_missingness(
    unfitted: Missingness, held: HeldOut, log_q: Float[np.ndarray, "held label"], *, always: bool
) -> tuple[Missingness, float, float]:
    """The fit to held-out rows, the mean gain in log score by the evidence, and its standard error.

    The gain is out of fold, in nats per row. Where it is less than ``MIN_GAIN`` standard errors,
    the exponent of the evidence is 0 unless ``always``.
    """
    gains, folds = np.zeros(held.labels.size), held.pool_folds
    for fold in np.unique(folds):
        test = folds == fold
        scores = []
        for with_evidence in (True, False):
            fit = unfitted.take(~test).fitted(held.take(~test), log_q[~test], with_evidence)
            log_p = fit.given_patterns(log_q[test], unfitted.evidence[test])
            scores.append(log_scores(log_p, held.labels[test]))
        gains[test] = scores[0] - scores[1]
    gain, error = mean_and_error(gains, held.weights)
    informative = always or gain > MIN_GAIN * error
    return unfitted.fitted(held, log_q, informative), gain, error


def message_on_columns(rows: Observations, columns: Columns, classes: Sequence[object]) -> str:
    """Message on the columns whose missing fraction differs most between classes.

    It names for each the classes with the largest and the smallest fraction.
    """
    rows = rows.take(rows.labels >= 0)
    positions, evident = evident_columns(rows, columns)
    positions = positions[evident]
    missing = ~table.observed_cells(rows, columns)[:, positions]
    of_class = rows.weights[:, None] * one_hot(rows.labels[:, None], (len(classes),))
    counts = of_class.sum(axis=0)
    shares, whole = missing.T @ of_class / counts, missing.T @ rows.weights / counts.sum()
    between = (shares - whole[:, None]) ** 2 @ counts
    # A column that is missing in every row, or in none, tells no classes apart.
    apart = between / np.maximum(whole * (1 - whole), np.finfo(float).tiny)
    messages = []
    for index in np.argsort(-apart, kind="stable")[:NAMED]:
        most, least = (
            f"{100 * shares[index, c]:.0f} % of {classes[c]!r}"
            for c in (shares[index].argmax(), shares[index].argmin())
        )
        messages.append(f"{columns.names[positions[index]]!r} is missing in {most} and {least}")
    return "; ".join(messages)
