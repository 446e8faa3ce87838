"""The law of a table's rows under a mixture: what the node ``x`` computes and draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor import TensorVariable

from bayesrbf.models import densities


@dataclass(frozen=True)
class RowMixture:
    r"""Law of the rows of a table under a mixture, component and label summed out.

    .. math:: \log p(x_o, y) = \log \sum_{k \in y} p_k \,
        N(x_o; \mu_k, \Sigma_{g(k)}) \prod_{j \in o} \theta_{kj}[x_j]

    where k runs over the components of class y, over all of them when the label
    is hidden. A row of the value matrix is (label code, real cells, category
    codes); what is missing is 0 there and in the masks.

    Attributes
    ----------
    n_features : int
        Number of real columns.
    n_categorical : int
        Number of categorical columns.
    covariance_group : tuple of int
        Covariance that each component uses.
    independent : bool
        Whether the covariances are diagonal.
    """

    n_features: int
    n_categorical: int
    covariance_group: tuple[int, ...]
    independent: bool

    @property
    def signature(self) -> str:
        """Core dims of the parameters of :meth:`logp`, as NumPy writes them."""
        levels = "".join(f",(k,l{j})" for j in range(self.n_categorical))
        return f"(k),(k),(k,d),(g,d,d),(n),(n,m),(n){levels}->(n,v)"

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
        *category_probabilities: TensorVariable,
    ) -> TensorVariable:
        """Weighted log density of every row.

        Parameters
        ----------
        value : TensorVariable of shape (obs, column)
            Label code, real cells in the user's units, category codes.
        component_probabilities : TensorVariable of shape (component,)
            p_k = p(class) p(component | class).
        component_class : TensorVariable of shape (component,)
            Class of every component.
        means : TensorVariable of shape (component, feature)
            Means, in the user's units.
        covariances : TensorVariable of shape (group, feature, feature)
            Covariances, in the user's units squared.
        label_observed : TensorVariable of shape (obs,)
            1 where the label is known, else 0.
        cell_observed : TensorVariable of shape (obs, cell)
            1 where a cell is known, else 0.
        row_weight : TensorVariable of shape (obs,)
            Factor of the row's log density.
        *category_probabilities : TensorVariable of shape (component, level)
            Level probabilities of each categorical column.

        Returns
        -------
        TensorVariable of shape (obs,)
            Weighted log densities.
        """
        joint = self.joint(
            value,
            component_probabilities,
            means,
            covariances,
            cell_observed,
            *category_probabilities,
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
        *category_probabilities: TensorVariable,
    ) -> TensorVariable:
        """Log joint of every row with every component, labels ignored.

        Parameters
        ----------
        value, component_probabilities, means, covariances : TensorVariable
            As in :meth:`logp`.
        cell_observed : TensorVariable of shape (obs, cell)
            1 where a cell is known, else 0.
        *category_probabilities : TensorVariable of shape (component, level)
            Level probabilities of each categorical column.

        Returns
        -------
        TensorVariable of shape (obs, component)
            ``log p(x_o, k)``, not weighted.
        """
        _, real, codes = self._split(value)
        joint = pt.log(component_probabilities) + self._real_logp(
            real, cell_observed[:, : self.n_features], means, covariances
        )
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

        A labelled row draws its label like any other: a label held fixed would
        make the class probabilities' calibration untestable.

        Parameters
        ----------
        component_probabilities, component_class, means, covariances : TensorVariable
            As in :meth:`logp`.
        label_observed, cell_observed : TensorVariable
            Masks of the cells that come out as 0.
        row_weight : TensorVariable of shape (obs,)
            Without a part in the draw: a weight has no generative story.
        *args : Variable
            Level probabilities of each categorical column, then the size that
            PyMC appends, which a whole table does not need.

        Returns
        -------
        TensorVariable of shape (obs, column)
            A value matrix.
        """
        *category_probabilities, _ = args
        n_obs = label_observed.shape[0]
        component = pm.Categorical.dist(p=component_probabilities, shape=(n_obs,))
        cells = [
            pm.Categorical.dist(p=probabilities[component])[:, None]
            for probabilities in category_probabilities
        ]
        if self.n_features:
            group = pt.as_tensor(np.asarray(self.covariance_group))[component]
            cells.insert(0, densities.normal_draw(means[component], covariances[group]))
        label = component_class[component] * label_observed
        return pt.concatenate(
            [label[:, None], pt.concatenate(cells, axis=1) * cell_observed], axis=1
        )

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
