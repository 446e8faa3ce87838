"""Frozen records of exemplar models: dissimilarities of rows, exemplars, their width."""

from __future__ import annotations

import itertools
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int, Real

from bayesrbf.base.records import Requirements, scales, stored, within

MEDIAN_ROWS = 1000  # Rows, evenly spread, from which the median dissimilarity is read off.

MAX_KEPT = 2**26
"""Maximum number of dissimilarities to candidates (512 MiB) stored in order of the classes."""


@stored
class Dissimilarities:
    """Rows of a training table as an exemplar model sees them."""

    values: Real[np.ndarray, "obs obs"]
    """``values[n, m] = d(x_n, x_m)``, at least 0, of row n to row m as its exemplar.

    It need be neither symmetric nor a metric.
    """
    labels: Int[np.ndarray, " obs"]
    """Class codes, -1 where the label is hidden: such a row has no likelihood."""
    weights: Float[np.ndarray, " obs"]  # Factor of each row's log likelihood, at least 0.
    candidates: tuple[Int[np.ndarray, " _"], ...]
    """Rows that may be an exemplar of each class, ascending; at least one."""

    @property
    def n_obs(self) -> int:
        """Number of rows."""
        return self.values.shape[0]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.candidates)

    @cached_property
    def scale(self) -> float:
        """Median dissimilarity of two different rows, 1 if it is 0."""
        chosen = np.unique(np.linspace(0, self.n_obs - 1, min(self.n_obs, MEDIAN_ROWS)).astype(int))
        distinct = np.arange(self.n_obs) != chosen[:, None]
        values = self.values[chosen][distinct]
        middle = float(np.median(values)) if values.size else 0.0
        return middle if middle > 0 else 1.0

    @cached_property
    def largest(self) -> float:
        """Largest dissimilarity."""
        return float(self.values.max(initial=0))

    @cached_property
    def labelled(self) -> Int[np.ndarray, " labelled"]:
        """Indices of rows with a label and positive weight, sorted by weight."""
        rows = np.flatnonzero((self.labels >= 0) & (self.weights > 0))
        return rows[np.argsort(self.weights[rows], kind="stable")]

    @cached_property
    def candidate_starts(self) -> Int[np.ndarray, " edge"]:
        """Index of the first candidate of each class among all candidates, then their number."""
        return np.cumsum([0, *[candidates.size for candidates in self.candidates]])

    @cached_property
    def to_candidates(self) -> Float[np.ndarray, " entry"] | None:
        """Dissimilarities of labelled rows to candidates, class after class; None if too many."""
        n_rows, n_candidates = self.labelled.size, self.candidate_starts[-1]
        if n_rows * n_candidates > MAX_KEPT:
            return None
        at = self.labelled[:, None]
        entries = np.empty(n_rows * n_candidates)
        for first, candidates in zip(self.candidate_starts, self.candidates, strict=False):
            block = slice(n_rows * first, n_rows * (first + candidates.size))
            entries[block] = self.values[at, candidates].ravel()
        return entries

    def __laws__(self) -> Requirements:
        yield within(self.values, 0, 1e300), "dissimilarities of 0 and above"
        yield within(self.weights, 0), "weights of 0 and above"
        yield within(self.labels, -1, len(self.candidates)), "class codes"
        yield all(of_class.size > 0 for of_class in self.candidates), "candidates of every class"
        rows = all(within(of_class, 0, self.n_obs) for of_class in self.candidates)
        yield rows, "candidates among its rows"


@stored
class Prototypes:
    """The classes of the prototypes, one entry a prototype."""

    classes: tuple[int, ...]  # Class of every prototype, non-decreasing from 0.

    def __post_init__(self) -> None:
        steps = np.diff(self.classes, prepend=0)
        if len(self.classes) == 0 or np.any((steps != 0) & (steps != 1)):
            raise ValueError(
                "Prototypes.classes must run through the classes in order from 0, such as "
                f"(0, 0, 1); received {self.classes}."
            )

    @property
    def number(self) -> int:
        """Number of prototypes of all classes together."""
        return len(self.classes)

    @cached_property
    def class_slices(self) -> tuple[slice, ...]:
        """Prototypes of each class, as slices of the flat prototype axis."""
        edges = np.searchsorted(self.classes, range(self.classes[-1] + 2))
        return tuple(slice(int(a), int(b)) for a, b in itertools.pairwise(edges))


@stored
class MedianLVQParameters:
    """A point of a median LVQ model."""

    exemplars: Int[np.ndarray, " prototype"]  # Training row that each prototype is.
    sigma: float | None
    """Width of ``exp(-d / sigma**2)``, in the square root of d's unit; None for GLVQ: no kernel."""

    def __laws__(self) -> Requirements:
        yield self.sigma is None or scales(self.sigma), "a positive width"


@stored
class SigmaPrior:
    """Log-normal prior of the width, in a table's units: ``log sigma ~ N(location, spread**2)``."""

    location: float
    spread: float

    def __laws__(self) -> Requirements:
        yield abs(self.location) < 300 and scales(self.spread), "a positive spread"


@stored
class MedianLVQPrior:
    r"""Declared prior of the width; exemplars are uniform over the rows of their class.

    .. math:: \log(\sigma^2 / \mathrm{median}\,d) \sim N(\log\text{scale}, \text{spread}^2)

    By default, 95 % of the prior of the squared width is between .09 and .67 median
    dissimilarities. Without a prior, widths become narrow and follow single rows.

    Attributes
    ----------
    scale : float
        Median of ``sigma**2``, in units of the median dissimilarity.
    spread : float
        Standard deviation of ``log(sigma**2)``.

    Examples
    --------
    >>> MedianLVQPrior().resolve(4.0)
    SigmaPrior(location=0.0, spread=0.25)
    """

    scale: float = 0.25
    spread: float = 0.5

    def __post_init__(self) -> None:
        for name, value in {"scale": self.scale, "spread": self.spread}.items():
            if not (np.isfinite(value) and value > 0):
                raise ValueError(
                    f"MedianLVQPrior.{name} must be finite and greater than 0; received {value!r}."
                )

    def resolve(self, median: float) -> SigmaPrior:
        """Fix the prior for a table whose rows have this median dissimilarity."""
        return SigmaPrior(float(np.log(self.scale * median) / 2), self.spread / 2)


Sigma = SigmaPrior | float  # The width of the kernel: its prior, or its value.


def width_and_prior(sigma: Sigma) -> tuple[float, SigmaPrior | None]:
    """The value and None, or the median of the prior and the prior."""
    if isinstance(sigma, int | float):
        return float(sigma), None
    return float(np.exp(sigma.location)), sigma
