"""PyMC graphs of the model families, to read, draw and sample from."""

from __future__ import annotations

from bayesrbf.models.kernel_network import declare_kernel_network, declare_kernel_rates
from bayesrbf.models.median_lvq import declare_median_lvq
from bayesrbf.models.mixture import declare_hybrid_mixture, declare_mixture, observe_mixture
from bayesrbf.models.rbf_network import declare_rbf_network
from bayesrbf.models.sdgm import declare_sdgm
from bayesrbf.models.stack import declare_stack

__all__ = [
    "declare_hybrid_mixture",
    "declare_kernel_network",
    "declare_kernel_rates",
    "declare_median_lvq",
    "declare_mixture",
    "declare_rbf_network",
    "declare_sdgm",
    "declare_stack",
    "observe_mixture",
]
