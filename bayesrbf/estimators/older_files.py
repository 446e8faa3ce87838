"""Files of version 0.1.0: a fit was many attributes of its estimator, and is one record now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass, replace
from functools import partial
from typing import Any, Final, cast

import numpy as np

from bayesrbf.artefact.unpacking import check_record
from bayesrbf.estimators import moved
from bayesrbf.fitted.density_stream import DensityDetails
from bayesrbf.fitted.exemplar_sources import TableSource
from bayesrbf.fitted.fitted_model import FittedModel
from bayesrbf.fitted.fitted_network import Noise
from bayesrbf.fitted.fitted_table import FittedTable
from bayesrbf.fitted.sdgm_fitting import EvidencePath
from bayesrbf.fitted.stack.drawing import DrawnMembers
from bayesrbf.fitted.stack.recipes import ALIASES
from bayesrbf.fitted.training_table import TrainingTable
from bayesrbf.records.mixture import Observations
from bayesrbf.records.mixture_objectives import (
    Blend,
    ConditionalLikelihood,
    Hinge,
    Likelihood,
    Margin,
    MixtureObjective,
)

Flat = Mapping[str, Any]
"""Arguments or attributes of an estimator by name, as such a file has them; none is trusted."""

DERIVED: Final = {
    *("n_iter_", "lower_bound_", "_n_features_out", "covariance_type_", "tied_", "kappa_"),
    *("hinge_weight_", "relevance_", "exemplars_", "exemplar_classes_", "sigma_", "n_weights_"),
    *("n_components_", "mode_probabilities_", "mode_n_weights_", "members_", "weights_"),
    *("member_temperatures_", "pointwise_"),
}
"""Attributes that follow from the model."""
DETAILS: Final = {
    *("candidates_", "noise_scale_", "noise_df_"),
    *("path_", "completion_error_", "_member_draws", "_refits"),
}
"""Attributes of single families."""
COMMON: Final = {
    *("model_", "columns_", "rows_", "kept_", "seed_", "_template", "_trace", "converged_"),
    *("status_", "draws_", "_raw", "n_features_in_", "feature_names_in_", "classes_"),
    *("_prevalence", "temperature_", "calibration_", "passes_", "_sampled", "_column_doubts"),
    *("_copies", "unlabelled_weight_", "_sklearn_output_config"),
}
"""Attributes of every estimator, some of which only some tables left behind."""


def from_flat_state(kind: str, arguments: Flat, state: Flat) -> dict[str, object]:
    """What a file of today would hold in place of arguments and attributes; nothing is trusted."""
    unknown = set(state) - DERIVED - DETAILS - COMMON
    if unknown:
        raise ValueError(f"unknown state: {', '.join(sorted(unknown))}")
    fit = FittedTable(
        _checked(_training(kind, arguments, state)),
        _model(state),
        state["_trace"],
        state["converged_"],
        state["status_"],
        _checked(_details(state)),
        temperature=state.get("temperature_", 1.0),
        calibration=state.get("calibration_"),
        averages=kind in AVERAGING and not arguments.get("calibrate", True),
        draws=state["draws_"],
        raw=state["_raw"],
    )
    return {
        "arguments": _arguments(kind, arguments),
        "fitted": _checked(fit),
        "container": state.get("_sklearn_output_config"),
    }


def _arguments(kind: str, arguments: Flat) -> dict[str, object]:
    """Constructor arguments as they are written now."""
    changed: dict[str, object] = {}
    if kind == "MixtureDensity":
        changed = {name: "cv" for name in CHOSEN if arguments[name] == "auto"}
    elif kind == "HybridMixtureClassifier":
        changed = {"objective": _objective(arguments)}
    elif kind == "StackedClassifier" and not isinstance(arguments["members"], str):
        changed = {"members": tuple(ALIASES.get(name, name) for name in arguments["members"])}
    gone = moved.ARGUMENTS.get(kind, {})
    return {name: value for name, value in arguments.items() if name not in gone} | changed


def _objective(arguments: Flat) -> MixtureObjective:
    """The objective that the arguments of a classifier of mixtures asked for."""
    stops_early, share = arguments["early_stopping"], arguments["validation_fraction"]
    search = {
        "max_iter": arguments["objective_iter"],
        "batch_size": arguments["batch_size"],
        "validation_fraction": share if stops_early else None,
    }
    margin = {name: arguments[name] for name in ("margin", "smoothing", "sharpness", "ramp_cap")}
    kinds: dict[str, Callable[[], MixtureObjective]] = {
        "likelihood": Likelihood,
        "conditional": partial(ConditionalLikelihood, **search),
        "margin": partial(Margin, **margin, **search),
        "blend": partial(Blend, arguments["kappa"], **search),
        "hinge": partial(Hinge, arguments["hinge_weight"], **margin, **search),
    }
    return kinds[arguments["objective"]]()


CHOSEN: Final = ("n_components", "covariance_type", "prior")
"""Arguments of a density that "auto" left to the rows held out, and "cv" does now."""
AVERAGING: Final = {"HybridMixtureClassifier", "MedianLVQClassifier"}
"""Classifiers that give means over draws where they are not calibrated."""


def _training(kind: str, arguments: Flat, state: Flat) -> TrainingTable:
    """What was read of the training table."""
    model, passes = state["model_"], state.get("passes_", 0)
    rows, columns = state.get("rows_"), state.get("columns_")
    if rows is None:  # rows that are compared: the model keeps them
        n = model.table.labels.size
        no_cells = np.empty((n, 0)), np.empty((n, 0), dtype=np.intp)
        rows = Observations(*no_cells, model.table.labels, model.table.weights)
        columns = model.source.columns if isinstance(model.source, TableSource) else None
    return TrainingTable(
        kind,
        columns,
        rows,
        state["kept_"],
        state["seed_"],
        state["n_features_in_"],
        state.get("feature_names_in_"),
        state["_template"],
        state.get("classes_"),
        state.get("_prevalence"),
        arguments["handle_unknown"],
        state.get("_column_doubts", ""),
        state.get("_copies"),
        state.get("unlabelled_weight_", 1.0),
        passes,
        state.get("_sampled", passes > 0),
    )


def _model(state: Flat) -> FittedModel:
    """The model, with what stood beside it."""
    model = state["model_"]
    if "noise_scale_" in state:
        noise = Noise(state["noise_scale_"], state["noise_df_"])
        model = replace(model, noise=_checked(noise))
    if "_refits" in state:
        members = model.members.renamed
        names = tuple(member.name for member in members.own)
        model = replace(model, members=members, names=names)
    return cast(FittedModel, model)


def _details(state: Flat) -> object:
    """What a family tells of its fit."""
    if "kappa_" in state:
        return ()
    if "candidates_" in state:
        return DensityDetails(state["candidates_"])
    if "path_" in state:
        return EvidencePath(state["path_"], state["completion_error_"])
    if "_refits" in state:
        refits, drawn = state["_refits"], DrawnMembers(state["_member_draws"])
        if refits is None:
            return drawn
        return replace(refits, members=tuple(one.renamed for one in refits.members))
    return None


def _checked[R](record: R) -> R:
    """A record, if it is one, that keeps the laws of stored ones, as those of a file do."""
    if is_dataclass(record):
        check_record(record)
    return record
