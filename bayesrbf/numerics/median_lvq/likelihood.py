r"""RSLVQ on exemplars: the log likelihood of the labels, for every candidate at once.

References
----------
Nebel, Hammer, Villmann (2014), Supervised generative models for learning dissimilarity
data, ESANN, section 3. Seo, Obermayer (2003), Soft learning vector quantization, Neural
Computation 15, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from bayesrbf.exemplars import Dissimilarities, Prototypes, SigmaPrior
from bayesrbf.numerics.median_lvq.exemplars import (
    Exemplars,
    Scores,
    blocks,
    class_log_joint,
    log_kernel,
)
from bayesrbf.numerics.median_lvq.sums import SAFE, LogSums, PlainSums

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
        labelled = self.rows.labelled
        joint = class_log_joint(
            self.rows.values[labelled[:, None], exemplars], self.prototypes, self.sigma
        )
        own = joint[np.arange(labelled.size), self.rows.labels[labelled]]
        return own - np.logaddexp.reduce(joint, axis=1)

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

    def scores(self, exemplars: Exemplars, prototype: int) -> Float[np.ndarray, " candidate"]:
        """The log likelihood, were a prototype each of the candidates of its class.

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            Training row that each prototype is.
        prototype : int
            The prototype that would move.

        Returns
        -------
        ndarray of shape (n_candidates,)
            Log likelihoods in nats; under a uniform prior they are the log full
            conditional of this exemplar, up to a constant.
        """
        label = self.prototypes.classes[prototype]
        sums = self._without(exemplars, prototype)
        total = np.zeros(self.rows.candidates[label].size)
        for at, part, columns in blocks(self.rows, label):
            joins = self.rows.labels[part] == label
            shares = sums.log_shares(log_kernel(columns, self.sigma), at, joins)
            total += self.rows.weights[part] @ shares
        return total + self._log_prior

    def bound(self, exemplars: Exemplars) -> Scores:
        r"""Scores of the expected log joint, the bound of the generalised EM.

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
        callable
            Exemplars and a prototype -> bound for each candidate, up to a constant.

        References
        ----------
        Nebel, Hammer, Villmann (2014), section 3.
        """
        labelled = self.rows.labelled
        logs = log_kernel(self.rows.values[labelled[:, None], exemplars], self.sigma)
        own = np.asarray(self.prototypes.classes) == self.rows.labels[labelled, None]
        logs[~own] = -np.inf
        share = np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))
        share *= self.rows.weights[labelled, None]

        def scores(moved: Exemplars, prototype: int) -> Float[np.ndarray, " candidate"]:
            label = self.prototypes.classes[prototype]
            sums = self._without(moved, prototype)
            total = np.zeros(self.rows.candidates[label].size)
            for at, part, columns in blocks(self.rows, label):
                logs = log_kernel(columns, self.sigma)
                total += share[at, prototype] @ logs
                total -= self.rows.weights[part] @ sums.log_whole(logs, at)
            return total

        return scores

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

    def _without(self, exemplars: Exemplars, prototype: int) -> PlainSums | LogSums:
        """Sums of kernels of every labelled row, a prototype taken out."""
        labelled = self.rows.labelled
        logs = log_kernel(self.rows.values[labelled[:, None], exemplars], self.sigma)
        logs[:, prototype] = -np.inf
        starts = [part.start for part in self.prototypes.class_slices]
        safe = self.rows.largest * self.sigma**-2.0 < SAFE
        kind = PlainSums if safe else LogSums
        return kind.of(logs, self.rows.labels[labelled], starts)


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
