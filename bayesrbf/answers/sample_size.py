"""Rows that a study needs to develop or to validate a prediction model, told before it has data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from jaxtyping import Float
from scipy.special import expit, log_expit, logit, ndtr, ndtri, xlogy

from bayesrbf.fit.arguments import integer

MARGIN: Final = 0.05  # Of an overall risk, and most optimism of Nagelkerke's R squared.
SHRINKAGE: Final = 0.9  # Least factor of the coefficients: the criterion of Riley et al.
TYPICAL: Final = 0.15  # Share of the most R squared that is reached if nothing is known.
WIDTH: Final = 0.2  # Of the 95 % intervals of a validation study, and half of it for C statistics.
DEVELOP: Final = (
    "These are criteria of regression models; flexible models need more rows. The learning curve "
    "of a first table tells how many (bayesrbf.learning_curve)."
)
VALIDATE: Final = (
    "These are for one model as it is, whose probabilities are right and whose scores are Gaussian "
    "in both classes, of one variance."
)


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
    note : str
        What models the criteria are for.
    """

    shares: tuple[float, ...]
    cox_snell: float
    most_cox_snell: float
    criteria: Mapping[str, int]
    note: str

    @property
    def rows(self) -> int:
        """Rows that meet every criterion."""
        return max(self.criteria.values())

    def __str__(self) -> str:
        return "\n".join([
            f"At least {self.rows:,} rows, {self.rows * min(self.shares):,.0f} of them of the "
            f"rarest class, for an R squared of {self.cox_snell:.3f} (Cox and Snell; at most "
            f"{self.most_cox_snell:.3f})",
            *(f"{rows:>9,}  {criterion}" for criterion, rows in self.criteria.items()),
            self.note,
        ])  # fmt: skip


