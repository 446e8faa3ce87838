"""The command line: commands that fit, report, look, judge, predict, explain and serve."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

from cyclopts import App, CycloptsError, Parameter, UnknownOptionError

from bayesrbf.app.arguments import (
    REPORT_PACKAGES,
    SENTENCES,
    UNDECIDED,
    USUALLY,
    Coming,
    Decided,
    Fitted,
    Json,
    Meant,
    Names,
    Quick,
    Reading,
    answer,
    checked_draws,
    checked_jobs,
    checked_refits,
    command_line,
    costs_in,
    file_in,
    finish_with_findings,
    focus_in,
    folders_by_name,
    limit_time,
    model_for,
    models,
    names_in,
    need,
    obeying,
    one_line,
    point_to,
    refuse_by,
    refuse_to_replace,
    spoken,
    token_in,
    typed,
    with_values_joined,
)
from bayesrbf.app.report.options import ALL_CORES, ANYTHING, AS_TRAINED, FamilyName, Fitting, Focus
from bayesrbf.app.study import plan, update
from bayesrbf.base.table_options import PLAIN, TableOptions
from bayesrbf.version import __version__

if TYPE_CHECKING:
    from bayesrbf import ReadTable
    from bayesrbf.app.report.job import Job
    from bayesrbf.app.validate import Validation

# Commands that judge models: one on labelled new rows, several beside each other.


Families = Annotated[tuple[FamilyName, ...], Parameter(consume_multiple=False, negative="")]


def validate(
    folder: Path,
    table: Path,
    /,
    *,
    target: str | None = None,
    deciding: Decided = UNDECIDED,
    by: Names = (),
    score: str | None = None,
    group: str | None = None,
    missingness: Coming = AS_TRAINED,
    out: Path | None = None,
    json: Json = False,
) -> None:
    """Score the model of a report on new rows with labels; exit code 3 if something is found.

    Tells the scores of the report with their intervals, beside what the model expects of itself
    and what the class frequencies of training would score. A finding is: probabilities that say
    no more than those frequencies, that do not rank the rows or not come true as often as they
    say, class frequencies that differ from training beyond chance, classes that training did not
    have, columns that are not as in training, and rows that are not new. The last line says what
    to do: to use the model, only where nothing is found.

    Parameters
    ----------
    folder : Path
        Folder of an earlier report or fit.
    table : Path
        CSV, Parquet or Excel file with the columns of the model and a column of labels.
    target : str, optional
        Column with the class labels; by default that of the training table, or the only column
        that the model does not predict from and that holds classes of the model.
    deciding : Deciding
        Decisions, by default those that report or fit was told, and intervals, by default of 0.99:
        what one of them leaves out is a finding.
    by : tuple of str
        Columns by whose levels or ranges figures are told apart: sex,ward or repeated; by
        default those of the report, and its centres.
    score : str, optional
        Column with an existing score, as probabilities or points, that is set beside the model;
        by default that of the report.
    group : str, optional
        Column whose rows belong together, such as those of a patient; by default that of the
        report. Intervals are then as wide as those of resampled groups, too.
    out : Path, optional
        Folder for validation.html: the figures with their pictures, beside those of the training
        rows that the report held out, what has changed, and what to do; cells and rows that stand
        out, as check finds them, are then findings, too. validation.json has the figures; in the
        folder of the model, serve shows them.
    json : bool
        Print one JSON object, and nothing else, on stdout.
    """
    other_columns = (*names_in(by), score, group)
    options, model = model_for(folder, table, target, other_columns, missingness)
    import bayesrbf
    from bayesrbf.app.check import NEW_LEVELS
    from bayesrbf.app.predict import read_labelled
    from bayesrbf.app.report.options import VALIDATION
    from bayesrbf.app.report.output import held_out_rows
    from bayesrbf.app.validate import SURE, Beside, validated
    from bayesrbf.reading.read import names_in_file

    there, known = names_in_file(table), options.table
    event = len(model.classes_) == 2
    usual = [name for name in known.by if name in there]
    extra = TableOptions(
        by=tuple(names_in(by)) or tuple(usual if event else ()),
        centre=known.centre if known.centre in there and event and not by else None,
        score=score or (known.score if known.score in there else None),
        group=group or (known.group if known.group in there else None),
    )
    with spoken(NEW_LEVELS):
        X, y, read = read_labelled(model, table, target, options, extra)
        before = held_out_rows(folder, [str(label) for label in model.classes_])
        centres = {} if read.centres is None else {read.centres.name: read.centres}
        columns = {**centres, **read.by}
        lost = {"group": known.group, "score": known.score, "centre": known.centre}
        notes = [
            f"The new table has no column {name!r}, which the report had for --{option}."
            for option, name in [*lost.items(), *(("by", column) for column in known.by)]
            if name is not None and name not in there
        ]
        focus = focus_in(deciding, replace(options.focus, level=SURE))
        beside = Beside(columns, read.scores, read.groups)
        result = validated(model, X, y, focus, beside, before, notes)
        if out is not None:
            result = result.with_findings_of(bayesrbf.check(model, X))
            _write_validation(out, result, folder, table)
    page = () if out is None else (f"Open {out / VALIDATION}",)
    finish_with_findings(table, result, "\n".join((*page, str(result))), as_json=json)


def _write_validation(out: Path, result: Validation, folder: Path, table: Path) -> None:
    """Write the page of a validation to a folder, and its figures for the model card."""
    need(("jinja2", "markupsafe", "pandas"), "page of validate")
    from bayesrbf.app.report.options import FIGURES, MODEL, VALIDATION
    from bayesrbf.app.report.output import figures_content
    from bayesrbf.app.report.render import render_validation
    from bayesrbf.base.files import write_whole, writing_together

    with writing_together(out, (VALIDATION, FIGURES[VALIDATION])) as scratch:
        write_whole(scratch / VALIDATION, render_validation(result, table.stem).encode())
        figures = {"table": table.name, **result.to_dict()}
        write_whole(scratch / FIGURES[VALIDATION], figures_content(figures, folder / MODEL))


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
    refuse_by(reading)
    from bayesrbf.app.report.costs import problems_of_target
    from bayesrbf.reading.read import read_file

    if folds < 2:
        raise ValueError(f"--folds must be at least 2, so that rows are held out; got {folds}.")
    read = read_file(table, target, typed(reading, table), problems_of_target(target))
    # What fits takes seconds to import: a bad table is refused before.
    from bayesrbf.app.report import families as comparison
    from bayesrbf.app.report.held_out import CROSS_VALIDATION
    from bayesrbf.app.report.run import introduce, prepare, progress, sharing

    job = prepare(read, table.stem, Fitting(model[0], inference="map", seed=seed, jobs=1))
    if not json:
        introduce(job, page=False)
    with spoken(), sharing(checked_jobs(jobs)), progress((CROSS_VALIDATION,)) as phase:
        result = comparison.compare(
            replace(job, folds=folds), tuple(dict.fromkeys(model)), phase=phase
        )
    record = {"table": table.name, "notes": job.notes, **vars(result)}
    answer(record, comparison.lines_of(result), as_json=json)


# The command that looks at a table before any model.


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
        Folder for <table>-look.html; the current one by default.
    reading : TableOptions
        How the table is read, as report has it.
    json : bool
        Print one JSON object, and nothing else, on stdout; a page is then written only where
        --out names a folder.
    """
    need(("jinja2", "markupsafe", "pandas"))
    refuse_by(reading)
    from bayesrbf.base.files import write_whole, writing_together
    from bayesrbf.reading.cells import as_typed
    from bayesrbf.reading.read import read_file

    file = file_in(out, Path(), f"{table.stem}-look.html", as_json=json)
    read = read_file(table, None, typed(reading, table), sampled=True, lenient=True)
    from bayesrbf.app.look import lines_of_look, render_look
    from bayesrbf.app.look import look as seen

    result = seen(read, table.stem, target)
    if file is not None:
        with writing_together(file.parent, (file.name,)) as scratch:
            write_whole(scratch / file.name, render_look(result).encode())
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
        "missing_with_target": result.missing_with_target,
        "pairs": result.pairs,
        "file": file,
    }
    words = ["bayesrbf", "report", str(table), "--target", target or "COLUMN", "--out", "DIR"]
    command = f"{shlex.join(words)} {as_typed(read.advised)}".rstrip()
    record["command"] = command
    to_fit = ["To fit it, as the notes advise:", f"  {command}"]
    answer(record, [*lines_of_look(result), *to_fit, f"Wrote {file}"], as_json=json)


