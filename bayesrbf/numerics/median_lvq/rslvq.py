r"""RSLVQ on exemplars: kernels, and the log likelihood of the labels.

See Nebel, Hammer, Villmann (2014), Supervised generative models for learning dissimilarity data,
ESANN, section 3. Seo, Obermayer (2003), Soft learning vector quantization, Neural Computation 15,
section 3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final, Self

import numpy as np
from jaxtyping import Float, Int, Real
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from bayesrbf.numerics.kernels.exemplar_scores import write_label_logs
from bayesrbf.numerics.median_lvq.moving_exemplars import (
    CandidateColumns,
    Exemplars,
    MovingExemplars,
)
from bayesrbf.numerics.median_lvq.rslvq_swaps import SAFE, KernelSwaps, LogSwaps
from bayesrbf.records.median_lvq import Dissimilarities, Prototypes, SigmaPrior

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


def kernel(values: Real[np.ndarray, "*shape"], sigma: float) -> Float[np.ndarray, "*shape"]:
    r"""Kernel, :math:`e^{-d / \sigma^2}`.

    >>> kernel(np.array([0.0, np.log(2.0)]), 1.0)
    array([1. , 0.5])
    """
    logs = log_kernel(values, sigma)
    return np.exp(logs, out=logs)


def class_log_joint(
    columns: Real[np.ndarray, "obs prototype"], prototypes: Prototypes, sigma: float
) -> Float[np.ndarray, "obs label"]:
    r"""Log of the summed kernels of each class, whose softmax over the classes is p(c | x).

    .. math:: \log \sum_{j \in c} e^{-d(x, \theta_j) / \sigma^2}

    See Seo, Obermayer (2003), Soft learning vector quantization, Neural Computation 15, section 3.
    """
    starts = [part.start for part in prototypes.class_slices]
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
        """Prepare to judge moves by log likelihoods in nats.

        Under a uniform prior they are the log full conditional of an exemplar, up to a constant.
        """
        swaps = KernelSwaps if self._safe else LogSwaps
        return swaps(self._kernels, self.prototypes, exemplars, offset=self._log_prior)

    def bound(self, exemplars: Exemplars) -> MovingExemplars:
        r"""Prepare the expected log joint, the bound of the generalised EM, up to a constant.

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
        for label, part in enumerate(self.prototypes.class_slices):
            for at, columns in logs_of.blocks(label):
                expected[part, : columns.shape[1]] += weighted[at, part].T @ columns
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
        own = softmax(np.where(foreign, -np.inf, logs), axis=1)
        rows = -2 * ((own - softmax(logs, axis=1)) * logs).sum(axis=1)
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
        moved = replace(self, sigma=float(np.exp(found.x)))
        # The bounded search may end at a lower optimum than it began.
        return moved if moved.value(exemplars) > self.value(exemplars) else self

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
        form = kernel if self._safe else log_kernel
        return CandidateColumns(self.rows, partial(form, sigma=self.sigma))


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
    starts = np.array([part.start for part in prototypes.class_slices] + [prototypes.number])
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
