"""What every estimator shares: it can be written to one file and read back."""

from __future__ import annotations

from copy import copy
from os import PathLike
from types import UnionType
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted


class StoredEstimator(BaseEstimator):
    """Base of every estimator; ``_STATE`` names what a fit leaves behind."""

    _STATE: ClassVar[dict[str, type | UnionType]] = {}
    """Fitted attributes and their types, for reading them back from a file."""

    def save(self, path: str | PathLike[str]) -> str:
        """Write the fitted estimator to one ``.safetensors`` file, whole or not at all.

        The file holds the training rows too, for :meth:`declare` and :meth:`refine`.

        Parameters
        ----------
        path : path-like
            File to write; read it with :func:`bayesrbf.load`.

        Returns
        -------
        str
            SHA-256 of the file in hexadecimal.
        """
        from bayesrbf.persistence import save

        check_is_fitted(self)
        return save(self, path)

    def _to_record(self) -> dict[str, Any]:
        """Constructor arguments and fitted state; the tree is made anew from them."""
        arguments = self.get_params(deep=False)
        state = {k: v for k, v in vars(self).items() if k not in {*arguments, "posterior_"}}
        return {"arguments": arguments, "state": state}

    @classmethod
    def _from_record(cls, record: dict[str, Any]) -> Self:
        """The estimator that :meth:`_to_record` took apart; the record is not trusted."""
        estimator, state = cls(**record["arguments"]), record["state"]
        odd = (set(cls._STATE) ^ set(state)) - {"feature_names_in_"}
        if odd or set(record) != {"arguments", "state"}:
            raise ValueError(f"unknown or missing state: {', '.join(sorted(odd | set(record)))}")
        for name, kind in cls._STATE.items():
            if not isinstance(state[name], kind):
                raise TypeError(f"{name} must be {kind}, received {type(state[name]).__name__}")
        estimator.__dict__.update(state)
        return estimator


def unfitted(estimator: StoredEstimator) -> StoredEstimator:
    """A copy without what an earlier fit left behind, which a warm start keeps to begin there.

    Parameters
    ----------
    estimator : StoredEstimator
        Fitted or not.

    Returns
    -------
    StoredEstimator
        Of the same arguments, metadata requests and output container.
    """
    beside = copy(estimator)
    if not getattr(estimator, "warm_start", False):
        for name in (*estimator._STATE, "posterior_", "feature_names_in_"):
            beside.__dict__.pop(name, None)
    return beside