# Commands that ask the model of an earlier fit about new rows.


POINT_WARNING: Final = "The model was fitted to a point"
"""Start of a warning that `predict` prints in its own words."""


def predict(
    folder: Path,
    table: Path,
    /,
    *,
    missingness: Coming = AS_TRAINED,
    out: Path | None = None,
    json: Json = False,
) -> None:
    """Score new rows with the model that report or fit wrote, and say what changed in them.

    Columns that are exchanged or in other units, new levels and more missing cells are told as
    check tells them, of the first rows of a long table.

    Where the report had costs or a threshold, a column says the decision.

    Parameters
    ----------
    folder : Path
        Folder of an earlier report or fit.
    table : Path
        CSV or Parquet file with the same columns; the label column may be absent.
    out : Path, optional
        Folder for <table>-predictions.csv; that of the model by default.
    json : bool
        Print one JSON object with a record of every row, and nothing else, on stdout; a CSV
        file is then written only where --out names a folder.
    """
    options, model = model_for(folder, table, missingness=missingness)
    from bayesrbf.app.predict import (
        BlockPredictions,
        complete_blocks,
        warn_of_extra,
        write_predictions,
    )
    from bayesrbf.app.words import NO_DRAWS
    from bayesrbf.base.files import writing_together, writing_whole
    from bayesrbf.reading.read import names_in_file

    file = file_in(out, folder, f"{table.stem}-predictions.csv", as_json=json)
    totals = BlockPredictions(model, options.focus)
    frames = []
    with spoken(POINT_WARNING):
        warn_of_extra(model, names_in_file(table), table.name, options)
        predictions = totals.over(complete_blocks(model, table, options.table))
        if json:
            frames = list(predictions)
            predictions = iter(frames)
        if file is not None:
            with (
                writing_together(file.parent, (file.name,)) as scratch,
                writing_whole(scratch / file.name) as beside,
                open(beside, "xb") as content,
            ):
                write_predictions(predictions, content)
        novel, fewer, changed = totals.novelty(), totals.fewer_cells(), totals.changed()
        unfamiliar = totals.unfamiliar()
    counts, decided = totals.predicted, totals.decided.most_common()
    updates = [update.sentence for update in model.updates_]
    record = {
        "table": table.name,
        "rows": totals.rows,
        "prob": totals.prob,
        "predicted": counts,
        "decided": dict(decided),
        "novel": novel or None,
        "fewer_cells": fewer or None,
        "unfamiliar": unfamiliar or None,
        "changed": changed,
        "updates": updates,
        "predictions": [row for block in frames for row in block.to_dict("records")],
    }
    lines = [f"{table.name}: {totals.rows} rows"]
    lines += [f"  {count:>7} most probably {label}" for label, count in list(counts.items())[:8]]
    lines += [f"  {count:>7} decided {label}" for label, count in decided[:8]]
    lines += [
        f"  {message}" for message in (*changed, novel, fewer, unfamiliar, *updates) if message
    ]
    if not totals.has_intervals:
        lines.append(f"  {NO_DRAWS}")
    answer(record, [*lines, f"Wrote {file}"], as_json=json)


