"""A mixture's log posterior in one compiled call, for tables small enough for one thread."""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numba
import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.coordinates import Simplices, slices
from bayesrbf.numerics.kernels.declared_reals import Point, Reals
from bayesrbf.numerics.kernels.driver import Model
from bayesrbf.numerics.kernels.mixture_posterior import Levels, Simplexes, log_posterior
from bayesrbf.numerics.mixture.compiled_expectation import CompiledExpectation
from bayesrbf.numerics.mixture.expectation import Expectation
from bayesrbf.numerics.mixture.mixture_points import free_variables
from bayesrbf.numerics.mixture.mixture_prior import DeclaredPrior
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.records import names
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification, Variable

_POINTS_OF_A_THREAD: Final = 100
"""Least number of points for which starting a thread pays."""


def density_in_one_call(
    expectation: Expectation,
    prior: DeclaredPrior,
    hyperparameters: MixtureHyperparameters,
) -> CompiledDensity | None:
    """Put prior and rows into one compiled call; None where that gains nothing.

    None for an empty table and for one that several threads go through. The prior is in standard
    units, ``hyperparameters`` are the same in the units of the coordinates.
    """
    if isinstance(expectation, CompiledExpectation) and expectation.n_pieces == 1:
        return CompiledDensity(expectation, prior, hyperparameters)
    return None


