"""Training rows and names in the layout of the DataTree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Shaped

from bayesrbf import names
from bayesrbf.parameters import Observations
from bayesrbf.specification import MixtureSpecification
from bayesrbf.table import Columns

COLUMN = "column"
"""Dim of the cells of a row: label code, reals, category codes."""

Named = dict[str, tuple[tuple[str, ...], np.ndarray]]


def coordinates(
    columns: Columns,
    specification: MixtureSpecification,
    rows: Shaped[np.ndarray, " obs"],
    classes: Shaped[np.ndarray, " label"] | None,
) -> Mapping[str, Any]:
    """Names along every dim of the posterior, as the declared graph has them.

    Parameters
    ----------
    columns : Columns
        What the columns are.
    specification : MixtureSpecification
        Structure of the mixture.
    rows : ndarray of shape (n_obs,)
        Names of the rows.
    classes : ndarray of shape (n_classes,), optional
        Class labels; None for a density.

    Returns
    -------
    mapping of str to sequence
        Names by dim.
    """
    features, entries = columns.real_names, range(specification.n_features)
    coords: dict[str, Any] = {
        names.OBS: rows,
        COLUMN: [names.LABEL, *features, *columns.categorical_names],
        names.COMPONENT: np.arange(specification.n_components),
        names.FEATURE: list(features),
        names.FEATURE_BIS: list(features),
        names.PRECISION_ENTRY: [f"{features[i]},{features[j]}" for i in entries for j in range(i)],
    }
    for index, levels in enumerate(columns.all_levels):
        coords[names.category_level(index)] = [str(level) for level in levels]
    if classes is not None:
        coords[names.LABEL] = classes
        of_component = classes[list(specification.component_class)]
        coords[names.COMPONENT_CLASS] = ((names.COMPONENT,), of_component)
    return coords


def observed_data(rows: Observations) -> Named:
    """Cells of rows as the observed node of the graph, NaN where hidden.

    Parameters
    ----------
    rows : Observations
        Rows in the user's units.

    Returns
    -------
    dict of str to (dims, values)
        ``x`` over obs and column: label code, reals, category codes.
    """
    codes = np.column_stack([rows.labels, rows.codes]).astype(float)
    codes[codes < 0] = np.nan
    cells = np.column_stack([codes[:, :1], rows.real, codes[:, 1:]])
    return {names.OBSERVED: ((names.OBS, COLUMN), cells)}


def constant_data(rows: Observations) -> Named:
    """What the graph knows about the rows beside their cells.

    Parameters
    ----------
    rows : Observations
        Rows in the user's units.

    Returns
    -------
    dict of str to (dims, values)
        ``row_weight`` over obs.
    """
    return {"row_weight": ((names.OBS,), rows.weights)}
