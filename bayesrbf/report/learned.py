"""What the model learned: columns that matter, components, members, how the classes differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bayesrbf.fitted.tasks import run_tasks
from bayesrbf.records import names
from bayesrbf.report.class_columns import read_class_column
from bayesrbf.report.drawing_method import Drawn
from bayesrbf.report.effects import Moves
from bayesrbf.report.families import FAMILIES
from bayesrbf.report.job import Job
from bayesrbf.report.learned_records import Learned, Member

BARS, EFFECTS, BY_CLASS, MEANS = 15, 6, 6, 12


@dataclass(frozen=True)
class Densities:
    """The mixture that a classifier's rows come from; None where they come from none."""

    point: Any  # Without draws.
    drawn: Any  # With its posterior.


def densities_of(job: Job, drawn: Drawn) -> Densities:
    """The mixture of a classifier: itself, or its hidden layer.

    Stacks, sparse mixtures and exemplars have none.
    """
    if FAMILIES[job.family].has_components:
        return Densities(drawn.model, drawn.refined)
    return Densities(None, None)


def component_names(density: Any) -> tuple[str, ...]:
    """Components in words, such as "benign" or "benign 2 of 3".

    The hidden layer of an RBF network has the same ones for all classes.
    """
    structure = density.model_.density.specification
    shared = structure.n_classes < density.classes_.size
    labels = ["component"] if shared else list(map(str, density.classes_))
    names = []
    for label, members in zip(labels, structure.class_slices, strict=True):
        size = members.stop - members.start
        names += [label if size == 1 else f"{label} {i + 1} of {size}" for i in range(size)]
    return tuple(names)


def read_learned(job: Job, model: Any, refined: Any, densities: Densities, moves: Moves) -> Learned:
    """Contributions, effects, members, classes and means; columns are ordered by contribution.

    Components are the classifier's own.
    """
    density, leading = densities.point, [one.name for one in moves.contributions]
    components: dict[str, Any] = {"component_names": (), "weights": (), "means": ()}
    if density is not None:
        components = {
            "component_names": component_names(density),
            "weights": _shares(density),
            "means": _means(job, density, densities.drawn, leading),
        }
    classes, pools = list(map(str, model.classes_)), FAMILIES[job.family].pools
    return Learned(
        contributions=moves.contributions[:BARS],
        effects=moves.effects[:EFFECTS],
        base=moves.base,
        by_class=tuple(
            run_tasks(
                lambda name: read_class_column(job, name, classes), leading[:BY_CLASS], "Columns"
            )
        ),
        members=read_members(refined) if pools else (),
        relevances=read_relevances(model) if pools else (),
        **components,
    )


def read_relevances(model: Any) -> tuple[tuple[str, float], ...]:
    """Mean relevance of columns over the members of a stack that learned it; empty without any.

    Members count by their weights, as in the probabilities that are given out.
    """
    relevance, weights = model.relevance_, dict(zip(model.members_, model.weights_, strict=True))
    if not relevance.size:
        return ()
    counts = np.array([weights[name] for name in relevance.columns])
    means = (relevance @ (counts / counts.sum())).sort_values(ascending=False, kind="stable")
    return tuple((str(name), float(mean)) for name, mean in means.items())


def _shares(density: Any) -> tuple[float, ...]:
    """``p(class) p(component | class)`` of every component."""
    structure, parameters = density.model_.density.specification, density.model_.density.parameters
    shares = parameters.class_probabilities[list(structure.component_class)] * parameters.weights
    return tuple(map(float, shares))


def _means(
    job: Job, density: Any, drawn: Any, leading: list[str]
) -> tuple[tuple[str, tuple[str, ...], tuple[float, ...]], ...]:
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
            tuple(job.mean(name, float(mean)) for mean in means[:, reals.index(name)]),
            tuple(map(float, spread[:, reals.index(name)])),
        )
        for name in chosen
    )


MEMBER_WORDS: Final = {
    "laplace": "kernel network, Laplace kernel, silent columns shrunk",
    "laplace_equal": "kernel network, Laplace kernel, all columns alike",
    "laplace_short": "kernel network, short Laplace kernel, silent columns shrunk",
    "laplace_evidence": "kernel network, Laplace kernel, rates by their evidence",
    "gaussian_loo": "kernel network, Gaussian kernel, rates by leave-one-out",
    "gaussian_loo_light": (
        "kernel network, Gaussian kernel, rates by leave-one-out, less penalised"
    ),
    "gaussian_loo_levels": "kernel network, Gaussian kernel, few values as categories",
    "normal": "one Gaussian a class, one covariance for all",
    "mixture": "three Gaussians a class, full covariances",
    "normal_blend": (
        "one Gaussian a class, one covariance for all, fitted to tell the classes apart"
    ),
    "mixture_blend": (
        "three Gaussians a class, one covariance for all, fitted to tell the classes apart"
    ),
    "forest": "forest of 60 trees",
    "boosting": "boosting, 300 small trees",
}


def read_members(refined: Any) -> tuple[Member, ...]:
    """Members of a stack, the largest weight in the probabilities that are given out first."""
    table = refined.member_table().drop(index="stack")
    drawn = np.full((3, len(table)), np.nan)
    if refined.draws_ is not None:
        weights = refined.posterior_[names.POSTERIOR][names.WEIGHTS].to_numpy()
        weights = weights.reshape(-1, len(table))
        drawn = np.stack([weights.mean(axis=0), *np.quantile(weights, [0.05, 0.95], axis=0)])
    members = [
        Member(
            name=MEMBER_WORDS.get(str(name), str(name)),
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
    return tuple(sorted(members, key=lambda member: -member.fitted))
