"""The declared graphs of mixture densities and of class-conditional mixtures."""

from __future__ import annotations

from collections.abc import Sequence

import pymc as pm

from bayesrbf.models.row_nodes import LIKELIHOOD, Axes, Latent, declare_rows
from bayesrbf.records.column_maps import PowerMaps
from bayesrbf.records.mixture import Observations
from bayesrbf.records.objective import Objective
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification


def declare_mixture(
    observations: Observations,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
    *,
    feature_names: Sequence[object] | None = None,
    categorical_names: Sequence[object] | None = None,
    level_names: Sequence[Sequence[object]] | None = None,
    latent: Latent = "marginal",
    obs_names: Sequence[object] | None = None,
    column_maps: PowerMaps | None = None,
) -> pm.Model:
    r"""Declare a mixture density over the rows of a table with holes.

    .. math:: p(x_o) = \sum_k w_k \, N(x_o; \mu_k, \Sigma_{g(k)})
        \prod_{j \in o} \theta_{kj}[x_j]

    Parameters
    ----------
    observations : Observations
        Rows, in the user's units; all labels 0.
    specification : MixtureSpecification
        Structure of the mixture, of one class.
    hyperparameters : MixtureHyperparameters
        Resolved prior, in the user's units.
    feature_names : sequence of length n_features, optional
        Names of the real columns.
    categorical_names : sequence of length n_categorical, optional
        Names of the categorical columns.
    level_names : sequence of sequences, optional
        Levels of every categorical column.
    latent : {"marginal", "explicit"}
        ``"marginal"``: one observed node ``x`` (obs, column) whose log density
        sums the components and the missing cells out. ``"explicit"``: the
        component ``z`` of every row is a node and the cells are observed given
        it, to be read, drawn, or marginalised by other tools.
    obs_names : sequence of length n_obs, optional
        Names of the rows.
    column_maps : PowerMaps, optional
        Maps in front of the real columns, their powers the data ``column_powers``:
        priors, means and covariances are those of mapped cells.

    Returns
    -------
    pm.Model
        The declared graph.

    Raises
    ------
    ValueError
        If the specification has more than one class, if rows, prior and names
        do not fit it, or if ``latent="explicit"`` meets a row weight other than 1.

    Notes
    -----
    The masks ``label_observed`` and ``cell_observed`` and the ``row_weight`` are
    data. A weight has no generative story: set it to one with ``pm.set_data``
    for an unweighted ``log_likelihood``; draws never depend on it. A row with
    holes has a covariance factor of its own, so time and memory of the graph
    grow as n_obs * n_groups * n_features squared, at least: it is made to be read,
    simulated from and checked against, not to be fast.

    References
    ----------
    Priors and mode: :func:`bayesrbf.models.mixture_priors.declare_priors`.

    Examples
    --------
    >>> import numpy as np
    >>> rows = Observations(
    ...     real=np.array([[0.0, 1.0], [2.0, np.nan]]), codes=np.empty((2, 0), int),
    ...     labels=np.zeros(2, int), weights=np.ones(2))
    >>> specification = MixtureSpecification(2, (), (0, 0))
    >>> prior = MixtureHyperparameters(2.0, 0.1, np.ones(2), np.ones(2), 1.5, 2.0, ())
    >>> model = declare_mixture(rows, specification, prior)
    >>> [variable.name for variable in model.free_RVs]
    ['weights', 'means', 'precision_diagonal', 'precision_lower']
    """
    if specification.n_classes != 1:
        raise ValueError(
            f"declare_mixture needs a specification of one class; received "
            f"{specification.n_classes}: use declare_hybrid_mixture."
        )
    axes = Axes(feature_names, categorical_names, level_names, None, obs_names)
    return declare_rows(
        observations, specification, hyperparameters, axes, latent, maps=column_maps
    )


