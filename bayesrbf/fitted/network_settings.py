"""How an RBF network is built and fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bayesrbf.records.rbf_network import Features, RBFNetworkSpecification, Response
from bayesrbf.records.specification import CovarianceType, MixtureSpecification

SchemeName = Literal["joint", "em_lr", "em_lr_link", "em_lr_link_k", "caetano"]

DEFAULT_COMPONENTS = 10
"""Components of a mixture where no number is given."""

DEFAULT_LINK = {
    "joint": 0.0,
    "em_lr": 0.0,
    "em_lr_link": np.inf,
    "em_lr_link_k": np.inf,
    "caetano": 100.0,
}
"""gamma of each scheme where none is given."""

DEFAULT_FEATURES: dict[str, Features] = {
    "joint": "responsibility",
    "em_lr": "density",
    "em_lr_link": "density",
    "em_lr_link_k": "density",
    "caetano": "responsibility",
}
"""Features of each scheme where none are given."""


@dataclass(frozen=True)
class NetworkSettings:
    """How a network is built and fitted; the estimators say what each argument is."""

    scheme: SchemeName
    features: Features
    n_components: int
    shared: bool
    covariance_type: CovarianceType
    link: float
    l1: float
    l2: float
    kappa: float | None
    """Power of p(x); None: one over the number of columns."""
    grow: tuple[int, int] | None
    """Components that join at a time, and the most of a mixture."""
    impute: bool
    """Whether missing cells are filled in rather than summed out."""
    n_init: int
    max_iter: int
    tol: float
    seed: int

    def specification(
        self, n_features: int, levels: tuple[int, ...], n_outputs: int, response: Response
    ) -> RBFNetworkSpecification:
        """Structure of the network on a table: one mixture, or one an output."""
        n_mixtures = 1 if self.shared else n_outputs
        component_class = tuple(c for c in range(n_mixtures) for _ in range(self.n_components))
        mixture = MixtureSpecification(n_features, levels, component_class, self.covariance_type)
        return RBFNetworkSpecification(mixture, n_outputs, self.features, response)
