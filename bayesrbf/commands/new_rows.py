"""Commands that ask the model of a report about new rows."""

from __future__ import annotations

from pathlib import Path

from bayesrbf.commands.arguments import spoken


def predict(folder: Path, table: Path, /, *, out: Path | None = None) -> None:
    """Score new rows with the model that a report wrote.

    Parameters
    ----------
    folder : Path
        Folder of an earlier report.
    table : Path
        CSV or Parquet file with the same columns; the label column may be absent.
    out : Path, optional
        CSV file to write; <table>-predictions.csv in the folder by default.
    """
    from bayesrbf import load
    from bayesrbf.files import write_whole
    from bayesrbf.report.new_rows import novelty_of_rows, read_complete
    from bayesrbf.report.output import MODEL, predictions_frame, to_csv
    from bayesrbf.report.words import say

    model = load(folder / MODEL)
    file = folder / f"{table.stem}-predictions.csv" if out is None else out
    with spoken():
        rows = read_complete(model, table)
        uncertainty = model.uncertainty(rows)
    write_whole(file, to_csv(predictions_frame(uncertainty)))
    best = uncertainty["mean"].to_numpy().argmax(1)
    say(f"{table.name}: {len(rows)} rows")
    for position, label in enumerate(model.classes_[:8]):
        say(f"  {int((best == position).sum()):>7} most probably {label}")
    said = novelty_of_rows(model, rows, uncertainty["novelty"].to_numpy())
    if said:
        say(f"  {said}")
    say(f"Wrote {file}")


def explain(folder: Path, table: Path, /, *, row: int) -> None:
    """Say why the model of a report answers a row as it does, and what is odd about the row.

    Tells the class probabilities with their intervals, what each observed cell adds to the log
    odds of the answer, the cells that stand out, and how new the row is.

    Parameters
    ----------
    folder : Path
        Folder of an earlier report.
    table : Path
        CSV or Parquet file with the same columns; the label column may be absent.
    row : int
        Number of the row, 1 for the first below the header, as in predictions.csv.
    """
    from bayesrbf import load
    from bayesrbf.report.new_rows import read_complete
    from bayesrbf.report.output import MODEL
    from bayesrbf.report.row import explain_row
    from bayesrbf.report.words import say

    model = load(folder / MODEL)
    with spoken():
        say(*explain_row(model, read_complete(model, table), row))


def check(folder: Path, table: Path, /) -> None:
    """Hold a new table against the training table of a report; exit code 3 if something is found.

    Looks for columns that are absent, levels that training did not have, more missing cells,
    columns that were exchanged or are in other units, cells and rows that stand out, and class
    frequencies that changed, each beyond what chance explains. Exit code 2: an error.

    Parameters
    ----------
    folder : Path
        Folder of an earlier report; its model holds the training table.
    table : Path
        CSV or Parquet file with new rows; labels are not looked at.
    """
    from bayesrbf import load
    from bayesrbf.report.check import check_rows, printed
    from bayesrbf.report.new_rows import read_rows
    from bayesrbf.report.output import MODEL
    from bayesrbf.report.words import say

    with spoken():
        model = load(folder / MODEL)
        new = read_rows(model, table)
        remarks = check_rows(model, new)
    say(f"{table.name}: {len(new.rows)} rows", *printed(remarks))
    if any(remark.found for remark in remarks):
        raise SystemExit(3)
