"""The command line: from a table to a folder with probabilities and a report.

Nothing heavy is imported before a command runs, so that ``--help`` answers at once.
"""

from __future__ import annotations

import csv
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal, NoReturn

from cyclopts import App, CycloptsError, Parameter

from bayesrbf.version import __version__

REPORT_PACKAGES = ("jinja2", "markupsafe", "h5netcdf", "pandas")

app = App(
    name="bayesrbf",
    version=__version__,
    help="Class probabilities for small, messy tables, and how sure they are.",
    help_format="plaintext",
    error_formatter=lambda error: f"bayesrbf: {_one_line(error)}",
)

Names = Annotated[tuple[str, ...], Parameter(consume_multiple=False, negative="")]


@app.command
def report(
    table: Path,
    /,
    *,
    target: str,
    out: Path,
    categorical: Names = (),
    ignore: Names = (),
    model: Literal["stack", "mixture", "rbf", "sdgm", "median_lvq"] = "stack",
    inference: Literal["auto", "bootstrap", "laplace", "advi", "gibbs", "nuts", "map"] = "auto",
    cost: Names = (),
    rehearse: Annotated[bool, Parameter(negative="")] = False,
    seed: int = 0,
) -> None:
    """Fit a table, check the fit on held-out rows, and write everything to a folder.

    Writes report.html, predictions.csv, posterior.nc and model.safetensors, all or none.

    Parameters
    ----------
    table : Path
        CSV or Parquet file; empty cells are missing, rows without a label are used, too.
    target : str
        Column with the class labels.
    out : Path
        Folder for the results.
    categorical : tuple of str
        Columns of numbers that are codes: a,b or repeated.
    ignore : tuple of str
        Columns to leave out: a,b or repeated.
    model : {"stack", "mixture", "rbf", "sdgm", "median_lvq"}
        What is fitted: a pool of kernel networks and mixtures, one mixture, an RBF network, a
        sparse mixture, or exemplars.
    inference : {"auto", "bootstrap", "laplace", "advi", "gibbs", "nuts", "map"}
        How intervals are made: bootstrap fits the stack anew, 25 times; laplace and advi are
        approximations and take seconds; gibbs and nuts are exact, if the model is right, and
        take longer; map makes none. auto takes the best one that the model has.
    cost : tuple of str
        What it costs to mistake a row of a class: sick=10,well=1 or repeated; 1 for classes
        not named. The report then says what acting on the probabilities costs.
    rehearse : bool
        Try how often the intervals hold a truth that is known: labels of these rows are drawn
        from three other models, twice each. Takes six more fits with their draws, two to eight
        times as long as the report without it.
    seed : int
        Seed of everything random.
    """
    _need(REPORT_PACKAGES)
    from bayesrbf.files import writing_together
    from bayesrbf.reading import read_table
    from bayesrbf.report.output import FILES
    from bayesrbf.report.prepare import facts_of, prepare
    from bayesrbf.report.run import run

    with writing_together(out, FILES) as scratch:
        read = read_table(table, categorical=[*_split(categorical), target], ignore=_split(ignore))
        job = prepare(
            read,
            target,
            title=table.stem,
            family=model,
            inference=inference,
            seed=seed,
            facts=facts_of(_command(), table),
            costs=_costs(cost),
            rehearse=rehearse,
        )
        files = run(job, scratch)
    _point_to(out, files)


@app.command
def demo(*, out: Path = Path("report"), seed: int = 0) -> None:
    """Report on a table of 569 tumours with 30 % of the cells and half of the labels hidden.

    What was hidden is kept, so the report shows how well it was found again. The table is
    written beside the results.

    Parameters
    ----------
    out : Path
        Folder for the results.
    seed : int
        Seed of what is hidden, and of everything else random.
    """
    _need(REPORT_PACKAGES)
    import numpy as np

    from bayesrbf.datasets import TARGET, demo_tables
    from bayesrbf.files import write_whole, writing_together
    from bayesrbf.reading import read_table
    from bayesrbf.report.output import FILES, to_csv
    from bayesrbf.report.prepare import facts_of, prepare
    from bayesrbf.report.run import run

    tables = "breast_cancer_incomplete.csv", "breast_cancer_complete.csv"
    with writing_together(out, (*tables, *FILES)) as scratch:
        incomplete, truth = demo_tables(np.random.default_rng(seed))
        file, complete = (scratch / name for name in tables)
        write_whole(file, to_csv(incomplete))
        write_whole(complete, to_csv(truth))
        job = prepare(
            read_table(file, categorical=[TARGET]),
            TARGET,
            title="Breast cancer, with holes",
            family="stack",
            inference="auto",
            seed=seed,
            facts=facts_of(_command(), file),
            truth=truth,
        )
        files = run(job, scratch)
    _point_to(out, files)


