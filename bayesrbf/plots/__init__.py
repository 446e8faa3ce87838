"""Pictures for a notebook: reliability, doubt, rehearsals, holes, dials, exemplars, boundaries.

Draws of the posterior are ArviZ's to draw: ``az.plot_trace_dist(model.posterior_)`` and the
like take them as they are.
"""

from bayesrbf.plots.boundaries import plot_sdgm
from bayesrbf.plots.exemplar_pictures import plot_exemplars
from bayesrbf.plots.probabilities import (
    plot_doubt,
    plot_hybrid_path,
    plot_missing,
    plot_reliability,
)
from bayesrbf.plots.rehearsals import plot_rehearsal

__all__ = [
    "plot_doubt",
    "plot_exemplars",
    "plot_hybrid_path",
    "plot_missing",
    "plot_rehearsal",
    "plot_reliability",
    "plot_sdgm",
]
