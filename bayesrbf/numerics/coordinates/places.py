"""Where each variable stands in the vector of coordinates."""

from __future__ import annotations

import itertools
from functools import cache

from bayesrbf.specification import Variable


@cache
def slices(variables: tuple[Variable, ...]) -> tuple[tuple[Variable, slice], ...]:
    """Each variable with its place in the vector of coordinates.

    Parameters
    ----------
    variables : tuple of Variable
        Free variables in order.

    Returns
    -------
    tuple of (Variable, slice)
        Every variable and its coordinates.
    """
    return tuple(zip(variables, places([v.size for v in variables]), strict=True))


def places(sizes: list[int]) -> list[slice]:
    """Lay things of these sizes one after the other.

    Parameters
    ----------
    sizes : list of int
        Number of entries of each.

    Returns
    -------
    list of slice
        Entries of each.
    """
    edges = [0, *itertools.accumulate(sizes)]
    return [slice(a, b) for a, b in itertools.pairwise(edges)]
