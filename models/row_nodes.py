"""Rows of a table as nodes under the priors, and the names along their axes.

The component of a row is summed out, or it is a node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from jaxtyping import Float
from pytensor.tensor import TensorVariable

from bayesrbf.models import densities
from bayesrbf.models.column_maps import masked_draw, masked_logp
from bayesrbf.models.mixture_priors import MixtureNodes, declare_priors
from bayesrbf.models.row_mixture import RowMixture, declare_objective
from bayesrbf.records import names
from bayesrbf.records.column_maps import PowerMaps
from bayesrbf.records.mixture import Observations
from bayesrbf.records.objective import Objective
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification

Latent = Literal["marginal", "explicit"]

LIKELIHOOD = Objective()

COLUMN = "column"
"""Columns of the value matrix: the label, the reals, the categories."""
CELL = "cell"
"""Columns of the table: the reals, the categories."""


def declare_rows(
    observations: Observations,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
    axes: Axes,
    latent: Latent,
    objective: Objective = LIKELIHOOD,
    maps: PowerMaps | None = None,
) -> pm.Model:
    """Declare priors, maps and rows in a new model: rows in the user's units, priors behind maps.

    ValueError if rows, structure, prior and names do not fit each other, or if there is no graph
    with latent nodes because the objective is no likelihood.
    """
    if latent not in get_args(Latent):
        raise ValueError(f"latent must be one of {get_args(Latent)}; received {latent!r}.")
    if latent == "explicit" and objective.name != "likelihood":
        raise ValueError(
            f"latent='explicit' draws a component for every row, which only a likelihood does; "
            f"received objective={objective.name!r}: use latent='marginal'."
        )
    check_rows(observations, specification, hyperparameters)
    with pm.Model(coords=coords(observations, specification, axes)) as model:
        nodes = declare_priors(specification, hyperparameters)
        if latent == "marginal":
            declare_marginal(observations, specification, nodes, objective, maps)
        else:
            _declare_explicit(observations, specification, nodes, maps)
    return model


def value_matrix(observations: Observations) -> Float[np.ndarray, "obs column"]:
    """Values of the node ``x``: label code, real cells and category codes, 0 where missing.

    Examples
    --------
    >>> rows = Observations(
    ...     real=np.array([[1.5, np.nan]]), codes=np.array([[2]]),
    ...     labels=np.array([-1]), weights=np.array([1.0]))
    >>> value_matrix(rows)
    array([[0. , 1.5, 0. , 2. ]])
    """
    return np.column_stack(
        [
            np.maximum(observations.labels, 0),
            np.nan_to_num(observations.real, nan=0.0, posinf=np.inf, neginf=-np.inf),
            np.maximum(observations.codes, 0),
        ]
    ).astype(np.float64)


def _declare_masks(observations: Observations) -> tuple[TensorVariable, TensorVariable]:
    """Which labels and which cells are known, as data that can be exchanged."""
    cells = np.column_stack([~np.isnan(observations.real), observations.codes >= 0])
    label_observed = (observations.labels >= 0).astype(np.float64)
    return (
        pm.Data("label_observed", label_observed, dims=names.OBS),
        pm.Data("cell_observed", cells.astype(np.float64), dims=(names.OBS, CELL)),
    )


def declare_marginal(
    observations: Observations,
    specification: MixtureSpecification,
    nodes: MixtureNodes,
    objective: Objective = LIKELIHOOD,
    maps: PowerMaps | None = None,
) -> None:
    """Declare one observed node ``x``: label and component of every row summed out.

    Potentials stand beside it unless the objective is the likelihood.
    """
    label_observed, cell_observed = _declare_masks(observations)
    row_weight = pm.Data("row_weight", observations.weights, dims=names.OBS)
    rows = RowMixture(
        n_features=specification.n_features,
        n_categorical=len(specification.levels),
        covariance_group=tuple(int(g) for g in specification.covariance_group),
        independent=specification.independent,
        maps=maps,
    )
    by_column = nodes.category_probabilities
    if maps is not None:
        by_column += (_declare_powers(maps),)
    pm.CustomDist(
        names.OBSERVED,
        nodes.component_probabilities,
        nodes.component_class,
        nodes.means,
        nodes.covariances,
        label_observed,
        cell_observed,
        row_weight,
        *by_column,
        logp=rows.logp,
        dist=rows.draw,
        signature=rows.signature,
        observed=value_matrix(observations),
        dims=(names.OBS, COLUMN),
    )
    if objective.name != "likelihood":
        joint = rows.joint(
            pt.as_tensor(value_matrix(observations)),
            nodes.component_probabilities,
            nodes.means,
            nodes.covariances,
            cell_observed,
            *by_column,
        )
        declare_objective(objective, joint, specification, observations.labels, row_weight)


def _declare_powers(maps: PowerMaps) -> TensorVariable:
    """The powers of the maps, as data that can be exchanged."""
    return pm.Data(names.COLUMN_POWERS, maps.powers, dims=names.FEATURE)


def _declare_explicit(
    observations: Observations,
    specification: MixtureSpecification,
    nodes: MixtureNodes,
    maps: PowerMaps | None,
) -> None:
    """A component ``z`` of every row; label and cells are independent observed nodes.

    A label is a category that its component determines, so a hidden label is a
    missing category and needs no node of its own.
    """
    if np.any(observations.weights != 1):
        raise ValueError(
            "latent='explicit' draws a component for every row, which a row weight other than 1 "
            "has no meaning for: declare the rows with weight 1, or use latent='marginal'."
        )
    label_observed, cell_observed = _declare_masks(observations)
    z = pm.Categorical("z", p=nodes.component_probabilities, dims=names.OBS)
    if specification.n_classes > 1:
        membership = np.eye(specification.n_classes)[list(specification.component_class)]
        _declare_category(
            "row_label", pt.as_tensor(membership)[z], label_observed, observations.labels
        )
    d = specification.n_features
    if d:
        group = pt.as_tensor(specification.covariance_group)[z]
        powers = () if maps is None else (_declare_powers(maps),)
        pm.CustomDist(
            names.OBSERVED,
            nodes.means[z],
            nodes.covariances[group],
            cell_observed[:, :d],
            *powers,
            logp=partial(masked_logp, maps),
            dist=partial(masked_draw, maps),
            signature=f"(d),(d,d),(d){',(d)' * len(powers)}->(d)",
            observed=np.nan_to_num(observations.real),
            dims=(names.OBS, names.FEATURE),
        )
    for j, probabilities in enumerate(nodes.category_probabilities):
        _declare_category(
            f"category_{j}", probabilities[z], cell_observed[:, d + j], observations.codes[:, j]
        )


def _declare_category(
    name: str, probabilities: TensorVariable, observed: TensorVariable, codes: np.ndarray
) -> None:
    """One observed category a row, 0 where it is missing."""
    pm.CustomDist(
        name,
        probabilities,
        observed,
        logp=lambda code, probabilities, observed: densities.category_logp(
            code, observed, probabilities
        ),
        dist=densities.masked_category_draw,
        signature="(l),()->()",
        observed=np.maximum(codes, 0),
        dims=names.OBS,
    )


def check_rows(
    observations: Observations,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
) -> None:
    """ValueError if columns, labels or prior do not fit the structure."""
    d, j = specification.n_features, len(specification.levels)
    if (observations.real.shape[1], observations.codes.shape[1]) != (d, j):
        raise ValueError(
            f"observations must have {d} real and {j} categorical columns, as the specification "
            f"says; received {observations.real.shape[1]} and {observations.codes.shape[1]}."
        )
    if observations.labels.max(initial=-1) >= specification.n_classes:
        raise ValueError(
            f"observations.labels must be below n_classes = {specification.n_classes}; "
            f"received {observations.labels.max()}."
        )
    sizes = tuple(c.size for c in hyperparameters.category_concentrations)
    if hyperparameters.location.size != d or sizes != specification.levels:
        raise ValueError(
            f"hyperparameters must be resolved for {d} real columns and levels "
            f"{specification.levels}; received {hyperparameters.location.size} and {sizes}."
        )


@dataclass(frozen=True)
class Axes:
    """Coordinate values of a declared mixture, None where positions will do."""

    feature_names: Sequence[object] | None = None
    categorical_names: Sequence[object] | None = None
    level_names: Sequence[Sequence[object]] | None = None
    class_names: Sequence[object] | None = None
    obs_names: Sequence[object] | None = None


def coords(
    observations: Observations, specification: MixtureSpecification, axes: Axes
) -> dict[str, Sequence[object]]:
    """Names along every dim of the graph; ValueError if their number does not fit an axis."""
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
        values[names.CLASS_LABEL] = _names("class_names", axes.class_names, specification.n_classes)
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
