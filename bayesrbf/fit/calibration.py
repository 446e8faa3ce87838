"""Temperatures and prior exponents by held-out rows, and a choice among candidates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize
from scipy.optimize.elementwise import find_root
from scipy.special import logsumexp, softmax
from scipy.stats import t as student

from bayesrbf.base.arrays import (
    MIN_SCORED_PROBABILITY,
    Labels,
    Probabilities,
    Weights,
    class_indicators,
    log_scores,
    log_softmax,
    mean_and_error,
    shorter_step,
)
from bayesrbf.base.missing_fraction import hats
from bayesrbf.base.priors import POOL_PRIOR

# Fits to out-of-fold predictions: temperatures, scales of noise, and slopes of calibration.


# Out-of-fold predictions differ by rounding with the number of processes; the mode must not.
TIGHT = {"gtol": 1e-9, "ftol": 1e-15}
LOG_TEMPERATURES = np.linspace(-6.0, 6.0, 13)
"""Grid on which the objective is first bracketed: it can have two valleys."""

LABEL_NOISE = 1e-10
"""Probability that a label was given at random, in calibration: a row costs 24 nats at most. On 17
real tables no held-out loss moved by .001; at 1e-3 that of 107 rows of glass rose by .17."""
MIN_LOG_SCORE = -60.0
"""Log probabilities are clipped below: a single row must not decide on the missing fraction."""

Members = Float[np.ndarray, " member"]


def tempered(
    log_joint: Float[np.ndarray, "*rows label"], temperature: float
) -> Float[np.ndarray, "*rows label"]:
    """Calibrated class log probabilities in nats, whose exponentials sum to one per row.

    ``log q(c | x) = t log p(c | x) - log sum_b exp(t log p(b | x))`` with the positive temperature
    t, of log joints up to a constant per row.

    >>> log_joint = np.log([[0.2, 0.8]])
    >>> np.exp(tempered(log_joint, 1.0)).round(3)
    array([[0.2, 0.8]])
    >>> np.exp(tempered(log_joint, 0.5)).round(3)
    array([[0.333, 0.667]])
    """
    return log_softmax(temperature * log_joint, axis=-1)


def fit_temperature(
    log_probabilities: Float[np.ndarray, "obs *draws label"],
    labels: Int[np.ndarray, " obs"],
    weights: Float[np.ndarray, " obs"],
) -> float:
    """Temperature t that calibrates out-of-fold log probabilities, below 1 if too sure.

    ``argmin_t -sum_n v_n log ((1 - e) softmax(t log p_n)[y_n] + e / C) + 2 (log t)^2``: maximum a
    posteriori under ``log t ~ Normal(0, 1/2)``, where a label is given at random with
    probability e = 1e-10. A row with a wrong cell, of which a model may be absurdly sure, costs 24
    nats and not thousands. Where a model says the mean over draws, every draw is tempered:
    ``log mean_s softmax(t log p_ns)[y_n]``.

    See Guo, Pleiss, Sun, Weinberger (2017), On calibration of modern neural networks, ICML,
    section 4.2.

    Nine in ten right, where the model claims 99 in 100:

    >>> log_p = np.log(np.tile([0.99, 0.01], (100, 1)))
    >>> labels = np.repeat([0, 1], [90, 10])
    >>> t = fit_temperature(log_p, labels, np.ones(100))
    >>> round(float(np.exp(tempered(log_p, t))[0, 0]), 2)
    0.9
    """
    return float(fit_temperatures(log_probabilities[:, None], labels, weights)[0])


def fit_temperatures(
    log_probabilities: Float[np.ndarray, "obs member *draws label"],
    labels: Int[np.ndarray, " obs"],
    weights: Float[np.ndarray, " obs"],
) -> Float[np.ndarray, " member"]:
    """The temperature of every member, as :func:`fit_temperature` has it, all at once."""
    # Classes come first: sums over them then run along the long axis of rows.
    by_class = np.moveaxis(log_probabilities, -1, 0)
    # Finite: exp(-inf) times -inf would make the slope NaN.
    below = np.maximum(by_class - by_class.max(axis=0), np.finfo(float).min)
    true_class = below[labels, np.arange(labels.size)]
    draws = tuple(range(2, true_class.ndim))

    def value_and_slope(
        log_t: Members, index: Int[np.ndarray, " member"]
    ) -> tuple[Members, Members]:
        """Objective of the members ``index``, to be minimised, and its derivative in log t."""
        t = np.exp(log_t).reshape(-1, *(1 for _ in draws))
        powers = np.exp(t * below[:, :, index])
        totals = powers.sum(axis=0)
        held_out = t * true_class[:, index] - np.log(totals)
        slopes = true_class[:, index] - (powers * below[:, :, index]).sum(axis=0) / totals
        if draws:
            slopes = (softmax(held_out, axis=draws) * slopes).sum(axis=draws)
            held_out = logsumexp(held_out, axis=draws) - np.log(true_class[0, 0].size)
        held_out, shares = with_label_noise(held_out, len(below))
        slopes = shares * slopes
        precision = 1 / POOL_PRIOR.sd**2
        value = 0.5 * precision * log_t**2 - weights @ held_out
        return value, precision * log_t - np.exp(log_t) * (weights @ slopes)

    members = np.arange(true_class.shape[1])
    on_grid = [value_and_slope(np.full(members.size, log_t), members) for log_t in LOG_TEMPERATURES]
    values, slopes = (np.array(on_curve) for on_curve in zip(*on_grid, strict=True))
    # Beside the lowest point, on the side to which the objective falls, its slope is 0.
    best = values.argmin(axis=0)
    other = best - np.sign(slopes[best, members]).astype(int)
    # At an end of the grid there is no point on the other side.
    ends = LOG_TEMPERATURES[[best, np.clip(other, 0, LOG_TEMPERATURES.size - 1)]]
    found = find_root(lambda *point: value_and_slope(*point)[1], tuple(ends), args=(members,))
    # At an end of the grid the objective may fall further.
    return np.exp(np.where(found.success, found.x, ends[0]))


def with_label_noise(
    log_q: Float[np.ndarray, "*rows"], n_classes: int
) -> tuple[Float[np.ndarray, "*rows"], Float[np.ndarray, "*rows"]]:
    """Log probabilities of labels, some of which were given at random; derivatives by ``log_q``.

    >>> log_p, slopes = with_label_noise(np.array([0.0, -1000.0]), 2)
    >>> log_p.round(3), slopes.round(3)
    (array([ -0.   , -23.719]), array([1., 0.]))
    """
    log_clean = np.log1p(-LABEL_NOISE) + log_q
    log_p = np.logaddexp(log_clean, np.log(LABEL_NOISE / n_classes))
    return log_p, np.exp(log_clean - log_p)


def fit_powers(
    log_p: Float[np.ndarray, "obs label"],
    labels: Int[np.ndarray, " obs"],
    weights: Float[np.ndarray, " obs"],
    log_shares: Float[np.ndarray, " label"],
) -> tuple[float, float]:
    r"""Temperature t and exponent b of the class shares, by out-of-fold log probabilities.

    .. math:: q(c | x) \propto p(c | x)^t \, \pi_c^b

    Maximum a posteriori under ``log t ~ Normal(0, 1/2)`` and ``b ~ Normal(0, 1/2)``, with the
    labels at random of :func:`fit_temperature`.

    A model that says 1 in 2 where the class is 1 in 10:

    >>> log_p, labels = np.log(np.full((200, 2), 0.5)), np.repeat([0, 1], [180, 20])
    >>> t, b = fit_powers(log_p, labels, np.ones(200), np.log([0.9, 0.1]))
    >>> round(b, 1)
    1.0
    """

    def objective(point: np.ndarray) -> tuple[float, np.ndarray]:
        """Negative log posterior of (log t, b) in nats, and its gradient."""
        t = np.exp(point[0])
        log_q = log_softmax(t * log_p + point[1] * log_shares, axis=-1)
        scores, shares = with_label_noise(log_scores(log_q, labels), log_shares.size)
        off = (weights * shares)[:, None] * (class_indicators(log_p, labels) - np.exp(log_q))
        # Sums of NumPy: those of BLAS have other last bits under other numbers of threads.
        value = (weights * scores).sum()
        value -= 0.5 * (point @ point) / POOL_PRIOR.sd**2
        # The first coordinate is log t, whose derivative brings the factor t.
        slope = np.array([t * (off * log_p).sum(), (off * log_shares).sum()])
        return -float(value), point / POOL_PRIOR.sd**2 - slope

    start = np.log([fit_temperature(log_p, labels, weights), 1.0])
    mode = minimize(objective, start, jac=True, method="L-BFGS-B", options=TIGHT).x
    return float(np.exp(mode[0])), float(mode[1])


def evidence_of_missing_fraction(
    log_p: Float[np.ndarray, "obs label"],
    labels: Labels,
    weights: Weights,
    missing_fraction: Float[np.ndarray, " obs"],
    log_shares: Float[np.ndarray, " label"],
) -> Float[np.ndarray, " obs"]:
    r"""Likelihood ratio of the missing fraction for the label of every held-out row.

    .. math:: \frac{p(y_n | x_n, h_n)}{p(y_n | x_n)}, \qquad
        p(c | x, h) \propto p(c | x) \exp \textstyle\sum_k B_k(h) \, a_{kc}, \\
        p(c | x) \propto \pi_c \exp a_c
            \left(\frac{\bar p(c | x)}{\pi_c}\right)^{\sum_k B_k(h) t_k}

    with the prediction :math:`\bar p` from the cells, the missing fraction h,
    :math:`t_k \sim N(1, s^2)` and :math:`a_{kc} \sim N(0, s^2)`. A calibration that depends on h
    would otherwise take missing cells for evidence of the class, and be wrong for rows with others.
    Temperatures t account for members that are surer where fewer cells are missing.
    """
    evidence = np.maximum(log_p, MIN_LOG_SCORE) - log_shares
    n_classes, near = log_shares.size, hats(missing_fraction)
    is_label = np.arange(n_classes) == labels[:, None]
    basis = np.column_stack([near, np.ones(len(near))])
    precision = POOL_PRIOR.sd**-2
    precisions = np.append(np.full(near.shape[1], precision), 0.0)[:, None]

    def split(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        temperatures, offsets = np.split(theta, [near.shape[1]])
        return temperatures, offsets.reshape(-1, n_classes)

    def falling(theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Negative log posterior of temperatures and offsets in nats, and its gradient."""
        temperatures, offsets = split(theta)
        logits = (near @ temperatures)[:, None] * evidence + log_shares + basis @ offsets
        log_q = log_softmax(logits, axis=-1)
        slopes = weights[:, None] * (np.exp(log_q) - is_label)
        apart = temperatures - 1
        value = 0.5 * (precisions * offsets**2).sum() + 0.5 * precision * apart @ apart
        by_temperature = near.T @ (slopes * evidence).sum(axis=1) + precision * apart
        by_offset = basis.T @ slopes + precisions * offsets
        gradient = np.concatenate([by_temperature, by_offset.ravel()])
        return value - weights @ log_q[is_label], gradient

    start = np.repeat([1.0, 0.0], [near.shape[1], basis.shape[1] * n_classes])
    temperatures, offsets = split(minimize(falling, start, jac=True, method="L-BFGS-B").x)
    fraction_logits = near @ offsets[:-1]
    logits = (near @ temperatures)[:, None] * evidence + log_shares + offsets[-1]
    return np.exp(
        fraction_logits[is_label]
        - logsumexp(log_softmax(logits, axis=-1) + fraction_logits, axis=-1)
    )


