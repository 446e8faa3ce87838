"""Pictures for a notebook: reliability, doubt, missing cells, dials, exemplars, boundaries.

Draws of the posterior are ArviZ's to draw: ``az.plot_trace_dist(model.posterior_)`` and the
like take them as they are.
"""

from bayesrbf.plots.exemplars import plot_exemplars
from bayesrbf.plots.hybrid import plot_hybrid_path
from bayesrbf.plots.probabilities import plot_doubt, plot_missing, plot_reliability
from bayesrbf.plots.sdgm import plot_sdgm

__all__ = [
    "plot_doubt",
    "plot_exemplars",
    "plot_hybrid_path",
    "plot_missing",
    "plot_reliability",
    "plot_sdgm",
]
