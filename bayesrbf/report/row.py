"""Why a model answers a row as it does, as text for a terminal."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayesrbf.report.new_rows import NOVEL
from bayesrbf.report.words import clipped, exact, listing, number, percent

if TYPE_CHECKING:
    import xarray as xr


def explain_row(model: Any, rows: pd.DataFrame, of: int) -> list[str]:
    """Lines on a row, 1 for the first: its answer, what its cells add, what is odd about it."""
    if not 1 <= of <= len(rows):
        raise ValueError(
            f"--row must be from 1 to {len(rows)}, the rows of the table; received {of}."
        )
    place = of - 1
    row = rows.iloc[[place]]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The model was fitted to a point")  # told below
        uncertainty = model.uncertainty(row)
    lines = [f"Row {of} of {len(rows)}", "", *_answer(uncertainty)]
    explained = _explained(model, row)
    lines += ["", *explained] if explained else []
    return [*lines, "", *_oddities(model, rows, place, float(uncertainty["novelty"][0]))]


def aligned(table: list[list[str]]) -> list[str]:
    """Rows of text in columns: the first two to the left, all others to the right.

    >>> aligned([["a", "b", "3"], ["long", "", "12"]])
    ['  a     b   3', '  long     12']
    """
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  "
        + "  ".join(
            text.ljust(width) if i < 2 else text.rjust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in table
    ]


def _answer(uncertainty: xr.Dataset) -> list[str]:
    """Classes, the most probable one first, with the interval of each where there are draws."""
    prob = percent(float(uncertainty.attrs["prob"]))
    point = bool(uncertainty.attrs["point_estimate"])
    mean, lower, upper = (uncertainty[name].to_numpy()[0] for name in ("mean", "lower", "upper"))
    labels = uncertainty["label"].to_numpy()
    table = [["class", "", "probability", *([] if point else [f"{prob} interval"])]]
    for c in np.argsort(-mean, kind="stable"):
        between = [] if point else [f"{percent(lower[c])} to {percent(upper[c])}"]
        table.append([clipped(labels[c], 30), "", percent(mean[c]), *between])
    no_draws = ["  The model has no draws, and so no intervals."] if point else []
    return ["What the model says", *aligned(table), *no_draws]


def _explained(model: Any, row: pd.DataFrame) -> list[str]:
    """What every observed cell adds to the log odds of the answer; empty where none is known."""
    if not hasattr(model, "explain"):
        return []
    told = model.explain(row).isel(obs=0)
    best = int(told["log_odds"].argmax("label"))
    label = clipped(model.classes_[best], 30)
    of = told.isel(label=best)
    shapley, left_out, error = (
        of[name].to_numpy() for name in ("shapley", "left_out", "standard_error")
    )
    known = np.flatnonzero(~np.isnan(shapley))
    if not known.size:
        return [f"No cell is observed: the answer is that of a row without cells ({label})."]
    sampled = bool((error[known] > 0).any())
    table = [["column", "cell", "adds", *(["± s.e."] if sampled else []), "lost without"]]
    for j in known[np.argsort(-np.abs(shapley[known]), kind="stable")]:
        cells = [clipped(row.columns[j], 30), cell_text(row.iat[0, j]), signed(shapley[j])]
        cells += [f"{error[j]:.2f}"] if sampled else []
        table.append([*cells, signed(left_out[j])])
    first, last = signed(float(of["base"])), signed(float(of["log_odds"]))
    return [
        f"Why {label}: log odds against the rest, in nats",
        f"  {first} with no cell known, {last} with all observed cells; the cells add the rest:",
        *aligned(table),
        "  adds: what the cell adds, averaged over all orders of telling the cells (Shapley).",
        "  lost without: what the log odds lose if this cell alone were not known.",
        *_missing(row),
    ]


def _missing(row: pd.DataFrame) -> list[str]:
    """The columns without a cell in this row."""
    holes = [clipped(name, 30) for name in row.columns[row.isna().iloc[0]]]
    return [f"  Not observed: {listing(holes, 8)}."] if holes else []


def _oddities(model: Any, rows: pd.DataFrame, place: int, novelty: float) -> list[str]:
    """Cells that stand out and how new the row is, where there is a density of rows."""
    if not hasattr(model, "surprise"):
        kind = type(model).__name__
        return [f"{kind} has no density of rows: it does not say which cells or rows are odd."]
    cells = model.surprise(rows).isel(obs=place)
    odd = np.flatnonzero(cells["stands_out"].to_numpy())
    rate = percent(float(cells.attrs["false_discoveries"]))
    lines = [f"No cell of this row stands out (false discovery rate {rate})."]
    if odd.size:
        table = [["column", "cell", "expected", "interval", "tail"]]
        for j in odd:
            low, high = float(cells["lower"][j]), float(cells["upper"][j])
            between = "" if np.isnan(low) else f"{number(low)} to {number(high)}"
            tail = number(float(np.exp(cells["log_tail"][j])))
            expected = cell_text(cells["expected"].to_numpy()[j])
            name, cell = clipped(rows.columns[j], 30), cell_text(rows.iat[place, j])
            table.append([name, cell, expected, between, tail])
        title = f"Cells that stand out given the rest of the row (false discovery rate {rate})"
        lines = [title, *aligned(table)]
    if np.isnan(novelty):
        return lines
    verdict = "unlike the training table" if novelty > NOVEL else "like rows of the training table"
    return [
        *lines,
        f"Novelty {novelty:.2f}: of the model's own rows with the same holes, "
        f"{percent(novelty)} are more typical; the row is {verdict}.",
    ]


def cell_text(value: object) -> str:
    """A cell in a table of text."""
    return exact(float(value)) if isinstance(value, float | int) else clipped(value, 24)


def signed(value: float) -> str:
    """Two decimals with their sign.

    >>> signed(0.5), signed(-1.234)
    ('+0.50', '−1.23')
    """
    return f"{value:+.2f}".replace("-", "\u2212")
