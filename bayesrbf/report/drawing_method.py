"""Which method gives the report its posterior, and the sentence that says why."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd

from bayesrbf.estimators.stack.beside import comparable
from bayesrbf.fitted.stack.bootstrap import REFITS
from bayesrbf.report.families import FAMILIES
from bayesrbf.report.job import Job
from bayesrbf.report.words import listing, plural

SWEEPS: Final[dict[str, Any]] = {"tune": 400, "thin": 1}
AFFORDABLE: Final = 2_000_000
"""Multiply-adds of a sweep up to which all sweeps of four chains take about a minute."""
MOST_CURVED: Final = 2_000
"""Coordinates up to which the second derivatives of a network take at most some minutes."""

REFITTED: Final = 200
"""Draws of the bootstrap, which has one chain."""
MOST_REFITTED: Final = 70_000
"""Work (see :func:`refits_affordable`) up to which 12 more fits take a minute or two."""
BYTES: Final = 20_000_000
"""Of the draws of a model; with more, fewer draws are kept."""
FEWEST_DRAWS: Final = 50  # Per chain, however large they are.

METHOD_NAMES: Final = {
    "bootstrap": "The bootstrap, the whole stack fitted anew to rows that weigh more or less",
    "laplace": "Laplace's approximation, a Gaussian at the mode",
    "advi": "A variational approximation, the Gaussian of least divergence",
    "gibbs": "Gibbs sampling, from the exact posterior",
    "nuts": "The No-U-Turn sampler, from the exact posterior",
}


COMPARED: Final = (
    "The members of a small stack were fitted to the same rows. Intervals count how far they "
    "differ from this model, as if the truth were one kind of model more."
)


@dataclass(frozen=True)
class Drawn:
    """A fitted classifier without and with its posterior."""

    model: Any
    refined: Any  # At its fitted point, too, if ``"map"`` was asked for.
    sentence: str  # How the posterior was made, and why.
    options: Mapping[str, Any] = field(default_factory=dict)  # That it was drawn with.


def draw_posterior(job: Job, model: Any) -> Drawn:
    """Draw by the method asked for, or by the best one that takes about a minute."""
    refined = copy.copy(model)
    method, why = choose_method(job, model)
    if method == "map":
        intervals = "There are no intervals and no kinds of doubt."
        if FAMILIES[job.family].averages:
            intervals = (
                "Intervals and kinds of doubt are those of what the fit itself averages over."
            )
        return Drawn(model, refined, f"A point estimate, {why} {intervals}")
    usual = REFITTED if method == "bootstrap" else FAMILIES[job.family].draws
    size = refined.model_.log_posterior(refined.rows_).dimension
    draws = _draws_kept(usual, size) if job.draws is None else job.draws
    sweeps = SWEEPS if job.family == "mixture" and method == "gibbs" else {}
    if sweeps and job.draws is None:
        sweeps = {**sweeps, "thin": -(-usual // draws)}
    options = {"draws": draws, **sweeps}
    compared = comparable(refined.fitted_)
    if compared:
        options["model_doubt"] = "pool"
    refined.refine(method, **options)
    if not refined.draws_.complete:  # what was drawn is no answer to what was asked
        raise KeyboardInterrupt
    amount = plural(len(refined.draws_.theta) * draws, "draw")
    sentence = f"{METHOD_NAMES[method]}: {amount} in {plural(size, 'coordinate')}, {why}"
    if compared:
        sentence = f"{sentence} {COMPARED}"
    if FAMILIES[job.family].pools and method != "bootstrap":
        sentence = f"{sentence} {_of_members(refined)}"
    return Drawn(model, refined, sentence, options)


def _draws_kept(usual: int, size: int) -> int:
    """Draws of each of four chains that take no more than ``BYTES``, of so many coordinates.

    >>> _draws_kept(1000, 30), _draws_kept(1000, 3774)
    (1000, 165)
    """
    return min(usual, max(FEWEST_DRAWS, BYTES // (4 * 8 * size)))


def choose_method(job: Job, model: Any) -> tuple[str, str]:
    """The method ("map" for none) and the end of the sentence that says why.

    The cost is known from sizes alone, so that the same table always gets the same method.
    """
    if job.inference != "auto":
        quick = job.quick and job.inference == "map"
        return job.inference, f"because {'--quick' if quick else 'it'} was asked for."
    if job.family == "mixture":
        return _of_mixture(model)
    family = FAMILIES[job.family]
    method = family.methods[0]
    if family.pools and not refits_affordable(job.X):
        table = f"{plural(len(job.X), 'row')} of {plural(job.X.shape[1], 'column')}"
        return "map", (
            f"because {REFITS} more fits to {table} would take many minutes; --inference bootstrap "
            "takes them, and Laplace's approximation, by --inference laplace, is too narrow."
        )
    if family.pools:
        return method, (
            "because intervals by other methods take the model for true and are too narrow; "
            "--inference laplace takes seconds."
        )
    if method == "gibbs":
        return method, "because exemplars are discrete."
    if none := _too_many(model, method):
        return "map", none
    return method, "because that takes seconds; --inference nuts draws from the exact posterior."


def refits_affordable(X: pd.DataFrame) -> bool:
    """Whether a stack is fitted 12 times more in a minute or two.

    A fit takes as long as rows times a constant and columns, of which missing cells take more.
    """
    rows, columns = X.shape
    holes = float(X.isna().to_numpy().mean()) if X.size else 0.0
    return rows * (40 + columns * (1 + 5 * holes)) <= MOST_REFITTED


def _too_many(model: Any, method: str) -> str:
    """Why second derivatives would take many minutes; empty where they do not."""
    size = model.model_.log_posterior(model.rows_).dimension
    if size <= MOST_CURVED:
        return ""
    return (
        f"because the curvature in {plural(size, 'coordinate')} would take many minutes; "
        f"--inference {method} takes them."
    )


def _of_mixture(model: Any) -> tuple[str, str]:
    """Gibbs sampling where its sweeps, each about an iteration of EM, are cheap."""
    structure = model.model_.density.specification
    whole = bool(np.all(model.rows_.weights == np.round(model.rows_.weights)))
    if not whole and (none := _too_many(model, "laplace")):
        return "map", none
    if not whole:
        return "laplace", (
            "because rows without a label count as a part of a row, and Gibbs sampling needs whole "
            "ones; --inference nuts draws from the exact posterior."
        )
    width = structure.n_features ** (1 if structure.independent else 2) + len(structure.levels)
    cost = model.rows_.n_obs * structure.n_components * width
    rows = plural(model.rows_.n_obs, "row")
    if cost <= AFFORDABLE:
        return "gibbs", f"because a sweep over {rows} is cheap: all of them take about a minute."
    if none := _too_many(model, "laplace"):
        return "map", none
    return "laplace", (
        f"because sweeps over {rows} would take more than about a minute; --inference gibbs or "
        "--inference nuts draws from the exact posterior."
    )


def _of_members(refined: Any) -> str:
    """How the posterior of a stack was drawn, in a sentence."""
    fixed = list(refined.pointwise_)
    drawn = [name for name in refined.members_ if name not in fixed]
    text = "Those are the weights and temperatures of the stack"
    if drawn:
        text += "; with each came one, by Laplace's approximation, of the parameters of "
        text += listing(drawn, 9)
    if not fixed:
        return f"{text}."
    verb = "stays at its" if len(fixed) == 1 else "stay at their"
    return (
        f"{text}. {listing(fixed, 9)} {verb} fitted point, for too many parameters: as far as "
        "the weight of such a member goes, intervals are too narrow."
    )
