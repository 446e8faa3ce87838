"""The members of a stack and their weights."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bayesrbf.records import names
from bayesrbf.report.model_records import Member

WORDS: Final = {
    "K1": "kernel network, Laplace kernel, silent columns shrunk",
    "K2": "kernel network, Laplace kernel, all columns alike",
    "K3": "kernel network, Gaussian kernel, silent columns shrunk",
    "G1": "one Gaussian a class, one covariance for all",
    "G2": "three Gaussians a class, full covariances",
    "B1": "one Gaussian a class, one covariance for all, fitted to tell the classes apart",
    "B2": "three Gaussians a class, one covariance for all, fitted to tell the classes apart",
}


def read_members(refined: Any) -> tuple[Member, ...]:
    """Members with their weights, largest first; empty for other families."""
    if not hasattr(refined, "member_table"):
        return ()
    table = refined.member_table().drop(index="stack")
    drawn = np.full((3, len(table)), np.nan)
    if refined.draws_ is not None:
        weights = refined.posterior_[names.POSTERIOR][names.WEIGHTS].to_numpy()
        weights = weights.reshape(-1, len(table))
        drawn = np.stack([weights.mean(axis=0), *np.quantile(weights, [0.05, 0.95], axis=0)])
    members = [
        Member(
            name=str(name),
            what=WORDS.get(str(name), "a further member"),
            fitted=float(line.weight),
            mean=float(mean),
            lower=float(lower),
            upper=float(upper),
            temperature=float(line.temperature),
            log_loss=float(line.log_loss),
            drawn=name not in refined.pointwise_,
        )
        for (name, line), mean, lower, upper in zip(table.iterrows(), *drawn, strict=True)
    ]
    return tuple(sorted(members, key=lambda member: -_weight(member)))


def _weight(member: Member) -> float:
    """The weight in predictions: the posterior mean, or the fitted one without draws."""
    return member.fitted if np.isnan(member.mean) else member.mean
