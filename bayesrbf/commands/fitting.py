"""The command that fits a table and keeps the model, without a page."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from bayesrbf.commands.answering import Json, answer
from bayesrbf.commands.arguments import (
    Names,
    Quick,
    Reading,
    checked_draws,
    command_line,
    costs_in,
    need,
    spoken,
    typed,
)
from bayesrbf.commands.ending import limit_time
from bayesrbf.records.table_options import PLAIN


def fit(
    table: Path,
    /,
    *,
    target: str,
    out: Path,
    reading: Reading = PLAIN,
    model: Literal["stack", "mixture", "rbf", "sdgm", "median_lvq"] = "stack",
    inference: Literal["auto", "bootstrap", "laplace", "advi", "gibbs", "nuts", "map"] = "auto",
    cost: Names = (),
    quick: Quick = False,
    time_limit: float | None = None,
    draws: int | None = None,
    seed: int = 0,
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
        Take less time: five members of a stack instead of ten, no intervals unless --inference
        names a method, three folds at most. The page says so.
    time_limit : float, optional
        Seconds that all may take. The fullest form that is estimated to take half of them is
        made, without intervals or as by --quick where need be; what is not done at the limit
        is ended, and nothing is written.
    draws : int, optional
        Draws of each chain, all of which are kept; by default as many as the method usually
        takes, or fewer, so that they take about 20 MB at most.
    seed : int
        Seed of everything random.
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
        read = read_file(table, target, typed(reading), problems_of_target(target, costs))
        # What fits takes seconds to import: a bad table is refused before.
        from bayesrbf.report.effort import quicker, within
        from bayesrbf.report.families import FAMILIES
        from bayesrbf.report.prepare import facts_of, prepare
        from bayesrbf.report.run import introduce, progress
        from bayesrbf.report.sampling import draw_posterior

        job = prepare(
            read,
            title=table.stem,
            family=model,
            inference=inference,
            seed=seed,
            facts=facts_of(command_line(), table),
            judged=False,
            draws=checked_draws(draws),
        )
        job, takes = within(quicker(job) if quick else job, time_limit, judged=False)
        if not json:
            introduce(job, takes, page=False)
        with spoken(), progress() as track:
            for _ in track((None,), "Fitting the table", 1):
                fitted = FAMILIES[model].procedure(job)(job.X, job.y)
            for _ in track((None,), "Drawing the posterior", 1):
                drawn = draw_posterior(job, fitted.model)
            drawn.refined.save(scratch / MODEL)
            options = ReportOptions(target, costs, job.reading)
            write_whole(scratch / OPTIONS, options_content(options))
    told = {"table": table.name, "model": fitted.sentence, "inference": drawn.sentence}
    lines = [
        *filter(None, (fitted.sentence, drawn.sentence)),
        f"Wrote {out / MODEL}, which was not checked on rows held out.",
    ]
    answer({**told, "files": (MODEL, OPTIONS)}, lines, as_json=json)
