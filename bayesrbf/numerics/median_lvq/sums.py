"""Sums of kernels with one prototype taken out: plain where they are safe, else by logs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from jaxtyping import Bool, Float, Int

SAFE: Final = 600.0
"""Kernels down to exp(-SAFE) are added and divided as they are."""


@dataclass(frozen=True)
class PlainSums:
    """Sums of kernels of the other prototypes.

    Attributes
    ----------
    own : ndarray of shape (n_obs,)
        Over those of the row's own class.
    whole : ndarray of shape (n_obs,)
        Over all.
    """

    own: Float[np.ndarray, " obs"]
    whole: Float[np.ndarray, " obs"]

    @classmethod
    def of(
        cls,
        logs: Float[np.ndarray, "obs prototype"],
        labels: Int[np.ndarray, " obs"],
        starts: list[int],
    ) -> Self:
        """Add up.

        Parameters
        ----------
        logs : ndarray of shape (n_obs, n_prototypes)
            Log kernels, -inf of the prototype that is out.
        labels : ndarray of shape (n_obs,)
            Class codes.
        starts : list of int
            First prototype of every class.

        Returns
        -------
        PlainSums
            The sums.
        """
        of_class = np.add.reduceat(np.exp(logs), starts, axis=1)
        return cls(of_class[np.arange(labels.size), labels], of_class.sum(axis=1))

    def log_whole(
        self, logs: Float[np.ndarray, "row candidate"], at: slice
    ) -> Float[np.ndarray, "row candidate"]:
        """Log of the sum over all, were the prototype each candidate.

        Parameters
        ----------
        logs : ndarray of shape (n_rows, n_candidates)
            Log kernels of candidates.
        at : slice
            Which rows these are.

        Returns
        -------
        ndarray of shape (n_rows, n_candidates)
            Log sums.
        """
        return np.log(np.exp(logs) + self.whole[at, None])

    def log_shares(
        self,
        logs: Float[np.ndarray, "row candidate"],
        at: slice,
        joins: Bool[np.ndarray, " row"],
    ) -> Float[np.ndarray, "row candidate"]:
        """Log of the own class's share, were the prototype each candidate.

        Parameters
        ----------
        logs : ndarray of shape (n_rows, n_candidates)
            Log kernels of candidates.
        at : slice
            Which rows these are.
        joins : ndarray of shape (n_rows,)
            Whether the prototype is of the row's class.

        Returns
        -------
        ndarray of shape (n_rows, n_candidates)
            ``log p(y_n | x_n)``.
        """
        kernel = np.exp(logs)
        shares = kernel * joins[:, None]
        shares += self.own[at, None]
        kernel += self.whole[at, None]
        shares /= kernel
        return np.log(shares, out=shares)


@dataclass(frozen=True)
class LogSums:
    """Logs of the same sums, for kernels that would underflow.

    Attributes
    ----------
    own : ndarray of shape (n_obs,)
        Log sums over the prototypes of the row's own class.
    whole : ndarray of shape (n_obs,)
        Over all.
    """

    own: Float[np.ndarray, " obs"]
    whole: Float[np.ndarray, " obs"]

    @classmethod
    def of(
        cls,
        logs: Float[np.ndarray, "obs prototype"],
        labels: Int[np.ndarray, " obs"],
        starts: list[int],
    ) -> Self:
        """Add up.

        Parameters
        ----------
        logs : ndarray of shape (n_obs, n_prototypes)
            Log kernels, -inf of the prototype that is out.
        labels : ndarray of shape (n_obs,)
            Class codes.
        starts : list of int
            First prototype of every class.

        Returns
        -------
        LogSums
            The log sums.
        """
        of_class = np.logaddexp.reduceat(logs, starts, axis=1)
        own = of_class[np.arange(labels.size), labels]
        return cls(own, np.logaddexp.reduce(of_class, axis=1))

    def log_whole(
        self, logs: Float[np.ndarray, "row candidate"], at: slice
    ) -> Float[np.ndarray, "row candidate"]:
        """Log of the sum over all, were the prototype each candidate.

        Parameters
        ----------
        logs : ndarray of shape (n_rows, n_candidates)
            Log kernels of candidates.
        at : slice
            Which rows these are.

        Returns
        -------
        ndarray of shape (n_rows, n_candidates)
            Log sums.
        """
        return np.logaddexp(logs, self.whole[at, None])

    def log_shares(
        self,
        logs: Float[np.ndarray, "row candidate"],
        at: slice,
        joins: Bool[np.ndarray, " row"],
    ) -> Float[np.ndarray, "row candidate"]:
        """Log of the own class's share, were the prototype each candidate.

        Parameters
        ----------
        logs : ndarray of shape (n_rows, n_candidates)
            Log kernels of candidates.
        at : slice
            Which rows these are.
        joins : ndarray of shape (n_rows,)
            Whether the prototype is of the row's class.

        Returns
        -------
        ndarray of shape (n_rows, n_candidates)
            ``log p(y_n | x_n)``.
        """
        own = np.where(joins[:, None], logs, -np.inf)
        return np.logaddexp(own, self.own[at, None]) - self.log_whole(logs, at)