def declare_hybrid_mixture(
    observations: Observations,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
    *,
    feature_names: Sequence[object] | None = None,
    categorical_names: Sequence[object] | None = None,
    level_names: Sequence[Sequence[object]] | None = None,
    class_names: Sequence[object] | None = None,
    latent: Latent = "marginal",
    obs_names: Sequence[object] | None = None,
    objective: Objective = LIKELIHOOD,
    column_maps: PowerMaps | None = None,
) -> pm.Model:
    r"""Declare class-conditional mixtures over labelled and unlabelled rows with holes.

    .. math:: p(x_o, c) = \pi_c \sum_{k \in c} w_k \, N(x_o; \mu_k, \Sigma_{g(k)})
        \prod_{j \in o} \theta_{kj}[x_j]

    A row without a label contributes :math:`\log \sum_c p(x_o, c)`. One class
    makes this :func:`bayesrbf.models.declare_mixture`.

    Parameters
    ----------
    observations : Observations
        Rows, in the user's units; label -1 where it is hidden.
    specification : MixtureSpecification
        Structure of the mixture.
    hyperparameters : MixtureHyperparameters
        Resolved prior, in the user's units.
    feature_names : sequence of length n_features, optional
        Names of the real columns.
    categorical_names : sequence of length n_categorical, optional
        Names of the categorical columns.
    level_names : sequence of sequences, optional
        Levels of every categorical column.
    class_names : sequence of length n_classes, optional
        The classes.
    latent : {"marginal", "explicit"}
        ``"marginal"``: one observed node ``x`` (obs, column) whose log density
        sums hidden labels, components and missing cells out. ``"explicit"``:
        the component ``z`` of every row is a node; its label and cells are
        observed given it.
    obs_names : sequence of length n_obs, optional
        Names of the rows.
    objective : Objective
        What stands in the place of the log likelihood. Other than the likelihood it
        is declared by potentials beside the rows' own density: ``objective``, J less
        the log likelihood of every row, and ``prior_power`` in a blend. The result
        is a Gibbs posterior; draws from the prior do not see the potentials.
    column_maps : PowerMaps, optional
        Maps in front of the real columns, their powers the data ``column_powers``:
        priors, means and covariances are those of mapped cells.

    Returns
    -------
    pm.Model
        The declared graph.

    Raises
    ------
    ValueError
        If rows, prior and names do not fit the specification, or if
        ``latent="explicit"`` meets a row weight other than 1 or an objective other
        than the likelihood.

    Notes
    -----
    The masks ``label_observed`` and ``cell_observed`` and the ``row_weight`` are
    data. A weight has no generative story: set it to one with ``pm.set_data``
    for an unweighted ``log_likelihood``; draws never depend on it. A row with
    holes has a covariance factor of its own, so time and memory of the graph
    grow as n_obs * n_groups * n_features squared, at least: it is made to be read,
    simulated from and checked against, not to be fast.

    References
    ----------
    Priors and mode: :func:`bayesrbf.models.mixture_priors.declare_priors`.

    Examples
    --------
    >>> import numpy as np
    >>> rows = Observations(
    ...     real=np.array([[0.0], [2.0], [np.nan]]), codes=np.array([[0], [1], [1]]),
    ...     labels=np.array([0, 1, -1]), weights=np.ones(3))
    >>> specification = MixtureSpecification(1, (2,), (0, 0, 1), "diag")
    >>> prior = MixtureHyperparameters(
    ...     2.0, 0.1, np.ones(1), np.ones(1), 1.5, 2.0, (np.array([1.5, 1.5]),))
    >>> model = declare_hybrid_mixture(rows, specification, prior, class_names=["no", "yes"])
    >>> [variable.name for variable in model.free_RVs]
    ['class_probabilities', 'weights_0', 'means', 'precision_diagonal', 'probability_0']
    """
    axes = Axes(feature_names, categorical_names, level_names, class_names, obs_names)
    return declare_rows(
        observations, specification, hyperparameters, axes, latent, objective, column_maps
    )
