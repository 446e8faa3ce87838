"""The graph of a fit, and how far to trust it and its draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bayesrbf.estimators.answers.asking import Fit

if TYPE_CHECKING:
    import pymc as pm

    from bayesrbf.inference.diagnose import FindingsTable


def declare(fit: Fit, /, **options: Any) -> pm.Model:
    """Declare the graph of this model on its training rows.

    Calibration and ``class_prior`` are not part of the graph.

    Parameters
    ----------
    **options : object
        ``latent``, of mixtures: ``"marginal"`` sums hidden labels and components out,
        ``"explicit"`` makes them nodes. ``coefficients``, of RBF networks: ``"signed"`` as
        posteriors have output weights, or in two bounded ``"halves"``, as the mode is found.

    Returns
    -------
    pymc.Model
        Free variables under the names of ``posterior_``.

    Raises
    ------
    ValueError
        If the model has no declared joint, or its training rows are out of memory.
    """
    fit.require_all_rows("declare()")
    graph: pm.Model = fit.model.declare(fit.rows, fit.axes, **options)
    return graph


def diagnose(fit: Fit) -> FindingsTable:
    """Judge fit and draws by figures, each with a sentence; a warning lists the bad ones.

    Returns
    -------
    DataFrame
        One row a figure, with columns ``row``, ``value``, ``good`` (on the right side of its
        bound) and ``sentence``: convergence of the MAP and, where there are draws, Pareto k-hat,
        curvature, R-hat (as drawn, relabelled, and of class probabilities),
        effective draws, divergences, distance from the MAP, leave-one-out;
        whatever the method gives.

    Warns
    -----
    PosteriorWarning
        Once, if figures are bad; it says what to do next.
    """
    from bayesrbf.inference.diagnose import table, warn

    figures = fit.findings()
    warn(figures, stacklevel=4)
    return table(figures)
