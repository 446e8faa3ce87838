"""The command that says how many rows a study needs, before it has any."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from bayesrbf.app.arguments import Json, Names, answer, names_in


def plan(
    *,
    events: Annotated[Names, Parameter(required=True)],
    columns: int,
    c_statistic: float | None = None,
    cox_snell: float | None = None,
    json: Json = False,
) -> None:
    """Say how many rows are needed to develop a regression model, by the criteria of Riley et al.

    Flexible models need more rows: with a first table, bayesrbf.learning_curve in Python tells.

    Parameters
    ----------
    events : tuple of str
        Share of rows with the event, such as 0.2; or shares of all classes, such as 0.5,0.3,0.2.
    columns : int
        Parameters that are candidates: k - 1 of a column of k levels, all terms of a curve.
    c_statistic : float, optional
        C statistic that the model is expected to reach, of two classes.
    cox_snell : float, optional
        Or its R squared of Cox and Snell; without either it is .15 of the most that it can be.
    json : bool
        Print one JSON object, and nothing else, on stdout.
    """
    try:
        shares = [float(share) for share in names_in(events)]
    except ValueError:
        raise ValueError(f"--events takes shares such as 0.2; got {' '.join(events)}.") from None
    from bayesrbf.answers.sample_size import plan_sample_size

    event = shares[0] if len(shares) == 1 else shares
    found = plan_sample_size(event, columns, c_statistic=c_statistic, cox_snell=cox_snell)
    answer({"rows": found.rows, **vars(found)}, str(found).splitlines(), as_json=json)
