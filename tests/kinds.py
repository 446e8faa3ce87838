"""A table with a column of every kind, and two kinds that are written here alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, override

import numpy as np
import pandas as pd
import pytest

from bayesrbf.base.records import STORED, stored
from bayesrbf.table.kinds import KINDS, Angle, Kind

PAIN = ("none", "mild", "severe")
KINDS_OF = {"hour": "angle:24", "visits": "count", "pain": "ordered:none<mild<severe"}


def table(
    n_obs: int, seed: int = 0, holes: float = 0.1, planted: bool = False
) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of two classes with a column of every kind; ``planted``: of those below, too."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_obs)
    X = pd.DataFrame(
        {
            "hour": np.round(4 * rng.normal(23 + 4 * y, 2, n_obs)) / 4 % 24,
            "visits": rng.poisson(1 + 4 * y).astype(float),
            "pain": np.array(PAIN)[np.clip(y + rng.integers(0, 2, n_obs), 0, 2)],
            "seen": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 99, n_obs), "D"),
            "again": np.where(rng.random(n_obs) < 0.4 + 0.2 * y, "yes", "no"),
            "size": rng.normal(size=n_obs) + y,
        }
    ).astype({"pain": object, "again": object})
    if planted:
        X["fat"] = 1 / (1 + np.exp(y - rng.normal(size=n_obs)))
        late = rng.normal(1400 + 120 * y, 60).astype(int) % 1440
        X["woken"] = [f"{minute // 60:02d}:{minute % 60:02d}" for minute in late]
        X["woken"] = X["woken"].astype(object)
    return X.mask(rng.random(X.shape) < holes), np.array(["sick", "well"])[y]


@pytest.fixture
def share() -> Iterator[type[Kind]]:
    """A kind of column that a user wrote: a share between 0 and 1."""

    @stored
    class Share(Kind):
        word = "share"
        cell_description = "a number between 0 and 1"

        @override
        def is_cell(self, numbers: Any) -> Any:
            return (numbers > 0) & (numbers < 1)

        @override
        def encode(self, numbers: Any) -> Any:
            return np.log(numbers / (1 - numbers))[:, None]

        @override
        def decode(self, reals: Any) -> Any:
            return 1 / (1 + np.exp(-reals[:, 0]))

        @override
        def written(self, number: float) -> str:
            return f"{100 * number:.1f} per cent"

    yield Share
    del KINDS["share"], STORED["Share"]


@pytest.fixture
def clock() -> Iterator[type[Kind]]:
    """A kind of texts that a user wrote: a time of day, in minutes since midnight."""

    @stored
    class Clock(Angle):
        period: float = 1440.0

        word = "clock"
        cell_description = "a time of day"
        example = "14:35"
        numbers = "minutes since midnight"

        @classmethod
        @override
        def resembles(cls, text: str) -> bool:
            return re.fullmatch(r"\d\d:\d\d", text) is not None

        @override
        def number(self, text: str) -> float:
            hours, minutes = map(int, text.split(":"))
            if not (0 <= hours < 24 and 0 <= minutes < 60):
                raise ValueError(text)
            return 60.0 * hours + minutes

        @override
        def typed(self, number: float) -> str:
            hours, minutes = divmod(round(number) % 1440, 60)
            return f"{hours:02d}:{minutes:02d}"

    yield Clock
    del KINDS["clock"], STORED["Clock"]
