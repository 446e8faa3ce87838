"""State as JSON and arrays: a closed vocabulary of values, and nothing that runs.

Everything that a fitted estimator holds is written with the values below. Reading
builds only these, whatever the text says: of classes, those that are ``@stored`` by name.

================ ==========================================================
value            in JSON
================ ==========================================================
None, bool, int, themselves
str, float
nan, inf         ``{"float": "nan"}``
list             a list
tuple            ``{"tuple": [...]}``
dict             ``{"dict": {...}}``, ``{"pairs": [[key, value], ...]}`` for
                 keys that are no strings
numeric array    ``{"array": ["0", 30, [2, 3]]}``: six numbers of the first
                 strip beside the JSON, which begin behind 30 others
of few values    ``{"coded": [place, place]}``: for every cell the number
                 of its value; the values
held in single   ``{"single": place}``: doubles whose bits single precision
precision        holds; ``{"coded single": [place, place]}`` where they are few
array of objects ``{"objects": ["O" or "U", shape, [...]]}``
record           ``{"record": ["Columns", {field: value}]}``
equal record     ``{"same": 3}``: the fourth record that was finished
Status           ``{"enum": ["Status", "converged"]}``
empty frame      ``{"frame": ["pandas", [[name, dtype], ...]]}``
================ ==========================================================
"""

from __future__ import annotations

from bayesrbf.artefact.packing import StateError, pack
from bayesrbf.artefact.unpacking import unpack

__all__ = ["StateError", "pack", "unpack"]
