"""Commands that ask the model of an earlier fit about new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bayesrbf.commands.printing import Json, answer, finish_with_findings
from bayesrbf.commands.typed_arguments import model_for, of_dates, spoken

POINT_WARNING: Final = "The model was fitted to a point"
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
    options, model = model_for(folder, table)
    from bayesrbf.files import writing_whole
    from bayesrbf.new_rows.block_predictions import BlockPredictions, write_predictions
    from bayesrbf.new_rows.new_row_files import complete_blocks

    file = folder / f"{table.stem}-predictions.csv" if out is None and not json else out
    totals, frames = BlockPredictions(model, options.costs), []
    with spoken(POINT_WARNING, *of_dates(options.table)):
        predictions = totals.over(complete_blocks(model, table, options.table))
        if json:
            frames = list(predictions)
            predictions = iter(frames)
        if file is not None:
            with writing_whole(file) as beside, open(beside, "xb") as content:
                write_predictions(predictions, content)
        novel, fewer = totals.novelty(), totals.fewer_cells()
    counts, decided = totals.predicted, totals.decided.most_common()
    record = {
        "table": table.name,
        "rows": totals.rows,
        "prob": totals.prob,
        "predicted": counts,
        "decided": dict(decided),
        "novel": novel or None,
        "fewer_cells": fewer or None,
        "predictions": [row for block in frames for row in block.to_dict("records")],
    }
    lines = [f"{table.name}: {totals.rows} rows"]
    lines += [f"  {count:>7} most probably {label}" for label, count in list(counts.items())[:8]]
    lines += [f"  {count:>7} decided {label}" for label, count in decided[:8]]
    lines += [f"  {sentence}" for sentence in (novel, fewer) if sentence]
    if not totals.has_intervals:
        lines.append("  The model has no draws, and so no intervals.")
    answer(record, [*lines, f"Wrote {file}"], as_json=json)


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
    options, model = model_for(folder, table)
    from bayesrbf.new_rows.explained_row import explain_row, lines_of_row
    from bayesrbf.new_rows.new_row_files import read_complete, row_number

    with spoken(*of_dates(options.table)):
        rows = read_complete(model, table, options.table)
        number, dates = row_number(rows, row), options.table.dates
        explained = explain_row(model, rows, number, dates, options.costs)
    answer({"explained": explained}, lines_of_row(explained), as_json=json)


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
    options, model = model_for(folder, table)
    import bayesrbf
    from bayesrbf.new_rows.new_row_files import read_rows

    with spoken(*of_dates(options.table)):
        rows = read_rows(model, table, options.table)
        result = bayesrbf.check(model, rows, dates=options.table.dates)
    finish_with_findings(table, result, f"{table.name}: {result}", as_json=json)
