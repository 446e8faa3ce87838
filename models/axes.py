"""Names along the axes of a declared mixture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bayesrbf import names
from bayesrbf.parameters import Observations
from bayesrbf.specification import MixtureSpecification

COLUMN = "column"
"""Columns of the value matrix: the label, the reals, the categories."""
CELL = "cell"
"""Columns of the table: the reals, the categories."""


@dataclass(frozen=True)
class Axes:
    """Coordinate values of a declared mixture, None where positions will do.

    Attributes
    ----------
    feature_names : sequence or None
        Names of the real columns.
    categorical_names : sequence or None
        Names of the categorical columns.
    level_names : sequence of sequences or None
        Levels of every categorical column.
    class_names : sequence or None
        Classes.
    obs_names : sequence or None
        Names of the rows.
    """

    feature_names: Sequence[object] | None = None
    categorical_names: Sequence[object] | None = None
    level_names: Sequence[Sequence[object]] | None = None
    class_names: Sequence[object] | None = None
    obs_names: Sequence[object] | None = None


def coords(
    observations: Observations, specification: MixtureSpecification, axes: Axes
) -> dict[str, Sequence[object]]:
    """Names along every dim of the graph.

    Parameters
    ----------
    observations : Observations
        The rows.
    specification : MixtureSpecification
        Structure of the mixture.
    axes : Axes
        Coordinate values that were given.

    Returns
    -------
    dict of str to sequence
        Coordinate values of every dim.

    Raises
    ------
    ValueError
        If the number of names does not fit an axis.
    """
    d, levels = specification.n_features, specification.levels
    features = _names("feature_names", axes.feature_names, d, "x")
    categories = _names("categorical_names", axes.categorical_names, len(levels), "category")
    values: dict[str, Sequence[object]] = {
        names.OBS: _names("obs_names", axes.obs_names, observations.n_obs),
        COLUMN: (names.LABEL, *features, *categories),
        CELL: (*features, *categories),
        names.COMPONENT: range(specification.n_components),
    }
    if specification.n_classes > 1:
        values[names.LABEL] = _names("class_names", axes.class_names, specification.n_classes)
        for c, components in enumerate(specification.class_slices):
            values[names.class_components(c, specification.n_classes)] = range(
                components.stop - components.start
            )
    if d:
        values[names.FEATURE] = values[names.FEATURE_BIS] = features
    if d > 1 and specification.shape == "full":
        values[names.PRECISION_ENTRY] = tuple(
            f"{features[i]},{features[j]}" for i in range(d) for j in range(i)
        )
    level_names = (None,) * len(levels) if axes.level_names is None else axes.level_names
    if len(level_names) != len(levels):
        raise ValueError(
            f"level_names must list the levels of {len(levels)} categorical columns; "
            f"received {len(level_names)}."
        )
    for j, size in enumerate(levels):
        values[names.category_level(j)] = _names(f"level_names[{j}]", level_names[j], size)
    return values


def _names(
    argument: str, given: Iterable[object] | None, size: int, prefix: str | None = None
) -> Sequence[object]:
    """Names as given, else positions behind a prefix; their number must fit."""
    if given is None:
        return range(size) if prefix is None else tuple(f"{prefix}{i}" for i in range(size))
    values = tuple(given)
    if len(values) != size:
        raise ValueError(f"{argument} must have {size} entries; received {len(values)}.")
    return values
