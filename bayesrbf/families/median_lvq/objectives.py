"""Objectives of exemplars that move one at a time: GLVQ and RSLVQ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final, Self

import numpy as np
from jaxtyping import Float, Int, Real
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from bayesrbf.base.rows import in_blocks
from bayesrbf.families.median_lvq.compiled import (
    add_margin_scores,
    add_swap_scores,
    sweep_exemplars,
    write_label_logs,
)
from bayesrbf.families.median_lvq.records import Dissimilarities, Prototypes, SigmaPrior

# Coordinate search over exemplars: columns of dissimilarities, and scores of swaps.
#
# A column has the dissimilarities of the labelled rows to one candidate. All candidates of a
# prototype are scored in one matrix expression: the reduction over the other prototypes, plus the
# term of the candidate. A search reads the same columns many times. They stay in memory where they
# are few, else they are computed a block of rows at a time.


Exemplars = Int[np.ndarray, " prototype"]  # Training row that each prototype is.


@dataclass(frozen=True)
class CandidateColumns:
    """Transformed dissimilarities of the labelled rows to candidates.

    ``form`` is the transform, such as a kernel; it acts entry by entry and returns float64.
    """

    rows: Dissimilarities
    form: Callable[[np.ndarray], np.ndarray]

    @cached_property
    def labels(self) -> Int[np.ndarray, " labelled"]:
        """Class codes of the labelled rows."""
        return self.rows.labels[self.rows.labelled]

    @cached_property
    def weights(self) -> Float[np.ndarray, " labelled"]:
        """Weights of the labelled rows."""
        return self.rows.weights[self.rows.labelled]

    @cached_property
    def flat_columns(self) -> Float[np.ndarray, " entry"] | None:
        """Blocks (labelled row, candidate) of all classes, flattened; None if too large."""
        return None if self.rows.to_candidates is None else self.form(self.rows.to_candidates)

    def blocks(self, label: int) -> Iterator[tuple[slice, Float[np.ndarray, "row candidate"]]]:
        """Slices of the labelled rows, each with its columns of the candidates of a class.

        There is one slice where the columns are in memory.
        """
        rows, candidates = self.rows.labelled, self.rows.candidates[label]
        if self.flat_columns is not None:
            first, last = rows.size * self.rows.candidate_starts[label : label + 2]
            yield slice(None), self.flat_columns[first:last].reshape(rows.size, -1)
            return
        for at in in_blocks(rows.size, candidates.size, cached=True):
            yield at, self.form(self.rows.values[rows[at][:, None], candidates])

    def of(self, exemplars: Exemplars) -> Float[np.ndarray, "prototype labelled"]:
        """Columns of the exemplars as C-ordered lines."""
        columns = self.form(self.rows.values[self.rows.labelled[:, None], exemplars])
        return np.ascontiguousarray(columns.T)


class MovingExemplars(ABC):
    """Coordinate search over exemplars: the objective at every candidate of one prototype."""

    def __init__(
        self, columns: CandidateColumns, prototypes: Prototypes, exemplars: Exemplars
    ) -> None:
        self.columns, self.prototypes = columns, prototypes
        self._lines = columns.of(exemplars)
        self._starts = [block.start for block in prototypes.class_slices]
        self._rows = np.arange(columns.labels.size)

    @abstractmethod
    def scores(self, prototype: int) -> Float[np.ndarray, " candidate"]:
        """Objective with the prototype at each candidate of its class."""

    def sweep(
        self,
        exemplars: Exemplars,
        order: Int[np.ndarray, " turn"],
        *,
        uniforms: Float[np.ndarray, " turn"] | None = None,
        tolerance: float = 0.0,
    ) -> Exemplars:
        """Move the prototypes of ``order`` in turn, to the best or to a drawn candidate.

        With ``uniforms``, numbers from 0 to 1, one a turn, the candidate is drawn with the
        softmax of the scores as its probabilities. Without, a prototype moves to the best
        candidate where that gains more than ``tolerance``.
        """
        updated = exemplars.copy()
        for turn, prototype in enumerate(order.tolist()):
            candidates = self.columns.rows.candidates[self.prototypes.classes[prototype]]
            values, now = self.scores(prototype), np.searchsorted(candidates, updated[prototype])
            if uniforms is None:
                best = values.argmax()
                chosen = best if values[best] - values[now] > tolerance else now
            else:
                masses = np.cumsum(np.exp(values - values.max()))
                drawn = np.searchsorted(masses, uniforms[turn] * masses[-1], side="right")
                chosen = min(drawn, candidates.size - 1)  # rounding may lead beyond the last
            updated[prototype] = candidates[chosen]
            self._lines[prototype] = self.columns.of(updated[prototype : prototype + 1])[0]
        return updated

    def rest_by_class(
        self, prototype: int, nothing: float, over: np.ufunc
    ) -> tuple[Float[np.ndarray, " labelled"], Float[np.ndarray, "label labelled"]]:
        """Reduction over all prototypes but one: for the class of each row, and for every class.

        ``over`` is the reduction, such as ``np.add``, and ``nothing`` its neutral element.
        """
        line = self._lines[prototype].copy()
        # One line is exchanged for the reduction and put back, which avoids a copy of all lines.
        self._lines[prototype] = nothing
        of_class = over.reduceat(self._lines, self._starts, axis=0)
        self._lines[prototype] = line
        return of_class[self.columns.labels, self._rows], of_class


# GLVQ on exemplars: Sato and Yamada's margins, for every candidate at once.
#
# See Nebel, Villmann (2013), A median variant of generalized learning vector quantization, ICONIP,
# LNCS 8227. Sato, Yamada (1996), Generalized learning vector quantization, NIPS 8.


@dataclass(frozen=True)
class MarginSum:
    r"""The objective of GLVQ, to be maximised: the sum of the margins.

    .. math:: \sum_n v_n \frac{d_-(x_n) - d_+(x_n)}{d_-(x_n) + d_+(x_n)}

    with :math:`d_+` the dissimilarity to the nearest exemplar of the row's own class, and
    :math:`d_-` that to the nearest of any other.
    """

    rows: Dissimilarities
    prototypes: Prototypes

    def pointwise(self, exemplars: Exemplars) -> Float[np.ndarray, " labelled"]:
        """Margin of every labelled row, from -1 to 1, negative where the row is misclassified."""
        labelled = self.rows.labelled
        columns = self.rows.values[labelled[:, None], exemplars]
        margins = class_margins(columns, self.prototypes)
        return margins[np.arange(labelled.size), self.rows.labels[labelled]]

    def value(self, exemplars: Exemplars) -> float:
        """The weighted sum of the margins of the labelled rows."""
        return float(self.rows.weights[self.rows.labelled] @ self.pointwise(exemplars))

    def scorer(self, exemplars: Exemplars) -> MovingExemplars:
        """Scores of swaps by the sum of margins."""
        return MarginSwaps(self._columns, self.prototypes, exemplars)

    def bound(self, exemplars: Exemplars) -> MovingExemplars:
        r"""Scores of swaps by the bound of the generalised EM, up to a constant.

        A margin is :math:`2 g_n - 1` with :math:`g_n = d_- / (d_+ + d_-)`. With
        :math:`\gamma_n = v_n g_n / \sum_m v_m g_m` at the given exemplars held fixed, Jensen's
        inequality bounds :math:`\log \sum_n v_n g_n` from below by
        :math:`\sum_n \gamma_n \log g_n` and a constant.

        See Nebel, Villmann (2013).
        """
        gamma = self._columns.weights * (self.pointwise(exemplars) + 1) / 2
        return MarginSwaps(self._columns, self.prototypes, exemplars, gamma)

    @property
    def sigma(self) -> None:
        """None: margins have no width."""

    def refit(self, exemplars: Exemplars) -> Self:
        """The objective itself: nothing but the exemplars is free."""
        return self

    @cached_property
    def _columns(self) -> CandidateColumns:
        """Dissimilarities of the labelled rows to candidates, in float64."""
        return CandidateColumns(self.rows, partial(np.asarray, dtype=np.float64))


class MarginSwaps(MovingExemplars):
    r"""Scores of GLVQ after a swap, in compiled code.

    With ``gamma``, weights of the labelled rows, scores are the bound
    :math:`\sum_n \gamma_n \log g_n`.
    """

    def __init__(
        self,
        columns: CandidateColumns,
        prototypes: Prototypes,
        exemplars: Exemplars,
        gamma: Float[np.ndarray, " labelled"] | None = None,
    ) -> None:
        super().__init__(columns, prototypes, exemplars)
        self._gamma = gamma

    def scores(self, prototype: int) -> Float[np.ndarray, " candidate"]:
        """Sum of the margins or its bound, with the prototype at each candidate."""
        columns, label = self.columns, self.prototypes.classes[prototype]
        near, of_class = self.rest_by_class(prototype, np.inf, np.minimum)
        # The nearest of any other class: the row's own is out.
        of_class[columns.labels, np.arange(near.size)] = np.inf
        far, joins = of_class.min(axis=0), columns.labels == label
        logs = self._gamma is not None
        weights = columns.weights if self._gamma is None else self._gamma
        totals = np.zeros(columns.rows.candidates[label].size)
        for at, block in columns.blocks(label):
            add_margin_scores(block, joins[at], near[at], far[at], weights[at], logs, totals)
        return totals


def class_margins(
    columns: Real[np.ndarray, "obs prototype"], prototypes: Prototypes
) -> Float[np.ndarray, "obs label"]:
    r"""Sato-Yamada margin of each class as the label, from -1 to 1.

    .. math:: \frac{d_{\neg c}(x) - d_c(x)}{d_{\neg c}(x) + d_c(x)}

    with :math:`d_c` the dissimilarity to the nearest exemplar of class c and :math:`d_{\neg c}`
    to the nearest of any other class. It is 0 where both are 0, or where there is no other class.
    """
    columns = columns.astype(np.float64)
    margins = np.empty((len(columns), len(prototypes.class_slices)))
    for c, block in enumerate(prototypes.class_slices):
        near = columns[:, block].min(axis=1)
        far = np.delete(columns, block, axis=1).min(axis=1, initial=np.inf)
        margins[:, c] = 2 * far_fraction(near, far) - 1
    return margins


def far_fraction(
    near: Float[np.ndarray, "*shape"], far: Float[np.ndarray, "*#shape"]
) -> Float[np.ndarray, "*shape"]:
    """``d_- / (d_+ + d_-)`` of every row, from 0 to 1.

    ``near``, :math:`d_+`, is the dissimilarity to the nearest exemplar of the class; ``far``,
    :math:`d_-`, to the nearest of any other class, infinite where there is none. The result is 1/2
    then, and where both are 0.

    >>> far_fraction(np.array([1.0, 0.0, 2.0]), np.array([3.0, 0.0, np.inf]))
    array([0.75, 0.5 , 0.5 ])
    """
    # 0 / 0 and inf / inf are NaN: neither side is nearer.
    with np.errstate(invalid="ignore"):
        fraction = far / (near + far)
    return np.where(np.isnan(fraction), 0.5, fraction)


# Log likelihoods after a swap: by plain sums of kernels where they are safe, else by logs.


SAFE: Final = 600.0  # Kernels from exp(-600) are summed and divided directly; exp(-745) is 0.


class _Swaps(MovingExemplars):
    r"""Base class of the scores of RSLVQ after a swap, by kernels or by their logarithms.

    With ``bound``, scores are the bound
    :math:`\sum_n v_n \gamma_{nj} \log k_{nj} - \sum_n v_n \log \sum_j k_{nj}`. The argument is
    the first sum for every prototype and candidate, which replaces the term of the row's class.
    ``offset`` is added to every log likelihood.
    """

    def __init__(
        self,
        columns: CandidateColumns,
        prototypes: Prototypes,
        exemplars: Exemplars,
        *,
        bound: Float[np.ndarray, "prototype most"] | None = None,
        offset: float = 0.0,
    ) -> None:
        super().__init__(columns, prototypes, exemplars)
        self._bound, self._offset = bound, offset

    def _first(self, prototype: int) -> Float[np.ndarray, " candidate"]:
        """Terms of the scores that do not depend on the sums of kernels."""
        size = self.columns.rows.candidates[self.prototypes.classes[prototype]].size
        if self._bound is not None:
            return self._bound[prototype, :size].copy()
        return np.full(size, self._offset)


class KernelSwaps(_Swaps):
    """Scores from sums of kernels, none of which underflows, in compiled code."""

    def scores(self, prototype: int) -> Float[np.ndarray, " candidate"]:
        """Log likelihood or its bound in nats, with the prototype at each candidate."""
        columns, label = self.columns, self.prototypes.classes[prototype]
        of_label, of_class = self.rest_by_class(prototype, 0.0, np.add)
        whole, joins = of_class.sum(axis=0), columns.labels == label
        # Where no other prototype is left, a candidate's kernel is the whole sum.
        rest = -np.log(np.where(whole > 0, whole, 1.0))
        if self._bound is None:
            rest += np.log(np.where(of_label > 0, of_label, 1.0))
        else:
            # The term of the row's own class is in the bound already.
            joins = np.zeros_like(joins)
        totals = self._first(prototype) + columns.weights @ rest
        for at, block in columns.blocks(label):
            add_swap_scores(block, joins[at], of_label[at], whole[at], columns.weights[at], totals)
        return totals

    def sweep(
        self,
        exemplars: Exemplars,
        order: Int[np.ndarray, " turn"],
        *,
        uniforms: Float[np.ndarray, " turn"] | None = None,
        tolerance: float = 0.0,
    ) -> Exemplars:
        """Move prototypes in turn, in one compiled call where the kernels are in memory."""
        columns = self.columns
        if columns.flat_columns is None:
            return super().sweep(exemplars, order, uniforms=uniforms, tolerance=tolerance)
        candidates = columns.rows.candidates
        positions = np.empty_like(exemplars)
        for label, block in enumerate(self.prototypes.class_slices):
            positions[block] = np.searchsorted(candidates[label], exemplars[block])
        sweep_exemplars(
            columns.flat_columns,
            columns.rows.candidate_starts,
            np.asarray(self.prototypes.classes),
            columns.labels,
            columns.weights,
            np.empty((0, 0)) if self._bound is None else self._bound,
            order,
            np.empty(0) if uniforms is None else uniforms,
            tolerance,
            self._lines,
            positions,
        )
        return np.concatenate(
            [
                candidates[label][positions[block]]
                for label, block in enumerate(self.prototypes.class_slices)
            ]
        )


class LogSwaps(_Swaps):
    """Scores from logs of kernels, some of which would underflow."""

    def scores(self, prototype: int) -> Float[np.ndarray, " candidate"]:
        """Log likelihood or its bound in nats, with the prototype at each candidate."""
        columns, label = self.columns, self.prototypes.classes[prototype]
        of_label, of_class = self.rest_by_class(prototype, -np.inf, np.logaddexp)
        whole, totals = np.logaddexp.reduce(of_class, axis=0), self._first(prototype)
        for at, block in columns.blocks(label):
            log_ratios = -np.logaddexp(block, whole[at, None])
            if self._bound is None:
                joins = (columns.labels[at] == label)[:, None]
                log_ratios += np.logaddexp(np.where(joins, block, -np.inf), of_label[at, None])
            totals += columns.weights[at] @ log_ratios
        return totals


# RSLVQ on exemplars: kernels, and the log likelihood of the labels.
#
# See Nebel, Hammer, Villmann (2014), Supervised generative models for learning dissimilarity data,
# ESANN, section 3. Seo, Obermayer (2003), Soft learning vector quantization, Neural Computation 15,
# section 3.


LOWEST: Final = -1e300  # Log kernels are at least this, so that their differences stay finite.
WIDEST: Final = 6.0
"""The best log sigma is searched within this many standard deviations of its prior."""


def log_kernel(values: Real[np.ndarray, "*shape"], sigma: float) -> Float[np.ndarray, "*shape"]:
    r"""Log of the kernel, :math:`-d / \sigma^2`, at least ``LOWEST``.

    >>> log_kernel(np.array([0.0, 2.0]), 2.0)
    array([-0. , -0.5])
    """
    logs = np.multiply(values, -(sigma**-2.0), dtype=np.float64)
    return np.maximum(logs, LOWEST, out=logs)


def similarities(values: Real[np.ndarray, "*shape"], sigma: float) -> Float[np.ndarray, "*shape"]:
    r"""Kernel, :math:`e^{-d / \sigma^2}`.

    >>> similarities(np.array([0.0, np.log(2.0)]), 1.0)
    array([1. , 0.5])
    """
    logs = log_kernel(values, sigma)
    return np.exp(logs, out=logs)


def class_log_joint(
    columns: Real[np.ndarray, "obs prototype"], prototypes: Prototypes, sigma: float
) -> Float[np.ndarray, "obs label"]:
    r"""Log of the summed kernels of each class; the softmax over classes is p(c | x).

    .. math:: \log \sum_{j \in c} e^{-d(x, \theta_j) / \sigma^2}

    See Seo, Obermayer (2003), Soft learning vector quantization, Neural Computation 15, section 3.
    """
    starts = [block.start for block in prototypes.class_slices]
    return np.logaddexp.reduceat(log_kernel(columns, sigma), starts, axis=1)


def responsibilities(
    columns: Real[np.ndarray, "obs prototype"], sigma: float
) -> Float[np.ndarray, "obs prototype"]:
    r"""Responsibility of each exemplar for each row.

    .. math:: p(j | x) = e^{-d(x, \theta_j) / \sigma^2} / \sum_k e^{-d(x, \theta_k) / \sigma^2}

    The sum over a class's prototypes is p(c | x).

    >>> responsibilities(np.array([[0.0, np.log(3.0)]]), 1.0)
    array([[0.75, 0.25]])
    """
    return softmax(log_kernel(columns, sigma), axis=1)


@dataclass(frozen=True)
class ConditionalLikelihood:
    r"""The objective of RSLVQ: the log likelihood of the labels.

    .. math:: \sum_n v_n \log \frac{\sum_{j: c_j = y_n} e^{-d(x_n, \theta_j) / \sigma^2}}
        {\sum_j e^{-d(x_n, \theta_j) / \sigma^2}}

    Where the width has a ``prior``, its log density is part of the objective.
    """

    rows: Dissimilarities
    prototypes: Prototypes
    sigma: float
    prior: SigmaPrior | None = None

    def pointwise(self, exemplars: Exemplars) -> Float[np.ndarray, " labelled"]:
        """Unweighted ``log p(y_n | x_n)`` of every labelled row, in nats."""
        columns = self.rows.values[self.rows.labelled[:, None], exemplars]
        labels = self.rows.labels[self.rows.labelled]
        return label_logs(columns, labels, self.prototypes, self.sigma)

    def value(self, exemplars: Exemplars) -> float:
        """Weighted log likelihood, plus the log prior of the width if it has one, in nats."""
        likelihood = self.rows.weights[self.rows.labelled] @ self.pointwise(exemplars)
        return float(likelihood) + self._log_prior

    def scorer(self, exemplars: Exemplars) -> MovingExemplars:
        """Scores of swaps by log likelihoods in nats.

        Under a uniform prior they are the log full conditional of an exemplar, up to a constant.
        """
        swaps = KernelSwaps if self._safe else LogSwaps
        return swaps(self._kernels, self.prototypes, exemplars, offset=self._log_prior)

    def bound(self, exemplars: Exemplars) -> MovingExemplars:
        r"""Scores of swaps by the expected log joint, the bound of the generalised EM.

        With :math:`\gamma_{nj}` the responsibilities at the given exemplars, among the
        prototypes of the row's own class, held fixed,

        .. math:: \sum_n v_n \sum_j \gamma_{nj} \log \frac{e^{-d(x_n, \theta_j) / \sigma^2}}
            {\sum_k e^{-d(x_n, \theta_k) / \sigma^2}}

        See Nebel, Hammer, Villmann (2014), section 3.
        """
        labelled = self.rows.labelled
        logs = log_kernel(self.rows.values[labelled[:, None], exemplars], self.sigma)
        logs[np.asarray(self.prototypes.classes) != self.rows.labels[labelled, None]] = -np.inf
        weighted = softmax(logs, axis=1) * self.rows.weights[labelled, None]
        most = max(candidates.size for candidates in self.rows.candidates)
        expected = np.zeros((exemplars.size, most))
        logs_of = CandidateColumns(self.rows, partial(log_kernel, sigma=self.sigma))
        for label, block in enumerate(self.prototypes.class_slices):
            for at, columns in logs_of.blocks(label):
                expected[block, : columns.shape[1]] += weighted[at, block].T @ columns
        swaps = KernelSwaps if self._safe else LogSwaps
        return swaps(self._kernels, self.prototypes, exemplars, bound=expected)

    def width_gradient(self, exemplars: Exemplars) -> float:
        r"""Derivative of the value along log sigma, in nats per unit.

        With :math:`a = -d / \sigma^2`, of which :math:`\partial a / \partial \log\sigma = -2a`,
        it is the difference of the means of -2a under the responsibilities of the row's own
        class and of all.
        """
        labelled = self.rows.labelled
        logs = log_kernel(self.rows.values[labelled[:, None], exemplars], self.sigma)
        foreign = np.asarray(self.prototypes.classes) != self.rows.labels[labelled, None]
        of_label = softmax(np.where(foreign, -np.inf, logs), axis=1)
        rows = -2 * ((of_label - softmax(logs, axis=1)) * logs).sum(axis=1)
        gradient = float(self.rows.weights[labelled] @ rows)
        if self.prior is not None:
            gradient -= 1 + (np.log(self.sigma) - self.prior.location) / self.prior.spread**2
        return gradient

    def refit(self, exemplars: Exemplars) -> Self:
        """The objective at the best width, where it has a prior; its value is no lower."""
        if self.prior is None:
            return self
        reach = WIDEST * self.prior.spread
        found = minimize_scalar(
            lambda log_sigma: -replace(self, sigma=float(np.exp(log_sigma))).value(exemplars),
            bounds=(self.prior.location - reach, self.prior.location + reach),
            method="bounded",
            options={"xatol": 1e-6},
        )
        refitted = replace(self, sigma=float(np.exp(found.x)))
        # The bounded search may end at a lower optimum than it began.
        return refitted if refitted.value(exemplars) > self.value(exemplars) else self

    @property
    def _log_prior(self) -> float:
        """Log density of the width, 0 where it is fixed."""
        return 0.0 if self.prior is None else log_normal(self.sigma, self.prior)

    @property
    def _safe(self) -> bool:
        """Whether no kernel underflows."""
        return self.rows.largest * self.sigma**-2.0 < SAFE

    @cached_property
    def _kernels(self) -> CandidateColumns:
        """Kernels of the candidates where they are safe, else their logs."""
        form = similarities if self._safe else log_kernel
        return CandidateColumns(self.rows, partial(form, sigma=self.sigma))


Objective = MarginSum | ConditionalLikelihood
"""Objective of a search for exemplars, with the lower bound of the generalised EM."""


def label_logs(
    columns: Real[np.ndarray, "labelled prototype"],
    labels: Int[np.ndarray, " labelled"],
    prototypes: Prototypes,
    sigma: float,
) -> Float[np.ndarray, " labelled"]:
    """Log probability ``log p(y_n | x_n)`` of the label of every row, in nats.

    >>> rows = np.array([[0.0, np.log(3.0)]])
    >>> np.exp(label_logs(rows, np.array([1]), Prototypes((0, 1)), 1.0)).round(3)
    array([0.25])
    """
    starts = np.array([block.start for block in prototypes.class_slices] + [prototypes.number])
    logs = np.empty(len(columns))
    values = np.asarray(columns, dtype=np.float64)
    write_label_logs(values, labels, starts, sigma**-2.0, LOWEST, logs)
    return logs


def log_normal(sigma: float, prior: SigmaPrior) -> float:
    r"""Log density of a width under its prior, in nats.

    .. math:: -\log \sigma - \log s - \tfrac12 \log 2\pi - \frac{(\log\sigma - m)^2}{2 s^2}

    >>> round(log_normal(1.0, SigmaPrior(0.0, 1.0)), 4)
    -0.9189
    """
    z = (np.log(sigma) - prior.location) / prior.spread
    return float(-np.log(sigma) - np.log(prior.spread) - 0.5 * np.log(2 * np.pi) - 0.5 * z**2)
