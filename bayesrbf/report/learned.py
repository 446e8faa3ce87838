"""What the model learned: columns that matter, members of a stack, how the classes differ."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import rel_entr
from scipy.stats import norm

from bayesrbf import table
from bayesrbf.posterior.recalibration import tempered
from bayesrbf.records import names
from bayesrbf.records.mixture import Observations
from bayesrbf.report.density import Densities, component_names
from bayesrbf.report.job import Job
from bayesrbf.report.records import Density, Learned, Member

MOST_ROWS, MOST_CELLS, FEWEST_ROWS = 2_000, 6_000, 100
"""Limits on the rows that contributions are averaged over: each row costs a prediction a column."""
BARS, DENSITIES, MEANS = 15, 6, 12
GRID = 121


def read_learned(job: Job, model: Any, refined: Any, densities: Densities) -> Learned:
    """Contributions, members, densities and means; columns are ordered by contribution."""
    added, density = contributions(job, model), densities.point
    if density is None:
        return Learned(tuple(added[:BARS]), (), (), (), ())
    leading = [name for name, _ in added]
    return Learned(
        contributions=tuple(added[:BARS]),
        densities=tuple(_density(job, density, name) for name in leading[:DENSITIES]),
        component_names=component_names(density),
        weights=_shares(density),
        means=_means(density, densities.drawn, leading),
        members=read_members(refined),
        beside=densities.sentence,
    )


def _shares(density: Any) -> tuple[float, ...]:
    """``p(class) p(component | class)`` of every component."""
    structure, parameters = density.model_.density.specification, density.model_.density.parameters
    shares = parameters.class_probabilities[list(structure.component_class)] * parameters.weights
    return tuple(map(float, shares))


def contributions(job: Job, model: Any) -> list[tuple[str, float]]:
    """Mean Kullback-Leibler divergence in nats that each column adds to the others, largest first.

    ``mean_n KL(p(y | x_n) || p(y | x_n without column j))``: a column is left out as if its cells
    were missing. It is 0 in rows where the cell is missing anyway.
    """
    X = job.X.iloc[:: -(-len(job.X) // _most_rows(job.X.shape[1]))]
    everything = model.predict_proba(X)
    found = []
    for name in X.columns:
        if job.X[name].isna().all():
            continue  # an empty column adds nothing and has no range to draw
        without = np.maximum(_without(model, X, name), 1e-300)
        gained = rel_entr(everything, without).sum(1).mean()
        found.append((str(name), float(max(gained, 0.0))))
    return sorted(found, key=lambda pair: -pair[1])


def _most_rows(n_columns: int) -> int:
    """Rows over which contributions are averaged."""
    return min(MOST_ROWS, max(FEWEST_ROWS, MOST_CELLS // n_columns))


def _without(model: Any, X: pd.DataFrame, name: str) -> Float[np.ndarray, "obs label"]:
    """Class probabilities without a column."""
    if model.model_.density is None:  # rows are only compared with exemplars
        blank: Any = np.nan if pd.api.types.is_numeric_dtype(X[name]) else None
        return model.predict_proba(X.assign(**{name: blank}))
    # Removed after the masks are made: these cells must not count as informatively missing.
    columns = model.columns_
    rows = table.encode(X, columns)
    position = columns.names.index(name)
    reals, codes = rows.real.copy(), rows.codes.copy()
    if position in columns.real_positions:
        feature = columns.real_positions.index(position)
        reals[:, feature] = np.nan
        if feature in columns.atomic:
            codes[:, columns.atomic[feature]] = -1
    else:
        codes[:, columns.categorical_positions.index(position)] = -1
    hidden = replace(rows, real=reals, codes=codes)
    joint = model.model_.class_log_joint(hidden, model.temperature_)
    return np.exp(tempered(joint, model.temperature_))


def _density(job: Job, density: Any, name: str) -> Density:
    """Marginal distribution of a column in every class, or in all where components are shared."""
    columns, mixture = density.columns_, density.model_.density
    parameters, structure = mixture.parameters, mixture.specification
    position = columns.names.index(name)
    if columns.kinds[position] == "categorical":
        place = columns.categorical_positions.index(position)
        theta = parameters.category_probabilities[place]
        of_class = [parameters.weights[s] @ theta[s] for s in structure.class_slices]
        levels = tuple(map(str, columns.levels[place]))
        return Density(
            name, "categorical", np.arange(len(levels)) + 0.0, levels, np.stack(of_class)
        )
    place = columns.real_positions.index(position)
    seen = job.X[name].to_numpy(dtype=float)
    low, high = np.nanquantile(seen, [0.005, 0.995])
    width = float(mixture.units.scale[place])
    grid = np.linspace(low, high if high > low else low + width, GRID)
    alone = np.full((GRID, structure.n_features), np.nan)
    alone[:, place] = grid
    nothing = np.full((GRID, len(structure.levels)), -1)
    rows = mixture.standardise(Observations(alone, nothing, np.full(GRID, -1), np.ones(GRID)))
    sd = np.sqrt(parameters.covariances()[structure.covariance_group, place, place])
    each = norm.logpdf(rows.real[:, place, None], parameters.means[:, place], sd)
    each = np.exp(each + mixture.units.log_unit(rows)[:, None])
    curves = [each[:, s] @ parameters.weights[s] for s in structure.class_slices]
    return Density(name, "real", grid, (), np.stack(curves))


def _means(
    density: Any, drawn: Any, leading: list[str]
) -> tuple[tuple[str, tuple[float, ...], tuple[float, ...]], ...]:
    """Component means of the leading real columns, with posterior standard deviations."""
    mixture = density.model_.density
    means = mixture.in_users_units(mixture.parameters.means)
    if means.shape[1] == 0:
        return ()
    spread = np.full(means.shape, np.nan)
    if drawn.draws_ is not None:
        draws = drawn.posterior_[names.POSTERIOR][names.MEANS].to_numpy()
        in_units = mixture.in_users_units(mixture.units.forward(draws))
        spread = in_units.std(axis=(0, 1))
    reals = list(density.columns_.real_names)
    chosen = [name for name in leading if name in reals][:MEANS]
    return tuple(
        (
            name,
            tuple(map(float, means[:, reals.index(name)])),
            tuple(map(float, spread[:, reals.index(name)])),
        )
        for name in chosen
    )


WORDS: Final = {
    "K1": "kernel network, Laplace kernel, silent columns shrunk",
    "K2": "kernel network, Laplace kernel, all columns alike",
    "K3": "kernel network, Gaussian kernel, silent columns shrunk",
    "SL": "kernel network, Laplace kernel of a third of the length, silent columns shrunk",
    "AL": "kernel network, Laplace kernel, rates of the columns learned by their evidence",
    "VG10": "kernel network, Gaussian kernel, rates learned by leave-one-out",
    "VG100": "kernel network, Gaussian kernel, rates learned by leave-one-out, less penalised",
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
