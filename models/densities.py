"""Marginal log densities and draws of rows with holes, in PyTensor.

Nothing here knows priors or names: symbolic arrays in, symbolic arrays out.
Leading axes broadcast, so that one function serves a row given its component
and a row against all components. A missing cell is zero-filled and its entry of
the mask is 0; it is integrated out exactly, never imputed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor import TensorVariable
from pytensor.tensor.linalg import solve_triangular

LOG_TWO_PI = np.log(2 * np.pi)


def observed_cholesky(covariances: TensorVariable, observed: TensorVariable) -> TensorVariable:
    r"""Cholesky factor of the covariance of the observed cells, padded by the identity.

    .. math:: S = \Sigma \circ m m^\top + \mathrm{diag}(1 - m), \qquad S = C C^\top

    Observed and missing cells are uncorrelated in S and missing ones have
    variance one, so :math:`|S| = |\Sigma_{oo}|`.

    Parameters
    ----------
    covariances : TensorVariable of shape (..., feature, feature)
        Covariances, in the user's units.
    observed : TensorVariable of shape (..., feature)
        Mask m: 1 where a cell is observed, else 0.

    Returns
    -------
    TensorVariable of shape (..., feature, feature)
        The lower-triangular factor C.
    """
    missing = pt.eye(observed.shape[-1]) * (1 - observed)[..., None, :]
    return pt.linalg.cholesky(
        covariances * observed[..., :, None] * observed[..., None, :] + missing
    )


def normal_logp(
    real: TensorVariable,
    observed: TensorVariable,
    means: TensorVariable,
    cholesky: TensorVariable,
) -> TensorVariable:
    r"""Log density of the observed cells of a multivariate normal.

    .. math:: \log N(x_o; \mu_o, \Sigma_{oo})
        = -\tfrac12 |C^{-1} e|^2 - \sum_i \log C_{ii} - \tfrac{|o|}{2} \log 2\pi,
        \qquad e = (x - \mu) \circ m

    Parameters
    ----------
    real : TensorVariable of shape (..., feature)
        Real cells in the user's units, 0 where missing.
    observed : TensorVariable of shape (..., feature)
        Mask m.
    means : TensorVariable of shape (..., feature)
        Means, in the user's units.
    cholesky : TensorVariable of shape (..., feature, feature)
        C of :func:`observed_cholesky`.

    Returns
    -------
    TensorVariable of shape (...)
        Log density; 0 for a row without an observed cell.
    """
    whitened = solve_triangular(cholesky, (real - means) * observed, lower=True, b_ndim=1)
    log_determinant = pt.log(pt.diagonal(cholesky, axis1=-2, axis2=-1)).sum(-1)
    return -0.5 * ((whitened**2).sum(-1) + observed.sum(-1) * LOG_TWO_PI) - log_determinant


def independent_normal_logp(
    real: TensorVariable,
    observed: TensorVariable,
    means: TensorVariable,
    variances: TensorVariable,
) -> TensorVariable:
    r"""Log density of the observed cells of independent normals.

    .. math:: \sum_i m_i \log N(x_i; \mu_i, \sigma_i^2)

    Parameters
    ----------
    real : TensorVariable of shape (..., feature)
        Real cells in the user's units, 0 where missing.
    observed : TensorVariable of shape (..., feature)
        Mask m.
    means : TensorVariable of shape (..., feature)
        Means, in the user's units.
    variances : TensorVariable of shape (..., feature)
        Variances, in the user's units squared.

    Returns
    -------
    TensorVariable of shape (...)
        Log density; 0 for a row without an observed cell.
    """
    log_density = (real - means) ** 2 / variances + pt.log(variances) + LOG_TWO_PI
    return -0.5 * (observed * log_density).sum(-1)


def category_logp(
    code: TensorVariable, observed: TensorVariable, probabilities: TensorVariable
) -> TensorVariable:
    r"""Log probability of a category, 0 where it is missing.

    .. math:: m \log \theta_{x}

    Parameters
    ----------
    code : TensorVariable of shape (...)
        Level code, 0 where missing.
    observed : TensorVariable of shape (...)
        Mask m.
    probabilities : TensorVariable of shape (..., level)
        Level probabilities theta.

    Returns
    -------
    TensorVariable of shape (...)
        Log probability of the observed level.
    """
    level = pt.arange(probabilities.shape[-1])
    chosen = pt.eq(level, code[..., None]) * observed[..., None] > 0
    return pt.log(pt.switch(chosen, probabilities, 0).sum(-1) + (1 - observed))


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
        label, real, codes = self._split(value)
        joint = pt.log(component_probabilities) + self._real_logp(
            real, cell_observed[:, : self.n_features], means, covariances
        )
        for j, probabilities in enumerate(category_probabilities):
            joint += category_logp(
                codes[:, j, None], cell_observed[:, self.n_features + j, None], probabilities
            )
        excluded = label_observed[:, None] * pt.neq(component_class, label[:, None]) > 0
        return row_weight * pm.math.logsumexp(pt.switch(excluded, -np.inf, joint), axis=-1)

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
            cells.insert(0, normal_draw(means[component], covariances[group]))
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
            return independent_normal_logp(row, mask, means, variances)
        return normal_logp(row, mask, means, observed_cholesky(covariances, mask)[:, group])


def normal_draw(means: TensorVariable, covariances: TensorVariable) -> TensorVariable:
    r"""Draws of multivariate normals.

    .. math:: x = \mu + C z, \qquad z_i \sim N(0, 1), \qquad C C^\top = \Sigma

    Parameters
    ----------
    means : TensorVariable of shape (obs, feature)
        Mean of every row, in the user's units.
    covariances : TensorVariable of shape (obs, feature, feature)
        Covariance of every row.

    Returns
    -------
    TensorVariable of shape (obs, feature)
        One draw a row.
    """
    noise = pm.Normal.dist(shape=means.shape)
    return means + (pt.linalg.cholesky(covariances) * noise[:, None, :]).sum(-1)


def masked_normal_logp(
    real: TensorVariable,
    means: TensorVariable,
    covariances: TensorVariable,
    observed: TensorVariable,
) -> TensorVariable:
    r"""Log density :math:`\log N(x_o; \mu_o, \Sigma_{oo})` of rows given their components.

    Parameters
    ----------
    real : TensorVariable of shape (..., feature)
        Real cells in the user's units, 0 where missing.
    means : TensorVariable of shape (..., feature)
        Mean of every row.
    covariances : TensorVariable of shape (..., feature, feature)
        Covariance of every row.
    observed : TensorVariable of shape (..., feature)
        1 where a cell is observed, else 0.

    Returns
    -------
    TensorVariable of shape (...)
        Log densities.
    """
    return normal_logp(real, observed, means, observed_cholesky(covariances, observed))


def masked_normal_draw(
    means: TensorVariable,
    covariances: TensorVariable,
    observed: TensorVariable,
    size: Variable,
) -> TensorVariable:
    """Draw rows given their components; missing cells come out as 0.

    Parameters
    ----------
    means, covariances, observed : TensorVariable
        As in :func:`masked_normal_logp`.
    size : Variable
        Appended by PyMC; the masks fix the number of rows.

    Returns
    -------
    TensorVariable of shape (obs, feature)
        One draw a row.
    """
    return normal_draw(means, covariances) * observed


def masked_category_draw(
    probabilities: TensorVariable, observed: TensorVariable, size: Variable
) -> TensorVariable:
    """Draw categories given the rows' components; missing ones come out as 0.

    Parameters
    ----------
    probabilities : TensorVariable of shape (obs, level)
        Level probabilities of every row.
    observed : TensorVariable of shape (obs,)
        1 where the category is observed, else 0.
    size : Variable
        Appended by PyMC; the mask fixes the number of rows.

    Returns
    -------
    TensorVariable of shape (obs,)
        Level codes.
    """
    return pm.Categorical.dist(p=probabilities) * pt.cast(observed, "int64")