def explain(
    folder: Path,
    table: Path,
    /,
    *,
    row: str,
    missingness: Coming = AS_TRAINED,
    json: Json = False,
) -> None:
    """Say why the model of a report answers a row as it does, and what is odd about the row.

    Tells the class probabilities with their intervals, what each observed cell adds to the log
    odds of the answer, which cells speak most against the decision and for it, the cells that
    stand out, and how new the row is.

    Parameters
    ----------
    folder : Path
        Folder of an earlier report or fit.
    table : Path
        CSV or Parquet file with the same columns; the label column may be absent.
    row : str
        Name of the row, where the report was told by --id which column names the rows; else,
        or where no name is a number, its number, 1 for the first below the header; --row=#1 is
        that, whatever the names are.
    json : bool
        Print one JSON object, and nothing else, on stdout.
    """
    options, model = model_for(folder, table, missingness=missingness)
    from bayesrbf.app.explain import explain_row, lines_of_row
    from bayesrbf.app.predict import read_complete, row_number, warn_of_extra
    from bayesrbf.reading.read import names_in_file

    with spoken():
        warn_of_extra(model, names_in_file(table), table.name, options)
        rows = read_complete(model, table, options.table)
        explained = explain_row(model, rows, row_number(rows, row), options.focus)
    answer({"explained": explained}, lines_of_row(explained), as_json=json)


