"""Simulation-based calibration: exact methods, planted defects, probabilities, approximations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from tests.inference.class_calibration import (
    APPROXIMATED,
    BOUND,
    LEVELS,
    approximated,
    coverage,
    outcomes,
    reliability,
)
from tests.inference.defects import DEFECTS
from tests.inference.drawing_graphs import SIMULATORS
from tests.inference.drawn_tables import DRAWS, EXACT, SAMPLERS, calibrate
from tests.inference.sbc import failures
from tests.inference.simulations import SOUND, gibbs
from tests.measured import read
from tests.trust.sections import Line, Row, Section, Tried, count

SIMULATIONS = {True: 1000, False: 50}
"""Of mixtures, in the long form and in the short one."""
OF_GRAPHS = {True: 100, False: 50}
"""Of other families: NUTS takes seconds a table."""
SETS = 5
"""Independent sets of tables of a planted defect."""
TABLES, PROBABLE = 600, 4000
"""In which a defect of intervals is seen, and one of probabilities."""


def exact_methods(long: bool) -> list[Line]:
    """Mixtures; what got through is quantities that are not calibrated."""
    return [
        Line(
            f"{name}, {'Gibbs' if simulation.sampler is gibbs else 'independent draws'}",
            partial(of_mixtures, name),
            SIMULATIONS[long],
            "tables",
            50,
            calibrated,
        )
        for name, simulation in SOUND.items()
    ]


def of_mixtures(name: str, seed: int, times: int) -> Row:
    """Ranks of the truth in some tables; the part is the seed."""
    return {"ranks": packed(SOUND[name].ranks(times, seed))}


def other_families(long: bool) -> list[Line]:
    """Every family whose graph draws tables, by every exact method that it has."""
    return [
        Line(
            f"{name}, {method}",
            partial(of_family, name, method),
            OF_GRAPHS[long],
            "tables",
            50,
            calibrated,
        )
        for name, method in EXACT
    ]


def of_family(name: str, method: str, seed: int, times: int) -> Row:
    """Ranks of the truth in some tables of a family; the part is the seed."""
    return {"ranks": packed(calibrate(SIMULATORS[name](), SAMPLERS[method], times, seed))}


def packed(ranks: dict[str, np.ndarray]) -> str:
    """Ranks among the draws as digits of base sixteen, by quantity."""
    places = {name: np.floor(pit * (DRAWS + 1)).astype(int) for name, pit in ranks.items()}
    return ";".join(f"{name}={''.join(f'{p:x}' for p in own)}" for name, own in places.items())


def unpacked(parts: Sequence[Row]) -> dict[str, np.ndarray]:
    """PIT of every quantity: within its rank a truth is anywhere."""
    rng, digits = np.random.default_rng(0), dict[str, str]()
    for row in parts:
        for one in str(row["ranks"]).split(";"):
            name, _, own = one.rpartition("=")
            digits[name] = digits.get(name, "") + own
    return {
        name: (np.array([int(digit, 16) for digit in own]) + rng.random(len(own))) / (DRAWS + 1)
        for name, own in digits.items()
    }


def calibrated(parts: Sequence[Row]) -> Tried:
    """Ranks of the truth among draws of an exact method, of all parts together."""
    ranks = unpacked(parts)
    wrong = failures(ranks)
    through = {text.partition(":")[0] for text in wrong}
    return Tried(len(ranks), len(through), "; ".join(wrong))


def defects(long: bool) -> list[Line]:
    """A set is held where the unbroken code passes and the broken one fails, on the same tables."""
    return [
        Line(
            f"{name}: sets of {planted.tables} tables of their own",
            partial(planted_in, name),
            SETS if long else 1,
            "sets",
            1,
        )
        for name, planted in DEFECTS.items()
    ]


def planted_in(name: str, seed: int, times: int) -> Row:
    """One set of tables; the part is the seed."""
    sound, broken = DEFECTS[name].judged(seed)
    return {
        "tried": 1,
        "through": int(bool(sound) or not broken),
        "passed unbroken": int(not sound),
        "failed broken": int(bool(broken)),
        "": "; ".join(f"set {seed}: {text}" for text in sound),
    }


def probabilities(long: bool) -> list[Line]:
    """Ten times as many tables; the defect is planted in the same."""
    asked = 10_000 if long else PROBABLE
    return [Line("class probability of a row, its class", said, asked, "tables", 500, probable)]


def said(seed: int, times: int) -> Row:
    """Probabilities in hundred thousandths, and whether it happened; the part is the seed."""
    pairs = outcomes(times, seed)
    return {"outcomes": " ".join(f"{round(1e5 * p)}{'+' if true else '-'}" for p, true in pairs)}


def probable(parts: Sequence[Row]) -> Tried:
    """Class probabilities of new rows against their classes, and probabilities to the power 1.2."""
    pairs = [pair for row in parts for pair in str(row["outcomes"]).split()]
    p = np.array([int(pair[:-1]) / 1e5 for pair in pairs])
    happened = np.array([pair[-1] == "+" for pair in pairs])
    sound, broken = reliability(p, happened), reliability(p**1.2, happened)
    tenths = ", ".join(f"{z:.1f}" for z in sound.bins)
    remark = f"{sound.overall:.1f} standard errors off, in tenths {tenths}"
    if len(pairs) < PROBABLE:
        remark += f"; the defect is judged on {PROBABLE:,}"
        return Tried(len(sound.bins) + 1, int(sound.worst > BOUND), remark)
    remark += f"; defect {broken.worst:.1f}, which must be above {BOUND}"
    through = int(sound.worst > BOUND) + int(broken.worst <= BOUND)
    return Tried(len(sound.bins) + 2, through, remark)


def approximations(long: bool) -> list[Line]:
    """A line is held where rates are as declared, and those of narrower draws are not."""
    return [
        Line(
            f"{method}, {family}",
            partial(places, family, method),
            TABLES,
            "tables",
            50,
            partial(as_declared, declared(family, method)),
        )
        for family, method in APPROXIMATED
        if long or method == "Laplace"
    ]


def places(family: str, method: str, seed: int, times: int) -> Row:
    """Places of true probabilities among draws, in thousandths, table by table."""
    sound, narrow = zip(*approximated(family, method, times, seed), strict=True)
    return {"sound": in_thousandths(sound), "narrow": in_thousandths(narrow)}


def in_thousandths(tables: Sequence[np.ndarray]) -> str:
    """Places within a table are parted by a space, tables by a semicolon."""
    return ";".join(" ".join(str(int(1000 * place)) for place in table) for table in tables)


def declared(family: str, method: str) -> tuple[float, ...]:
    """Per cent of intervals that hold the truth: measured on other tables by a benchmark."""
    for of_family, of_method, *rates in read("declared_rates").rows:
        if (of_family, of_method) == (family, method):
            return tuple(float(str(rate)) for rate in rates[: len(LEVELS)])
    raise LookupError(f"no declared rate of {method}, {family}: make bench ARGS='-k test_declared'")


def as_declared(rates: tuple[float, ...], parts: Sequence[Row]) -> Tried:
    """Rates of central intervals beside the declared ones, and those of the planted defect."""

    def of(name: str) -> np.ndarray:
        tables = ";".join(str(row[name]) for row in parts).split(";")
        return (np.array([table.split() for table in tables], dtype=float) + 0.5) / 1000

    sound, narrow = coverage(of("sound")), coverage(of("narrow"))
    levels = (
        f"{level} %: {sound.rates[level]:.1f} ± {sound.errors[level]:.1f}, declared {rate:.1f}, "
        f"defect {narrow.rates[level]:.1f}"
        for level, rate in zip(LEVELS, rates, strict=True)
    )
    wrong, caught = sound.outside(rates), bool(narrow.outside(rates))
    if count(parts, "times") < TABLES:
        remark = "; ".join([*levels, f"the defect is judged on {TABLES}"])
        return Tried(len(LEVELS), len(wrong), remark)
    remark = "; ".join([*levels, f"defect {'' if caught else 'not '}caught"])
    return Tried(len(LEVELS) + 1, len(wrong) + (not caught), remark)


SECTIONS = (
    Section("sbc", exact_methods),
    Section("defects", defects),
    Section("probabilities", probabilities),
    Section("families", other_families),
    Section("approximations", approximations),
)
