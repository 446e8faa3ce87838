"""Class probabilities of draws, and their summaries."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Float, Int, Real
from scipy.special import expit, gammaincinv, logsumexp, softmax, xlogy
from scipy.stats.qmc import Halton

from bayesrbf.base import names
from bayesrbf.base.arrays import (
    LEAST_DISPUTED_PROBABILITY,
    at_prevalence,
    keeping,
    log_odds,
    log_softmax,
    log_sum_exp,
    reduced,
)
from bayesrbf.base.hidden_share import calibrated, powers
from bayesrbf.base.log_posterior import Predictor
from bayesrbf.base.priors import ClassPrediction
from bayesrbf.base.rows import IN_CACHE, Observations, Recalibration, in_blocks
from bayesrbf.fit.calibration import tempered
from bayesrbf.fit.decisions import expected_costs, is_best
from bayesrbf.inference.draws import MEMORY

# The doubt about the class shares, which is all that is known of a row without a cell: rule 2 of
# the intervals of a stack (:mod:`bayesrbf.families.stack.intervals`), and of all estimators.
#
# What is calibrated is pulled towards the class shares of training by b, and a row without a cell
# is given the shares themselves. They are frequencies of :math:`n_c` rows. A draw has shares of its
# own, after Jeffreys' prior,
#
# .. math:: \pi_s \sim \mathrm{Dirichlet}(n + 1/2), \qquad
#     \log p_s(c | x) \to \log p_s(c | x) + b(x) \, \log \frac{\pi_{s c}}{\pi_c}.


JEFFREYS = 0.5


def at_drawn_shares(
    log_p: Float[np.ndarray, "draw obs label"],
    pull: Float[np.ndarray, " obs"],
    moves: Float[np.ndarray, "draw label"],
) -> Float[np.ndarray, "draw obs label"]:
    """Class log probabilities with the class shares of every draw, of which ``moves`` are logs."""
    return log_softmax(log_p + pull[:, None] * moves[:, None], axis=-1)


def share_draws(
    counts: Float[np.ndarray, " label"], n_draws: int, rng: np.random.Generator
) -> Float[np.ndarray, "draw label"]:
    """Log ratios of drawn class shares to those of ``counts``, which fill their law evenly.

    >>> moves = share_draws(np.array([30.0, 70.0]), 1000, np.random.default_rng(0))
    >>> np.exp(np.quantile(moves, [0.05, 0.95], axis=0)).round(1)
    array([[0.8, 0.9],
           [1.3, 1.1]])
    """
    # Halton's points come in an order of their own; permuted, the shares of a draw are
    # independent of its parameters.
    even = rng.permutation(Halton(counts.size, seed=rng).random(n_draws))
    # Gamma variables divided by their sum are Dirichlet.
    log_gamma = np.log(gammaincinv(counts + JEFFREYS, even))
    log_shares = np.log(counts / counts.sum())
    moves: np.ndarray = log_gamma - logsumexp(log_gamma, axis=1, keepdims=True) - log_shares
    return moves


# Stray labels: of any class alike, whatever their row. Rule 6 of the intervals of a stack.
#
# Of n rows held out, the label of row i had the probability :math:`p_i`, among C classes. Rows
# weigh :math:`v_i`. If the rate of stray labels is :math:`\epsilon`,
#
# .. math:: p(\epsilon \mid y) \propto (1 - \epsilon)^{19} \prod_i
#     \Bigl((1 - \epsilon) \, p_i + \frac{\epsilon}{C}\Bigr)^{v_i}.
#
# So before the rows the rate is Beta(1, 20): one label in 21 is expected to be one. Labels of
# probability 1 leave about Beta(1, n (C - 1) / C + 20), and labels that surprise leave more.
# Whether there are any has even odds, before the rows and after: this is a choice, not a posterior.


GOLDEN: Final = (np.sqrt(5) - 1) / 2
LABELS_BEFORE: Final = 20
"""Labels without a stray one that the prior is worth."""
RATES: Final = np.concatenate([[0.0], np.geomspace(1e-9, 1.0, 500)])


@dataclass(frozen=True)
class StrayLabels:
    """Rate of stray labels, by held-out rows, and the odds that there are any."""

    cumulative: Float[np.ndarray, " rate"]
    """Probability that the rate is at most each of ``RATES``."""

    def rates(self, n_draws: int) -> Float[np.ndarray, " draw"]:
        """Rate of every draw: 0 in half of them.

        They fill their distribution evenly, by multiples of the golden ratio.
        """
        places = (0.5 + np.arange(n_draws) * GOLDEN) % 1
        rates = np.interp(2 * places - 1, self.cumulative, RATES)
        return np.where(places < 0.5, 0.0, rates)


def stray_labels(
    p: Float[np.ndarray, " obs"], weights: Float[np.ndarray, " obs"], n_classes: int
) -> StrayLabels:
    """The posterior of the rate, from the probabilities of labels held out."""
    with np.errstate(divide="ignore"):  # the density is 0 at a rate of 1
        log_density = (LABELS_BEFORE - 1) * np.log1p(-RATES)
        p, weights = p[weights > 0], weights[weights > 0]
        log_density += [weights @ np.log(p + rate * (1 / n_classes - p)) for rate in RATES]
    density = np.exp(log_density - log_density.max())
    between = np.diff(RATES) * (density[1:] + density[:-1])
    cumulative = np.append(0.0, between.cumsum())
    return StrayLabels(cumulative / cumulative[-1])


# Uncertainty of a classifier about every row, as a labelled dataset.


ROUNDING_OF_ENTROPY: Final = 1e-13  # Entropy in nats below which nothing is told of its kinds.
LEAST_DOUBT = 1e-15  # Probabilities are held this far from 0 and 1 before their log odds are taken.


@dataclass(frozen=True)
class PredictiveSummary:
    r"""Class probabilities of every row, summarised over the draws.

    Where the fitted point is given out, draws are moved in log odds, class by class, so that
    it is their median, or that their median is so much further out that it is about their mean,
    and mixed with stray labels; where their mean is given out, they stay. Spread, interval and the
    kinds of doubt are those of the same draws :math:`p_s`. The entropy of what is given out,
    :math:`p`, is the total uncertainty. What would be left of it if the draw were known is the
    share that the mean entropy of the draws has of the entropy of their mean,

    .. math:: H_\text{aleatoric} = H[p] \, \frac{\overline{H[p_s]}}{H[\bar p]}, \quad
        H_\text{epistemic} = H[p] - H_\text{aleatoric}
        = H[p] \, \frac{I(c; \theta)}{H[\bar p]}, \quad
        I(c; \theta) = H[\bar p] - \overline{H[p_s]}.

    Entropy is concave, so both are between 0 and the total. Where the mean is given out, the
    epistemic entropy is the information :math:`I` of the draws on the class itself.
    """

    mean: Float[np.ndarray, "obs label"]
    """The class probability that is given out; it lies within the interval."""
    sd: Float[np.ndarray, "obs label"]  # Standard deviation of the draws around it.
    lower: Float[np.ndarray, "obs label"]  # Lower end of the equal-tailed interval of the draws.
    upper: Float[np.ndarray, "obs label"]  # Its upper end.
    total: Float[np.ndarray, " obs"]  # Entropy of ``mean``, in nats.
    aleatoric: Float[np.ndarray, " obs"]  # What knowing the draw would leave of it, in nats.
    log_density: Float[np.ndarray, " obs"]
    """Log of the posterior mean density of the observed cells."""
    prob: float  # Probability inside the interval.

    @property
    def epistemic(self) -> Float[np.ndarray, " obs"]:
        """Part of the entropy that knowledge of the draw would remove, in nats."""
        return self.total - self.aleatoric


def entropy(probabilities: Float[np.ndarray, "*rows label"]) -> Float[np.ndarray, "*rows"]:
    r"""Entropy :math:`-\sum_c p_c \log p_c` in nats.

    >>> entropy(np.array([[0.5, 0.5], [1.0, 0.0]])).round(4)
    array([0.6931, 0.    ])
    """
    return np.abs(reduced(np.add, xlogy(probabilities, probabilities), axis=-1))


def label_information(
    p: Float[np.ndarray, "draw obs label"], shares: Float[np.ndarray, "draw obs"]
) -> Float[np.ndarray, " obs"]:
    """Mutual information of a row's label and the draw, ``H[mean p] - mean H[p]``, in nats.

    >>> p = np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]])
    >>> label_information(p, np.full((2, 2), 0.5)).round(4)
    array([0.6931, 0.    ])
    """
    mean = np.einsum("sn,snc->nc", shares, p)
    return entropy(mean) - np.einsum("sn,sn->n", shares, entropy(p))


def summarised(
    p: Float[np.ndarray, "draw obs label"],
    weights: Float[np.ndarray, "draw obs"] | None,
    prob: float,
    delivered: Float[np.ndarray, "obs label"] | None = None,
) -> dict[str, np.ndarray]:
    """Spread, interval and entropies of class probabilities over draws, as in the summary's fields.

    The weights of the draws sum to one for every row; None weighs all alike. ``delivered`` are the
    probabilities that are given out, by default the mean of the draws.
    """
    n_draws = len(p)
    shares = np.full(p.shape[:2], 1 / n_draws) if weights is None else weights
    mean = np.einsum("sn,snc->nc", shares, p)
    delivered = mean if delivered is None else delivered
    lower, upper = _quantiles(p, weights, ((1 - prob) / 2, (1 + prob) / 2))
    unbiased = n_draws / (n_draws - 1) if n_draws > 1 else np.nan
    variance = unbiased * np.einsum("sn,snc->nc", shares, (p - mean) ** 2)
    total = entropy(delivered)
    return {
        "mean": delivered,
        "sd": np.sqrt(variance),
        # A median lies between them but for rounding; a mean may not where draws are skewed.
        "lower": np.minimum(lower, delivered),
        "upper": np.maximum(upper, delivered),
        "total": total,
        "aleatoric": total * shared_entropy(p / p.sum(axis=2, keepdims=True), shares),
    }


def shared_entropy(
    p: Float[np.ndarray, "draw obs label"], shares: Float[np.ndarray, "draw obs"]
) -> Float[np.ndarray, " obs"]:
    """Share that the mean entropy of draws has of the entropy of their mean; 1 if that is none.

    >>> p = np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]])
    >>> shared_entropy(p, np.full((2, 2), 0.5)).round(4)
    array([0.6163, 1.    ])
    """
    of_mean = entropy(np.einsum("sn,snc->nc", shares, p))
    of_draws = np.einsum("sn,sn->n", shares, entropy(p))
    share = np.divide(
        of_draws, of_mean, out=np.ones_like(of_mean), where=of_mean > ROUNDING_OF_ENTROPY
    )
    return np.minimum(share, 1)  # The entropy is concave: more is rounding.


def centred_draws(
    p: Float[np.ndarray, "draw obs label"],
    weights: Float[np.ndarray, "draw obs"] | None,
    delivered: Float[np.ndarray, "obs label"],
    stretch: Float[np.ndarray, "obs label"] | None = None,
    strays: Float[np.ndarray, " draw"] | None = None,
) -> Float[np.ndarray, "draw obs label"]:
    """Draws, each class moved in log odds to have what is delivered, or its stretch, as median.

    Rule 5 of the intervals of a stack.
    Of each, the share of ``strays`` is then of any class alike.
    """
    moved = log_odds(p, LEAST_DOUBT)
    centre = log_odds(delivered, LEAST_DOUBT) * (1.0 if stretch is None else stretch)
    moved += centre - _quantiles(moved, weights, 0.5)
    p = expit(moved)
    return p if strays is None else p + strays[:, None, None] * (1 / p.shape[-1] - p)


def outer_ends(
    lower: Float[np.ndarray, "obs label"], upper: Float[np.ndarray, "obs label"]
) -> dict[str, np.ndarray]:
    """Ends of intervals: 0 and 1 where they are nearer to them than anybody may dispute.

    Rule 7 of the intervals of a stack.

    >>> outer_ends(np.array([[1e-7, 0.2]]), np.array([[2e-5, 0.99999]]))
    {'lower': array([[0. , 0.2]]), 'upper': array([[2.e-05, 1.e+00]])}
    """
    least = LEAST_DISPUTED_PROBABILITY
    return {
        "lower": np.where(lower < least, 0.0, lower),
        "upper": np.where(upper > 1 - least, 1.0, upper),
    }


def _quantiles(
    values: Float[np.ndarray, "draw obs label"],
    weights: Float[np.ndarray, "draw obs"] | None,
    q: float | tuple[float, float],
) -> np.ndarray:
    """Quantiles over the draws."""
    if weights is None:
        return np.quantile(values, q, axis=0)
    counted = np.broadcast_to(weights[..., None], values.shape)
    # The only method of NumPy's that takes weights.
    return np.quantile(values, q, axis=0, weights=counted, method="inverted_cdf")


# Class probabilities of new rows under many draws, within a fixed amount of memory.


_COPIES: Final = 5
"""Arrays over draws that a summary holds at once: logarithms, probabilities, workspace."""


def given_out(
    log_joint: Float[np.ndarray, "*draws obs label"],
    temperature: float,
    calibration: Recalibration | None,
    hidden: Float[np.ndarray, " obs"],
    uncalibrated: Float[np.ndarray, " label"] | None,
) -> Float[np.ndarray, "*draws obs label"]:
    """Class log probabilities, tempered, and calibrated for rows with ``hidden`` cells.

    Classes that are ``uncalibrated`` stay as the model has them, but for a move in log odds; the
    others have NaN there.
    """
    log_p = tempered(log_joint, temperature)
    if calibration is not None:
        log_p = calibrated(log_p, hidden, calibration)
    return keeping(log_p, log_joint, uncalibrated)


@dataclass(frozen=True)
class Calibrated(Predictor):
    """A predictor whose probabilities are calibrated, as :func:`given_out` has it.

    Draws may have class shares of their own, as their last coordinates.
    """

    predictor: Predictor
    dimension: int  # Of the predictor's own coordinates.
    temperature: float
    calibration: Recalibration | None
    hidden: Float[np.ndarray, " obs"]
    uncalibrated: Float[np.ndarray, " label"] | None

    def at_all(self, thetas: Float[np.ndarray, "draw coordinate"]) -> ClassPrediction:
        """Predict under every draw; draws are the first axis of the result."""
        own, moves = np.split(thetas, [self.dimension], axis=1)
        prediction, calibration = self.predictor.at_all(own), self.calibration
        how = (self.temperature, calibration, self.hidden, self.uncalibrated)
        log_p = given_out(prediction.log_probabilities, *how)
        if calibration is not None and moves.size:
            logs = np.log(calibration.temperatures)
            _, pull = powers(self.hidden, logs, calibration.pulls)
            log_p = at_drawn_shares(log_p, pull, moves)
        return ClassPrediction(log_p, prediction.log_density)


@dataclass(frozen=True)
class ClassPosterior:
    r"""Posterior of the class probabilities of rows; rule 4 of the intervals of a stack.

    Of draw s at the shares of training, with t the temperature,
    :math:`p_s(c | x) \propto p_s(c | x_o)^t`. At other shares, with r their ratio to those of
    training, Bayes' rule is about the mean over the draws,

    .. math:: \frac{r_c \, \bar p(c | x)}{\sum_b r_b \, \bar p(b | x)}
        = \sum_s w_s(x) \, \frac{r_c \, p_s(c | x)}{Z_s(x)}, \quad
        Z_s = \sum_b r_b \, p_s(b | x), \quad w_s = \frac{Z_s}{\sum_u Z_u},

    and so is the mean of what it makes of every draw, weighed by how probable the draw makes
    such a row where the shares are those of use.
    """

    predictor: Callable[[Observations], Predictor]  # Prepares rows.
    theta: Real[np.ndarray, "chain draw coordinate"]
    log_ratio: Float[np.ndarray, " label"]  # Log r; 0 where the shares are those of training.
    temperature: float = 1.0
    memory: int = MEMORY  # Bytes that arrays over draws may take.
    strays: StrayLabels | None = None
    """Stray labels that centred draws know of; None: of none."""

    @property
    def n_draws(self) -> int:
        """Number of draws of all chains together."""
        return self.theta.shape[0] * self.theta.shape[1]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.log_ratio.size)

    def calibrated(
        self,
        calibration: Recalibration | None,
        uncalibrated: Float[np.ndarray, " label"] | None,
        hidden: Callable[[Observations], np.ndarray],
        training: Observations,
        seed: int,
    ) -> ClassPosterior:
        """The posterior of what is calibrated for the ``hidden`` share of the cells of a row.

        Classes may be ``uncalibrated``, as :func:`given_out` has them.

        Draws, unless there is one alone, have class shares of their own.
        """
        if calibration is None and uncalibrated is None:
            return self

        *shape, dimension = self.theta.shape
        theta = self.theta
        if calibration is not None and self.n_draws > 1:
            counts = training.n_labelled * np.exp(calibration.log_shares)
            moves = share_draws(counts, self.n_draws, np.random.default_rng(seed))
            # Shares ride along as further coordinates, so that thinning and blocks keep them with
            # their draw.
            theta = np.concatenate([theta, moves.reshape(*shape, -1)], axis=2)

        def prepare(rows: Observations) -> Predictor:
            own = self.predictor(rows), dimension, self.temperature
            return Calibrated(*own, calibration, hidden(rows), uncalibrated)

        return replace(self, predictor=prepare, theta=theta, temperature=1.0)

    def thinned(self, most: int | None) -> ClassPosterior:
        """At most ``most`` draws, evenly spaced, as one chain; all draws for None."""
        if most is None:
            return self
        theta = self.theta.reshape(self.n_draws, -1)
        places = np.linspace(0, self.n_draws - 1, min(most, self.n_draws)).round().astype(int)
        return replace(self, theta=theta[None, places])

    def draws(
        self, observations: Observations
    ) -> tuple[Float[np.ndarray, "chain draw obs label"], int]:
        """Class probabilities of every row under every draw, and the distance of the draws kept.

        Where they would not fit into the memory, every k-th draw is kept, with a warning that says
        so. ValueError if not even one draw of each chain fits into the memory.
        """
        thinning = self._thinning(observations.n_obs)
        kept = self.theta[:, ::thinning]
        result = np.empty((*kept.shape[:2], observations.n_obs, self.n_classes))
        for rows in self._row_blocks(observations.n_obs):
            predict = self.predictor(observations.take(rows))
            for chain, thetas in enumerate(kept):
                drawn = self.probabilities(predict.at_all(thetas))
                result[chain, :, rows[0] : rows[-1] + 1] = drawn
        return result, thinning

    def _thinning(self, n_obs: int) -> int:
        """Smallest step k such that every k-th draw fits into the memory."""
        chains, n_draws, _ = self.theta.shape
        row_bytes = 8 * chains * self.n_classes * n_obs
        affordable = int(self.memory // row_bytes) if row_bytes else n_draws
        if affordable == 0:
            raise ValueError(
                f"Probabilities of {n_obs} rows under one draw of each chain need "
                f"{row_bytes / 2**30:.3g} GiB, more than the {self.memory / 2**30:.3g} GiB "
                "allowed: ask for fewer rows at a time, or use uncertainty()."
            )
        thinning = -(-n_draws // affordable)
        if thinning > 1:
            warnings.warn(
                f"Probabilities of {n_obs} rows under {n_draws} draws of {chains} chains would "
                f"take more than {self.memory / 2**30:.3g} GiB: one draw in {thinning} is kept. "
                "uncertainty() uses every draw.",
                stacklevel=4,
            )
        return thinning

    def _row_blocks(self, n_obs: int) -> list[Int[np.ndarray, " row"]]:
        """Rows whose arrays over all draws fit into the memory together."""
        size = max(1, self.memory // (8 * self.n_draws * self.n_classes * _COPIES))
        size = min(size, IN_CACHE)
        return [np.arange(a, min(a + size, n_obs)) for a in range(0, n_obs, size)]

    def probabilities(self, prediction: ClassPrediction) -> Float[np.ndarray, "*draws obs label"]:
        """Class probabilities of each draw, tempered and at the prevalences of use."""
        calibrated = tempered(prediction.log_probabilities, self.temperature)
        return np.exp(at_prevalence(calibrated, self.log_ratio))

    def at_point(
        self, observations: Observations, theta: Float[np.ndarray, " coordinate"]
    ) -> Float[np.ndarray, "obs label"]:
        """Class probabilities at the fitted point, whose coordinates are ``theta``."""
        return self.probabilities(self.predictor(observations)(theta))

    def mean(self, observations: Observations) -> Float[np.ndarray, "obs label"]:
        """Mean of the class probabilities, then Bayes' rule; draws are never held all at once."""
        predict = self.predictor(observations)
        total = np.zeros((observations.n_obs, self.n_classes))
        thetas = self.theta.reshape(self.n_draws, -1)
        for some in in_blocks(self.n_draws, total.size):
            prediction = predict.at_all(thetas[some])
            total += np.exp(tempered(prediction.log_probabilities, self.temperature)).sum(axis=0)
        # A class that no draw finds possible keeps probability 0 at any prevalence.
        with np.errstate(divide="ignore"):
            return np.exp(at_prevalence(np.log(total / self.n_draws), self.log_ratio))

    def summary(
        self,
        observations: Observations,
        prob: float = 0.9,
        delivered: Float[np.ndarray, "obs label"] | None = None,
        centred: bool = True,
    ) -> PredictiveSummary:
        """Summary of the class probabilities over draws, a block of rows at a time.

        ``prob`` is the probability inside the equal-tailed intervals; ValueError if it is not
        strictly between 0 and 1.
        ``delivered`` are the probabilities that are given out; None: the predictor's, or else the
        mean of the draws. ``centred`` draws have these as their median, or what they stretch to.
        """
        if not 0 < prob < 1:
            raise ValueError(
                f"prob must lie strictly between 0 and 1, such as 0.9; received {prob!r}."
            )
        blocks = [
            self._block(
                observations.take(rows),
                prob,
                None if delivered is None else delivered[rows],
                centred,
            )
            for rows in self._row_blocks(observations.n_obs) or [np.arange(0)]
        ]
        parts = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
        return PredictiveSummary(prob=prob, **parts)

    def part(self, name: str) -> ClassPosterior:
        """The posterior in which one part of the doubt alone is left (``Predictor.parts``)."""
        strays = self.strays if name == names.STRAY_LABELS else None
        return replace(self, predictor=lambda rows: self.predictor(rows).parts[name], strays=strays)

    def _block(
        self,
        observations: Observations,
        prob: float,
        delivered: Float[np.ndarray, "obs label"] | None,
        centred: bool,
    ) -> dict[str, np.ndarray]:
        """Fields of the summary of a block of rows whose draws fit into the memory."""
        predictor = self.predictor(observations)
        p, weights, log_density = self._of_draws(predictor)
        if delivered is None and predictor.delivered is not None:
            log_p, moved = predictor.delivered, self.log_ratio.any()
            delivered = np.exp(at_prevalence(log_p, self.log_ratio) if moved else log_p)
        if centred and delivered is not None:
            p = self._centred(predictor, p, weights, delivered)
        summary = summarised(p, weights, prob, delivered)
        if self.strays is not None:
            summary |= outer_ends(summary["lower"], summary["upper"])
        return {**summary, "log_density": logsumexp(log_density, axis=0) - np.log(self.n_draws)}

    def _of_draws(
        self, predictor: Predictor
    ) -> tuple[
        Float[np.ndarray, "draw obs label"],
        Float[np.ndarray, "draw obs"] | None,
        Float[np.ndarray, "draw obs"],
    ]:
        """Class probabilities of every draw, its weight at other prevalences, its log density."""
        prediction = predictor.at_all(self.theta.reshape(self.n_draws, -1))
        logits = tempered(prediction.log_probabilities, self.temperature) + self.log_ratio
        log_z, p = log_sum_exp(logits, axis=2)
        # At the shares of training Z is 1 under every draw, and all weigh alike.
        weights = softmax(log_z, axis=0) if self.log_ratio.any() else None
        return p, weights, prediction.log_density

    def _centred(
        self,
        predictor: Predictor,
        p: Float[np.ndarray, "draw obs label"],
        weights: Float[np.ndarray, "draw obs"] | None,
        delivered: Float[np.ndarray, "obs label"],
    ) -> Float[np.ndarray, "draw obs label"]:
        """Draws around what is given out."""
        strays = None if self.strays is None else self.strays.rates(len(p))
        return centred_draws(p, weights, delivered, predictor.stretch, strays)

    def information(self, observations: Observations) -> Float[np.ndarray, " obs"]:
        """Mutual information of the label of every row and the parameters, block by block."""
        information = np.empty(observations.n_obs)
        for rows in self._row_blocks(observations.n_obs):
            p, weights, _ = self._of_draws(self.predictor(observations.take(rows)))
            shares = np.full(p.shape[:2], 1 / len(p)) if weights is None else weights
            information[rows] = label_information(p, shares)
        return information

    def probability_best(
        self,
        observations: Observations,
        decisions: Int[np.ndarray, " obs"],
        costs: Float[np.ndarray, "label decision"],
        delivered: Float[np.ndarray, "obs label"],
        centred: bool = True,
    ) -> Float[np.ndarray, " obs"]:
        """Share of the draws under which the decision of each row costs least, block by block.

        The draws are those of the :meth:`summary`; moved ones are made to sum to one over the
        classes again.
        """
        shares = np.empty(observations.n_obs)
        for rows in self._row_blocks(observations.n_obs):
            predictor = self.predictor(observations.take(rows))
            p, weights, _ = self._of_draws(predictor)
            if centred:
                p = self._centred(predictor, p, weights, delivered[rows])
                p /= p.sum(axis=2, keepdims=True)
            best = is_best(expected_costs(p, costs), decisions[rows])
            shares[rows] = np.average(best, axis=0, weights=weights)
        return shares
