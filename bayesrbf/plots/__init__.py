"""Pictures for a notebook: reliability, uncertainty, rehearsals, missing cells, exemplars.

ArviZ draws the posterior: ``az.plot_trace_dist(model.posterior_)`` and the like take it as it is.
"""

from bayesrbf.plots.boundaries import plot_sdgm
from bayesrbf.plots.dependence_matrix import plot_dependence
from bayesrbf.plots.exemplar_pictures import plot_exemplars
from bayesrbf.plots.probabilities import (
    plot_doubt,
    plot_missing,
    plot_rehearsal,
    plot_reliability,
)

__all__ = [
    "plot_dependence",
    "plot_doubt",
    "plot_exemplars",
    "plot_missing",
    "plot_rehearsal",
    "plot_reliability",
    "plot_sdgm",
]
