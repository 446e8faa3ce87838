"""The declared graph of median RSLVQ: exemplars among the rows, labels given dissimilarities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from jaxtyping import Float
from pytensor.graph.basic import Variable
from pytensor.tensor import TensorVariable

from bayesrbf.base import names
from bayesrbf.families.median_lvq.records import Dissimilarities, Prototypes, Sigma, width_and_prior

ROW: Final = "row"
"""Dim of the training rows as exemplars; as data the same rows have the dim ``obs``."""


def declare_median_lvq(
    rows: Dissimilarities,
    prototypes: Prototypes,
    sigma: Sigma,
    *,
    class_names: Sequence[object] | None = None,
    obs_names: Sequence[object] | None = None,
) -> pm.Model:
    r"""Declare an exemplar classifier of the rows of a table by their dissimilarities.

    .. math::
        \theta_j &\sim \mathrm{Uniform}(\text{candidate rows of class } c_j), \quad
        \log\sigma \sim N(m, s^2) \\
        p(y_n = c) &= \frac{\sum_{j \in c} e^{-d(x_n, \theta_j) / \sigma^2}}
            {\sum_j e^{-d(x_n, \theta_j) / \sigma^2}}

    Parameters
    ----------
    rows : Dissimilarities
        Training rows.
    prototypes : Prototypes
        Class of every prototype.
    sigma : SigmaPrior or float
        The width: its prior, or its value as data.
    class_names, obs_names : sequence, optional
        Names of the classes and of the rows.

    Returns
    -------
    pm.Model
        Free variables ``exemplars`` (prototype) and, under a prior, ``sigma``;
        the observed node ``y`` holds class codes, 0 where the label is hidden.

    Raises
    ------
    ValueError
        If there is not one name for every class and row.

    Notes
    -----
    A hidden label or a weight of zero takes a row out of the likelihood: data
    ``row_weight``, which has no generative story. Draws of ``y`` never depend on it.
    The graph holds n_prototypes * n_obs prior probabilities: it is made to be read,
    simulated from and checked against.

    References
    ----------
    Nebel, Hammer, Villmann (2014), Supervised generative models for learning
    dissimilarity data, ESANN, section 3.

    Examples
    --------
    >>> from bayesrbf.families.median_lvq.records import SigmaPrior
    >>> rows = Dissimilarities(
    ...     np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 2.0], [4.0, 2.0, 0.0]]),
    ...     np.array([0, 0, 1]), np.ones(3), (np.array([0, 1]), np.array([2])))
    >>> model = declare_median_lvq(rows, Prototypes((0, 1)), SigmaPrior(0.0, 1.0))
    >>> [variable.name for variable in model.free_RVs]
    ['exemplars', 'sigma']
    """
    coords = {
        names.OBS: _named("obs_names", obs_names, rows.n_obs),
        ROW: _named("obs_names", obs_names, rows.n_obs),
        names.LABEL: _named("class_names", class_names, rows.n_classes),
        names.PROTOTYPE: range(prototypes.number),
    }
    with pm.Model(coords=coords) as model:
        d = pm.Data("dissimilarity", rows.values.astype(np.float64), dims=(names.OBS, ROW))
        row_weight = pm.Data(
            "row_weight", np.where(rows.labels < 0, 0.0, rows.weights), dims=names.OBS
        )
        exemplars = pm.Categorical(
            names.EXEMPLARS, p=exemplar_probabilities(rows, prototypes), dims=names.PROTOTYPE
        )
        fixed, prior = width_and_prior(sigma)
        width = (
            pm.Data(names.SIGMA, np.float64(fixed))
            if prior is None
            else pm.LogNormal(names.SIGMA, np.float64(prior.location), np.float64(prior.spread))
        )
        log_kernel = -d[:, exemplars] / width**2
        joint = pt.stack(
            [pt.logsumexp(log_kernel[:, c], axis=1) for c in prototypes.class_slices], axis=1
        )
        pm.CustomDist(
            names.OBSERVED_LABEL,
            joint - pt.logsumexp(joint, axis=1, keepdims=True),
            row_weight,
            logp=label_logp,
            dist=label_draw,
            signature="(c),()->()",
            dtype="int64",
            observed=np.maximum(rows.labels, 0),
            dims=names.OBS,
        )
    return model


def exemplar_probabilities(
    rows: Dissimilarities, prototypes: Prototypes
) -> Float[np.ndarray, "prototype row"]:
    """Prior probability of every row to be each prototype's exemplar.

    It is uniform over the candidates of the prototype's class.
    """
    probabilities = np.zeros((prototypes.number, rows.n_obs))
    for prototype, label in enumerate(prototypes.classes):
        candidates = rows.candidates[label]
        probabilities[prototype, candidates] = 1 / candidates.size
    return probabilities


def label_logp(
    label: TensorVariable, log_probabilities: TensorVariable, row_weight: TensorVariable
) -> TensorVariable:
    """Weighted log probability of every row's label."""
    of_label = pt.take_along_axis(log_probabilities, label[..., None], axis=-1)[..., 0]
    return row_weight * of_label


def label_draw(
    log_probabilities: TensorVariable, row_weight: TensorVariable, size: Variable
) -> TensorVariable:
    """Draw every row's label; a weight has no generative story."""
    return pm.Categorical.dist(logit_p=log_probabilities, size=size)


def _named(argument: str, entries: Sequence[object] | None, size: int) -> Sequence[object]:
    """``entries`` as a tuple, else positions; ValueError unless there are ``size``."""
    values = range(size) if entries is None else tuple(entries)
    if len(values) != size:
        raise ValueError(f"{argument} must have {size} entries; received {len(values)}.")
    return values
