"""Laws of stored stacks and draws, and of a fitted state as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from bayesrbf.artefact.laws import (
    MOST_LOG,
    MOST_PARTS,
    Law,
    Lines,
    ascending,
    scales,
    simplex,
    within,
)
from bayesrbf.records.few_values import FewValues


def _members(members: Any) -> Lines:
    yield 0 < members.n_classes <= MOST_PARTS and len(members.own) > 0, "classes and members"
    sizes = {_columns_of(member) for member in members.own}
    yield len(sizes) == 1, "members of the same columns"
    yield next(iter(sizes))[2] == members.n_classes, "members of its classes"


def _columns_of(member: Any) -> tuple[int, tuple[int, ...], int]:
    """Real columns, levels and classes of a member, as the table has them."""
    structure, few = _structure_of(member), _few_of(member)
    n_classes = getattr(member.model, "n_classes", structure.n_classes)
    own = len(structure.levels) - len(few.features)
    return structure.n_features + len(few.features), structure.levels[:own], n_classes


def _structure_of(member: Any) -> Any:
    """The columns that a member sees."""
    density = getattr(member.model, "companions", None)
    return (density.first if density else member.model).specification


def _few_of(member: Any) -> FewValues:
    """The real columns that a member takes for categories."""
    few: FewValues = getattr(member.columns, "few", FewValues())
    return few


def _member(member: Any) -> Lines:
    few, structure = _few_of(member), _structure_of(member)
    maps = getattr(member.columns, "others", member.columns)
    yield maps.units.scale.size == structure.n_features, "a map of every column"
    levels = structure.levels[len(structure.levels) - len(few.features) :]
    yield levels == few.levels, "levels for the values of its columns"
    yield within(few.features, 0, _columns_of(member)[0]), "real columns of few values"
    yield not few.features or hasattr(member.model, "companions"), "a kernel for its categories"


def _few_values(few: Any) -> Lines:
    yield len(few.features) == len(few.values), "values of every column"
    yield ascending(few.features) and all(map(ascending, few.values)), "values in rising order"
    yield all(values.size > 1 for values in few.values), "values that differ"


def _pool(pool: Any) -> Lines:
    yield simplex(pool.weights), "weights that sum to one"
    yield scales(pool.member_temperatures) and scales(pool.temperature), "positive temperatures"
    yield within((*pool.member_temperatures, pool.temperature), 0, MOST_LOG), "temperatures"


def _held_out(held: Any) -> Lines:
    yield within(held.labels, 0) and within(held.weights, 0), "labels and weights"
    yield within(abs(held.values), 0, MOST_LOG), "log probabilities"


def _stack(model: Any) -> Lines:
    n, n_classes = len(model.names), model.members.n_classes
    own = tuple(member.name for member in model.members.own)
    yield own == model.names and len(set(own)) == n, "its members' names"
    yield model.pool.weights.size == n, "a weight of every member"
    yield model.held.values.shape[1:] == (n, n_classes), "held-out rows of its members"
    yield within(model.held.labels, 0, n_classes), "held-out rows of its classes"
    structure = model.companion.specification
    own_columns = _columns_of(model.members.own[0])
    yield (
        (structure.n_features, structure.levels, structure.n_classes) == own_columns,
        ("a companion of its columns"),
    )


def _refits(refits: Any) -> Lines:
    first = refits.members[0] if refits.members else None
    yield first is not None, "members"
    names = [tuple(one.name for one in members.own) for members in refits.members]
    yield len(set(names)) == 1, "refits of the same members"
    yield {members.n_classes for members in refits.members} == {refits.shifts.shape[1]}, "classes"
    yield refits.factors.shape[1] == len(names[0]), "a factor of every member"
    numbers = refits.factors, refits.shifts
    yield all(within(abs(one), 0, MOST_LOG) for one in numbers), "factors and shifts"
    yield within(refits.table_variance, 0, MOST_LOG), "a variance"


def _usual_rows(usual: Any) -> Lines:
    yield usual.excess.size == usual.weights.size, "a weight of every row"
    yield within(usual.weights, 0) and within(abs(usual.excess), 0, MOST_LOG), "typicalities"
    yield within(abs(usual.slope), 0, MOST_LOG), "a slope"


def _draws(draws: Any) -> Lines:
    yield draws.theta.shape[0] > 0 and draws.theta.shape[1] > 0, "draws"
    yield "lp" in draws.stats, "the log density of every draw"
    plain = all(value.dtype.kind in "bif" for value in draws.stats.values())
    yield plain, "statistics that are numbers"


def _drawn_members(drawn: Any) -> Lines:
    shapes = {one.theta.shape[:2] for one in drawn.draws if one is not None}
    yield len(shapes) <= 1, "as many draws of every member"


STACKS: Final[dict[str, Law]] = {
    "Draws": _draws,
    "DrawnMembers": _drawn_members,
    "FittedMember": _member,
    "FittedMembers": _members,
    "FewValues": _few_values,
    "FittedStack": _stack,
    "HeldOut": _held_out,
    "Pool": _pool,
    "StackRefits": _refits,
    "UsualRows": _usual_rows,
}


def check_state(state: Mapping[str, Any]) -> None:
    """ValueError where the parts of a fitted state do not belong together."""
    for holds, what in _state(state):
        if not holds:
            raise ValueError(f"the state needs {what}")


def _state(state: Mapping[str, Any]) -> Lines:
    """What a fit of any family leaves behind, taken together."""
    rows, classes, draws = (state.get(name) for name in ("rows_", "classes_", "draws_"))
    model: Any = state["model_"]
    of_source = getattr(getattr(model, "source", None), "columns", None)
    columns = state.get("columns_", of_source)
    yield 0 <= state["seed_"] < 2**31, "a seed"
    yield within(state["kept_"], 0), "positions of its rows"
    copies, scored = state.get("_copies"), getattr(model, "held", getattr(model, "table", None))
    if copies is not None:
        most = 0 if scored is None else scored.labels.size
        yield within(copies[0], 0) and within(copies[1], 0, most), "places of the copies of rows"
    if columns is not None:
        yield state["n_features_in_"] == len(columns.names), "as many columns as it was fitted to"
        named = state.get("feature_names_in_")
        texts = named is None or all(isinstance(name, str) for name in named)
        yield texts and (named is None or list(named) == list(columns.names)), "its columns' names"
        frame = getattr(state["_template"], "columns", columns.names)
        yield len(frame) == len(columns.names), "a frame of its columns"
        dtypes = [getattr(one, "kind", "f") for one in getattr(state["_template"], "dtypes", ())]
        told = {kind for kind, of in zip(columns.kinds, dtypes, strict=False) if of == "O"}
        yield not told & {"real", "count"}, "numbers in its columns of numbers"
    if rows is not None and columns is not None:
        levels = columns.n_levels
        yield rows.real.shape[1] == len(columns.real_names), "rows of its real columns"
        yield rows.codes.shape[1] == len(levels), "rows of its categorical columns"
        yield bool((rows.codes < np.array([*levels, 1])[: len(levels)]).all()), "codes of levels"
        yield rows.n_obs == state["kept_"].size and rows.n_obs > 0, "a position of every row"
        yield within(rows.labels, -1, _n_codes(state)), "codes of its labels"
        structure = getattr(model.density, "specification", None)
        yield structure is None or structure.levels == levels, "a model of its levels"
        features = len(columns.real_names)
        yield structure is None or structure.n_features == features, "a model of its columns"
    if classes is not None:
        n = classes.size
        plain = all(isinstance(one, str | int | float) for one in classes.tolist())
        yield plain and classes.ndim == 1 and n == len(set(classes.tolist())), "classes that differ"
        yield scales(state["temperature_"]) and state["temperature_"] < MOST_LOG, "a temperature"
        prevalence = state["_prevalence"]
        known = prevalence is None or (prevalence.size == n and simplex(prevalence))
        yield known, "prevalences that sum to one"
        yield prevalence is None or (prevalence > 0).all(), "positive prevalences"
    if draws is not None:
        yield state["_raw"] is not None, "the draws as they came"
        yield state["_raw"].theta.shape == draws.theta.shape, "the same draws as they came"


def _n_codes(state: Mapping[str, Any]) -> int:
    """Number of different labels that rows may have: classes, sets of them, numbers, or one."""
    model, classes = state["model_"], state.get("classes_", np.zeros(1))
    for told in (getattr(model, "sets", None), _values(model)):
        if told is not None:
            return len(told)
    return len(classes)


def _values(model: Any) -> np.ndarray | None:
    """Distinct numbers that a network was fitted to, where it is one of numbers."""
    return getattr(getattr(model, "responses", None), "values", None)
