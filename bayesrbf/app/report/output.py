"""Files of a report run: predictions as CSV, draws as netCDF."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayesrbf.app.report.costs import decisions_in_words
from bayesrbf.app.report.options import (
    ANYTHING,
    FIGURES,
    POSTERIOR,
    PREDICTIONS,
    Focus,
)
from bayesrbf.app.words import plain
from bayesrbf.base import names

if TYPE_CHECKING:
    import xarray as xr

    from bayesrbf.app.report.held_out import HeldOutRows


MIN_DRAWS: Final = 10  # Fewer, of every chain, describe no posterior; the file is larger then.

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""First characters that make a spreadsheet evaluate a cell."""


def predictions_frame(
    uncertainty: xr.Dataset,
    labels: pd.Series | None = None,
    held_out: HeldOutRows | None = None,
    focus: Focus = ANYTHING,
    ids: pd.Index | None = None,
    first: int = 1,
) -> pd.DataFrame:
    """One line per row: class, probabilities, intervals, entropies in nats, novelty.

    ``decision`` is the one of least expected cost, where there are costs. ``ids`` name the rows
    beside their numbers, which begin with ``first``.
    ``novelty`` is near 1 where a row is unlike those of the training table. ``held_out_<class>`` is
    the probability by a fit that had not seen the row's label, of the first held-out classifier.
    """
    classes = [str(label) for label in uncertainty[names.LABEL].to_numpy()]
    mean = uncertainty[names.PROBABILITY].to_numpy()
    columns: dict[str, object] = {}
    if labels is not None:
        columns["label"] = labels.astype(object).where(labels.notna(), None).to_list()
    columns["predicted"] = np.array(classes, dtype=object)[mean.argmax(1)]
    if focus.decides:
        columns["decision"] = decisions_in_words(mean, classes, focus)
    for name, source in (
        ("probability", names.PROBABILITY),
        ("lower", "lower"),
        ("upper", "upper"),
    ):
        values = uncertainty[source].to_numpy()
        columns |= {f"{name}_{label}": values[:, c] for c, label in enumerate(classes)}
    for name in (
        "total_entropy",
        "aleatoric_entropy",
        "epistemic_entropy",
        "novelty",
        "familiarity",
    ):
        columns[name] = uncertainty[name].to_numpy()
    if held_out is not None:
        probabilities = next(iter(held_out.probabilities.values()))
        columns |= {f"{HELD_OUT}{label}": probabilities[:, c] for c, label in enumerate(classes)}
    return numbered(pd.DataFrame(columns), ids, first)


def numbered(answers: pd.DataFrame, ids: pd.Index | None, first: int = 1) -> pd.DataFrame:
    """Answers behind the numbers of their rows and the names of these, where they have some.

    ``_id`` is added to a title of the names that another column has, so that none is lost.

    >>> numbered(pd.DataFrame({"predicted": ["sick"]}), pd.Index(["p7"], name="predicted"))
       row predicted_id predicted
    0    1           p7      sick
    """
    beside = {"row": np.arange(first, first + len(answers))}
    if ids is not None:
        title = "id" if ids.name is None else str(ids.name)
        while title in beside or title in answers:
            title += "_id"
        beside[title] = ids.to_numpy()
    return pd.concat([pd.DataFrame(beside), answers], axis=1)


