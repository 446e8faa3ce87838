"""Commands that fit a table: with a report of it, without one, or to a table for show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bayesrbf.commands.ending import limit_time
from bayesrbf.commands.printing import Json, answer
from bayesrbf.commands.typed_arguments import (
    Names,
    Quick,
    Reading,
    checked_draws,
    checked_jobs,
    command_line,
    costs_in,
    need,
    point_to,
    spoken,
    typed,
)
from bayesrbf.records.table_options import PLAIN
from bayesrbf.report.options import ALL_CORES, FamilyName, Inference


def report(
    table: Path,
    /,
    *,
    target: str,
    out: Path,
    reading: Reading = PLAIN,
    model: FamilyName = "stack",
    inference: Inference = "auto",
    cost: Names = (),
    rehearse: Annotated[bool, Parameter(negative="")] = False,
    quick: Quick = False,
    time_limit: float | None = None,
    draws: int | None = None,
    seed: int = 0,
    jobs: int = ALL_CORES,
    json: Json = False,
) -> None:
    """Fit a table, check the fit on held-out rows, and write everything to a folder.

    Writes report.html, predictions.csv, posterior.nc, model.safetensors and options.json, all or
    none. Of a Parquet file of more than 10,000,000 cells, 20,000 rows are drawn at random, and
    the report says so: it is about them alone.

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
    model : {"stack", "mixture", "rbf", "sdgm", "median_lvq"}
        What is fitted: a pool of kernel networks, mixtures and trees, one mixture, an RBF
        network, a sparse mixture, or exemplars.
    inference : {"auto", "bootstrap", "laplace", "advi", "gibbs", "nuts", "map"}
        How intervals are made: bootstrap fits the stack anew, 12 times; laplace and advi are
        approximations and take seconds; gibbs and nuts are exact, if the model is right, and
        take longer; map makes none. auto takes the best one that the model has.
    cost : tuple of str
        What it costs to mistake a row of a class: sick=10,well=1 or repeated; 1 for classes
        not named. The report then says what the decisions of least expected cost cost, and
        predictions.csv has them.
    rehearse : bool
        Try how often the intervals hold a truth that is known: labels of these rows are drawn
        from three other models, twice each. Takes six more fits with their draws, two to eight
        times as long as the report without it.
    quick : bool
        Take less time: fewer members of a stack, no intervals unless --inference
        names a method, three folds at most of other families. The page says so.
    time_limit : float, optional
        Seconds that all may take. The fullest form that is estimated to take half of them is
        made, without intervals or as by --quick where need be; what is not done at the limit
        is ended, and nothing is written.
    draws : int, optional
        Draws of each chain, all of which are kept; by default as many as the method usually
        takes, or fewer, so that they take about 20 MB at most.
    seed : int
        Seed of everything random.
    jobs : int
        Processes that share the fits; -1 takes all cores, or one where a run is too short for
        others to start. The answer does not depend on it.
    json : bool
        Print one JSON object with the verdict and its figures, and nothing else.
    """
    need()
    limit_time(time_limit)
    from bayesrbf.files import writing_together
    from bayesrbf.reading import read_file
    from bayesrbf.report.output import FILES
    from bayesrbf.report.target import problems_of_target

    costs = costs_in(cost)
    with writing_together(out, FILES) as scratch:
        judge = problems_of_target(target, costs)
        read = read_file(table, target, typed(reading, table), judge, sampled=True)
        # What fits takes seconds to import: a bad table is refused before.
        from bayesrbf.report.effort import quicker, within
        from bayesrbf.report.prepare import facts_of, prepare
        from bayesrbf.report.run import figures, introduce, run, tell

        job = prepare(
            read,
            title=table.stem,
            family=model,
            inference=inference,
            seed=seed,
            facts=facts_of(command_line(), table),
            costs=costs,
            rehearse=rehearse,
            draws=checked_draws(draws),
            jobs=checked_jobs(jobs),
        )
        job, takes = within(quicker(job) if quick else job, time_limit)
        if not json:
            introduce(job, takes)
        with spoken():
            result = run(job, scratch)
    if json:
        answer({"table": table.name, **figures(result), "files": FILES}, (), as_json=True)
        return
    tell(result)
    point_to(out, FILES)


def fit(
    table: Path,
    /,
    *,
    target: str,
    out: Path,
    reading: Reading = PLAIN,
    model: FamilyName = "stack",
    inference: Inference = "auto",
    cost: Names = (),
    quick: Quick = False,
    time_limit: float | None = None,
    draws: int | None = None,
    seed: int = 0,
    jobs: int = ALL_CORES,
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
    model : {"stack", "mixture", "rbf", "sdgm", "median_lvq"}
        What is fitted; the command models has a line on each.
    inference : {"auto", "bootstrap", "laplace", "advi", "gibbs", "nuts", "map"}
        How intervals are made, as report has it; map makes none and is the quickest.
    cost : tuple of str
        What it costs to mistake a row of a class: sick=10,well=1 or repeated; 1 for classes
        not named. predict then writes the decision of least expected cost, and validate counts
        by it. The model is the same.
    quick : bool
        Take less time: fewer members of a stack, no intervals unless --inference
        names a method, three folds at most of other families. The page says so.
    time_limit : float, optional
        Seconds that all may take. The fullest form that is estimated to take half of them is
        made, without intervals or as by --quick where need be; what is not done at the limit
        is ended, and nothing is written.
    draws : int, optional
        Draws of each chain, all of which are kept; by default as many as the method usually
        takes, or fewer, so that they take about 20 MB at most.
    seed : int
        Seed of everything random.
    jobs : int
        Processes that share the fits; -1 takes all cores, or one where a run is too short for
        others to start. The answer does not depend on it.
    json : bool
        Print one JSON object and nothing else.
    """
    need()
    limit_time(time_limit)
    from bayesrbf.files import write_whole, writing_together
    from bayesrbf.reading import read_file
    from bayesrbf.report.options import OPTIONS, ReportOptions, options_content
    from bayesrbf.report.output import MODEL, PAGE
    from bayesrbf.report.target import problems_of_target

    if (out / PAGE).exists():
        raise FileExistsError(
            f"{out} holds the report of another fit, which would no longer be that of its model; "
            f"name another folder, or delete {out / PAGE}."
        )
    costs = costs_in(cost)
    with writing_together(out, (MODEL, OPTIONS)) as scratch:
        read = read_file(table, target, typed(reading, table), problems_of_target(target, costs))
        # What fits takes seconds to import: a bad table is refused before.
        from bayesrbf.report.collect import DRAWS, FIT
        from bayesrbf.report.drawing_method import draw_posterior
        from bayesrbf.report.effort import quicker, within
        from bayesrbf.report.families import FAMILIES
        from bayesrbf.report.prepare import facts_of, prepare
        from bayesrbf.report.run import introduce, progress, sharing

        job = prepare(
            read,
            title=table.stem,
            family=model,
            inference=inference,
            seed=seed,
            facts=facts_of(command_line(), table),
            judged=False,
            draws=checked_draws(draws),
            jobs=checked_jobs(jobs),
        )
        job, takes = within(quicker(job) if quick else job, time_limit, judged=False)
        if not json:
            introduce(job, takes, page=False)
        with spoken(), sharing(job.jobs), progress((FIT, DRAWS)) as phase:
            with phase(FIT):
                fitted = FAMILIES[model].procedure(job)(job.X, job.y)
            with phase(DRAWS):
                drawn = draw_posterior(job, fitted.model)
            drawn.refined.save(scratch / MODEL)
            options = ReportOptions(target, costs, job.reading)
            write_whole(scratch / OPTIONS, options_content(options))
    record = {"table": table.name, "model": fitted.sentence, "inference": drawn.sentence}
    lines = [
        *filter(None, (fitted.sentence, drawn.sentence)),
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

    from bayesrbf.datasets import TARGET, demo_tables
    from bayesrbf.files import write_whole, writing_together
    from bayesrbf.reading import read_table
    from bayesrbf.report.effort import within
    from bayesrbf.report.output import FILES, to_csv
    from bayesrbf.report.prepare import facts_of, prepare
    from bayesrbf.report.run import introduce, run, tell

    tables = "breast_cancer_incomplete.csv", "breast_cancer_complete.csv"
    with writing_together(out, (*tables, *FILES)) as scratch:
        incomplete, truth = demo_tables(np.random.default_rng(seed))
        file, complete = (scratch / name for name in tables)
        write_whole(file, to_csv(incomplete))
        write_whole(complete, to_csv(truth))
        job = prepare(
            read_table(file, TARGET),
            title="Breast cancer, with holes",
            family="stack",
            inference="auto",
            seed=seed,
            facts=facts_of(command_line(), file),
            truth=truth,
            jobs=checked_jobs(jobs),
        )
        job, takes = within(job, None)
        introduce(job, takes)
        with spoken():
            result = run(job, scratch)
    tell(result)
    point_to(out, (*tables, *FILES))