def check(
    folder: Path,
    table: Path,
    /,
    *,
    missingness: Coming = AS_TRAINED,
    json: Json = False,
) -> None:
    """Hold a new table against the training table of a report; exit code 3 if something is found.

    Looks for columns that are absent, levels that training did not have, more missing cells,
    columns that were exchanged or are in other units, cells and rows that stand out, and class
    frequencies that changed, each beyond what chance explains. The last line says what to do.
    Exit code 2: an error.

    Parameters
    ----------
    folder : Path
        Folder of an earlier report or fit; its model holds the training table.
    table : Path
        CSV or Parquet file with new rows; labels are not looked at.
    json : bool
        Print one JSON object, and nothing else, on stdout.
    """
    options, model = model_for(folder, table, missingness=missingness)
    import bayesrbf
    from bayesrbf.app.predict import read_rows

    with spoken():
        rows = read_rows(model, table, options.table)
        result = bayesrbf.check(model, rows)
    finish_with_findings(table, result, f"{table.name}: {result}", as_json=json)


# Commands that fit a table: with a report of it, without one, or to a table for show.


def report(
    table: Path,
    /,
    *,
    target: str,
    out: Path,
    reading: Reading = PLAIN,
    fitting: Fitted = USUALLY,
    deciding: Decided = UNDECIDED,
    purpose: Meant = ANYTHING.purpose,
    rehearse: Annotated[bool, Parameter(negative="")] = False,
    stability: int | None = None,
    tripod: Quick = False,
    short: Quick = False,
    json: Json = False,
) -> None:
    """Fit a table, check the fit on held-out rows, and write everything to a folder.

    Writes report.html, report.json, predictions.csv, posterior.nc, model.safetensors and
    options.json, all or none. Of a Parquet file of more than 10,000,000 cells, 20,000 rows are
    drawn at random, and the report says so: it is about them alone.

    Parameters
    ----------
    table : Path
        CSV, Parquet or Excel file; empty cells are missing, rows without a label are used, too.
    target : str
        Column with the class labels.
    out : Path
        Folder for the results.
    reading : TableOptions
        How the table is read; new rows are read by the same options.
    fitting : Fitting
        What is fitted, how draws are made, and how long all may take.
    deciding : Deciding
        Decisions, which the report then judges and predictions.csv has, and intervals, of 0.9 by
        default.
    purpose : Purpose
        What the model is for.
    rehearse : bool
        Try how often the intervals hold a truth that is known: labels of these rows are drawn
        from three other models, twice each. Takes six more fits with their draws, two to eight
        times as long as the report without it.
    stability : int, optional
        Refits of the whole recipe on so many bootstrap samples of the rows, or of the groups: how
        far their probabilities and decisions are from those of the model; 200 are usual. A stack
        is refitted with three folds, which the page says. A learning curve says whether more
        rows would help.
    tripod : bool
        Write tripod.md, too: what the report says of each item of TRIPOD+AI, and boxes for what its
        author writes.
    short : bool
        Write short.html, too, about two pages of print: whether to trust the probabilities, what
        mistakes cost, parts of the table where they are off, and what was read.
    json : bool
        Print one JSON object with the verdict and its figures, and nothing else.
    """
    need()
    limit_time(fitting.time_limit)
    from bayesrbf.app.report.costs import problems_of_target
    from bayesrbf.app.report.options import FILES, SHORT, TRIPOD
    from bayesrbf.base.files import writing_together
    from bayesrbf.reading.read import read_file

    refuse_to_replace(out / TRIPOD, "the items of another report, and what its author wrote")
    if not short:
        refuse_to_replace(out / SHORT, "the short form of another report")
    focus = focus_in(deciding, Focus(purpose=purpose))
    files = (*FILES, *[TRIPOD] * tripod, *[SHORT] * short)
    with writing_together(out, files) as scratch:
        judge = problems_of_target(target, focus)
        read = read_file(table, target, typed(reading, table), judge, sampled=True)
        # What fits takes seconds to import: a bad table is refused before.
        from bayesrbf.app.report import run
        from bayesrbf.app.report.judgement import figures

        refits = checked_refits(stability)
        job, takes = _job(read, table, fitting, focus=focus, rehearse=rehearse, stability=refits)
        if not json:
            run.introduce(job, takes)
        with spoken():
            result = run.run(job, scratch, files)
    if json:
        answer({"table": table.name, **figures(result), "files": files}, (), as_json=True)
        return
    run.tell(result)
    point_to(out, files)


