"""Class probabilities of new rows under many draws, within a fixed amount of memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float, Int, Real
from scipy.special import logsumexp, softmax

from bayesrbf.files import writing_whole
from bayesrbf.inference.draws import MEMORY
from bayesrbf.numerics.hidden_share import calibrated, powers
from bayesrbf.numerics.log_posterior import Predictor
from bayesrbf.numerics.log_sums import at_prevalence, keeping, log_sum_exp
from bayesrbf.posterior.decisions import expected_costs, is_best
from bayesrbf.posterior.recalibration import tempered
from bayesrbf.posterior.shares_in_doubt import SharesInDoubt, share_draws
from bayesrbf.posterior.stray_labels import StrayLabels
from bayesrbf.posterior.uncertainty import (
    PredictiveSummary,
    centred_draws,
    label_information,
    outer_ends,
    summarised,
)
from bayesrbf.records.masked_rows import Recalibration
from bayesrbf.records.mixture import IN_CACHE, Observations, in_blocks
from bayesrbf.records.results import ClassPrediction

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
    """A predictor whose probabilities are calibrated, as :func:`given_out` has it."""

    predictor: Predictor
    temperature: float
    calibration: Recalibration | None
    hidden: Float[np.ndarray, " obs"]
    uncalibrated: Float[np.ndarray, " label"] | None

    def at_all(self, thetas: Float[np.ndarray, "draw coordinate"]) -> ClassPrediction:
        """Predict under every draw; draws are the first axis of the result."""
        prediction = self.predictor.at_all(thetas)
        how = (self.temperature, self.calibration, self.hidden, self.uncalibrated)
        return ClassPrediction(
            given_out(prediction.log_probabilities, *how), prediction.log_density
        )


@dataclass(frozen=True)
class ClassPosterior:
    r"""Posterior of the class probabilities of rows.

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

        Draws, unless there is one alone, have class shares of their own (:mod:`.shares_in_doubt`).
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
            share = hidden(rows)
            how = (self.temperature, calibration, share, uncalibrated)
            predictor = Calibrated(self.predictor(rows), *how)
            if calibration is None:
                return predictor
            _, pull = powers(share, np.log(calibration.temperatures), calibration.pulls)
            return SharesInDoubt(predictor, pull, dimension)

        return replace(self, predictor=prepare, theta=theta, temperature=1.0)

    def thinned(self, most: int | None) -> ClassPosterior:
        """At most ``most`` draws, evenly spaced, as one chain; all draws for None."""
        if most is None:
            return self
        theta = self.theta.reshape(self.n_draws, -1)
        places = np.linspace(0, self.n_draws - 1, min(most, self.n_draws)).round().astype(int)
        return replace(self, theta=theta[None, places])

    def draws(
        self, observations: Observations, path: Path | None = None
    ) -> tuple[Float[np.ndarray, "chain draw obs label"], int]:
        """Class probabilities of every row under every draw, and the distance of the draws kept.

        Where they would not fit into the memory, every k-th draw is kept, with a warning that says
        so. All are kept and written to ``path``, a ``.npy`` file, where that is given; the array
        then reads from it. ValueError if not even one draw of each chain fits into the memory.
        """
        if path is not None:
            with writing_whole(path) as partial:
                shape = (*self.theta.shape[:2], observations.n_obs, self.n_classes)
                self._fill(
                    np.lib.format.open_memmap(partial, "w+", np.float64, shape), observations
                )
            return np.load(path, mmap_mode="r"), 1
        thinning = self._thinning(observations.n_obs)
        subset = replace(self, theta=self.theta[:, ::thinning])
        result = np.empty((*subset.theta.shape[:2], observations.n_obs, self.n_classes))
        subset._fill(result, observations)
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
                "allowed: ask for fewer rows at a time, give path= to write them to disk, or "
                "use uncertainty()."
            )
        thinning = -(-n_draws // affordable)
        if thinning > 1:
            warnings.warn(
                f"Probabilities of {n_obs} rows under {n_draws} draws of {chains} chains would "
                f"take more than {self.memory / 2**30:.3g} GiB: one draw in {thinning} is kept. "
                "uncertainty() uses every draw, and path= writes every draw to disk.",
                stacklevel=4,
            )
        return thinning

    def _fill(self, result: np.ndarray, observations: Observations) -> None:
        """Write the probabilities of every draw, a block of rows at a time."""
        for rows in self._row_blocks(observations.n_obs):
            predict = self.predictor(observations.take(rows))
            for chain, thetas in enumerate(self.theta):
                prediction = predict.at_all(thetas)
                result[chain, :, rows[0] : rows[-1] + 1] = self.probabilities(prediction)

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
            delivered = self._in_use(predictor.delivered)
        if centred and delivered is not None:
            p = self._centred(predictor, p, weights, delivered)
        summary = summarised(p, weights, prob, delivered)
        if self.strays is not None:
            summary |= outer_ends(summary["lower"], summary["upper"])
        return {**summary, "log_density": logsumexp(log_density, axis=0) - np.log(self.n_draws)}

    def _in_use(self, log_p: Float[np.ndarray, "obs label"]) -> Float[np.ndarray, "obs label"]:
        """Class probabilities at the prevalences of use."""
        return np.exp(at_prevalence(log_p, self.log_ratio) if self.log_ratio.any() else log_p)

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
