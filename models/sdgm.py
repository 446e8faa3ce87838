"""The declared graph of sparse discriminative Gaussian mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor import TensorVariable

from bayesrbf.base import names
from bayesrbf.base.priors import GammaPrecisions, HorseshoePrecisions
from bayesrbf.base.rows import Standardisation
from bayesrbf.families.sdgm.records import Basis, CompletedRows, QuadraticBasis, SDGMSpecification

POINT: str = "point"  # Dim of the completions of all rows: a row without a hole is one point.
COORDINATE: str = "coordinate"
FARTHEST = 1e6  # Points are clipped to this many standard units, so that no square overflows.


def declare_sdgm(
    rows: CompletedRows,
    basis: Basis,
    units: Standardisation,
    specification: SDGMSpecification,
    *,
    class_names: Sequence[object] | None = None,
    obs_names: Sequence[object] | None = None,
    coefficient_names: Sequence[object] | None = None,
) -> pm.Model:
    r"""Declare the labels given the rows, components summed out.

    .. math::
        w_h &\sim N(0, \alpha_h^{-1}) \\
        p(c | x) &= \frac{\sum_{m \in c} \pi_{cm} \exp(w_{cm}^\top \phi(x))}
            {\sum_k \pi_k \exp(w_k^\top \phi(x))}

    A row with several possible classes contributes the log of their summed probability.
    A row with missing cells contributes the log of its mean over completions.

    Parameters
    ----------
    rows : CompletedRows
        Labelled rows, in the user's units.
    basis : QuadraticBasis or KernelBasis
        Features of a point in standard units.
    units : Standardisation
        Location and scale of the points' coordinates: weights act on standard units.
    specification : SDGMSpecification
        Components, weights, and precisions as constants or under a prior.
    class_names, obs_names, coefficient_names : sequence, optional
        Names of the classes, of the rows and of the weights.

    Returns
    -------
    pm.Model
        Free variables ``coefficients`` and, where the precisions are learned,
        what they are made of, or under a horseshoe ``standard_coefficients`` with
        ``coefficients`` beside them; the observed node ``y`` (obs, label) is 1 for
        every class that a row may have.

    Raises
    ------
    ValueError
        If the kernel is a function: only the named ones can be declared.

    Notes
    -----
    Component probabilities pi are constants: each could be traded against an
    intercept. ``row_weight`` is data and has no generative story: set it to one for
    an unweighted ``log_likelihood``. A draw of ``y`` is one class a row, however
    many it may have had.

    References
    ----------
    Hayashi and Uchida (2021), A discriminative Gaussian mixture model with
    sparsity, ICLR, equations 1-5.

    Examples
    --------
    >>> rows = CompletedRows(
    ...     points=np.array([[0.0], [1.0], [3.0]]), starts=np.arange(3),
    ...     allowed=np.array([[True, False], [False, True], [True, True]]),
    ...     weights=np.ones(3))
    >>> basis = QuadraticBasis(np.array([[-1, -1], [-1, 0], [0, 0]]))
    >>> specification = SDGMSpecification(
    ...     component_class=np.array([0, 1]), proportions=np.ones(2),
    ...     component=np.array([0, 0]), feature=np.array([0, 1]), precisions=np.ones(2))
    >>> model = declare_sdgm(
    ...     rows, basis, Standardisation(np.zeros(1), np.ones(1)), specification)
    >>> [variable.name for variable in model.free_RVs]
    ['coefficients']
    """
    n_rows, n_classes = rows.allowed.shape
    classes = range(n_classes) if class_names is None else class_names
    coords = {
        names.OBS: range(n_rows) if obs_names is None else obs_names,
        names.LABEL: classes,
        names.COMPONENT: range(specification.n_components),
        names.COEFFICIENT: (
            range(specification.n_weights) if coefficient_names is None else coefficient_names
        ),
        POINT: range(rows.points.shape[0]),
        COORDINATE: range(rows.points.shape[1]),
    }
    with pm.Model(coords=coords) as model:
        weights = declare_weights(specification.precisions)
        points = pm.Data("points", rows.points, dims=(POINT, COORDINATE))
        row_weight = pm.Data("row_weight", rows.weights, dims=names.OBS)
        standard = pt.clip((points - units.location) / units.scale, -FARTHEST, FARTHEST)
        logits = _logits(features_of(basis, standard), weights, specification)
        pm.CustomDist(
            names.OBSERVED_LABEL,
            _class_log_probabilities(logits, rows, specification),
            row_weight,
            logp=label_set_logp,
            dist=label_draw,
            signature="(c),()->(c)",
            dtype="int64",
            observed=rows.allowed.astype(np.int64),
            dims=(names.OBS, names.LABEL),
        )
    return model


@singledispatch
def declare_weights(precisions: Any) -> TensorVariable:
    """The weights, whose precisions are constants or under a prior."""
    return _normal(pm.Data(names.COEFFICIENT_PRECISIONS, precisions, dims=names.COEFFICIENT))


@declare_weights.register(GammaPrecisions)
def _(prior: GammaPrecisions) -> TensorVariable:
    shape, rate = np.float64(prior.shape), np.float64(prior.rate)
    dims = names.COEFFICIENT
    return _normal(pm.Gamma(names.COEFFICIENT_PRECISIONS, alpha=shape, beta=rate, dims=dims))


@declare_weights.register(HorseshoePrecisions)
def _(prior: HorseshoePrecisions) -> TensorVariable:
    dims = names.COEFFICIENT
    overall = pm.HalfCauchy(names.GLOBAL_SCALE, np.float64(prior.scale))
    local = pm.HalfCauchy(names.LOCAL_SCALES, np.float64(1.0), dims=dims)
    standard = pm.Normal(names.STANDARD_COEFFICIENTS, 0.0, 1.0, dims=dims)
    deviations = ((overall * local) ** -2 + np.float64(prior.slab) ** -2) ** -0.5
    return pm.Deterministic(names.COEFFICIENTS, standard * deviations, dims=dims)


def _normal(precisions: TensorVariable) -> TensorVariable:
    """Declare weights ``w ~ N(0, 1 / alpha)``."""
    return pm.Normal(names.COEFFICIENTS, 0.0, precisions**-0.5, dims=names.COEFFICIENT)


@singledispatch
def features_of(basis: Any, points: TensorVariable) -> TensorVariable:
    """Features of standard points, (point, feature)."""
    if basis.kernel == "polynomial":
        values = (pt.dot(points, basis.exemplars.T) + 1) ** 2
    elif basis.kernel == "gaussian":
        values = pt.exp(-0.5 * ((points[:, None, :] - basis.exemplars) ** 2).sum(axis=-1))
    else:
        raise ValueError(
            "declare() needs a kernel that can be written as a graph, 'polynomial' or "
            f"'gaussian'; received {basis.kernel!r}."
        )
    return pt.concatenate([pt.ones((points.shape[0], 1)), values], axis=1)


@features_of.register(QuadraticBasis)
def _(basis: QuadraticBasis, points: TensorVariable) -> TensorVariable:
    columns = pt.concatenate([pt.ones((points.shape[0], 1)), points], axis=1)
    return columns[:, basis.factors[:, 0] + 1] * columns[:, basis.factors[:, 1] + 1]


def _logits(
    features: TensorVariable, weights: TensorVariable, specification: SDGMSpecification
) -> TensorVariable:
    """log pi + w . phi, (point, component)."""
    shape = (features.shape[1], specification.n_components)
    dense = pt.zeros(shape)[specification.feature, specification.component].set(weights)
    return pt.dot(features, dense) + np.log(specification.proportions)


def _class_log_probabilities(
    logits: TensorVariable, rows: CompletedRows, specification: SDGMSpecification
) -> TensorVariable:
    """Softmax summed within classes and averaged over completions, (obs, label), as logs."""
    log_all = pt.logsumexp(logits, axis=1)
    members = (specification.component_class == label for label in range(rows.allowed.shape[1]))
    by_point = pt.stack(
        [pt.logsumexp(logits[:, np.flatnonzero(k)], axis=1) - log_all for k in members], axis=1
    )
    if rows.starts.size == rows.points.shape[0]:
        return by_point
    owner = np.repeat(np.arange(rows.starts.size), rows.sizes)
    sums = pt.zeros(rows.allowed.shape)[owner].inc(pt.exp(by_point))
    return pt.log(sums / rows.sizes[:, None])


def label_set_logp(
    allowed: TensorVariable, log_probabilities: TensorVariable, row_weight: TensorVariable
) -> TensorVariable:
    """Weighted log probability, in nats, of the classes that a row may have (1 in ``allowed``)."""
    chosen = pt.switch(pt.eq(allowed, 1), log_probabilities, -np.inf)
    return row_weight * pt.logsumexp(chosen, axis=-1)


def label_draw(
    log_probabilities: TensorVariable, row_weight: TensorVariable, size: Variable
) -> TensorVariable:
    """Draw every row's class, 1 in its column; a weight has no generative story."""
    drawn = pm.Categorical.dist(logit_p=log_probabilities, size=size)
    return pt.cast(pt.eq(drawn[..., None], pt.arange(log_probabilities.shape[-1])), "int64")