def _job(
    read: ReadTable, table: Path, fitting: Fitting, judged: bool = True, **asked: Any
) -> tuple[Job, str]:
    """The job of a table in the form that its time limit allows, and a line on its time."""
    from bayesrbf.app.report import run

    checked_draws(fitting.draws)
    checked_jobs(fitting.jobs)
    facts = run.facts_of(command_line(), table)
    job = run.prepare(read, table.stem, fitting, facts=facts, judged=judged, **asked)
    return run.within(run.quicker(job) if fitting.quick else job, fitting.time_limit, judged)


def fit(
    table: Path,
    /,
    *,
    target: str,
    out: Path,
    reading: Reading = PLAIN,
    fitting: Fitted = USUALLY,
    deciding: Decided = UNDECIDED,
    purpose: Meant = ANYTHING.purpose,
    json: Json = False,
) -> None:
    """Fit a table and write the model to a folder, without checking it and without a page.

    Writes model.safetensors and options.json, which predict, explain, check and validate take.
    It is the model that report writes for the same arguments. How good it is on rows it has not
    seen, report and validate say.

    Parameters
    ----------
    table : Path
        CSV, Parquet or Excel file; empty cells are missing, rows without a label are used, too.
    target : str
        Column with the class labels.
    out : Path
        Folder for the model.
    reading : TableOptions
        How the table is read; new rows are read by the same options.
    fitting : Fitting
        What is fitted, how draws are made, and how long all may take.
    deciding : Deciding
        Decisions, which predict then writes and validate counts by, and intervals, of 0.9 by
        default.
    purpose : Purpose
        What the model is for.
    json : bool
        Print one JSON object and nothing else.
    """
    need()
    limit_time(fitting.time_limit)
    from bayesrbf.app.report.costs import problems_of_target
    from bayesrbf.app.report.options import MODEL, OPTIONS, PAGE, ReportOptions, options_content
    from bayesrbf.base.files import write_whole, writing_together
    from bayesrbf.reading.read import read_file

    content = "the report of another fit, which would no longer be that of its model"
    refuse_to_replace(out / PAGE, content)
    focus = focus_in(deciding, Focus(purpose=purpose))
    with writing_together(out, (MODEL, OPTIONS)) as scratch:
        read = read_file(table, target, typed(reading, table), problems_of_target(target, focus))
        # What fits takes seconds to import: a bad table is refused before.
        from bayesrbf.app.report import run
        from bayesrbf.app.report.collect import DRAWS, FIT
        from bayesrbf.app.report.families import FAMILIES, draw_posterior

        job, takes = _job(read, table, fitting, judged=False)
        if not json:
            run.introduce(job, takes, page=False)
        with spoken(), run.sharing(job.jobs), run.progress((FIT, DRAWS)) as phase:
            with phase(FIT):
                fitted = FAMILIES[job.family].procedure(job)(job.X, job.y)
            with phase(DRAWS):
                drawn = draw_posterior(job, fitted.model)
            drawn.refined.save(scratch / MODEL)
            options = ReportOptions(target, focus, job.reading)
            write_whole(scratch / OPTIONS, options_content(options))
    record = {"table": table.name, "model": fitted.message, "inference": drawn.message}
    lines = [
        *filter(None, (fitted.message, drawn.message)),
        f"Wrote {out / MODEL}, which was not checked on rows held out.",
    ]
    answer({**record, "files": (MODEL, OPTIONS)}, lines, as_json=json)


