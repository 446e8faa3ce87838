"""The declared graphs of mixture densities and of class-conditional mixtures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from jaxtyping import Float, Int
from pytensor.graph.basic import Variable
from pytensor.tensor import TensorVariable

from bayesrbf.base import names
from bayesrbf.base.priors import (
    SHARPNESS,
    SMOOTHING,
    MixtureHyperparameters,
    Objective,
    PowerTransforms,
)
from bayesrbf.base.rows import MixtureSpecification, Observations
from bayesrbf.models import densities
from bayesrbf.models.densities import (
    MixtureNodes,
    TransformNodes,
    declare_priors,
    masked_draw,
    masked_logp,
)

# The law of a table's rows under a mixture, and the potentials of other objectives.
#
# The law is what the node ``x`` computes and draws.


OBJECTIVE = "objective"
"""Potential (obs): the objective of every row less its log likelihood."""
PRIOR_POWER = "prior_power"
"""Potential: what the power of the prior adds to it."""


@dataclass(frozen=True)
class RowMixture:
    r"""Law of the rows of a table under a mixture, component and label summed out.

    .. math:: \log p(x_o, y) = \log \sum_{k \in y} p_k \,
        N(x_o; \mu_k, \Sigma_{g(k)}) \prod_{j \in o} \theta_{kj}[x_j]

    where k runs over the components of class y, over all of them when the label
    is hidden. Behind column transforms x is the mapped cell, and the log derivatives of
    the transforms are added. A row of the value matrix is (label code, real cells, category
    codes); what is missing is 0 there and in the masks.
    """

    n_features: int
    n_categorical: int
    covariance_group: tuple[int, ...]
    independent: bool  # Whether the covariances are diagonal.
    transforms: PowerTransforms | None = None

    @property
    def signature(self) -> str:
        """Core dims of the parameters of :meth:`logp`, as NumPy writes them."""
        levels = "".join(f",(k,l{j})" for j in range(self.n_categorical))
        powers = "" if self.transforms is None else ",(d)"
        return f"(k),(k),(k,d),(g,d,d),(n),(n,m),(n){levels}{powers}->(n,v)"

    def logp(
        self,
        value: TensorVariable,
        component_probabilities: TensorVariable,
        component_class: TensorVariable,
        means: TensorVariable,
        covariances: TensorVariable,
        label_observed: TensorVariable,
        cell_observed: TensorVariable,
        row_weight: TensorVariable,
        *by_column: TensorVariable,
    ) -> TensorVariable:
        """Weighted log density of every row.

        The parameters are those of ``MixtureNodes``, and the powers of the transforms behind them
        where there are any; the masks are 1 where a label or a cell is known, else 0.
        """
        joint = self.joint(
            value, component_probabilities, means, covariances, cell_observed, *by_column
        )
        label = value[:, 0, None]
        excluded = label_observed[:, None] * pt.neq(component_class, label) > 0
        return row_weight * pm.math.logsumexp(pt.switch(excluded, -np.inf, joint), axis=-1)

    def joint(
        self,
        value: TensorVariable,
        component_probabilities: TensorVariable,
        means: TensorVariable,
        covariances: TensorVariable,
        cell_observed: TensorVariable,
        *by_column: TensorVariable,
    ) -> TensorVariable:
        """Log joint ``log p(x_o, k)`` of rows and components, labels and weights ignored."""
        _, real, codes = self._split(value)
        real_observed = cell_observed[:, : self.n_features]
        category_probabilities, transforms = self._mapped(by_column)
        joint = pt.log(component_probabilities)
        if transforms is not None:
            real, log_slopes = transforms.forward(real)
            joint += pt.sum(log_slopes * real_observed, axis=1)[:, None]
        joint += self._real_logp(real, real_observed, means, covariances)
        for j, probabilities in enumerate(category_probabilities):
            joint += densities.category_logp(
                codes[:, j, None], cell_observed[:, self.n_features + j, None], probabilities
            )
        return joint

    def draw(
        self,
        component_probabilities: TensorVariable,
        component_class: TensorVariable,
        means: TensorVariable,
        covariances: TensorVariable,
        label_observed: TensorVariable,
        cell_observed: TensorVariable,
        row_weight: TensorVariable,
        *args: Variable,
    ) -> TensorVariable:
        """Draw a table: label, component and cells of every row, masked by the missing indicators.

        A labelled row draws its label like any other: a label held fixed would make the class
        probabilities' calibration untestable. The weight has no part in the draw, because it has no
        generative story. ``args`` are the nodes of the columns, then the size that PyMC appends,
        which a whole table does not need.
        """
        category_probabilities, transforms = self._mapped(args[:-1])
        n_obs = label_observed.shape[0]
        component = pm.Categorical.dist(p=component_probabilities, shape=(n_obs,))
        cells = [
            pm.Categorical.dist(p=probabilities[component])[:, None]
            for probabilities in category_probabilities
        ]
        if self.n_features:
            group = pt.as_tensor(np.asarray(self.covariance_group))[component]
            real = densities.normal_draw(means[component], covariances[group])
            cells.insert(0, real if transforms is None else transforms.backward(real))
        label = component_class[component] * label_observed
        return pt.concatenate(
            [label[:, None], pt.concatenate(cells, axis=1) * cell_observed], axis=1
        )

    def _mapped(
        self, nodes: tuple[TensorVariable, ...]
    ) -> tuple[tuple[TensorVariable, ...], TransformNodes | None]:
        """Probabilities of the categorical columns, and the transforms of the real columns."""
        if self.transforms is None:
            return nodes, None
        return nodes[:-1], TransformNodes(self.transforms, nodes[-1])

    def _split(
        self, value: TensorVariable
    ) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
        """Label, real and categorical columns of a value matrix."""
        first_code = 1 + self.n_features
        return value[:, 0], value[:, 1:first_code], value[:, first_code:]

    def _real_logp(
        self,
        real: TensorVariable,
        observed: TensorVariable,
        means: TensorVariable,
        covariances: TensorVariable,
    ) -> TensorVariable:
        """Log densities (obs, component) of the real cells.

        Components that share a covariance share its factorisation per row.
        """
        group = np.asarray(self.covariance_group)
        row, mask = real[:, None, :], observed[:, None, :]
        if self.n_features == 0:
            return pt.zeros((real.shape[0], 1))
        if self.independent:
            variances = pt.diagonal(covariances, axis1=-2, axis2=-1)[group]
            return densities.independent_normal_logp(row, mask, means, variances)
        return densities.normal_logp(
            row, mask, means, densities.observed_cholesky(covariances, mask)[:, group]
        )


def declare_objective(
    objective: Objective,
    joint: TensorVariable,
    specification: MixtureSpecification,
    labels: Int[np.ndarray, " obs"],
    row_weight: TensorVariable,
) -> None:
    r"""Turn the posterior of the model on the stack into a Gibbs posterior.

    The potentials exchange the log likelihood of every row for its objective,

    .. math:: \sum_n v_n (J_n - \log p(x_n, y_n)) + (\tau - 1) \log p(\phi),

    and so are added to the node of the rows. ``joint`` is ``log p(x, k)``; labels are -1 where
    hidden.
    """
    alpha, beta, hinge = objective.coefficients
    shown = labels >= 0
    log_joints = [pm.math.logsumexp(joint[:, c], axis=1) for c in specification.class_slices]
    by_class = pt.stack(log_joints, axis=1)
    indicator = np.eye(specification.n_classes)[np.maximum(labels, 0)]
    of_label = pt.sum(indicator * by_class, axis=1)
    density = pm.math.logsumexp(by_class, axis=1)
    value = pt.switch(shown, (alpha - 1) * of_label + beta * density, (alpha + beta - 1) * density)
    if hinge and specification.n_classes > 1:
        violation = margin_violation(objective.margin, by_class - of_label[:, None], indicator)
        value -= hinge * pt.switch(shown, soft_hinge(violation), 0.0)
    pm.Potential(OBJECTIVE, row_weight * value, dims=names.OBS)
    if objective.prior_power != 1:
        free = pm.modelcontext(None).free_RVs
        prior = pt.sum([pt.sum(pm.logp(variable, variable)) for variable in free])
        pm.Potential(PRIOR_POWER, np.float64(objective.prior_power - 1) * prior)


def margin_violation(
    margin: float, rivals: TensorVariable, indicator: np.ndarray
) -> TensorVariable:
    """Soft maximum over the other classes of the margin violation of a row, in nats.

    ``rivals`` are ``log p(x, c) - log p(x, y)``; the indicator is 1 at the class of the row.
    """
    sharpened = pt.switch(indicator > 0, -np.inf, np.float64(SHARPNESS) * rivals)
    most = pm.math.logsumexp(sharpened, axis=1) / np.float64(SHARPNESS)
    return np.float64(margin) + most


def soft_hinge(violation: TensorVariable) -> TensorVariable:
    """Loss in nats: 0 below minus the width, a parabola up to it, the violation itself beyond."""
    width = np.float64(SMOOTHING)
    parabola = (violation + width) ** 2 / (4 * width)
    beyond = pt.switch(violation > width, violation, 0.0)
    return pt.switch(pt.abs(violation) <= width, parabola, beyond)


# Rows of a table as nodes under the priors, and the names along their axes.
#
# The component of a row is summed out, or it is a node.


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
    transforms: PowerTransforms | None = None,
) -> pm.Model:
    """Declare priors, transforms and rows in a new model; priors hold behind the transforms.

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
            declare_marginal(observations, specification, nodes, objective, transforms)
        else:
            _declare_explicit(observations, specification, nodes, transforms)
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
    """Declare observation masks of labels and cells as data, for ``pm.set_data``."""
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
    transforms: PowerTransforms | None = None,
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
        transforms=transforms,
    )
    by_column = nodes.category_probabilities
    if transforms is not None:
        by_column += (_declare_powers(transforms),)
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