MIN_DF = 2.0  # Degrees of freedom stay above it, so that there is a standard deviation.
SCALES = (-12.0, 12.0)  # Least and largest log scale.
MIN_SCALE = np.finfo(float).eps
STARTS = (3.0, 8.0, 40.0)  # Degrees of freedom from which the search begins.


def fit_noise(
    residuals: Float[np.ndarray, " obs"], weights: Float[np.ndarray, " obs"]
) -> tuple[float, float]:
    r"""Scale s and degrees of freedom nu > 2 of Student's t that describe standardised residuals.

    .. math:: \arg\max_{s, \nu} \sum_n v_n \log t_\nu(z_n / s) / s
        - 2 \log^2 (s / \hat s) + \log(\nu - 2) - (\nu - 2) / 10

    The residuals z are out of fold, over the fitted standard deviation. Maximum a posteriori: the
    scale is expected near that of normal residuals with the mean absolute value that was seen,
    :math:`\hat s`, and :math:`\nu - 2` has the prior of Juarez and Steel, Gamma(2, rate 0.1). A
    model that follows its training rows has :math:`s > 1`; a rare miss makes heavy tails, where a
    standard deviation would make every interval wide.

    See Juarez, Steel (2010), Model-based clustering of non-Gaussian panel data based on
    skew-t distributions, Journal of Business & Economic Statistics 28, section 2.

    Twice as far off as the model believed:

    >>> z = 2 * np.random.default_rng(0).normal(size=500)
    >>> scale, df = fit_noise(z, np.ones(500))
    >>> bool(1.8 < scale < 2.2), df > 8
    (True, True)
    """

    def objective(point: np.ndarray) -> float:
        log_scale, log_excess = point
        scale, excess = np.exp(log_scale), np.exp(log_excess)
        fit = float(weights @ student.logpdf(residuals, MIN_DF + excess, scale=scale))
        return -(fit - 2 * (log_scale - log_spread) ** 2 + log_excess - excess / 10)

    absolute = float(np.average(np.abs(residuals), weights=weights))
    # The mean absolute value of a normal variable is sqrt(2 / pi) standard deviations. Residuals
    # that are all 0 have no logarithm without the smallest scale.
    log_spread = float(np.clip(np.log(np.sqrt(np.pi / 2) * absolute + MIN_SCALE), *SCALES))
    starts = [np.array([log_spread, np.log(df - MIN_DF)]) for df in STARTS]
    box = [SCALES, (-12.0, 7.0)]
    fits = [minimize(objective, start, method="L-BFGS-B", bounds=box) for start in starts]
    log_scale, log_excess = min(fits, key=lambda fit: float(fit.fun)).x
    return float(np.exp(log_scale)), MIN_DF + float(np.exp(log_excess))


