"""The law of a table's rows under a mixture, and the potentials of other objectives.

The law is what the node ``x`` computes and draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from jaxtyping import Int
from pytensor.graph.basic import Variable
from pytensor.tensor import TensorVariable

from bayesrbf.models import densities
from bayesrbf.models.column_maps import MapNodes
from bayesrbf.records import names
from bayesrbf.records.column_maps import PowerMaps
from bayesrbf.records.objective import SHARPNESS, SMOOTHING, Objective
from bayesrbf.records.specification import MixtureSpecification

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
    is hidden. Behind column maps x is the mapped cell, and the log derivatives of
    the maps are added. A row of the value matrix is (label code, real cells, category
    codes); what is missing is 0 there and in the masks.
    """

    n_features: int
    n_categorical: int
    covariance_group: tuple[int, ...]
    independent: bool  # Whether the covariances are diagonal.
    maps: PowerMaps | None = None

    @property
    def signature(self) -> str:
        """Core dims of the parameters of :meth:`logp`, as NumPy writes them."""
        levels = "".join(f",(k,l{j})" for j in range(self.n_categorical))
        powers = "" if self.maps is None else ",(d)"
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

        The parameters are those of ``MixtureNodes`` (module ``mixture_priors``), and the powers of
        the maps behind them where there are any; the masks are 1 where a label or a cell is known,
        else 0.
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
        category_probabilities, maps = self._mapped(by_column)
        joint = pt.log(component_probabilities)
        if maps is not None:
            real, log_slopes = maps.forward(real)
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
        """One table: label, component and cells of every row, then the masks.

        A labelled row draws its label like any other: a label held fixed would make the class
        probabilities' calibration untestable. The weight has no part in the draw, because it has no
        generative story. ``args`` are the nodes of the columns, then the size that PyMC appends,
        which a whole table does not need.
        """
        category_probabilities, maps = self._mapped(args[:-1])
        n_obs = label_observed.shape[0]
        component = pm.Categorical.dist(p=component_probabilities, shape=(n_obs,))
        cells = [
            pm.Categorical.dist(p=probabilities[component])[:, None]
            for probabilities in category_probabilities
        ]
        if self.n_features:
            group = pt.as_tensor(np.asarray(self.covariance_group))[component]
            real = densities.normal_draw(means[component], covariances[group])
            cells.insert(0, real if maps is None else maps.backward(real))
        label = component_class[component] * label_observed
        return pt.concatenate(
            [label[:, None], pt.concatenate(cells, axis=1) * cell_observed], axis=1
        )

    def _mapped(
        self, nodes: tuple[TensorVariable, ...]
    ) -> tuple[tuple[TensorVariable, ...], MapNodes | None]:
        """Nodes of the categorical columns, and the maps in front of the real ones."""
        if self.maps is None:
            return nodes, None
        return nodes[:-1], MapNodes(self.maps, nodes[-1])

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

    and so belong beside the rows' own node. ``joint`` is ``log p(x, k)``; labels are -1 where
    hidden.
    """
    own, every, hinge = objective.coefficients
    shown = labels >= 0
    parts = [pm.math.logsumexp(joint[:, part], axis=1) for part in specification.class_slices]
    by_class = pt.stack(parts, axis=1)
    indicator = np.eye(specification.n_classes)[np.maximum(labels, 0)]
    of_label = pt.sum(indicator * by_class, axis=1)
    density = pm.math.logsumexp(by_class, axis=1)
    value = pt.switch(shown, (own - 1) * of_label + every * density, (own + every - 1) * density)
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
    """Soft maximum over the other classes of what a row lacks of the margin, in nats.

    ``rivals`` are ``log p(x, c) - log p(x, y)``; the indicator is 1 at a row's own class.
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
