"""Stored parts are not run again, counts are true, and every judge can fail."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from tests import measured
from tests.inference.class_calibration import APPROXIMATED, coverage
from tests.trust.__main__ import SECTIONS
from tests.trust.calibration import calibrated, declared, packed, probable, unpacked
from tests.trust.sections import Line, Row, Section


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Parts that were run, in a folder of their own."""
    monkeypatch.setattr(measured, "FIGURES", tmp_path)
    return []


def section(runs: list[tuple[int, int]], stops_at: int = 99) -> Section:
    """Ten repetitions in parts of four; what cannot be run ends the section."""

    def work(number: int, times: int) -> Row:
        if number == stops_at:
            raise KeyboardInterrupt
        runs.append((number, times))
        return {"tried": 3 * times, "through": int(number == 0), "odd": times}

    return Section("loss", lambda _: [Line("attack", work, 10, "sets", 4)])


def test_a_section_that_was_stopped_goes_on(runs: list[tuple[int, int]]) -> None:
    with pytest.raises(KeyboardInterrupt):
        section(runs, stops_at=1).run(1.0)
    assert section(runs).run(1.0) == 1
    assert runs == [(0, 4), (1, 4), (2, 2)]
    written = measured.read("trust/loss")
    assert written.rows == (("attack", "10 of 10 sets", 30, 29, 1, "10 odd"),)


def test_a_share_says_how_many_of_how_many(runs: list[tuple[int, int]]) -> None:
    section(runs).run(0.3)
    assert runs == [(0, 3)]
    assert measured.read("trust/loss").rows[0][1:3] == ("3 of 10 sets", 9)


def test_every_section_stands_on_the_page() -> None:
    page = (measured.ROOT / "docs" / "trust.md").read_text()
    names = [name for name, _ in measured.PLACE.findall(page)]
    assert [name for name in names if name.startswith("trust/")] == [
        f"trust/{name}" for name in sorted(SECTIONS, key=lambda name: page.index(f"/{name} -->"))
    ]
    for one in SECTIONS.values():
        for long in (True, False):
            lines = one.lines(long)
            assert len({line.what for line in lines}) == len(lines)


def test_ranks_come_back_and_shifted_ones_are_refused() -> None:
    sound = {
        "mean, of x": np.random.default_rng(3).random(400),
        "y": np.linspace(0.001, 0.999, 400),
    }
    parts = [{"ranks": packed({name: own[half] for name, own in sound.items()})}
             for half in (slice(200), slice(200, None))]  # fmt: skip
    assert list(unpacked(parts)) == list(sound)
    for name, own in unpacked(parts).items():
        assert np.abs(own - sound[name]).max() < 1 / 16
    assert calibrated(parts).through == 0
    assert calibrated(parts).tried == 2
    assert calibrated([{"ranks": packed({"x": sound["y"] ** 1.6})}]).through == 1


def test_probabilities_that_are_too_sure_are_refused() -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 0.5, 10_000)
    happened = rng.random(p.size) < p

    def said(p: np.ndarray) -> list[Row]:
        words = (f"{round(1e5 * q)}{'+' if y else '-'}" for q, y in zip(p, happened, strict=True))
        return [{"outcomes": " ".join(words)}]

    assert probable(said(p)).through == 0
    assert probable(said(p**0.8)).through > 0


@pytest.mark.parametrize(("family", "method"), APPROXIMATED)
def test_intervals_a_fifth_too_narrow_are_refused(family: str, method: str) -> None:
    """Of 600 tables of three probabilities that depend on each other."""
    rng, rates = np.random.default_rng(0), declared(family, method)
    z = np.sqrt(0.3) * rng.normal(size=(600, 1)) + np.sqrt(0.7) * rng.normal(size=(600, 3))
    quantiles = np.array([0.6745, 1.2816, 1.96])
    wide = np.mean(quantiles / [abs_quantile(rate) for rate in rates])
    assert coverage(ndtr(wide * z)).outside(rates) == []
    assert coverage(ndtr(1.2 * wide * z)).outside(rates)
    assert coverage(ndtr(wide * z / 1.2)).outside(rates)


def abs_quantile(rate: float) -> float:
    """What so many per cent of normal numbers lie within."""
    return float(ndtri(0.5 + rate / 200))


def test_what_has_no_declared_rate_is_named() -> None:
    with pytest.raises(LookupError, match="test_declared"):
        declared("mixture of two classes", "tea leaves")