def demo(*, out: Path = Path("report"), seed: int = 0, jobs: int = ALL_CORES) -> None:
    """Report on a table of 569 tumours with 30 % of the cells and half of the labels hidden.

    What was hidden is kept, so the report shows how well it was found again. The table is
    written beside the results.

    Parameters
    ----------
    out : Path
        Folder for the results.
    seed : int
        Seed of what is hidden, and of everything else random.
    jobs : int
        Processes that share the fits; -1 takes all cores. The answer does not depend on it.
    """
    need()
    import numpy as np

    from bayesrbf import read_table
    from bayesrbf.app.report.job import Truth
    from bayesrbf.app.report.options import FILES
    from bayesrbf.app.report.output import to_csv
    from bayesrbf.app.report.run import facts_of, introduce, prepare, run, tell, within
    from bayesrbf.base.files import write_whole, writing_together
    from bayesrbf.datasets import demo_tables

    tables = "breast_cancer_incomplete.csv", "breast_cancer_complete.csv"
    with writing_together(out, (*tables, *FILES)) as scratch:
        incomplete, truth = demo_tables(np.random.default_rng(seed))
        file, complete = (scratch / name for name in tables)
        write_whole(file, to_csv(incomplete))
        write_whole(complete, to_csv(truth))
        read = read_table(file, truth.columns[-1])  # the labels come last
        fitting = Fitting(seed=seed, jobs=checked_jobs(jobs))
        facts = facts_of(command_line(), file)
        job = prepare(read, "Breast cancer, with holes", fitting, facts=facts)
        job = replace(job, truth=Truth(truth[job.X.columns], truth[job.target]))
        job, takes = within(job, None)
        introduce(job, takes)
        with spoken():
            result = run(job, scratch)
    tell(result)
    point_to(out, (*tables, *FILES))


# The command that serves models as a page and an interface.


PACKAGES: Final = ("starlette", "uvicorn", "prometheus_client")
GRACE: Final = 30
"""Seconds in which requests under way are answered before the server ends."""
MAX_CONNECTIONS: Final = 1000

Models = Annotated[tuple[str, ...], Parameter(consume_multiple=False, negative="")]
Quiet = Annotated[bool, Parameter(negative="")]


def serve(
    folder: Path | None = None,
    /,
    *,
    model: Models = (),
    cost: Names = (),
    refer: float | None = None,
    missingness: Coming = AS_TRAINED,
    host: str = "127.0.0.1",
    port: int = 8000,
    allow_host: Names = (),
    token_file: Path | None = None,
    workers: int = 1,
    max_rows: int = 10_000,
    max_bytes: int = 10_000_000,
    timeout: float = 30.0,
    no_browser: Quiet = False,
    no_training_rows: Quiet = False,
) -> None:
    """Serve the model of a folder: a page to ask about a case, and an interface for programs.

    The page is at /, the interface at /api. Nothing that is asked is stored or logged. Ctrl-C
    ends the server after it has answered what is under way.

    Parameters
    ----------
    folder : Path, optional
        Folder of an earlier report or fit.
    model : tuple of str
        NAME=FOLDER: a model of this name at /NAME; repeated for several.
    cost : tuple of str
        What it costs to mistake a row of a class: sick=10,well=1 or repeated; by default what
        report or fit was told. The page then says the decision of least expected cost.
    refer : float, optional
        What it costs to refer a row to somebody else, in the units of the costs.
    host : str
        Address to listen at; by default only programs on this machine can ask.
    port : int
        Port; 0 takes a free one.
    allow_host : tuple of str
        Name under which the server is reached, such as that of a proxy, beside its addresses
        and localhost; repeated for several.
    token_file : Path, optional
        File with a token of at least 16 letters. Requests must have it as
        "Authorization: Bearer ..."; a browser asks for it as a password.
    workers : int
        Processes that answer; each has the models.
    max_rows : int
        Most rows of one request.
    max_bytes : int
        Most bytes of one request.
    timeout : float
        Seconds after which a request is given up.
    no_browser : bool
        Do not open the page where this is a terminal.
    no_training_rows : bool
        Do not offer rows of the training table on the page; distributions of its columns stay.
    """
    need((*REPORT_PACKAGES, *PACKAGES), "server")
    from bayesrbf.app.report.options import MODEL
    from bayesrbf.app.serve.served import Access, Limits, ModelFolder

    named = folders_by_name(folder, model)
    for name, value in {
        "--workers": workers,
        "--max-rows": max_rows,
        "--max-bytes": max_bytes,
    }.items():
        if value < 1:
            raise ValueError(f"{name} takes a whole number above 0; got {value}.")
    if not 0 < timeout < float("inf"):
        raise ValueError(f"--timeout takes a number of seconds above 0; got {timeout:g}.")
    if not 0 <= port < 2**16:
        raise ValueError(f"--port takes a number from 0 to 65535; got {port}.")
    costs = costs_in(cost)
    if refer is not None and not 0 <= refer < float("inf"):
        raise ValueError(f"--refer takes a cost of at least 0; got {refer:g}.")
    token = token_in(token_file)
    folders = tuple(
        ModelFolder(name, path, costs, refer, not no_training_rows, missingness)
        for name, path in named.items()
    )
    for model_folder in folders:
        (model_folder.folder / MODEL).stat()
    from bayesrbf.app.serve.served import ServedModel

    for model_folder in folders:
        ServedModel.of(model_folder)  # what cannot be served is said before anything listens
    access, limits = Access(host, allow_host, token), Limits(max_rows, max_bytes, timeout)
    from bayesrbf.app.serve.server import application, listen

    listen(
        application(folders, workers, access, limits),
        access,
        port,
        grace=GRACE,
        connections=MAX_CONNECTIONS,
        opens=sys.stdout.isatty() and not no_browser,
    )


