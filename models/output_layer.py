"""The output layer of a declared RBF network: its prior, and the responses."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from jaxtyping import Float, Int
from pytensor.graph.basic import Variable
from pytensor.tensor import TensorVariable

from bayesrbf.models.densities import elastic_net, half_elastic_net, label_draw, label_logp
from bayesrbf.records import names
from bayesrbf.records.mixture import Standardisation
from bayesrbf.records.rbf_network import RBFNetworkHyperparameters, RBFNetworkSpecification

Coefficients = Literal["signed", "halves"]

RESPONSE_WEIGHT = "response_weight"


class OutputLayer:
    """Output weights and intercepts; made before the mixture weights, registered after.

    The weights come with their sign, or in two halves that are bounded at 0.
    """

    def __init__(
        self,
        specification: RBFNetworkSpecification,
        hyperparameters: RBFNetworkHyperparameters,
        kind: Coefficients,
    ) -> None:
        self._numeric = specification.response == "number"
        self._prior = hyperparameters
        k, c = specification.mixture.n_components, specification.n_outputs
        shape = (k,) if self._numeric else (c, k)
        l1, l2 = np.float64(hyperparameters.l1), np.float64(hyperparameters.l2)
        self._parts = (
            {names.COEFFICIENTS: elastic_net(l1, l2, shape)}
            if kind == "signed"
            else {f"{names.COEFFICIENTS}_{s}": half_elastic_net(l1, l2, shape) for s in "pm"}
        )
        first, *second = self._parts.values()
        self._weights = first - second[0] if second else first
        self._dims = (names.COMPONENT,) if self._numeric else (names.CLASS_LABEL, names.COMPONENT)

    @property
    def sizes(self) -> TensorVariable:
        """``sum_c |w_ck|`` of every component."""
        return abs(self._weights) if self._numeric else abs(self._weights).sum(axis=0)

    def register(self) -> None:
        """Name the weights, and declare the rest."""
        model = pm.modelcontext(None)
        for name, variable in self._parts.items():
            model.register_rv(variable, name, dims=self._dims, default_transform=None)
        if len(self._parts) == 2:
            pm.Deterministic(names.COEFFICIENTS, self._weights, dims=self._dims)
        dims = () if self._numeric else (names.CLASS_LABEL,)
        scale = np.float64(self._prior.intercept_scale)
        self._intercepts = pm.Normal(names.INTERCEPTS, np.float64(0), scale, dims=dims)
        if self._numeric:
            self._precision = pm.Gamma(
                names.NOISE_PRECISION,
                alpha=np.float64(self._prior.noise_shape),
                beta=np.float64(self._prior.noise_rate),
            )

    def observe(
        self,
        row_features: TensorVariable,
        responses: Int[np.ndarray, " obs"] | Float[np.ndarray, " obs"],
        weights: Float[np.ndarray, " obs"],
        units: Standardisation | None,
    ) -> None:
        """Declare the node ``y``.

        Responses are class codes, -1 where hidden; or numbers, NaN where hidden, with their
        location and scale, or in standard units if ``units`` is None.
        """
        linear = row_features @ self._weights.T + self._intercepts
        row_weight = pm.Data(RESPONSE_WEIGHT, weights, dims=names.OBS)
        if not self._numeric:
            pm.CustomDist(
                names.OBSERVED_LABEL,
                linear,
                row_weight,
                logp=label_logp,
                dist=label_draw,
                observed=responses,
                dims=names.OBS,
            )
            return
        known = pm.Data("response_observed", (~np.isnan(responses)) * 1.0, dims=names.OBS)
        location, scale = (0.0, 1.0) if units is None else (units.location, units.scale)
        pm.CustomDist(
            names.OBSERVED_LABEL,
            linear * scale + location,
            self._precision / np.float64(np.squeeze(scale)) ** 2,
            known * row_weight,
            logp=_number_logp,
            dist=_number_draw,
            observed=np.nan_to_num(responses),
            dims=names.OBS,
        )


def _number_logp(
    value: TensorVariable,
    linear: TensorVariable,
    precision: TensorVariable,
    row_weight: TensorVariable,
) -> TensorVariable:
    """Weighted log densities of numbers about the linear output."""
    log_density = pt.log(precision) - np.log(2 * np.pi) - precision * (value - linear) ** 2
    return row_weight * 0.5 * log_density


def _number_draw(
    linear: TensorVariable, precision: TensorVariable, row_weight: TensorVariable, size: Variable
) -> TensorVariable:
    """One number a row; a weight has no part in it."""
    return pm.Normal.dist(linear, precision**-0.5)
