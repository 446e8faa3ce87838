"""Rows of a table as nodes under the priors: summed out, or with a component each."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from jaxtyping import Float
from pytensor.tensor import TensorVariable

from bayesrbf import names
from bayesrbf.models import densities
from bayesrbf.models.axes import CELL, COLUMN, Axes, coords
from bayesrbf.models.objectives import declare_objective
from bayesrbf.models.priors import MixtureNodes, declare_priors
from bayesrbf.models.row_mixture import RowMixture
from bayesrbf.objective import Objective
from bayesrbf.parameters import Observations
from bayesrbf.priors import MixtureHyperparameters
from bayesrbf.specification import MixtureSpecification

Latent = Literal["marginal", "explicit"]

LIKELIHOOD = Objective()


def declare_rows(
    observations: Observations,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
    axes: Axes,
    latent: Latent,
    objective: Objective = LIKELIHOOD,
) -> pm.Model:
    """Declare priors and rows in a new model.

    Parameters
    ----------
    observations : Observations
        Rows, in the user's units.
    specification : MixtureSpecification
        Structure of the mixture.
    hyperparameters : MixtureHyperparameters
        Resolved prior, in the user's units.
    axes : Axes
        Coordinate values.
    latent : {"marginal", "explicit"}
        Whether the components of the rows are summed out or nodes.
    objective : Objective
        What stands in the place of the log likelihood.

    Returns
    -------
    pm.Model
        The declared graph.

    Raises
    ------
    ValueError
        If rows, structure, prior and names do not fit each other, or if there is
        no graph with latent nodes because the objective is no likelihood.
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
            declare_marginal(observations, specification, nodes, objective)
        else:
            _declare_explicit(observations, specification, nodes)
    return model


def value_matrix(observations: Observations) -> Float[np.ndarray, "obs column"]:
    """Label code, real cells and category codes of every row, 0 where missing.

    Parameters
    ----------
    observations : Observations
        Rows, in the user's units.

    Returns
    -------
    ndarray of shape (n_obs, 1 + n_features + n_categorical)
        What the node ``x`` observes.

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
) -> None:
    """Declare one observed node ``x``: label and component of every row summed out.

    Parameters
    ----------
    observations : Observations
        Rows, in the user's units.
    specification : MixtureSpecification
        Structure of the mixture.
    nodes : MixtureNodes
        The mixture's variables.
    objective : Objective
        What the rows are for; potentials stand beside ``x`` unless a likelihood.
    """
    label_observed, cell_observed = _declare_masks(observations)
    row_weight = pm.Data("row_weight", observations.weights, dims=names.OBS)
    rows = RowMixture(
        n_features=specification.n_features,
        n_categorical=len(specification.levels),
        covariance_group=tuple(int(g) for g in specification.covariance_group),
        independent=specification.shape != "full",
    )
    pm.CustomDist(
        names.OBSERVED,
        nodes.component_probabilities,
        nodes.component_class,
        nodes.means,
        nodes.covariances,
        label_observed,
        cell_observed,
        row_weight,
        *nodes.category_probabilities,
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
            *nodes.category_probabilities,
        )
        declare_objective(objective, joint, specification, observations.labels, row_weight)


def _declare_explicit(
    observations: Observations, specification: MixtureSpecification, nodes: MixtureNodes
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
        pm.CustomDist(
            names.OBSERVED,
            nodes.means[z],
            nodes.covariances[group],
            cell_observed[:, :d],
            logp=densities.masked_normal_logp,
            dist=densities.masked_normal_draw,
            signature="(d),(d,d),(d)->(d)",
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
    """Refuse rows or priors that another structure was meant for.

    Parameters
    ----------
    observations : Observations
        Rows, in the user's units.
    specification : MixtureSpecification
        Structure of the mixture.
    hyperparameters : MixtureHyperparameters
        Resolved prior, in the user's units.

    Raises
    ------
    ValueError
        If columns, labels or prior do not fit the structure.
    """
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
