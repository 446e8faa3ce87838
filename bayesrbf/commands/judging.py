"""Commands that judge models: one on labelled new rows, several beside each other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bayesrbf.commands.printing import Json, answer, finish_with_findings
from bayesrbf.commands.typed_arguments import (
    Names,
    Reading,
    checked_jobs,
    costs_in,
    model_for,
    need,
    of_dates,
    spoken,
    typed,
)
from bayesrbf.records.table_options import PLAIN
from bayesrbf.report.options import ALL_CORES, FamilyName

Families = Annotated[tuple[FamilyName, ...], Parameter(consume_multiple=False, negative="")]


def validate(
    folder: Path,
    table: Path,
    /,
    *,
    target: str | None = None,
    cost: Names = (),
    json: Json = False,
) -> None:
    """Score the model of a report on new rows with labels; exit code 3 if something is found.

    Tells the scores of the report with their intervals, beside what the model expects of itself
    and what the class frequencies of training would score. A finding is: probabilities that say
    no more than those frequencies, that do not come true as often as they say, class frequencies
    that differ from training beyond chance, and classes that training did not have.

    Parameters
    ----------
    folder : Path
        Folder of an earlier report or fit.
    table : Path
        CSV, Parquet or Excel file with the columns of the model and a column of labels.
    target : str, optional
        Column with the class labels; by default that of the training table, or the only column
        that the model does not predict from and that holds classes of the model.
    cost : tuple of str
        What it costs to mistake a row of a class: sick=10,well=1 or repeated; by default what
        report or fit was told. Rows are then decided at least expected cost, and the cost of a
        row is one of the scores.
    json : bool
        Print one JSON object, and nothing else, on stdout.
    """
    options, model = model_for(folder, table)
    import bayesrbf
    from bayesrbf.new_rows.new_row_files import read_labelled

    with spoken(*of_dates(options.table)):
        X, y = read_labelled(model, table, target, options)
        result = bayesrbf.validate(model, X, y, costs=costs_in(cost) or options.costs)
    finish_with_findings(table, result, str(result), as_json=json)


def compare(
    table: Path,
    /,
    *,
    target: str,
    reading: Reading = PLAIN,
    model: Families = ("stack", "mixture", "rbf", "sdgm", "median_lvq"),
    folds: int = 5,
    seed: int = 0,
    jobs: int = ALL_CORES,
    json: Json = False,
) -> None:
    """Compare families and their peers on one table by held-out log score.

    Every row is held out once of every model, with everything that the model chooses, on the
    same folds. The peers are logistic regression and a random forest on filled columns, histogram
    boosting, and the class frequencies. Nothing is written.

    Parameters
    ----------
    table : Path
        CSV, Parquet or Excel file; empty cells are missing, rows without a label are used, too.
    target : str
        Column with the class labels.
    reading : TableOptions
        How the table is read.
    model : tuple of {"stack", "mixture", "rbf", "sdgm", "median_lvq"}
        Family that takes part, beside the peers; repeated for several, all by default.
    folds : int
        Number of folds, at least 2; a class of few rows takes fewer.
    seed : int
        Seed of everything random.
    jobs : int
        Processes that share the fits; -1 takes all cores. The answer does not depend on it, but
        for the seconds that are told.
    json : bool
        Print one JSON object, and nothing else, on stdout.
    """
    need()
    from bayesrbf.reading import read_file
    from bayesrbf.report.target import problems_of_target

    if folds < 2:
        raise ValueError(f"--folds must be at least 2, so that rows are held out; got {folds}.")
    read = read_file(table, target, typed(reading, table), problems_of_target(target, {}))
    # What fits takes seconds to import: a bad table is refused before.
    from bayesrbf.report import comparison
    from bayesrbf.report.prepare import prepare
    from bayesrbf.report.run import introduce, progress, sharing
    from bayesrbf.report.validate import CROSS_VALIDATION

    job = prepare(
        read,
        title=table.stem,
        family=model[0],
        inference="map",
        seed=seed,
        facts=(),
    )
    if not json:
        introduce(job, page=False)
    with spoken(), sharing(checked_jobs(jobs)), progress((CROSS_VALIDATION,)) as phase:
        result = comparison.compare(
            replace(job, folds=folds), tuple(dict.fromkeys(model)), phase=phase
        )
    record = {"table": table.name, "notes": job.notes, **vars(result)}
    answer(record, comparison.lines_of(result), as_json=json)
