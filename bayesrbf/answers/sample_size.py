"""Rows that a study needs to develop a prediction model, told before it has data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from scipy.special import log_expit, ndtri, xlogy

from bayesrbf.fit.arguments import integer

MARGIN: Final = 0.05  # Of an overall risk, and most optimism of Nagelkerke's R squared.
SHRINKAGE: Final = 0.9
TYPICAL: Final = 0.15  # Share of the most R squared that is reached if nothing is known.


@dataclass(frozen=True)
class SampleSize:
    """Rows that a study needs; the result of :func:`plan_sample_size`. ``print`` shows them.

    Attributes
    ----------
    shares : tuple of float
        Shares of the classes; of two the event is the last.
    cox_snell, most_cox_snell : float
        Anticipated R squared of Cox and Snell, and the most that it can be at these shares.
    criteria : dict of int
        Rows by the sentence on what they give.
    """

    shares: tuple[float, ...]
    cox_snell: float
    most_cox_snell: float
    criteria: Mapping[str, int]

    @property
    def rows(self) -> int:
        """Rows that meet every criterion."""
        return max(self.criteria.values())

    def __str__(self) -> str:
        return "\n".join([
            f"At least {self.rows:,} rows, {self.rows * min(self.shares):,.0f} of them of the "
            f"rarest class, for an R squared of {self.cox_snell:.3f} (Cox and Snell; at most "
            f"{self.most_cox_snell:.3f})",
            *(f"{rows:>9,}  {sentence}" for sentence, rows in self.criteria.items()),
            "These are criteria of regression models; flexible models need more rows. The learning "
            "curve of a first table tells how many (bayesrbf.learning_curve).",
        ])  # fmt: skip


def plan_sample_size(
    events: float | Sequence[float],
    columns: int,
    *,
    c_statistic: float | None = None,
    cox_snell: float | None = None,
) -> SampleSize:
    r"""Fewest rows by which a regression model can be developed.

    With P parameters, anticipated :math:`R^2` of Cox and Snell, and its most,
    :math:`R^2_{\max} = 1 - \prod_k \pi_k^{2 \pi_k}` at class shares :math:`\pi_k`, two classes
    need [1]_ [2]_

    .. math::

       n_1 = (1.96 / .05)^2 \, \pi (1 - \pi), \quad
       n_2 = \frac{P}{(S - 1) \ln(1 - R^2 / S)} \text{ at } S = .9, \quad
       n_3 = n_2 \text{ at } S = \frac{R^2}{R^2 + .05 R^2_{\max}}

    rows: the overall risk is known to .05, coefficients shrink to no less than .9, and
    Nagelkerke's :math:`R^2` is too high by at most .05. More classes [3]_ need :math:`n_2` rows of
    every pair, whose :math:`R^2` is the same share of its most, P parameters for every class but
    one in :math:`n_3`, and quantiles at .05 / K for K classes in :math:`n_1`.

    Parameters
    ----------
    events : float or sequence of float
        Share of rows with the event; or shares of all classes, which sum to 1.
    columns : int
        Parameters P that are candidates: k - 1 of a column of k levels, all terms of a curve.
    c_statistic, cox_snell : float, optional
        What the model is expected to reach: the C statistic of two classes, from which
        :math:`R^2` follows where scores of both classes are Gaussian of one variance [4]_, or
        :math:`R^2` itself. By default it is .15 of its most [2]_.

    Returns
    -------
    SampleSize
        ``rows``, and ``criteria``, each with a sentence.

    Raises
    ------
    ValueError
        If shares do not sum to 1, or what is anticipated is given twice or is out of reach.

    References
    ----------
    .. [1] Riley et al. (2019), Statistics in Medicine 38, 1276-1296.
    .. [2] Riley et al. (2020), BMJ 368, m441; its absolute error is left out, as in pmsampsize.
    .. [3] Pate et al. (2023), Statistical Methods in Medical Research 32, 555-571.
    .. [4] Riley, Van Calster, Collins (2021), Statistics in Medicine 40, 859-864.

    Examples
    --------
    >>> import bayesrbf
    >>> found = bayesrbf.plan_sample_size(0.174, 24, cox_snell=0.288)
    >>> found.rows, list(found.criteria.values())
    (662, [221, 623, 662])
    """
    shares = (1 - events, events) if isinstance(events, int | float) else tuple(events)
    if len(shares) < 2 or not all(0 < one < 1 for one in shares) or abs(sum(shares) - 1) > 1e-6:
        raise ValueError(
            "plan_sample_size(events=...) must be the share of the event, strictly between 0 and "
            f"1, or the shares of all classes, which sum to 1; received {events!r}."
        )
    integer().check(columns, "plan_sample_size(columns=...)")
    most, alone = most_r2(shares), c_statistic is None or (cox_snell is None and len(shares) == 2)
    r2 = TYPICAL * most if cox_snell is None else float(cox_snell)
    r2 = r2_of(c_statistic, shares[-1]) if c_statistic is not None else r2
    if not (alone and 0 < r2 < min(most, SHRINKAGE)):
        raise ValueError(
            "plan_sample_size(...) takes cox_snell above 0 and below "
            f"{min(most, SHRINKAGE):.3f}, the most at these shares, or for two classes c_statistic "
            f"above .5; received cox_snell={cox_snell!r} and c_statistic={c_statistic!r}."
        )
    z = ndtri(1 - 0.05 / 2 / (1 if len(shares) == 2 else len(shares)))
    risk = max((z / MARGIN) ** 2 * share * (1 - share) for share in shares)
    pairs = [(a + b, most_r2((a / (a + b), b / (a + b)))) for a, b in combinations(shares, 2)]
    slope = max(_shrunken(columns, r2 / most * of, SHRINKAGE) / both for both, of in pairs)
    optimism = _shrunken(columns * (len(shares) - 1), r2, r2 / (r2 + MARGIN * most))
    criteria = {
        f"the 95 % interval of an overall risk reaches {MARGIN:g} to either side": risk,
        f"coefficients shrink to no less than {SHRINKAGE:g} of what they are": slope,
        f"Nagelkerke's R squared is too high by at most {MARGIN:g}": optimism,
    }
    return SampleSize(shares, r2, most, {why: int(np.ceil(n)) for why, n in criteria.items()})


def _shrunken(parameters: int, r2: float, shrinkage: float) -> float:
    """Rows at which a regression shrinks by so much: Riley et al. (2019), equation 11."""
    return float(parameters / ((shrinkage - 1) * np.log1p(-r2 / shrinkage)))


def most_r2(shares: Sequence[float]) -> float:
    """Most that the R squared of Cox and Snell can be."""
    return float(-np.expm1(2 * xlogy(shares, shares).sum()))


def r2_of(c_statistic: float, event: float) -> float:
    """R squared of Cox and Snell where scores of both classes are Gaussian of one variance."""
    distance, z = np.sqrt(2) * ndtri(max(c_statistic, 0.5)), np.linspace(-9, 9, 2001)
    weights = np.exp(-(z**2) / 2) / np.exp(-(z**2) / 2).sum()
    log_odds = np.log(event / (1 - event)) + distance * (z + distance / 2)  # of events
    of_others = log_odds - distance**2
    log_p = event * weights @ log_expit(log_odds) + (1 - event) * weights @ log_expit(-of_others)
    return float(-np.expm1(2 * (xlogy(event, event) + xlogy(1 - event, 1 - event) - log_p)))