@app.command
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

    model = load(folder / MODEL)
    file = folder / f"{table.stem}-predictions.csv" if out is None else out
    with _spoken():
        rows = read_complete(model, table)
        uncertainty = model.uncertainty(rows)
    write_whole(file, to_csv(predictions_frame(uncertainty)))
    best = uncertainty["mean"].to_numpy().argmax(1)
    print(f"{table.name}: {len(rows)} rows")
    for position, label in enumerate(model.classes_[:8]):
        print(f"  {int((best == position).sum()):>7} most probably {label}")
    said = novelty_of_rows(model, rows, uncertainty["novelty"].to_numpy())
    if said:
        print(f"  {said}")
    print(f"Wrote {file}")


@app.command
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

    model = load(folder / MODEL)
    with _spoken():
        print("\n".join(explain_row(model, read_complete(model, table), row)))


@app.command
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

    with _spoken():
        model = load(folder / MODEL)
        new = read_rows(model, table)
        remarks = check_rows(model, new)
    print("\n".join([f"{table.name}: {len(new.rows)} rows", *printed(remarks)]))
    if any(remark.found for remark in remarks):
        raise SystemExit(3)


app.command(
    "bayesrbf.reproduce.commands:app",
    name="reproduce",
    help="Compute the figures of published experiments.",
)


def main() -> None:
    """Run the command line; an error is one sentence on stderr and a code above 0."""
    try:
        app(sys.argv[1:])
    except KeyboardInterrupt:
        _fail("interrupted; nothing was written.", 130)
    except (ValueError, TypeError, OSError, ImportError) as error:
        _fail(_one_line(error), 2)


def _fail(sentence: str, code: int) -> NoReturn:
    """Print a sentence on stderr and exit."""
    print(f"bayesrbf: {sentence}", file=sys.stderr)
    raise SystemExit(code)


def _one_line(error: Exception) -> str:
    """An error as one line of plain text."""
    if isinstance(error, OSError) and error.strerror:
        named = f"{error.filename}: " if error.filename else ""
        return f"{named}{error.strerror[0].lower()}{error.strerror[1:]}."
    text = str(error) if not isinstance(error, CycloptsError) else str(error).strip()
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else "?" for c in line) or type(error).__name__


def _split(tokens: Iterable[str]) -> list[str]:
    """Names from ``a,b``; a name with a comma is in double quotes."""
    return [name for token in tokens for name in next(csv.reader([token]), [])]


def _costs(tokens: Iterable[str]) -> dict[str, float]:
    """Costs from ``class=cost``; the last equals sign separates."""
    costs = {}
    for pair in _split(tokens):
        name, _, value = pair.rpartition("=")
        try:
            costs[name] = float(value)
        except ValueError:
            raise ValueError(f"--cost takes class=number, such as sick=10; got {pair!r}.") from None
    return costs


def _command() -> str:
    """The command line as it would be typed."""
    return shlex.join(["bayesrbf", *sys.argv[1:]])


def _need(packages: Iterable[str]) -> None:
    """Exit with the name of the extra to install where one of its packages is absent."""
    from importlib.util import find_spec

    absent = [name for name in packages if find_spec(name) is None]
    if absent:
        raise ImportError(
            f"the report needs {', '.join(absent)}; install it by: pip install 'bayesrbf[report]'"
        )


def _point_to(folder: Path, files: list[str]) -> None:
    """Print where the files are."""
    from bayesrbf.report.output import PAGE

    print(f"Open {folder / PAGE}")
    print(f"In {folder}: {', '.join(files)}")


@contextmanager
def _spoken() -> Iterator[None]:
    """Print warnings as sentences on stderr."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for sentence in dict.fromkeys(_one_line(Exception(one.message)) for one in caught):
        print(f"bayesrbf: {sentence}", file=sys.stderr)
