"""The command that looks at a table before any model."""

from __future__ import annotations

from pathlib import Path

from bayesrbf.commands.printing import Json, answer
from bayesrbf.commands.typed_arguments import Reading, need, typed
from bayesrbf.records.table_options import PLAIN


def look(
    table: Path,
    /,
    *,
    target: str | None = None,
    out: Path | None = None,
    reading: Reading = PLAIN,
    json: Json = False,
) -> None:
    """Look at a table without a model: kinds, odd cells, distributions, holes, associations.

    Takes seconds and fits nothing. Of more than 20,000 rows, so many are drawn at random. An
    association is told only if chance does not explain it, with the rows it rests on.

    Parameters
    ----------
    table : Path
        CSV, Parquet or Excel file; empty cells are missing.
    target : str, optional
        Column whose associations come first, and by whose classes distributions are coloured.
    out : Path, optional
        Page to write; <table>-look.html in the current folder by default.
    reading : TableOptions
        How the table is read, as report has it.
    json : bool
        Print one JSON object, and nothing else, on stdout; a page is then written only where
        --out names one.
    """
    need(("jinja2", "markupsafe", "pandas"))
    from bayesrbf.files import write_whole
    from bayesrbf.reading import read_file

    file = Path(f"{table.stem}-look.html") if out is None and not json else out
    if file is not None and file.exists() and file.samefile(table):
        raise ValueError(f"--out {file} is the table itself; name another file for the page.")
    read = read_file(table, None, typed(reading, table), sampled=True, lenient=True)
    from bayesrbf.report.look import look as seen
    from bayesrbf.report.look_page import lines_of_look, render_look

    result = seen(read, table.stem, target)
    if file is not None:
        write_whole(file, render_look(result).encode())
    record = {
        "table": table.name,
        "target": target,
        "rows": result.reading.rows,
        "remarks": result.remarks,
        "notes": result.reading.notes,
        "columns": result.reading.columns,
        "patterns": result.patterns,
        "repeated_rows": result.repeated,
        "contradicting_rows": result.contradicting,
        "columns_alike": result.alike,
        "with_target": result.with_target,
        "pairs": result.pairs,
        "file": file,
    }
    answer(record, [*lines_of_look(result), f"Wrote {file}"], as_json=json)
