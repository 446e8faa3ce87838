"""Draws from a log posterior: approximations, samplers and their diagnostics."""

from __future__ import annotations