class CompiledDensity:
    """Value and gradient of a mixture's log posterior in nats, rows and prior in standard units."""

    def __init__(
        self,
        expectation: CompiledExpectation,
        prior: DeclaredPrior,
        hyperparameters: MixtureHyperparameters,
    ) -> None:
        specification = expectation.specification
        variables = free_variables(specification)
        self._expectation = expectation
        self._specification = specification
        log_sizes = Simplices.among(variables).log_sizes
        self._constants = [prior.constant, prior.constant + log_sizes]
        self._levels = _levels(variables, expectation.members, specification)
        self._simplexes = [_simplexes(variables, powers, specification) for powers in prior.powers]
        self._reals = [
            _reals(jacobian, hyperparameters, specification) for jacobian in (False, True)
        ]

    def __call__(
        self, thetas: Float[np.ndarray, "point coordinate"], jacobian: bool
    ) -> tuple[Float[np.ndarray, " point"], Float[np.ndarray, "point coordinate"]]:
        """Log posterior densities at some points, and their gradients in the coordinates."""
        gradients = np.empty(thetas.shape)
        return self._evaluated(thetas, gradients, jacobian), gradients

    def values(self, thetas: Float[np.ndarray, "point coordinate"]) -> Float[np.ndarray, " point"]:
        """Log posterior densities with Jacobian at some points, without the gradients' sums."""
        return self._evaluated(thetas, None, True)

    def _evaluated(
        self, thetas: np.ndarray, gradients: np.ndarray | None, jacobian: bool
    ) -> Float[np.ndarray, " point"]:
        """Log densities, on as many threads as have work; ``gradients`` is written to."""
        values, thetas = np.empty(len(thetas)), np.ascontiguousarray(thetas)
        granted = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
        n_threads = min(granted, len(thetas) // _POINTS_OF_A_THREAD)
        if n_threads < 2:
            self._evaluate(thetas, values, gradients, jacobian)
        else:
            edges = np.linspace(0, len(thetas), n_threads + 1).astype(int)
            parts = [slice(*ends) for ends in itertools.pairwise(edges)]
            with ThreadPoolExecutor(n_threads) as pool:
                for _ in pool.map(
                    lambda part: self._evaluate(
                        thetas[part],
                        values[part],
                        None if gradients is None else gradients[part],
                        jacobian,
                    ),
                    parts,
                ):
                    pass
        return values + self._constants[jacobian]

    def _evaluate(
        self, thetas: np.ndarray, values: np.ndarray, gradients: np.ndarray | None, jacobian: bool
    ) -> None:
        """Write log densities and, where there is room for them, gradients."""
        point, model = self._room()
        sums = self._expectation.empty_results()
        if gradients is None:
            gradients = np.empty((0, thetas.shape[1]))
            sums = sums._replace(first=sums.first[:0], second=sums.second[:0])
        log_posterior(
            thetas,
            values,
            gradients,
            self._expectation.tiles,
            self._simplexes[jacobian],
            self._reals[jacobian],
            self._levels,
            point,
            sums,
            *model,
        )

    def _room(self) -> tuple[Point, Model]:
        """Buffers of one point. Each call has its own, because several threads may call at once."""
        specification = self._specification
        k, d = specification.n_components, specification.n_features
        categories, means = np.empty((len(self._levels.members), k)), np.empty((k, d))
        if not d:
            factors = np.empty((specification.group_sizes.size, 0))
            return Point(means, factors), Model(np.empty(k), None, None, None, categories)
        law = laws_of(specification).reals
        factors, room = law.kernel_room(means, self._expectation.has_holes)
        return Point(means, factors), Model(*room, categories)


def _simplexes(
    variables: tuple[Variable, ...],
    powers: Float[np.ndarray, " entry"],
    specification: MixtureSpecification,
) -> Simplexes:
    """Places of all simplices among coordinates and entries."""
    sizes, places = [], []
    for variable, place in slices(variables):
        if variable.transform == "simplex":
            number, free = math.prod(variable.shape[:-1]), variable.shape[-1] - 1
            sizes += [free + 1] * number
            places += [place.start + i * free for i in range(number)]
    of_class = np.full(specification.n_components, -1)
    of_weight = of_class.copy()
    entries = Simplices.among(variables).slices
    for index, part in enumerate(specification.class_slices):
        if names.CLASS_PROBABILITIES in entries:
            of_class[part] = entries[names.CLASS_PROBABILITIES].start + index
        weights = entries.get(names.class_weights(index, specification.n_classes))
        if weights is not None:
            of_weight[part] = np.arange(weights.start, weights.stop)
    starts = np.array([0, *np.cumsum(sizes)], dtype=np.int64)
    return Simplexes(starts, np.array(places, dtype=np.int64), powers, of_class, of_weight)


def _levels(
    variables: tuple[Variable, ...],
    members: Int[np.ndarray, "code width"],
    specification: MixtureSpecification,
) -> Levels:
    """Places of all levels among the entries."""
    entries = Simplices.among(variables).slices
    levels = specification.levels
    starts = [entries[names.category_probability(i)].start for i in range(len(levels))]
    sizes = zip(starts, levels, strict=True)
    lines = [np.arange(start, start + size) for start, size in sizes]
    first = np.concatenate([np.zeros(0, dtype=np.int64), *lines])
    return Levels(np.ascontiguousarray(members), first, np.repeat(levels, levels).astype(np.int64))


def _reals(
    jacobian: bool,
    hyperparameters: MixtureHyperparameters,
    specification: MixtureSpecification,
) -> Reals:
    """Places and prior of the real columns."""
    places = {variable.name: place for variable, place in slices(free_variables(specification))}
    first = {name: place.start for name, place in places.items()}
    law = laws_of(specification).reals
    declared = law.prior(hyperparameters.standardised())
    rate, powers = 0.0, np.zeros(law.n_groups)
    if declared is not None:
        rate, powers = declared.rate, np.ascontiguousarray(declared.gamma_powers[jacobian][:, 0])
    return Reals(
        means=first.get(names.MEANS, 0),
        diagonal=first.get(names.PRECISION_DIAGONAL, 0),
        lower=first.get(names.PRECISION_LOWER, 0),
        location=hyperparameters.location,
        scale=hyperparameters.scale,
        mean_precision=float(hyperparameters.mean_precision),
        group=specification.covariance_group,
        base=law.base_scales(hyperparameters.standardised()),
        rate=rate,
        powers=powers,
        spherical=law.columns_a_gamma > 1,
    )
