"""Tables out of memory: a fit reads them block by block, and answers come block by block."""

from __future__ import annotations
