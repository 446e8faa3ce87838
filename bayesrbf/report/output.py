"""Files of a report run: their names, predictions as CSV, draws as netCDF."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from bayesrbf.records import names

if TYPE_CHECKING:
    import xarray as xr

    from bayesrbf.report.validate import HeldOut

MODEL: Final = "model.safetensors"
PREDICTIONS: Final = "predictions.csv"
POSTERIOR: Final = "posterior.nc"
PAGE: Final = "report.html"
FILES: Final = (PREDICTIONS, MODEL, POSTERIOR, PAGE)

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters that make a spreadsheet run a cell."""


def predictions_frame(
    uncertainty: xr.Dataset, given: pd.Series | None = None, held_out: HeldOut | None = None
) -> pd.DataFrame:
    """One line per row: class, probabilities, intervals, entropies, novelty.

    Parameters
    ----------
    uncertainty : xarray.Dataset
        ``uncertainty(X)`` of a fitted classifier.
    given : Series, optional
        Labels that were given.
    held_out : HeldOut, optional
        Held-out probabilities of the rows of the fit: the first classifier's are written.

    Returns
    -------
    DataFrame
        Entropies in nats; ``novelty`` is the log density, low where a row is unlike all
        others; ``held_out_<class>`` is the probability by a model that had not seen the
        row's label.
    """
    classes = [str(label) for label in uncertainty[names.LABEL].to_numpy()]
    mean = uncertainty["mean"].to_numpy()
    columns: dict[str, object] = {"row": np.arange(1, len(mean) + 1)}
    if given is not None:
        columns["label"] = given.astype(object).where(given.notna(), None).to_list()
    columns["predicted"] = np.array(classes, dtype=object)[mean.argmax(1)]
    for name, source in (("probability", "mean"), ("lower", "lower"), ("upper", "upper")):
        values = uncertainty[source].to_numpy()
        columns |= {f"{name}_{label}": values[:, c] for c, label in enumerate(classes)}
    for name in ("total_entropy", "aleatoric_entropy", "epistemic_entropy", "novelty"):
        columns[name] = uncertainty[name].to_numpy()
    if held_out is not None:
        own = next(iter(held_out.probabilities.values()))
        columns |= {f"held_out_{label}": own[:, c] for c, label in enumerate(classes)}
    return pd.DataFrame(columns)


def to_csv(frame: pd.DataFrame) -> bytes:
    r"""A frame as CSV that no spreadsheet runs.

    Text that begins like a formula is written behind an apostrophe.

    Parameters
    ----------
    frame : DataFrame
        What to write; missing cells become empty.

    Returns
    -------
    bytes
        UTF-8.

    Examples
    --------
    >>> to_csv(pd.DataFrame({"label": ["=1+1", None], "p": [0.25, float("nan")]}))
    b"label,p\r\n'=1+1,0.25\r\n,\r\n"
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([harmless(name) for name in frame.columns])
    columns = [frame.iloc[:, i].tolist() for i in range(frame.shape[1])]
    writer.writerows([harmless(cell) for cell in row] for row in zip(*columns, strict=True))
    return text.getvalue().encode()


def harmless(cell: object) -> object:
    """A cell that a spreadsheet shows as it is.

    Parameters
    ----------
    cell : object
        Number, text or missing.

    Returns
    -------
    object
        Numbers as they are, missing cells empty, formulas as text.

    Examples
    --------
    >>> harmless("@cmd"), harmless(-0.5), harmless(float("nan"))
    ("'@cmd", -0.5, '')
    """
    if cell is None or (isinstance(cell, float) and cell != cell):
        return ""
    return "'" + cell if isinstance(cell, str) and cell.startswith(FORMULA) else cell


def to_netcdf(tree: xr.DataTree) -> memoryview:
    """A DataTree as compressed netCDF, made in memory.

    HDF5 writes some of a file while closing it, and has no way to fail then but to end the
    process: where the disk is full, that must not be its file.

    Parameters
    ----------
    tree : DataTree
        What to write.

    Returns
    -------
    memoryview
        The bytes of the file.
    """
    encoding = {
        node.path: {name: {"zlib": True, "complevel": 1} for name in node.data_vars}
        for node in tree.subtree
        if node.data_vars
    }
    content: memoryview = tree.to_netcdf(engine="h5netcdf", encoding=encoding)
    return content
