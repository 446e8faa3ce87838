"""How often intervals of the approximations hold class probabilities: what docs/trust.md declares.

Tables of 10 to 24 rows are drawn from the prior.
"""

from __future__ import annotations

import numpy as np

from bench.figures import ERRORS, show
from tests.inference.class_calibration import APPROXIMATED, LEVELS, approximated, coverage

TABLES, FIRST_SEED = 400, 1000
FAR = 8.0
"""Points by which an approximation may miss its level before it is no longer offered."""


def test_declared_rates() -> None:
    rows, misses = [], {}
    for family, method in APPROXIMATED:
        places = np.array(list(approximated(family, method, TABLES, FIRST_SEED)))
        found = coverage(places)
        rates = {f"{level} %": found.rates[level] for level in LEVELS}
        rows.append({"family": family, "method": method} | rates | {"s.e.": found.errors[50]})
        for level in LEVELS:
            miss = abs(found.rates[level] - level) - ERRORS * found.errors[level]
            misses[family, method, level] = miss
    show("declared_rates", rows, 1)
    for row in rows:
        of_levels = [float(row[f"{level} %"]) for level in LEVELS]
        assert of_levels == sorted(of_levels)
    assert max(misses.values()) < FAR, misses