def to_csv(frame: pd.DataFrame, *, header: bool = True) -> bytes:
    r"""A frame as CSV in UTF-8 that no spreadsheet evaluates; missing cells become empty.

    >>> to_csv(pd.DataFrame({"label": ["=1+1", None], "p": [0.25, float("nan")]}))
    b"label,p\r\n'=1+1,0.25\r\n,\r\n"
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    if header:
        writer.writerow([inert(name) for name in frame.columns])
    columns = [frame.iloc[:, i].tolist() for i in range(frame.shape[1])]
    writer.writerows([inert(cell) for cell in row] for row in zip(*columns, strict=True))
    return text.getvalue().encode()


def inert(cell: object) -> object:
    """A cell that a spreadsheet does not evaluate: text like a formula gets an apostrophe.

    >>> inert("@cmd"), inert(-0.5), inert(float("nan"))
    ("'@cmd", -0.5, '')
    """
    if cell is None or (isinstance(cell, float) and cell != cell):
        return ""
    return "'" + cell if isinstance(cell, str) and cell.startswith(FORMULA) else cell


HELD_OUT: Final = "held_out_"
"""Prefix of the columns of predictions with probabilities of held-out rows."""


def read_predictions(folder: Path) -> pd.DataFrame:
    """The predictions of the training rows, where a folder has them; else an empty frame."""
    file = folder / PREDICTIONS
    if not file.exists():
        return pd.DataFrame()
    # The second column names the rows, is the label, or is the class that is predicted.
    texts = {"label": str, pd.read_csv(file, nrows=0).columns[1]: str}
    frame = pd.read_csv(file, dtype=texts, keep_default_na=False, na_values=[""])
    frame.columns = pd.Index(map(spelled, frame.columns))
    return frame.assign(
        **{name: frame[name].map(spelled, "ignore") for name in texts if name in frame}
    )


def held_out_rows(
    folder: Path, classes: Sequence[str]
) -> tuple[Float[np.ndarray, "obs label"], Int[np.ndarray, " obs"]] | None:
    """Probabilities and labels of the training rows that were held out; None without any."""
    frame = read_predictions(folder)
    names = [HELD_OUT + label for label in classes]
    if not {"label", *names} <= {*frame.columns}:
        return None
    judged = frame.dropna(subset=["label", *names])
    codes = pd.Categorical(judged["label"], categories=list(classes)).codes.astype(int)
    if not (codes >= 0).any():
        return None
    return judged[names].to_numpy(dtype=float)[codes >= 0], codes[codes >= 0]


def spelled(cell: str) -> str:
    """A text of a file as it was before :func:`inert`.

    >>> spelled(str(inert("-1"))), spelled("'tis")
    ('-1', "'tis")
    """
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA) else cell


def figures_content(record: Mapping[str, Any], model: Path) -> bytes:
    """Figures of held-out or new rows as a file, with the digest of the file of the model."""
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    return json.dumps({"model": digest, **plain(record)}, allow_nan=False).encode()


def read_figures(folder: Path, page: str, digest: str) -> dict[str, Any] | None:
    """The figures of a page in a folder; None without one, or where it is of another model.

    ``digest`` is the SHA-256 of the file of the model.
    """
    try:
        content = (folder / FIGURES[page]).read_bytes() if (folder / page).exists() else b"{}"
        figures: dict[str, Any] = json.loads(content, object_hook=_with_nan)
        return figures if figures["model"] == digest and figures["sentences"] else None
    except (FileNotFoundError, ValueError, LookupError, TypeError):  # none that a command wrote
        return None


def _with_nan(record: dict[str, Any]) -> dict[str, Any]:
    """A record of JSON whose null is a figure that is not known."""
    return {name: float("nan") if value is None else value for name, value in record.items()}


MAX_DRAW_BYTES: Final = 20_000_000
"""Most bytes of the draws on disk; of more, every k-th draw is written."""


def draws_content(tree: xr.DataTree, whole: bool = False) -> tuple[memoryview, str]:
    """The draws as a file of at most ``MAX_DRAW_BYTES``, unless whole, and a note on thinning.

    Fewer than ten draws of a chain are no draws: a file of them may be larger.
    """
    content = to_netcdf(tree)
    every = 1
    draws = int(tree[names.POSTERIOR].sizes.get("draw", 1))
    while not whole and len(content) > MAX_DRAW_BYTES and draws // every >= 2 * MIN_DRAWS:
        every = min(draws // MIN_DRAWS, every * -(-len(content) // MAX_DRAW_BYTES))
        content = to_netcdf(tree.isel(draw=slice(None, None, every), missing_dims="ignore"))
    if every == 1:
        return content, ""
    return content, (
        f"{POSTERIOR} has 1 in {every} of the {draws} draws of a chain, so that it is not above "
        f"{MAX_DRAW_BYTES // 1_000_000} MB; the model has them all, and --draws {draws} writes "
        "them."
    )


def to_netcdf(tree: xr.DataTree) -> memoryview:
    """A DataTree as compressed netCDF, made in memory.

    HDF5 writes some of a file while closing it, and ends the process if that fails. A full disk
    must therefore not meet a file of HDF5.
    """
    encoding = {
        node.path: {name: {"zlib": True, "complevel": 1} for name in node.data_vars}
        for node in tree.subtree
        if node.data_vars
    }
    content: memoryview = tree.to_netcdf(engine="h5netcdf", encoding=encoding)
    return content
