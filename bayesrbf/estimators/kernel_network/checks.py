"""Constructor arguments that only kernel networks have, checked at fit."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, get_args

import numpy as np

from bayesrbf.numerics.kernel_network.product_kernels import KernelName


def check_kernel_arguments(arguments: Mapping[str, Any], owner: str) -> None:
    """Check the constructor arguments that only kernel networks have.

    Parameters
    ----------
    arguments : mapping of str to object
        Constructor arguments by name; ``n_basis`` and ``n_exemplars`` where there are such.
    owner : str
        Name of the estimator, for messages.

    Raises
    ------
    ValueError
        If an argument is not among its choices or out of its range.

    Examples
    --------
    >>> check_kernel_arguments({"kernel": "box"}, "KernelNetworkClassifier")
    Traceback (most recent call last):
    ValueError: KernelNetworkClassifier(kernel=...) must be 'laplace' or 'gaussian'; ...
    """
    kernel = arguments["kernel"]
    if kernel not in get_args(KernelName):
        raise ValueError(
            f"{owner}(kernel=...) must be 'laplace' or 'gaussian'; received {kernel!r}."
        )
    relevance = arguments["relevance"]
    if not (isinstance(relevance, Real) and 0 <= float(relevance) <= 1):
        raise ValueError(f"{owner}(relevance=...) must be in [0, 1]; received {relevance!r}.")
    l2 = arguments["l2"]
    if not (isinstance(l2, Real) and 0 < float(l2) < np.inf):
        raise ValueError(f"{owner}(l2=...) must be positive and finite; received {l2!r}.")
    for name in ("n_basis", "n_exemplars"):
        number = arguments[name]
        if not (isinstance(number, Integral) and int(number) >= 1):
            raise ValueError(
                f"{owner}({name}=...) must be an integer of at least 1; received {number!r}."
            )
