"""By how much class probabilities move under half and twice the prior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Float

from bayesrbf.base import names
from bayesrbf.base.rows import Observations
from bayesrbf.fit.chain import AtCentre, Chain
from bayesrbf.inference.draws import PARETO_K, SMALLEST, Draws, pareto_smooth

if TYPE_CHECKING:
    from bayesrbf.fit.model import FittedModel
    from bayesrbf.fit.table import FittedTable

POWERS: Final = (0.5, 1.0, 2.0)
"""Powers of the prior; its log density is halved, and doubled."""
SENSITIVE: Final = 0.05
"""Sensitivity above which a prior is influential; Kallioinen et al. (2024)."""
MAX_DRAWS: Final = 500  # Draws with importance weights; more would give the same figures.
NOTABLE: Final = 0.02  # Change of a class probability that is reported.


@dataclass(frozen=True)
class PriorSensitivity:
    """Class probabilities under half the prior, the prior as it is, and twice the prior."""

    probabilities: Float[np.ndarray, "power obs label"]
    psense: float
    """Largest sensitivity, by ArviZ, of a class probability; of a stack, of its weights and
    temperatures. NaN for fewer than 25 draws."""
    refitted: bool
    """Whether the mode was found again; otherwise the draws have importance weights."""
    scaled: Float[np.ndarray, "scale obs label"] | None = None
    """Class probabilities at half and twice a scale that the draws hold fixed; None without one."""
    ends: Float[np.ndarray, "power end obs label"] | None = None
    """Ends of a stack's 90 % intervals under the powers of the prior of the pool's error."""

    @property
    def change(self) -> Float[np.ndarray, " obs"]:
        """Largest change of a class probability of every row."""
        return np.abs(self.probabilities - self.probabilities[1]).max(axis=(0, 2))

    @property
    def matters(self) -> bool:
        """Whether a probability changes notably and ArviZ finds a sensitivity, too."""
        return self.psense > SENSITIVE and bool(self.change.max(initial=0) > NOTABLE)

    @property
    def message(self) -> str:
        """Largest change, and what to do where the prior matters."""
        method = "the mode was found again" if self.refitted else "by importance weights"
        text = (
            "Largest change of a class probability under half and twice the log prior "
            f"({method}): {self.change.max(initial=0):.3g}; psense is {self.psense:.3g}. "
        )
        if self.scaled is not None:
            change = replace(self, probabilities=self.scaled).change.max(initial=0)
            text += f"Rates are as fitted; at half and twice the scale it is {change:.3g}. "
        if self.ends is not None:
            change = np.abs(self.ends - self.ends[1]).max(initial=0)
            text += (
                "Under half and twice the log prior of the pool's error, "
                f"ends of 90 % intervals move by at most {change:.3g}. "
            )
        if not self.matters:
            return f"{text}At most {NOTABLE} is asked for, or a psense of {SENSITIVE}."
        return (
            f"{text}The prior has a part in the rows that change most: label more rows like them, "
            "or state a prior that you can defend."
        )


def prior_sensitivity(fit: FittedTable[Any, Any], cells: Observations) -> PriorSensitivity:
    r"""Class probabilities of rows under half and twice the prior.

    Draws weigh :math:`p(\theta)^{a - 1}` where these weights have a light tail. Elsewhere the mode
    under :math:`p(\theta)^a` is found from the fitted point: it is that of rows that weigh 1 / a as
    much under the prior as it is. A stack is fitted again, and the prior variances of its pool's
    error are divided by a.

    See Kallioinen, Paananen, Buerkner, Vehtari (2024), Detecting and diagnosing prior and
    likelihood sensitivity with power-scaling, Statistics and Computing 34.
    """
    from bayesrbf.fit.trees import to_datatree

    def points(models: list[FittedModel]) -> Float[np.ndarray, "model obs label"]:
        return np.exp([fit.replaced(model=model).chain.point(cells) for model in models])

    draws = fit.draws
    assert draws is not None  # what asks requires draws
    thinned = slice(None, None, -(-draws.n_draws // MAX_DRAWS))
    stats = {"lp": draws.stats["lp"][:, thinned]}
    tree = to_datatree(
        fit.log_posterior, replace(draws, theta=draws.theta[:, thinned], stats=stats)
    )
    if fit.model.pools:
        probabilities = points([fit.model.at_prior_power(power) for power in POWERS])
        ends = np.array([_ends(fit.chain, power, cells) for power in POWERS])
        return PriorSensitivity(probabilities, _psense(tree), refitted=True, ends=ends)
    evaluated = tree[names.LOG_PRIOR][names.DRAW].to_numpy()
    log_prior = tree[names.LOG_PRIOR][names.LOG_PRIOR].to_numpy()
    chain = _certain(fit.chain)
    p, every = replace(chain, numbers=chain.numbers[:, thinned][:, evaluated]).draws(cells)
    log_prior = log_prior[:, ::every]
    smoothed = [pareto_smooth((power - 1) * log_prior.ravel()) for power in POWERS]
    refitted = not all(pareto_k <= PARETO_K for _, pareto_k in smoothed)
    if refitted:
        probabilities = _refitted(fit, cells)
    else:
        probabilities = np.stack(
            [np.tensordot(w, p.reshape(w.size, *p.shape[2:]), 1) for w, _ in smoothed]
        )
    row, label = np.unravel_index(
        np.abs(probabilities - probabilities[1]).max(axis=0).argmax(), probabilities.shape[1:]
    )
    groups = {
        names.POSTERIOR: {names.PROBABILITY: p[..., row, label]},
        names.LOG_PRIOR: {names.LOG_PRIOR: log_prior},
    }
    half, twice = (fit.model.at_scale(scale, fit.rows) for scale in (0.5, 2.0))
    scaled = None if half is fit.model else points([half, fit.model, twice])
    return PriorSensitivity(probabilities, _psense(groups), refitted, scaled)


def _psense(groups: Any) -> float:
    """Largest power-scaling sensitivity of a variable to the prior; NaN for few draws.

    ``groups`` are a posterior with its log prior, as a tree or as arrays by group and name.
    """
    from arviz_base import convert_to_datatree, from_dict
    from arviz_stats import psense

    tree = from_dict(groups) if isinstance(groups, dict) else convert_to_datatree(groups)
    sizes = tree[names.LOG_PRIOR].sizes
    if sizes[names.CHAIN] * sizes[names.DRAW] < SMALLEST:
        return float("nan")
    found = psense(tree, group="prior").data_vars.values()
    return float(max(np.nanmax(sensitivities.to_numpy()) for sensitivities in found))


def _ends(
    chain: Chain, power: float, cells: Observations
) -> tuple[Float[np.ndarray, "obs label"], Float[np.ndarray, "obs label"]]:
    """Ends of 90 % intervals under a power of the prior of the pool's error."""
    stages = tuple(stage.at_prior_power(power) for stage in chain.stages)
    summary = replace(chain, stages=stages).summary(cells, 0.9)
    return summary.lower, summary.upper


def _certain(chain: Chain) -> Chain:
    """The chain with the uncertainty of the parameters alone."""
    stages, use = (tuple(map(AtCentre, group)) for group in (chain.stages, chain.use))
    return replace(chain, stages=stages, use=use)


def _refitted(
    fit: FittedTable[Any, Any], cells: Observations
) -> Float[np.ndarray, "power obs label"]:
    """Class probabilities at the modes under the powers of the prior."""
    from bayesrbf.inference.laplace import mode_of

    rows = fit.rows
    targets = (fit.model.log_posterior(replace(rows, weights=rows.weights / a)) for a in POWERS)
    thetas = np.stack([mode_of(target, fit.point) for target in targets])[None]
    draws = Draws(thetas, {"lp": np.zeros(thetas.shape[:2])}, "map")
    found, _ = _certain(fit.replaced(draws=draws, raw=draws, model_uncertainty=None).chain).draws(
        cells
    )
    return found[0]