def calibration_slope(
    probabilities: Probabilities, labels: Labels, weights: Weights | None = None
) -> tuple[float, float]:
    """Slope b of the recalibration ``y ~ softmax(a_c + b log p_c)`` and its standard error.

    1 for calibrated probabilities, below 1 where they are too extreme, above 1 where they
    are too timid. For two classes it is the slope of the usual logistic recalibration on
    ``logit p``. Weak priors ``b - 1 ~ Normal(0, 10)``, ``a_c ~ Normal(0, 10)`` keep it
    finite where the classes are told apart without error. The error is from the curvature at
    the mode.

    See Cox (1958), Two further applications of a model for binary regression, Biometrika 45.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1.0, 1.0], size=2000)
    >>> labels = (p.cumsum(1) < rng.random((2000, 1))).sum(1)
    >>> sharp = p**2 / (p**2).sum(1, keepdims=True)
    >>> slope, error = calibration_slope(sharp, labels)
    >>> abs(slope - 0.5) < 2 * error < 0.1
    True
    """
    weights = np.ones(labels.size) if weights is None else weights
    n_classes = probabilities.shape[1]
    log_p = np.log(np.clip(probabilities, MIN_SCORED_PROBABILITY, 1.0))
    # One of the intercepts is 0: only differences of logits count.
    design = np.zeros((*log_p.shape, n_classes))
    design[:, 1:, : n_classes - 1] = np.eye(n_classes - 1)
    design[..., n_classes - 1] = log_p
    prior_mean = np.append(np.zeros(n_classes - 1), 1.0)
    mode, covariance = softmax_regression(
        design, class_indicators(probabilities, labels), weights, prior_mean
    )
    return float(mode[-1]), float(np.sqrt(covariance[-1, -1]))


