"""Model files of every released version, kept for ever; ``python -m tests.golden`` writes one.

They are small models of the families of ``tests.mutations``, with rows and what they predict. A
folder that is there is never written again: a file that can no longer be read is a broken promise.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any, Final

import numpy as np

from bayesrbf.version import __version__
from tests.mutations import FAMILIES, fitted, table

FOLDER: Final = Path(__file__).parent / "golden"
SAID: Final = "predictions.json"


def predictions(model: Any, rows: Any) -> dict[str, list[Any]]:
    """Everything that a model predicts of rows, as JSON keeps it without a loss."""
    said = {}
    for name in ("predict_proba", "score_samples", "predict"):
        if hasattr(model, name):
            said[name] = np.asarray(getattr(model, name)(rows)).tolist()
    return said


def file_of(folder: Path, family: str) -> Path:
    return folder / f"{family.replace(' ', '_')}.safetensors"


def write(folder: Path) -> None:
    """A file of every family, and what it predicts for the rows of its table."""
    folder.mkdir(parents=True)
    kinds = sorted({kind for kind, _ in FAMILIES.values()})
    said: dict[str, Any] = {"rows": {kind: table(kind)[0].to_dict("list") for kind in kinds}}
    for family in FAMILIES:
        model, rows = fitted(family)
        digest = model.save(file_of(folder, family))
        said[family] = {"sha256": digest, "rows": FAMILIES[family][0], **predictions(model, rows)}
        print(family, file_of(folder, family).stat().st_size, flush=True)
    (folder / SAID).write_text(json.dumps(said, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(write(FOLDER / __version__))
