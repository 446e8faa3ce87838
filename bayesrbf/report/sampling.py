"""Which method gives the report its posterior, and the sentence that says why."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Final

from bayesrbf.estimators.mixture.hybrid import HybridMixtureClassifier
from bayesrbf.report.job import Job
from bayesrbf.report.words import plural

SWEEPS: Final[dict[str, Any]] = {"tune": 400, "thin": 1}
AFFORDABLE: Final = 2_000_000
"""Multiply-adds of a sweep up to which all sweeps of four chains take about a minute."""

NAMES: Final = {
    "laplace": "Laplace's approximation, a Gaussian at the mode",
    "advi": "A variational approximation, the Gaussian of least divergence",
    "gibbs": "Gibbs sampling, from the exact posterior",
    "nuts": "The No-U-Turn sampler, from the exact posterior",
}


@dataclass(frozen=True)
class Drawn:
    """A fitted model without and with its posterior.

    Attributes
    ----------
    model : HybridMixtureClassifier
        The model at its fitted point.
    refined : HybridMixtureClassifier
        The model with its posterior; at its fitted point too if that was asked for.
    sentence : str
        How the posterior was made, and why so.
    """

    model: HybridMixtureClassifier
    refined: HybridMixtureClassifier
    sentence: str


def draw_posterior(job: Job, model: HybridMixtureClassifier) -> Drawn:
    """Draw by the method asked for, or by the best one that takes about a minute.

    Parameters
    ----------
    job : Job
        Says the method and the number of draws.
    model : HybridMixtureClassifier
        The fitted model; it is left as it is.

    Returns
    -------
    Drawn
        The model without and with its posterior.
    """
    refined = copy.copy(model)
    if job.inference == "map":
        return Drawn(
            model,
            refined,
            "A point estimate, because it was asked for: there are no intervals and no epistemic "
            "part. Run again without --inference map to have them.",
        )
    method, why = choose_method(job, model)
    options = SWEEPS if method == "gibbs" else {}
    refined.refine(method, draws=job.draws, **options)
    size = refined._log_posterior().dimension
    count = plural(4 * job.draws, "draw")
    sentence = f"{NAMES[method]}: {count} in {plural(size, 'coordinate')}, {why}"
    return Drawn(model, refined, sentence)


def choose_method(job: Job, model: HybridMixtureClassifier) -> tuple[str, str]:
    """The method asked for, or else the best one that takes about a minute, and why.

    A sweep of Gibbs sampling costs as much as an iteration of EM, whose cost is
    known from sizes alone, so that the same table always gets the same method.

    Parameters
    ----------
    job : Job
        Says the method.
    model : HybridMixtureClassifier
        The fitted model.

    Returns
    -------
    method : str
        Name of the method.
    why : str
        End of the sentence about it.
    """
    if job.inference != "auto":
        return job.inference, "because it was asked for."
    structure = model._mixture.specification
    width = structure.n_features ** (2 if structure.shape == "full" else 1) + len(structure.levels)
    cost = model._rows.n_obs * structure.n_components * width
    if cost <= AFFORDABLE:
        return "gibbs", (
            f"because a sweep over {plural(model._rows.n_obs, 'row')} is cheap: all of them "
            "take about a minute."
        )
    return "laplace", (
        f"because sweeps over {plural(model._rows.n_obs, 'row')} would take more than about a "
        "minute; --inference gibbs or --inference nuts draws from the exact posterior."
    )
