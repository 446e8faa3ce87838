"""Stacks in files that version 0.1.0 wrote: names of members, and the state of draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from bayesrbf.fitted.stack.bootstrap import StackRefits
from bayesrbf.fitted.stack.drawing import DrawnMembers
from bayesrbf.fitted.stack.members import MEMBERS, FittedMembers

ALIASES: Final = {
    "K1": "laplace",
    "K2": "laplace_equal",
    "SL": "laplace_short",
    "AL": "laplace_evidence",
    "VG10": "gaussian_loo",
    "VG100": "gaussian_loo_light",
    "VC100": "gaussian_loo_levels",
    "G1": "normal",
    "G2": "mixture",
    "B1": "normal_blend",
    "B2": "mixture_blend",
}
"""Names of members by those of version 0.1.0."""
DERIVED: Final = ("members_", "weights_", "member_temperatures_", "pointwise_")
"""What was stored beside the model, and follows from it."""


def of_earlier_version(record: dict[str, Any]) -> dict[str, Any]:
    """Arguments and state that a file holds, as this version has them."""
    state = dict(record["state"])
    model = state["model_"]
    arguments = record["arguments"]
    if "_refits" in state:
        refits: StackRefits | None = state.pop("_refits")
        state["_member_draws"] = DrawnMembers(state["_member_draws"])
        if refits is not None:
            members = tuple(map(_renamed, refits.members))
            state["_member_draws"] = replace(refits, members=members)
        for name in DERIVED:
            del state[name]
        model = replace(model, members=_renamed(model.members), names=_names(model.names))
        state["model_"] = model
        if not isinstance(arguments["members"], str):
            arguments = arguments | {"members": _names(arguments["members"])}
    unknown = sorted({member.name for member in model.members.own} - set(MEMBERS))
    if unknown:
        raise ValueError(
            f"the stack has the member {unknown[0]!r}, and this version only {', '.join(MEMBERS)}; "
            "fit a stack anew"
        )
    return {"arguments": arguments, "state": state}


def _renamed(members: FittedMembers) -> FittedMembers:
    """Members with their present names."""
    own = tuple(
        replace(member, name=ALIASES.get(member.name, member.name)) for member in members.own
    )
    return replace(members, own=own)


def _names(names: Sequence[str]) -> tuple[str, ...]:
    """The present names of members."""
    return tuple(ALIASES.get(name, name) for name in names)
