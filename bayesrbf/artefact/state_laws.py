"""The laws of a fitted state as a whole: what a fit of any family leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesrbf.records.stored import MOST_LOG, Requirements, require, scales, simplex, within


def check_state(state: Mapping[str, Any]) -> None:
    """ValueError where the parts of a fitted state do not belong together."""
    require(_laws(state), "the state")


def _laws(state: Mapping[str, Any]) -> Requirements:
    """Whether each law of a state holds, and what it requires; its model is a ``FittedModel``."""
    rows, classes, draws = (state.get(name) for name in ("rows_", "classes_", "draws_"))
    model = state["model_"]
    columns = state.get("columns_", model.table_columns)
    yield 0 <= state["seed_"] < 2**31, "a seed"
    yield within(state["kept_"], 0), "positions of its rows"
    copies = state.get("_copies")
    if copies is not None:
        scored = within(copies[0], 0) and within(copies[1], 0, model.n_scored)
        yield scored, "places of the copies of rows"
    if columns is not None:
        yield state["n_features_in_"] == len(columns.names), "as many columns as it was fitted to"
        named = state.get("feature_names_in_")
        yield named is None or named.tolist() == list(columns.names), "its columns' names"
        frame = getattr(state["_template"], "columns", columns.names)
        yield len(frame) == len(columns.names), "a frame of its columns"
        dtypes = [getattr(one, "kind", "f") for one in getattr(state["_template"], "dtypes", ())]
        texts = {kind for kind, of in zip(columns.kinds, dtypes, strict=False) if of == "O"}
        yield not texts & {"real", "count"}, "numbers in its columns of numbers"
    if rows is not None and columns is not None:
        levels = columns.n_levels
        yield rows.real.shape[1] == len(columns.real_names), "rows of its real columns"
        yield rows.codes.shape[1] == len(levels), "rows of its categorical columns"
        yield bool((rows.codes < np.array([*levels, 1])[: len(levels)]).all()), "codes of levels"
        yield rows.n_obs == state["kept_"].size and rows.n_obs > 0, "a position of every row"
        n_codes = model.n_codes(1 if classes is None else classes.size)
        yield within(rows.labels, -1, n_codes), "codes of its labels"
        structure = model.density.specification
        yield structure.levels == levels, "a model of its levels"
        yield structure.n_features == len(columns.real_names), "a model of its columns"
    if classes is not None:
        n = classes.size
        plain = all(isinstance(one, str | int | float) for one in classes.tolist())
        yield plain and classes.ndim == 1 and n == len(set(classes.tolist())), "classes that differ"
        yield scales(state["temperature_"]) and state["temperature_"] < MOST_LOG, "a temperature"
        prevalence = state["_prevalence"]
        sums = prevalence is None or (prevalence.size == n and simplex(prevalence))
        yield sums, "prevalences that sum to one"
        yield prevalence is None or (prevalence > 0).all(), "positive prevalences"
    if draws is not None:
        yield state["_raw"] is not None, "the draws as they came"
        yield state["_raw"].theta.shape == draws.theta.shape, "the same draws as they came"