def plan_sample_size(
    events: float | Sequence[float],
    columns: int | None = None,
    *,
    c_statistic: float | None = None,
    cox_snell: float | None = None,
    threshold: float | None = None,
) -> SampleSize:
    r"""Fewest rows by which a regression model can be developed, or a model can be validated.

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

    Without ``columns`` the study is to validate a model of two classes [5]_. Its 95 % intervals are
    to be .2 wide, that of the C statistic C .1, so that their standard errors SE are given, and

    .. math::

       n_1 = \frac{1 - \pi}{\pi \, SE^2}, \quad
       n_2 = \frac{I_0}{SE^2 (I_0 I_2 - I_1^2)} \text{ with } I_k = E[p (1 - p) \eta^k], \quad
       n_4 = \frac{1}{SE^2} \Bigl( \frac{s (1 - s)}{\pi} + \frac{w^2 f (1 - f)}{1 - \pi} +
       \frac{w^2 f^2}{\pi (1 - \pi)} \Bigr)

    rows give the logarithm of observed over expected events, the calibration slope, and with a
    ``threshold`` t the net benefit in shares of its most, at a sensitivity s, false positives f of
    the others and :math:`w = (1 - \pi) t / (\pi (1 - t))`. That of C, Newcombe's, is

    .. math::

       SE^2 = \frac{C (1 - C)}{n_3^2 \, \pi (1 - \pi)} \Bigl( 1 + \bigl(\tfrac{n_3}{2} - 1\bigr)
       \Bigl( \frac{1 - C}{2 - C} + \frac{C}{1 + C} \Bigr) \Bigr).

    Log odds :math:`\eta` are right and Gaussian in both classes, as C and :math:`\pi` ask [4]_.

    Parameters
    ----------
    events : float or sequence of float
        Share of rows with the event; or shares of all classes, which sum to 1.
    columns : int, optional
        Parameters P that are candidates: k - 1 of a column of k levels, all terms of a curve.
        None: a model that is there is to be validated, and ``c_statistic`` is needed.
    c_statistic, cox_snell : float, optional
        What the model is expected to reach: the C statistic of two classes, from which
        :math:`R^2` follows where scores of both classes are Gaussian of one variance [4]_, or
        :math:`R^2` itself. By default it is .15 of its most [2]_.
    threshold : float, optional
        Probability of the event from which one acts, for the net benefit of a validation.

    Returns
    -------
    SampleSize
        ``rows``, and ``criteria``, each with a sentence.

    Raises
    ------
    ValueError
        If shares do not sum to 1, or what is anticipated is given twice or is out of reach, or
        is of no use in a study of that kind.

    References
    ----------
    .. [1] Riley et al. (2019), Statistics in Medicine 38, 1276-1296.
    .. [2] Riley et al. (2020), BMJ 368, m441; its absolute error is left out, as in pmsampsize.
    .. [3] Pate et al. (2023), Statistical Methods in Medical Research 32, 555-571.
    .. [4] Riley, Van Calster, Collins (2021), Statistics in Medicine 40, 859-864.
    .. [5] Riley et al. (2021), Statistics in Medicine 40, 4230-4251.

    Examples
    --------
    >>> import bayesrbf
    >>> found = bayesrbf.plan_sample_size(0.174, 24, cox_snell=0.288)
    >>> found.rows, list(found.criteria.values())
    (662, [221, 623, 662])
    >>> list(bayesrbf.plan_sample_size(0.2, c_statistic=0.8, threshold=0.1).criteria.values())
    [1542, 2671, 471, 334]
    """
    shares = (1 - events, events) if isinstance(events, int | float) else tuple(events)
    if len(shares) < 2 or not all(0 < share < 1 for share in shares) or abs(sum(shares) - 1) > 1e-6:
        raise ValueError(
            "plan_sample_size(events=...) must be the share of the event, strictly between 0 and "
            f"1, or the shares of all classes, which sum to 1; received {events!r}."
        )
    most, alone = most_r2(shares), c_statistic is None
    if c_statistic is not None:
        alone = 0.5 < c_statistic < 1 and cox_snell is None and len(shares) == 2
    r2 = TYPICAL * most if cox_snell is None else float(cox_snell)
    r2 = r2_of(c_statistic, shares[-1]) if c_statistic is not None else r2
    if not (alone and 0 < r2 < min(most, SHRINKAGE)):
        raise ValueError(
            "plan_sample_size(...) takes cox_snell above 0 and below "
            f"{min(most, SHRINKAGE):.3f}, the most at these shares, or for two classes c_statistic "
            f"between .5 and 1; received cox_snell={cox_snell!r} and c_statistic={c_statistic!r}."
        )
    if threshold is not None and (columns is not None or not 0 < threshold < 1):
        raise ValueError(
            "plan_sample_size(threshold=...) must be strictly between 0 and 1, without columns: it "
            f"is for a validation; received threshold={threshold!r} and columns={columns!r}."
        )
    if columns is not None:
        integer().check(columns, "plan_sample_size(columns=...)")
        criteria, note = _development(shares, columns, r2, most), DEVELOP
    elif c_statistic is not None:
        criteria, note = _validation(shares[-1], c_statistic, threshold), VALIDATE
    else:
        raise ValueError(
            "plan_sample_size(...) takes columns, to develop a model, or the c_statistic of two "
            f"classes, to validate one; received neither, and cox_snell={cox_snell!r}."
        )
    rows = {why: int(np.ceil(n)) for why, n in criteria.items()}
    return SampleSize(shares, r2, most, rows, note)


def _development(
    shares: Sequence[float], columns: int, r2: float, most: float
) -> Mapping[str, float]:
    """Number of rows that each criterion for developing a model requires, not rounded.

    ``columns`` are candidate parameters, ``r2`` the anticipated R squared of Cox and Snell, and
    ``most`` its maximum at these class shares.
    """
    z = ndtri(1 - 0.05 / 2 / (1 if len(shares) == 2 else len(shares)))
    risk = max((z / MARGIN) ** 2 * share * (1 - share) for share in shares)
    pairs = [(a + b, most_r2((a / (a + b), b / (a + b)))) for a, b in combinations(shares, 2)]
    slope = max(_shrunken(columns, r2 / most * of, SHRINKAGE) / both for both, of in pairs)
    optimism = _shrunken(columns * (len(shares) - 1), r2, r2 / (r2 + MARGIN * most))
    return {
        f"the 95 % interval of an overall risk reaches {MARGIN:g} to either side": risk,
        f"coefficients shrink to no less than {SHRINKAGE:g} of what they are": slope,
        f"Nagelkerke's R squared is too high by at most {MARGIN:g}": optimism,
    }


