"""The version, where everything below the public names can read it."""

from __future__ import annotations

__version__ = "0.1.0"