def softmax_regression(
    design: Float[np.ndarray, "obs label coefficient"],
    target: Float[np.ndarray, "obs label"],
    weights: Weights,
    prior_mean: Float[np.ndarray, " coefficient"],
    prior_sd: Float[np.ndarray, " coefficient"] | float = 10.0,
    offset: Float[np.ndarray, "obs label"] | float = 0.0,
) -> tuple[Float[np.ndarray, " coefficient"], Float[np.ndarray, "coefficient coefficient"]]:
    """Mode and inverse curvature of a softmax regression under Normal(prior_mean, prior_sd).

    The logits are ``offset + design @ coefficients``; ``target`` has class indicators.
    """
    ridge = np.broadcast_to(1.0 / np.square(prior_sd), prior_mean.shape)

    def objective(coefficients: np.ndarray) -> tuple[float, None]:
        logits = offset + design @ coefficients
        peak = logits.max(1)
        log_norm = peak + np.log(np.exp(logits - peak[:, None]).sum(1))
        loss = weights @ (log_norm - (target * logits).sum(1))
        return -float(loss + (ridge * (coefficients - prior_mean) ** 2).sum() / 2), None

    mode = prior_mean.copy()
    for _ in range(100):
        p = softmax(offset + design @ mode, axis=1)
        # The curvature is the covariance of the design under p. As a product of centred rows it
        # stays positive semidefinite; E[x x'] - E[x] E[x]' would lose that to rounding.
        centred = design - np.einsum("nc,ncj->nj", p, design)[:, None]
        slope = np.einsum("n,nc,ncj->j", weights, target - p, design) - ridge * (mode - prior_mean)
        curvature = np.einsum("n,nc,nci,ncj->ij", weights, p, centred, centred, optimize=True)
        curvature += np.diag(ridge)
        step = np.linalg.solve(curvature, slope)
        # A full step overshoots where the classes are nearly separable.
        found = shorter_step(objective, mode, step, objective(mode)[0], float(slope @ step))
        step_size = 0.0 if found is None else np.abs(found[0] - mode).max()
        mode = mode if found is None else found[0]
        # Newton's steps shrink quadratically: the next one would be lost in rounding.
        if step_size < 1e-10:
            break
    return mode, np.linalg.inv(curvature)


