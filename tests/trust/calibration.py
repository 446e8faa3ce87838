"""Simulation-based calibration: exact methods, planted defects, probabilities, approximations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.inference.class_calibration import (
    APPROXIMATED,
    BANDS,
    BOUND,
    METHODS,
    Coverage,
    covered,
    covered_in,
    outcomes,
    reliability,
)
from tests.inference.drawing_graphs import SIMULATORS
from tests.inference.drawn_tables import EXACT, SAMPLERS, calibrate
from tests.inference.sbc import failures
from tests.inference.simulations import DEFECTS, SOUND, gibbs, missing_as_zero, power
from tests.trust.sections import Section, Tried, portion

NUMBERS = {True: portion(1000), False: 50}
"""Tables of a simulation in the long form and in the short one."""
TRIES = 100
SEED = 0


def exact_methods(long: bool) -> Iterator[Tried | str]:
    """Mixtures, and what got through is quantities that are not calibrated."""
    for name, simulation in SOUND.items():
        method = "Gibbs" if simulation.sampler is gibbs else "independent draws"
        yield calibrated(f"{name}, {method}", simulation.ranks(NUMBERS[long], SEED))


def other_families(long: bool) -> Iterator[Tried | str]:
    """Every family whose graph draws tables, by every exact method that it has."""
    for name, method in EXACT:
        number = max(5, NUMBERS[long])
        ranks = calibrate(SIMULATORS[name](), SAMPLERS[method], number, SEED)
        yield calibrated(f"{name}, {method}", ranks)


def defects(long: bool) -> Iterator[Tried | str]:
    """The eight of the design."""
    yield from planted(NUMBERS[long])


def probabilities(long: bool) -> Iterator[Tried | str]:
    """Ten times as many tables."""
    yield from probable(10 * NUMBERS[long])


def approximations(long: bool) -> Iterator[Tried | str]:
    """Coverage beside a declared band."""
    number = max(10, NUMBERS[long] // 5)
    for name in METHODS:
        yield approximate(f"{name}, mixture", covered(name, number, SEED))
    for family, name in APPROXIMATED:
        yield approximate(f"{name}, {family}", covered_in(family, name, number, SEED))
    yield (
        "A rate got through where it lies beyond its band by more than three standard errors of "
        "the simulation."
    )


def calibrated(what: str, ranks: dict[str, np.ndarray]) -> Tried:
    """Ranks of the truth among draws of an exact method."""
    found = failures(ranks)
    tables = len(next(iter(ranks.values())))
    remark = f"{len(ranks)} quantities" + "".join(f"; {text}" for text in found)
    return Tried(f"tables ranked: {what}", tables, min(len(found), tables), remark)


def planted(number: int) -> Iterator[Tried]:
    """The eight defects of the design: each must be caught in nearly every set of tables."""
    surely = 0
    for name, simulation in DEFECTS.items():
        quick = simulation.sampler is not missing_as_zero
        ranks = simulation.ranks(number * (1 + quick), SEED)
        tables = number if quick else number // 2
        share = power(ranks, tables, TRIES)
        surely += share >= 0.99
        yield Tried(
            f"planted defect: {name}",
            TRIES,
            round((1 - share) * TRIES),
            f"sets of {tables} tables, caught in {share:.1%}",
        )
    yield Tried("planted defects caught with a power of 99 %", len(DEFECTS), len(DEFECTS) - surely)


def probable(number: int) -> Iterator[Tried]:
    """Class probabilities of new rows against their classes."""
    said, happened = np.array(list(outcomes(number, SEED))).T
    found = reliability(said, happened)
    values = ", ".join(f"{z:.1f}" for z in found.bins)
    yield Tried(
        "tables whose class probability is compared with the class",
        number,
        int(found.worst > BOUND),
        f"standard errors off: {found.overall:.1f}; in ten bins {values}",
    )
    wrong = reliability(said**1.2, happened)
    yield Tried(
        "planted defect: probabilities to the power 1.2",
        1,
        int(wrong.worst <= BOUND),
        f"{wrong.worst:.1f} standard errors off",
    )


def approximate(what: str, found: Coverage) -> Tried:
    """Coverage of an approximation, against its band."""
    told = ", ".join(
        f"{level} %: {rate:.1f} % (band {BANDS[level][0]} to {BANDS[level][1]})"
        for level, rate in found.rates.items()
    )
    number = f"{found.number} intervals a level"
    return Tried(f"{what}, {number}", len(found.rates), len(found.outside), told)


SECTIONS = (
    Section("sbc", "Statistics: mixtures by exact methods", exact_methods),
    Section("defects", "Statistics: planted defects", defects),
    Section("probabilities", "Statistics: class probabilities", probabilities),
    Section("families", "Statistics: other families", other_families),
    Section("approximations", "Statistics: approximations", approximations),
)
