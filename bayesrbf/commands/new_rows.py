"""Commands that ask the model of an earlier fit about new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bayesrbf.commands.answering import FOUND, Json, answer
from bayesrbf.commands.arguments import asked, of_dates, spoken

POINT: Final = "The model was fitted to a point"
"""How a warning begins that the lines of predict have in words of their own."""


def predict(folder: Path, table: Path, /, *, out: Path | None = None, json: Json = False) -> None:
    """Score new rows with the model that report or fit wrote.

    Where the report had costs, a column says the decision of least expected cost.

    Parameters
    ----------
    folder : Path
        Folder of an earlier report or fit.
    table : Path
        CSV or Parquet file with the same columns; the label column may be absent.
    out : Path, optional
        CSV file to write; <table>-predictions.csv in the folder by default.
    json : bool
        Print one JSON object with a record of every row, and nothing else, on stdout; a CSV
        file is then written only where --out names one.
    """
    options, model = asked(folder, table)
    from bayesrbf.files import writing_whole
    from bayesrbf.report.new_rows import complete_blocks
    from bayesrbf.report.scoring import Scored, write_predictions

    file = folder / f"{table.stem}-predictions.csv" if out is None and not json else out
    scored, kept = Scored(model, options.costs), []
    with spoken(POINT, *of_dates(options.table)):
        predictions = scored.over(complete_blocks(model, table, options.table))
        if json:
            kept = list(predictions)
            predictions = iter(kept)
        if file is not None:
            with writing_whole(file) as beside, open(beside, "xb") as written:
                write_predictions(predictions, written)
        said, fewer = scored.novelty(), scored.fewer_cells()
    counts, decided = scored.predicted, scored.decided.most_common()
    told = {
        "table": table.name,
        "rows": scored.rows,
        "prob": scored.prob,
        "predicted": counts,
        "decided": dict(decided),
        "novel": said or None,
        "fewer_cells": fewer or None,
        "predictions": [row for block in kept for row in block.to_dict("records")],
    }
    lines = [f"{table.name}: {scored.rows} rows"]
    lines += [f"  {count:>7} most probably {label}" for label, count in list(counts.items())[:8]]
    lines += [f"  {count:>7} decided {label}" for label, count in decided[:8]]
    lines += [f"  {remark}" for remark in (said, fewer) if remark]
    if not scored.has_intervals:
        lines.append("  The model has no draws, and so no intervals.")
    answer(told, [*lines, f"Wrote {file}"], as_json=json)


def explain(folder: Path, table: Path, /, *, row: str, json: Json = False) -> None:
    """Say why the model of a report answers a row as it does, and what is odd about the row.

    Tells the class probabilities with their intervals, what each observed cell adds to the log
    odds of the answer, the cells that stand out, and how new the row is.

    Parameters
    ----------
    folder : Path
        Folder of an earlier report or fit.
    table : Path
        CSV or Parquet file with the same columns; the label column may be absent.
    row : str
        Name of the row, where the report was told by --id which column names the rows; else
        its number, 1 for the first below the header, as in predictions.csv.
    json : bool
        Print one JSON object, and nothing else, on stdout.
    """
    options, model = asked(folder, table)
    from bayesrbf.report.new_rows import read_complete, row_number
    from bayesrbf.report.row import explain_row, lines_of

    with spoken(*of_dates(options.table)):
        rows = read_complete(model, table, options.table)
        told = explain_row(model, rows, row_number(rows, row), options.table.dates, options.costs)
    answer({"explained": told}, lines_of(told), as_json=json)


def check(folder: Path, table: Path, /, *, json: Json = False) -> None:
    """Hold a new table against the training table of a report; exit code 3 if something is found.

    Looks for columns that are absent, levels that training did not have, more missing cells,
    columns that were exchanged or are in other units, cells and rows that stand out, and class
    frequencies that changed, each beyond what chance explains. Exit code 2: an error.

    Parameters
    ----------
    folder : Path
        Folder of an earlier report or fit; its model holds the training table.
    table : Path
        CSV or Parquet file with new rows; labels are not looked at.
    json : bool
        Print one JSON object, and nothing else, on stdout.
    """
    options, model = asked(folder, table)
    from bayesrbf.report.check import check_rows, printed
    from bayesrbf.report.new_rows import read_rows

    with spoken(*of_dates(options.table)):
        new = read_rows(model, table, options.table)
        remarks = check_rows(model, new, options.table.dates)
    found = any(remark.found for remark in remarks)
    told = {"table": table.name, "rows": len(new.rows), "found": found, "remarks": remarks}
    lines = [f"{table.name}: {len(new.rows)} rows", *printed(remarks)]
    answer(told, lines, as_json=json)
    if found:
        raise SystemExit(FOUND)