# The command line: from a table to a folder with probabilities and a report.
#
# Nothing heavy is imported before a command runs, so that ``--help`` answers at once.


ERROR: Final = 2
INTERRUPTED: Final = 130  # 128 + SIGINT, as shells report it.
PIPE_CLOSED: Final = 141  # 128 + SIGPIPE.

CODES: Final = """Exit codes
  0    done
  2    error: one sentence on stderr, nothing was written
  3    check and validate: something was found
  124  --time-limit was reached: nothing was written
  130  interrupted: nothing was written
  141  who read the output closed it
  143  terminated: nothing was written"""

app = App(
    name="bayesrbf",
    version=__version__,
    help="Class probabilities for small, messy tables, and how sure they are.",
    help_format="plaintext",
    help_epilogue=CODES,
    error_formatter=lambda error: f"bayesrbf: {one_line(error)}{_where_read(error)}",
    suppress_keyboard_interrupt=False,
)
COMMANDS: Final = (
    *(look, report, fit, demo, predict, explain, check, validate, update, compare, models),
    *(plan, serve),
)
for command in COMMANDS:
    app.command(command)
app.command(
    "bayesrbf.app.reproduce:app",
    name="reproduce",
    help="Compute the figures of published experiments.",
)


def _where_read(error: CycloptsError) -> str:
    """Names of the commands that take an option which this command lacks; empty for none."""
    if not isinstance(error, UnknownOptionError):
        return ""
    from bayesrbf.app.words import listing

    option = (error.token.keyword or error.token.value).partition("=")[0]
    named = [command.__name__ for command in COMMANDS]
    readers = [
        name
        for name in named
        if any(option in argument.names for argument in app[name].assemble_argument_collection())
    ]
    return f" {option} is read by {listing(sorted(readers), len(readers))}." if readers else ""


def main() -> None:
    """Run the command line; an error is one sentence on stderr and a code above 0."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a name that it cannot spell is no error
            stream.reconfigure(errors="backslashreplace")
    with obeying() as codes:
        _run(codes)


def _run(codes: list[int]) -> None:
    """Run the command; where a signal is to end it, ``codes`` has the exit code."""
    try:
        app(with_values_joined(sys.argv[1:]), exit_on_error=False)
        sys.stdout.flush()
    except BrokenPipeError:
        _leave_quietly()
    except CycloptsError:  # printed by its formatter
        raise SystemExit(ERROR) from None
    except KeyboardInterrupt:
        # Python remembers an interrupt that left source text under exec(), as dataclasses have it,
        # and would end by SIGINT although it was caught. After text that ran to its end it forgets.
        exec("")
        if codes:
            _fail(SENTENCES[codes[0]], codes[0])
        _fail("interrupted; nothing was written.", INTERRUPTED)
    except (ValueError, TypeError, OSError, ImportError) as error:
        _fail(_in_lines(error), ERROR)


def _leave_quietly() -> NoReturn:
    """Exit although nobody reads on; what is still in the buffer goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    raise SystemExit(PIPE_CLOSED)


def _in_lines(error: Exception) -> str:
    """An error as one line, or a line for each of the problems of a table."""
    from bayesrbf import TableError

    problems = error.problems if isinstance(error, TableError) else ()
    if len(problems) < 2:
        return one_line(error)
    lines = [f"  {one_line(ValueError(problem))}" for problem in problems]
    return "\n".join([f"{len(lines)} problems:", *lines])


def _fail(message: str, code: int) -> NoReturn:
    """Print a sentence on stderr and exit."""
    print(f"bayesrbf: {message}", file=sys.stderr)
    raise SystemExit(code)
