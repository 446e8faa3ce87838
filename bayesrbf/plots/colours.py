"""Colours of every picture."""

from __future__ import annotations

from typing import Final

PALETTE: Final = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#5b4a9c",
    "#444b52",
    "#8c6d31",
    "#7a1f3d",
)
"""Colours that people with any colour vision can distinguish (after Okabe and Ito)."""
