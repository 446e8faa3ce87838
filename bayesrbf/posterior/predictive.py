"""Class probabilities of new rows under many draws, within a fixed amount of memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from scipy.special import logsumexp

from bayesrbf.files import writing_whole
from bayesrbf.inference.draws import MEMORY
from bayesrbf.parameters import Observations
from bayesrbf.posterior.summary import PredictiveSummary, entropy
from bayesrbf.posterior.temperature import tempered

_COPIES: Final = 5
"""Arrays over draws that a summary holds at once: log joints, probabilities, workspace."""

_MEAN_ENTRIES: Final = 2**18
"""Numbers of one block of draws of which a mean is taken: 2 MiB."""

Predictor = Callable[[np.ndarray], np.ndarray]
"""Coordinates of one draw -> class log joint log p(x_o, c) of shape (n_rows, n_classes)."""


@runtime_checkable
class BatchedPredictor(Protocol):
    """A predictor that knows many draws at once."""

    def at_all(
        self, thetas: Float[np.ndarray, "draw coordinate"]
    ) -> Float[np.ndarray, "draw obs label"]:
        """Class log joint under every draw.

        Parameters
        ----------
        thetas : ndarray of shape (n_draws, dimension)
            Coordinates of the draws.

        Returns
        -------
        ndarray of shape (n_draws, n_rows, n_classes)
            Class log joints ``log p(x_o, c)``.
        """


@dataclass(frozen=True)
class ClassPosterior:
    r"""Posterior of the class probabilities of rows.

    Of draw s, with t the temperature and b the draw's shift,

    .. math:: p_s(c | x) \propto \exp(t \log p_s(c | x_o) + b_{sc}).

    Attributes
    ----------
    predictor : callable
        Prepares rows: maps observations to a :data:`Predictor`.
    theta : ndarray of shape (n_chains, n_draws, dimension)
        Unconstrained coordinates of the draws.
    temperature : float
        Factor t of every draw's log probabilities.
    log_prior_shift : ndarray of shape (n_chains or 1, n_draws or 1, n_classes)
        Log of the prevalences of use over each draw's own class probabilities;
        0 where the model is used at its own.
    memory : int
        Bytes that arrays over draws may take.
    """

    predictor: Callable[[Observations], Predictor]
    theta: Float[np.ndarray, "chain draw coordinate"]
    log_prior_shift: Float[np.ndarray, "chain_or_one draw_or_one label"]
    temperature: float = 1.0
    memory: int = MEMORY

    @property
    def n_draws(self) -> int:
        """Number of draws of all chains together."""
        return self.theta.shape[0] * self.theta.shape[1]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.log_prior_shift.shape[-1])

    @property
    def _shifts(self) -> Float[np.ndarray, "chain draw label"]:
        """The shift of every draw."""
        return np.broadcast_to(self.log_prior_shift, (*self.theta.shape[:2], self.n_classes))

    def draws(
        self, observations: Observations, path: Path | None = None
    ) -> tuple[Float[np.ndarray, "chain draw obs label"], int]:
        """Class probabilities of every row under every draw.

        Where they would not fit into the memory, every k-th draw is kept, with
        a warning that says so; or all are written to a file.

        Parameters
        ----------
        observations : Observations
            Rows, in standard units.
        path : Path, optional
            A ``.npy`` file to write, whole or not at all; the array returned
            reads from it, and every draw is kept.

        Returns
        -------
        probabilities : ndarray of shape (n_chains, n_kept, n_obs, n_classes)
            Probabilities; they sum to one over the classes.
        thinning : int
            Distance of the kept draws; 1 when all are kept.

        Raises
        ------
        ValueError
            If not even one draw of each chain fits into the memory.
        """
        if path is not None:
            with writing_whole(path) as partial:
                shape = (*self.theta.shape[:2], observations.n_obs, self.n_classes)
                self._fill(
                    np.lib.format.open_memmap(partial, "w+", np.float64, shape), observations
                )
            return np.load(path, mmap_mode="r"), 1
        thinning = self._thinning(observations.n_obs)
        kept = replace(
            self,
            theta=self.theta[:, ::thinning],
            log_prior_shift=self._shifts[:, ::thinning],
        )
        result = np.empty((*kept.theta.shape[:2], observations.n_obs, self.n_classes))
        kept._fill(result, observations)
        return result, thinning

    def _thinning(self, n_obs: int) -> int:
        """Distance of the draws whose probabilities fit into the memory."""
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
                log_joint = class_log_joints(predict, thetas)
                shift = self._shifts[chain, :, None]
                result[chain, :, rows[0] : rows[-1] + 1] = self.probabilities(log_joint, shift)

    def _row_blocks(self, n_obs: int) -> list[Int[np.ndarray, " row"]]:
        """Rows whose arrays over all draws fit into the memory together."""
        size = max(1, self.memory // (8 * self.n_draws * self.n_classes * _COPIES))
        return [np.arange(a, min(a + size, n_obs)) for a in range(0, n_obs, size)]

    def probabilities(
        self,
        log_joint: Float[np.ndarray, "*draws label"],
        shift: Float[np.ndarray, "*broadcast label"],
    ) -> Float[np.ndarray, "*draws label"]:
        """Class probabilities, tempered and moved to the prevalences of use.

        Parameters
        ----------
        log_joint : ndarray of shape (..., n_classes)
            ``log p(x_o, c)`` under one draw or many.
        shift : ndarray that broadcasts to the shape of ``log_joint``
            Log ratios of the prevalences, of those draws.

        Returns
        -------
        ndarray of shape (..., n_classes)
            Probabilities; they sum to one over the classes.
        """
        return np.exp(
            tempered(log_joint, self.temperature, np.broadcast_to(shift, log_joint.shape))
        )

    def mean(self, observations: Observations) -> Float[np.ndarray, "obs label"]:
        """Posterior mean of the class probabilities; never are all draws held.

        Parameters
        ----------
        observations : Observations
            Rows, in standard units.

        Returns
        -------
        ndarray of shape (n_obs, n_classes)
            Mean probabilities; they sum to one over the classes.
        """
        predict = self.predictor(observations)
        total = np.zeros((observations.n_obs, self.n_classes))
        thetas = self.theta.reshape(self.n_draws, -1)
        shifts = self._shifts.reshape(self.n_draws, 1, -1)
        size = max(1, _MEAN_ENTRIES // max(1, total.size))
        for start in range(0, self.n_draws, size):
            some = slice(start, start + size)
            log_joints = class_log_joints(predict, thetas[some])
            total += self.probabilities(log_joints, shifts[some]).sum(axis=0)
        return total / self.n_draws

    def summary(self, observations: Observations, prob: float = 0.9) -> PredictiveSummary:
        """What the draws say about every row, a block of rows at a time.

        Parameters
        ----------
        observations : Observations
            Rows, in standard units.
        prob : float
            Probability inside the equal-tailed intervals, in (0, 1).

        Returns
        -------
        PredictiveSummary
            Means, spreads, entropies and densities of the rows.

        Raises
        ------
        ValueError
            If ``prob`` is not strictly between 0 and 1.
        """
        if not 0 < prob < 1:
            raise ValueError(
                f"prob must lie strictly between 0 and 1, such as 0.9; received {prob!r}."
            )
        blocks = [
            self._block(observations.take(rows), prob)
            for rows in self._row_blocks(observations.n_obs) or [np.arange(0)]
        ]
        parts = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
        return PredictiveSummary(prob=prob, **parts)

    def _block(self, observations: Observations, prob: float) -> dict[str, np.ndarray]:
        """Fields of the summary of a block of rows whose draws fit into the memory."""
        predict = self.predictor(observations)
        log_joint = class_log_joints(predict, self.theta.reshape(self.n_draws, -1))
        log_density = logsumexp(logsumexp(log_joint, axis=2), axis=0) - np.log(self.n_draws)
        p = self.probabilities(log_joint, self._shifts.reshape(self.n_draws, 1, -1))
        mean = p.mean(axis=0)
        total = entropy(mean)
        aleatoric = entropy(p).mean(axis=0)
        sd = p.std(axis=0, ddof=1) if self.n_draws > 1 else np.full(mean.shape, np.nan)
        tails = ((1 - prob) / 2, (1 + prob) / 2)
        lower, upper = np.quantile(p, tails, axis=0, overwrite_input=True)
        return {
            "mean": mean,
            "sd": sd,
            "lower": lower,
            "upper": upper,
            "total": total,
            "aleatoric": np.minimum(aleatoric, total),
            "log_density": log_density,
        }


def class_log_joints(
    predict: Predictor, thetas: Float[np.ndarray, "draw coordinate"]
) -> Float[np.ndarray, "draw obs label"]:
    """Class log joints of all rows under every draw.

    Parameters
    ----------
    predict : callable
        Class log joint at one draw; many draws in one go where it can.
    thetas : ndarray of shape (n_draws, dimension)
        Coordinates of the draws.

    Returns
    -------
    ndarray of shape (n_draws, n_rows, n_classes)
        Class log joints ``log p(x_o, c)``.
    """
    if isinstance(predict, BatchedPredictor):
        return predict.at_all(thetas)
    return np.stack([predict(theta) for theta in thetas])
