r"""RSLVQ on exemplars: the log likelihood of the labels, for every candidate at once.

References
----------
Nebel, Hammer, Villmann (2014), Supervised generative models for learning dissimilarity
data, ESANN, section 3. Seo, Obermayer (2003), Soft learning vector quantization, Neural
Computation 15, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final, Self

import numpy as np
from jaxtyping import Float, Int, Real
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from bayesrbf.exemplars import Dissimilarities, Prototypes, SigmaPrior
from bayesrbf.numerics.kernels.exemplar_scores import write_label_logs
from bayesrbf.numerics.median_lvq.columns import CandidateColumns
from bayesrbf.numerics.median_lvq.exemplars import LOWEST, kernel, log_kernel
from bayesrbf.numerics.median_lvq.objective import Exemplars, Scorer
from bayesrbf.numerics.median_lvq.swaps import SAFE, KernelSwaps, LogSwaps

WIDEST: Final = 6.0
"""Spreads of its prior within which the best log sigma is looked for."""


@dataclass(frozen=True)
class ConditionalLikelihood:
    r"""The objective of RSLVQ: the log likelihood of the labels.

    .. math:: \sum_n v_n \log \frac{\sum_{j: c_j = y_n} e^{-d(x_n, \theta_j) / \sigma^2}}
        {\sum_j e^{-d(x_n, \theta_j) / \sigma^2}}

    Attributes
    ----------
    rows : Dissimilarities
        Training rows.
    prototypes : Prototypes
        Class of every prototype.
    sigma : float
        Width.
    prior : SigmaPrior, optional
        Its prior, whose log density is then part of the objective.
    """

    rows: Dissimilarities
    prototypes: Prototypes
    sigma: float
    prior: SigmaPrior | None = None

    def pointwise(self, exemplars: Exemplars) -> Float[np.ndarray, " labelled"]:
        """Unweighted log likelihood of every labelled row.

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            Training row that each prototype is.

        Returns
        -------
        ndarray of shape (n_labelled,)
            ``log p(y_n | x_n)`` in nats.
        """
        columns = self.rows.values[self.rows.labelled[:, None], exemplars]
        labels = self.rows.labels[self.rows.labelled]
        return label_logs(columns, labels, self.prototypes, self.sigma)

    def value(self, exemplars: Exemplars) -> float:
        """The log likelihood, and the log prior of the width where it has one.

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            Training row that each prototype is.

        Returns
        -------
        float
            Weighted sum over the labelled rows, in nats.
        """
        likelihood = self.rows.weights[self.rows.labelled] @ self.pointwise(exemplars)
        return float(likelihood) + self._log_prior

    def scorer(self, exemplars: Exemplars) -> Scorer:
        """Prepare to judge swaps.

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            Training row that each prototype is at first.

        Returns
        -------
        Scorer
            Log likelihoods in nats; under a uniform prior they are the log full
            conditional of an exemplar, up to a constant.
        """
        swaps = KernelSwaps if self._safe else LogSwaps
        return swaps(self._kernels, self.prototypes, exemplars, offset=self._log_prior)

    def bound(self, exemplars: Exemplars) -> Scorer:
        r"""Prepare the expected log joint, the bound of the generalised EM.

        With :math:`\gamma_{nj}` the responsibilities among the prototypes of the
        row's own class, held fixed,

        .. math:: \sum_n v_n \sum_j \gamma_{nj} \log \frac{e^{-d(x_n, \theta_j) / \sigma^2}}
            {\sum_k e^{-d(x_n, \theta_k) / \sigma^2}}

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            Training row that each prototype is: where the bound is taken.

        Returns
        -------
        Scorer
            Its scores are the bound up to a constant.

        References
        ----------
        Nebel, Hammer, Villmann (2014), section 3.
        """
        labelled = self.rows.labelled
        logs = log_kernel(self.rows.values[labelled[:, None], exemplars], self.sigma)
        logs[np.asarray(self.prototypes.classes) != self.rows.labels[labelled, None]] = -np.inf
        share = softmax(logs, axis=1) * self.rows.weights[labelled, None]
        most = max(candidates.size for candidates in self.rows.candidates)
        expected = np.zeros((exemplars.size, most))
        logs_of = CandidateColumns(self.rows, partial(log_kernel, sigma=self.sigma))
        for label, part in enumerate(self.prototypes.class_slices):
            for at, columns in logs_of.blocks(label):
                expected[part, : columns.shape[1]] += share[at, part].T @ columns
        swaps = KernelSwaps if self._safe else LogSwaps
        return swaps(self._kernels, self.prototypes, exemplars, bound=expected)

    def slope(self, exemplars: Exemplars) -> float:
        r"""Derivative of the value along log sigma.

        With :math:`a = -d / \sigma^2`, of which :math:`\partial a / \partial \log\sigma = -2a`,
        it is the difference of the means of -2a under the responsibilities of the row's own
        class and of all.

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            Training row that each prototype is.

        Returns
        -------
        float
            In nats per unit of log sigma.
        """
        labelled = self.rows.labelled
        logs = log_kernel(self.rows.values[labelled[:, None], exemplars], self.sigma)
        foreign = np.asarray(self.prototypes.classes) != self.rows.labels[labelled, None]
        own = softmax(np.where(foreign, -np.inf, logs), axis=1)
        rows = -2 * ((own - softmax(logs, axis=1)) * logs).sum(axis=1)
        slope = float(self.rows.weights[labelled] @ rows)
        if self.prior is not None:
            slope -= 1 + (np.log(self.sigma) - self.prior.location) / self.prior.spread**2
        return slope

    def refit(self, exemplars: Exemplars) -> Self:
        """The same objective at the best width, where it has a prior.

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            Training row that each prototype is.

        Returns
        -------
        ConditionalLikelihood
            Its value is no lower.
        """
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
    """Log probability of the label of every row.

    Parameters
    ----------
    columns : ndarray of shape (n_labelled, n_prototypes)
        Dissimilarities of rows to the exemplars.
    labels : ndarray of shape (n_labelled,)
        Class codes.
    prototypes : Prototypes
        Class of every prototype.
    sigma : float
        Width.

    Returns
    -------
    ndarray of shape (n_labelled,)
        ``log p(y_n | x_n)`` in nats.

    Examples
    --------
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
    r"""Log density of a width under its prior.

    .. math:: -\log \sigma - \log s - \tfrac12 \log 2\pi - \frac{(\log\sigma - m)^2}{2 s^2}

    Parameters
    ----------
    sigma : float
        Width.
    prior : SigmaPrior
        Mean m and standard deviation s of log sigma.

    Returns
    -------
    float
        In nats.

    Examples
    --------
    >>> round(log_normal(1.0, SigmaPrior(0.0, 1.0)), 4)
    -0.9189
    """
    z = (np.log(sigma) - prior.location) / prior.spread
    return float(-np.log(sigma) - np.log(prior.spread) - 0.5 * np.log(2 * np.pi) - 0.5 * z**2)