# Selection among candidates by their scores of held-out rows.


@dataclass(frozen=True)
class Selection[C]:
    """Candidates, from the simplest on, and their scores of the same rows held out.

    A candidate replaces an earlier one if it is better by more than ``margin`` standard
    errors of the paired difference: on small tables the largest of several scores is mostly luck.
    Of equals the first is taken. See Breiman et al. (1984), Classification and regression trees,
    section 3.4.3.
    """

    candidates: tuple[C, ...]
    row_scores: Float[np.ndarray, "candidate obs"]
    """Log probability or log density of every row, in nats."""
    weights: Float[np.ndarray, " obs"]
    margin: float = 0.0

    @cached_property
    def best(self) -> int:
        """Index of the chosen candidate.

        >>> scores = np.array([[-1.0, -1.0, -1.0], [-0.9, -1.0, -0.9], [-0.5, -0.5, -0.6]])
        >>> Selection(("one", "two", "three"), scores, np.ones(3), margin=1.0).best
        2
        """
        best = 0
        for later in range(1, len(self.candidates)):
            gain, error = self.gain(later, best)
            best = later if gain > self.margin * error else best
        return best

    @property
    def chosen(self) -> C:
        """The chosen candidate."""
        return self.candidates[self.best]

    @property
    def scores(self) -> Float[np.ndarray, " candidate"]:
        """Mean score of every candidate, in nats a row."""
        return self.row_scores @ self.weights / self.weights.sum()

    def gain(self, candidate: int, other: int) -> tuple[float, float]:
        """Mean gain in score of a candidate over another, and its standard error, in nats a row.

        >>> scores = np.array([[-0.9, -1.0, -0.8], [-1.0, -1.0, -1.0]])
        >>> gain, error = Selection(("one", "other"), scores, np.ones(3)).gain(0, 1)
        >>> round(gain, 3), round(error, 3)
        (0.1, 0.047)
        """
        return mean_and_error(self.row_scores[candidate] - self.row_scores[other], self.weights)


def unlabelled_gain(
    counted: str, gains: Float[np.ndarray, " obs"], weights: Float[np.ndarray, " obs"]
) -> str:
    """Message on the mean of held-out gains by unlabelled rows, in nats; empty if all gains are 0.

    >>> gains = np.array([0.2, 0.1, 0.3, 0.2])
    >>> unlabelled_gain("fully", gains, np.ones(4))
    'Rows without a label, counted fully, helped: +0.200 ± 0.035 nats a row held out.'
    """
    if not gains.any():
        return ""
    gain, error = mean_and_error(gains, weights)
    verdict = "helped" if gain > error else "hurt" if gain < -error else "made no clear difference"
    return (
        f"Rows without a label, counted {counted}, {verdict}: {gain:+.3f} ± {error:.3f} nats a row "
        "held out."
    )