def _validation(event: float, c: float, threshold: float | None) -> Mapping[str, float]:
    """Number of rows that each criterion for validating a model of two classes requires.

    ``event`` is the share of events, and ``c`` the C statistic. Numbers are not rounded.
    """
    non_event, z = 1 - event, ndtri(0.975)
    of_ratio, of_slope, of_c = np.arcsinh(WIDTH / 2) / z, WIDTH / 2 / z, WIDTH / 4 / z
    weights, of_events, of_others = _log_odds(c, event)
    eta = np.concatenate([of_events, of_others])
    weights = np.concatenate([event * weights, non_event * weights]) * expit(eta) * expit(-eta)
    flat, tilted, curved = (weights @ eta**k for k in range(3))
    # Newcombe's formula is v n^2 = q (1 + (n / 2 - 1) u), to be solved for n
    v, q, u = of_c**2 * event * non_event, c * (1 - c), (1 - c) / (2 - c) + c / (1 + c)
    ratio = non_event / event / of_ratio**2
    slope = flat / (flat * curved - tilted**2) / of_slope**2
    rank = (q * u / 4 + np.sqrt((q * u / 4) ** 2 + v * q * (1 - u))) / v
    criteria = {
        f"the 95 % interval of observed over expected events is {WIDTH:g} wide": ratio,
        f"that of the calibration slope is {WIDTH:g} wide": slope,
        f"that of the C statistic is {WIDTH / 2:g} wide": rank,
    }
    if threshold is not None:
        w = non_event / event * threshold / (1 - threshold)
        distance = np.sqrt(2) * ndtri(c)
        beyond = (logit(event) - logit(threshold)) / distance
        s, f = ndtr(beyond + distance / 2), ndtr(beyond - distance / 2)
        spread = s * (1 - s) / event + w**2 * (f * (1 - f) / non_event + f**2 / (event * non_event))
        share = f"that of the net benefit at {threshold:g} is {WIDTH:g} of its most wide"
        criteria[share] = spread / of_slope**2
    return criteria


def _shrunken(parameters: int, r2: float, shrinkage: float) -> float:
    """Rows at which a regression shrinks by so much: Riley et al. (2019), equation 11."""
    return float(parameters / ((shrinkage - 1) * np.log1p(-r2 / shrinkage)))


def most_r2(shares: Sequence[float]) -> float:
    """Most that the R squared of Cox and Snell can be."""
    return float(-np.expm1(2 * xlogy(shares, shares).sum()))


def r2_of(c_statistic: float, event: float) -> float:
    """R squared of Cox and Snell where scores of both classes are Gaussian of one variance."""
    weights, of_events, of_others = _log_odds(c_statistic, event)
    log_p = event * weights @ log_expit(of_events) + (1 - event) * weights @ log_expit(-of_others)
    return float(-np.expm1(2 * (xlogy(event, event) + xlogy(1 - event, 1 - event) - log_p)))


def _log_odds(
    c_statistic: float, event: float
) -> tuple[Float[np.ndarray, " node"], Float[np.ndarray, " node"], Float[np.ndarray, " node"]]:
    """Weights, and log odds of events and others whose scores are Gaussian of one variance."""
    # A c-statistic of 1 is infinitely far; nine standard deviations hold the whole integral.
    distance, z = np.sqrt(2) * ndtri(np.clip(c_statistic, 0.5, 1 - 1e-12)), np.linspace(-9, 9, 2001)
    weights = np.exp(-(z**2) / 2) / np.exp(-(z**2) / 2).sum()
    of_events = logit(event) + distance * (z + distance / 2)
    return weights, of_events, of_events - distance**2