def _declare_powers(transforms: PowerTransforms) -> TensorVariable:
    """The powers of the transforms, as data that can be exchanged."""
    return pm.Data(names.COLUMN_POWERS, transforms.powers, dims=names.FEATURE)


def _declare_explicit(
    observations: Observations,
    specification: MixtureSpecification,
    nodes: MixtureNodes,
    transforms: PowerTransforms | None,
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
        powers = () if transforms is None else (_declare_powers(transforms),)
        pm.CustomDist(
            names.OBSERVED,
            nodes.means[z],
            nodes.covariances[group],
            cell_observed[:, :d],
            *powers,
            logp=partial(masked_logp, transforms),
            dist=partial(masked_draw, transforms),
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
    """Declare an observed categorical column, 0 where the cell is missing."""
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
    argument: str, entries: Iterable[object] | None, size: int, prefix: str | None = None
) -> Sequence[object]:
    """``entries`` as a tuple, else positions behind a prefix; ValueError unless ``size``."""
    if entries is None:
        return range(size) if prefix is None else tuple(f"{prefix}{i}" for i in range(size))
    values = tuple(entries)
    if len(values) != size:
        raise ValueError(f"{argument} must have {size} entries; received {len(values)}.")
    return values


# The declared graphs of mixture densities and of class-conditional mixtures.


def declare_mixture(
    observations: Observations,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
    *,
    feature_names: Sequence[object] | None = None,
    categorical_names: Sequence[object] | None = None,
    level_names: Sequence[Sequence[object]] | None = None,
    latent: Latent = "marginal",
    obs_names: Sequence[object] | None = None,
    column_transforms: PowerTransforms | None = None,
) -> pm.Model:
    r"""Declare a mixture density over the rows of a table with holes.

    .. math:: p(x_o) = \sum_k w_k \, N(x_o; \mu_k, \Sigma_{g(k)})
        \prod_{j \in o} \theta_{kj}[x_j]

    Parameters
    ----------
    observations : Observations
        Rows, in the user's units; all labels 0.
    specification : MixtureSpecification
        Structure of the mixture, of one class.
    hyperparameters : MixtureHyperparameters
        Resolved prior, in the user's units.
    feature_names : sequence of length n_features, optional
        Names of the real columns.
    categorical_names : sequence of length n_categorical, optional
        Names of the categorical columns.
    level_names : sequence of sequences, optional
        Levels of every categorical column.
    latent : {"marginal", "explicit"}
        ``"marginal"``: one observed node ``x`` (obs, column) whose log density
        sums the components and the missing cells out. ``"explicit"``: the
        component ``z`` of every row is a node and the cells are observed given
        it, to be read, drawn, or marginalised by other tools.
    obs_names : sequence of length n_obs, optional
        Names of the rows.
    column_transforms : PowerTransforms, optional
        Transforms in front of the real columns, their powers the data ``column_powers``:
        priors, means and covariances are those of mapped cells.

    Returns
    -------
    pm.Model
        The declared graph.

    Raises
    ------
    ValueError
        If the specification has more than one class, if rows, prior and names
        do not fit it, or if ``latent="explicit"`` meets a row weight other than 1.

    Notes
    -----
    The masks ``label_observed`` and ``cell_observed`` and the ``row_weight`` are
    data. A weight has no generative story: set it to one with ``pm.set_data``
    for an unweighted ``log_likelihood``; draws never depend on it. A row with
    holes has a covariance factor of its own, so time and memory of the graph
    grow as n_obs * n_groups * n_features squared, at least: it is made to be read,
    simulated from and checked against, not to be fast.

    References
    ----------
    Priors and mode: :func:`bayesrbf.models.densities.declare_priors`.

    Examples
    --------
    >>> import numpy as np
    >>> rows = Observations(
    ...     real=np.array([[0.0, 1.0], [2.0, np.nan]]), codes=np.empty((2, 0), int),
    ...     labels=np.zeros(2, int), weights=np.ones(2))
    >>> specification = MixtureSpecification(2, (), (0, 0))
    >>> prior = MixtureHyperparameters(2.0, 0.1, np.ones(2), np.ones(2), 1.5, 2.0, ())
    >>> model = declare_mixture(rows, specification, prior)
    >>> [variable.name for variable in model.free_RVs]
    ['weights', 'means', 'precision_diagonal', 'precision_lower']
    """
    if specification.n_classes != 1:
        raise ValueError(
            f"declare_mixture needs a specification of one class; received "
            f"{specification.n_classes}: use declare_hybrid_mixture."
        )
    axes = Axes(feature_names, categorical_names, level_names, None, obs_names)
    return declare_rows(
        observations, specification, hyperparameters, axes, latent, transforms=column_transforms
    )


def declare_hybrid_mixture(
    observations: Observations,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
    *,
    feature_names: Sequence[object] | None = None,
    categorical_names: Sequence[object] | None = None,
    level_names: Sequence[Sequence[object]] | None = None,
    class_names: Sequence[object] | None = None,
    latent: Latent = "marginal",
    obs_names: Sequence[object] | None = None,
    objective: Objective = LIKELIHOOD,
    column_transforms: PowerTransforms | None = None,
) -> pm.Model:
    r"""Declare class-conditional mixtures over labelled and unlabelled rows with holes.

    .. math:: p(x_o, c) = \pi_c \sum_{k \in c} w_k \, N(x_o; \mu_k, \Sigma_{g(k)})
        \prod_{j \in o} \theta_{kj}[x_j]

    A row without a label contributes :math:`\log \sum_c p(x_o, c)`. One class
    makes this :func:`bayesrbf.models.mixture.declare_mixture`.

    Parameters
    ----------
    observations : Observations
        Rows, in the user's units; label -1 where it is hidden.
    specification : MixtureSpecification
        Structure of the mixture.
    hyperparameters : MixtureHyperparameters
        Resolved prior, in the user's units.
    feature_names : sequence of length n_features, optional
        Names of the real columns.
    categorical_names : sequence of length n_categorical, optional
        Names of the categorical columns.
    level_names : sequence of sequences, optional
        Levels of every categorical column.
    class_names : sequence of length n_classes, optional
        The classes.
    latent : {"marginal", "explicit"}
        ``"marginal"``: one observed node ``x`` (obs, column) whose log density
        sums hidden labels, components and missing cells out. ``"explicit"``:
        the component ``z`` of every row is a node; its label and cells are
        observed given it.
    obs_names : sequence of length n_obs, optional
        Names of the rows.
    objective : Objective
        What stands in the place of the log likelihood. Other than the likelihood it
        is declared by potentials beside the rows' own density: ``objective``, J less
        the log likelihood of every row, and ``prior_power`` in a blend. The result
        is a Gibbs posterior. Draws from the prior do not see the potentials, so
        ``pm.sample_prior_predictive`` is of this model under the likelihood alone.
    column_transforms : PowerTransforms, optional
        Transforms in front of the real columns, their powers the data ``column_powers``:
        priors, means and covariances are those of mapped cells.

    Returns
    -------
    pm.Model
        The declared graph.

    Raises
    ------
    ValueError
        If rows, prior and names do not fit the specification, or if
        ``latent="explicit"`` meets a row weight other than 1 or an objective other
        than the likelihood.

    Notes
    -----
    The masks ``label_observed`` and ``cell_observed`` and the ``row_weight`` are
    data. A weight has no generative story: set it to one with ``pm.set_data``
    for an unweighted ``log_likelihood``; draws never depend on it. A row with
    holes has a covariance factor of its own, so time and memory of the graph
    grow as n_obs * n_groups * n_features squared, at least: it is made to be read,
    simulated from and checked against, not to be fast.

    References
    ----------
    Priors and mode: :func:`bayesrbf.models.densities.declare_priors`.

    Examples
    --------
    >>> import numpy as np
    >>> rows = Observations(
    ...     real=np.array([[0.0], [2.0], [np.nan]]), codes=np.array([[0], [1], [1]]),
    ...     labels=np.array([0, 1, -1]), weights=np.ones(3))
    >>> specification = MixtureSpecification(1, (2,), (0, 0, 1), "diag")
    >>> prior = MixtureHyperparameters(
    ...     2.0, 0.1, np.ones(1), np.ones(1), 1.5, 2.0, (np.array([1.5, 1.5]),))
    >>> model = declare_hybrid_mixture(rows, specification, prior, class_names=["no", "yes"])
    >>> [variable.name for variable in model.free_RVs]
    ['class_probabilities', 'weights_0', 'means', 'precision_diagonal', 'probability_0']
    """
    axes = Axes(feature_names, categorical_names, level_names, class_names, obs_names)
    return declare_rows(
        observations, specification, hyperparameters, axes, latent, objective, column_transforms
    )


# Rows with holes in a model of the user's own.


def observe_mixture(
    name: str,
    cells: object,
    weights: object,
    means: object,
    covariances: object,
    *,
    dims: tuple[str, str] | None = None,
) -> TensorVariable:
    r"""Observe rows with missing cells under a Gaussian mixture, in the model on the stack.

    .. math:: \log p(x_o) = \log \sum_k w_k \, N(x_o; \mu_{ko}, \Sigma_{koo})

    with o the observed cells of a row. Missing cells and components are summed out, so
    neither needs a variable, and ``pm.sample`` can use NUTS. Weights, means and covariances
    are what the user's model makes them: constants, variables, or functions of variables.

    Parameters
    ----------
    name : str
        Name of the node.
    cells : array-like of shape (n_obs, d)
        Rows, NaN where a cell is missing.
    weights : tensor-like of shape (k,) or (n_obs, k)
        Probabilities of the components: the same for all rows, or those of every row.
    means : tensor-like of shape (k, d) or (n_obs, k, d)
        Their means, such as ``means[centre]`` for rows of several centres.
    covariances : tensor-like of shape (k, d, d) or (n_obs, k, d, d)
        Their covariances.
    dims : tuple of two str, optional
        Names of the two axes of ``cells``.

    Returns
    -------
    TensorVariable
        The observed node, 0 where a cell is missing, in data as in draws.

    Raises
    ------
    ValueError
        If ``cells`` are not a table or hold infinite numbers, or another shape is not as above.

    References
    ----------
    Values equal :meth:`bayesrbf.MixtureDensity.score_samples` without column transforms.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> cells = np.array([[0.0, np.nan], [3.0, 3.0], [np.nan, np.nan]])
    >>> with pm.Model() as model:
    ...     means = pm.Normal("means", [[0.0], [3.0]], 1.0, shape=(2, 2))
    ...     rows = observe_mixture("rows", cells, [0.5, 0.5], means, np.stack([np.eye(2)] * 2))
    >>> at = {"means": np.array([[0.0, 0.0], [3.0, 3.0]])}
    >>> model.compile_fn(model.logp(rows, sum=False))(at)[0].round(3)
    array([-1.601, -2.531,  0.   ])
    """
    table = np.asarray(cells, dtype=np.float64)
    if table.ndim != 2 or np.isinf(table).any():
        raise ValueError(
            f"observe_mixture({name!r}, cells, ...) needs a table of numbers, NaN where a cell is "
            f"missing; received shape {table.shape} with {np.isinf(table).sum()} infinite cells."
        )
    d = table.shape[1]
    arguments = {"weights": weights, "means": means, "covariances": covariances}
    for (argument, value), (least, tail) in zip(
        arguments.items(), ((1, ()), (2, (d,)), (3, (d, d))), strict=True
    ):
        shape = pt.as_tensor(value).type.shape
        last = shape[len(shape) - len(tail) :]
        rows = shape[0] if len(shape) == least + 1 else len(table)
        fits = all(size in (None, expected) for size, expected in zip(last, tail, strict=True))
        if len(shape) not in (least, least + 1) or not fits or rows not in (None, len(table)):
            expected = ", ".join(("k", *(["d"] * len(tail))))
            raise ValueError(
                f"observe_mixture({name!r}, {argument}=...) must have shape ({expected}), or "
                f"(n_obs, {expected}) with one for every row; there are {len(table)} rows and d = "
                f"{d} columns, and its shape is {shape}."
            )
    return pm.CustomDist(
        name,
        weights,
        means,
        covariances,
        (~np.isnan(table)).astype(np.float64),
        logp=_mixture_logp,
        dist=_mixture_draw,
        signature="(k),(k,d),(k,d,d),(d)->(d)",
        observed=np.nan_to_num(table),
        dims=dims,
    )


def _mixture_logp(
    value: TensorVariable,
    weights: TensorVariable,
    means: TensorVariable,
    covariances: TensorVariable,
    observed: TensorVariable,
) -> TensorVariable:
    """Log density of the observed cells of every row."""
    mask = observed[..., None, :]
    factors = densities.observed_cholesky(covariances, mask)
    by_component = densities.normal_logp(value[..., None, :], mask, means, factors)
    return pm.math.logsumexp(pt.log(weights) + by_component, axis=-1)


def _mixture_draw(
    weights: TensorVariable,
    means: TensorVariable,
    covariances: TensorVariable,
    observed: TensorVariable,
    size: Variable,
) -> TensorVariable:
    """A component and the observed cells of every row, 0 where one is missing."""
    component = pm.Categorical.dist(p=weights, shape=(observed.shape[0],))
    chosen = pt.eq(component[:, None], pt.arange(means.shape[-2]))
    mean = (chosen[..., None] * means).sum(-2)
    covariance = (chosen[..., None, None] * covariances).sum(-3)
    return densities.normal_draw(mean, covariance) * observed
