"""Commands around a model: rows that a study needs for it, and its update where it is used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from bayesrbf.app.arguments import Json, Names, answer, model_for, names_in, spoken

if TYPE_CHECKING:
    import pandas as pd

    from bayesrbf.families.classifier import Classifier

Method = Literal["cv", "none", "intercept", "slope", "refit"]


def update(
    folder: Path,
    table: Path,
    /,
    *,
    out: Path,
    target: str | None = None,
    method: Method = "cv",
    training: Path | None = None,
    folds: int = 10,
    json: Json = False,
) -> None:
    """Update the model of a report with labelled rows of where it is used, in a new folder.

    Writes model.safetensors and options.json, as fit does. The old folder stays as it is. The
    model says what was updated, when and with how many rows; predict and serve say it, too. Where
    cv finds that no update is called for, that is said, and nothing is written.

    Parameters
    ----------
    folder : Path
        Folder of an earlier report, fit or update.
    table : Path
        CSV, Parquet or Excel file with the columns of the model and a column of labels.
    out : Path
        Folder for the updated model.
    target : str, optional
        Column with the class labels; by default as validate finds it.
    method : {"cv", "none", "intercept", "slope", "refit"}
        intercept: class frequencies differ; slope: the cells also tell more or less than they did
        in training; refit: training and new rows are fitted together. cv: the simplest of these
        whose log score of new rows held out is not beaten by a standard error, or none of them.
    training : Path, optional
        The training table, for a refit; with cv, a refit then takes part.
    folds : int
        Folds of cv, at least 2; with --training the model is fitted once for each.
    json : bool
        Print one JSON object, and nothing else, on stdout.
    """
    if method == "refit" and training is None:
        raise ValueError("--method refit needs the training table: --training FILE.")
    if training is not None and method not in ("cv", "refit"):
        raise ValueError(f"--training is for --method cv and refit; got --method {method}.")
    if folds < 2:
        raise ValueError(f"--folds must be at least 2, so that rows are held out; got {folds}.")
    options, model = model_for(folder, table, target)
    import bayesrbf
    from bayesrbf.app.predict import read_labelled
    from bayesrbf.app.report.options import MODEL, OPTIONS, PAGE, options_content
    from bayesrbf.base.files import write_whole, writing_together

    if out.resolve() == folder.resolve() or (out / PAGE).exists():
        raise FileExistsError(
            f"{out} holds a model that would be lost, or a report that would no longer be that of "
            "its model; name another folder."
        )

    def read(file: Path) -> tuple[pd.DataFrame, pd.Series]:
        rows, labels, _ = read_labelled(model, file, target, options)
        return rows, _of_model(labels, model)

    with spoken():
        before = None if training is None else read(training)
        updated = bayesrbf.recalibrate(model, *read(table), method, training=before, folds=folds)
    last = updated.updates_[-1]
    files = () if method == "cv" and last.method == "none" else (MODEL, OPTIONS)
    if files:
        with writing_together(out, files) as scratch:
            updated.save(scratch / MODEL)
            write_whole(scratch / OPTIONS, options_content(options))
    record = {
        "table": table.name,
        "rows": last.n_rows,
        "method": last.method,
        "intercepts": dict(zip(map(str, model.classes_), last.intercepts, strict=True)),
        "slope": last.slope,
        "sentence": last.sentence,
        "files": files,
    }
    wrote = f"Wrote {out / MODEL}" if files else "Nothing was written: use the model as it is."
    answer(record, [f"{table.name}: {last.sentence}", wrote], as_json=json)


def _of_model(labels: pd.Series, model: Classifier) -> pd.Series:
    """Labels of a file as the classes of the model: values in place of text."""
    named = {str(label): label for label in model.classes_.tolist()}
    return labels.map(lambda text: named.get(text, text))


def plan(
    *,
    events: Annotated[Names, Parameter(required=True)],
    columns: int | None = None,
    c_statistic: float | None = None,
    cox_snell: float | None = None,
    threshold: float | None = None,
    json: Json = False,
) -> None:
    """Say how many rows are needed to develop or validate a model, by the criteria of Riley et al.

    Development is of regression models. Flexible models need more rows: with a first table, the
    learning curve of report --stability tells.

    Parameters
    ----------
    events : tuple of str
        Share of rows with the event, such as 0.2; or shares of all classes, such as 0.5,0.3,0.2.
    columns : int, optional
        Parameters that are candidates: k - 1 of a column of k levels, all terms of a curve. Without
        it the rows are for the validation of a model, whose C statistic is needed.
    c_statistic : float, optional
        C statistic that the model is expected to reach, of two classes.
    cox_snell : float, optional
        Or its R squared of Cox and Snell; without either it is .15 of the most that it can be.
    threshold : float, optional
        Probability from which one acts, for the net benefit of a validation.
    json : bool
        Print one JSON object, and nothing else, on stdout.
    """
    try:
        shares = [float(share) for share in names_in(events)]
    except ValueError:
        raise ValueError(f"--events takes shares such as 0.2; got {' '.join(events)}.") from None
    import bayesrbf

    event = shares[0] if len(shares) == 1 else shares
    found = bayesrbf.plan_sample_size(
        event, columns, c_statistic=c_statistic, cox_snell=cox_snell, threshold=threshold
    )
    answer({"rows": found.rows, **vars(found)}, str(found).splitlines(), as_json=json)
