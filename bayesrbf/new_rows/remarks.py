"""Remarks on new rows: sentences that are findings, or that chance may explain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Remark:
    """A sentence on new rows."""

    topic: str
    sentence: str
    is_finding: bool = True
    """Else it is worth knowing, and chance may explain it."""


def lines_of_remarks(remarks: Sequence[Remark]) -> list[str]:
    """Remarks as lines of text: the findings first, then the others."""
    width = max((len(remark.topic) for remark in remarks), default=0)
    lines = []
    for is_finding, title in ((True, "Found"), (False, "Beside that")):
        some = [remark for remark in remarks if remark.is_finding is is_finding]
        if some:
            lines += [title, *(f"  {remark.topic:<{width}}  {remark.sentence}" for remark in some)]
    return lines if any(remark.is_finding for remark in remarks) else ["Nothing was found.", *lines]
