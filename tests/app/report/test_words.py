"""Numbers keep three significant digits and texts stay on their line."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from bayesrbf.app import words
from bayesrbf.app.svg import element, linear, ticks
from bayesrbf.app.words import (
    THIN,
    between,
    cell,
    clipped,
    count,
    decimals_of,
    ends,
    number,
    percent,
    spread,
    tick,
)

SUPERSCRIPT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def value_of(text: str) -> float:
    """The number that a text stands for."""
    plain = text.replace(THIN, "").replace("−", "-")
    digits, _, power = plain.partition(" × 10")
    return float(digits) * 10 ** int(power.translate(SUPERSCRIPT) or 0)


@given(st.floats(1e-200, 1e200), st.sampled_from([1, -1]))
def test_three_significant_digits(size: float, sign: int) -> None:
    text = number(sign * size)
    assert value_of(text) == pytest.approx(sign * size, rel=5.01e-3)
    assert len(re.sub(r"[^0-9]", "", text.partition(" × ")[0]).lstrip("0")) <= 6
    assert "e" not in text
    assert len(text) <= 14


@pytest.mark.parametrize(
    ("odd", "sign"),
    [(0.0, "0"), (-0.0, "0"), (math.nan, "–"), (math.inf, "∞"), (-math.inf, "−∞")],
)
def test_zero_and_what_is_no_number_have_signs(odd: float, sign: str) -> None:
    assert number(odd) == spread(odd) == sign


@given(st.floats(1e-3, 1e3))
def test_spread_has_two_digits(size: float) -> None:
    assert value_of(spread(size)) == pytest.approx(size, rel=0.051)


@given(st.floats(0, 1))
def test_percent_never_rounds_to_certainty(share: float) -> None:
    text = percent(share)
    assert text.endswith("\xa0%")
    assert (text == "100\xa0%") == (share == 1)
    assert (text == "0\xa0%") == (share == 0)


@given(st.text(), st.integers(1, 50))
def test_clipped_fits_and_is_one_printable_line(text: str, width: int) -> None:
    line = clipped(text, width)
    assert len(line) <= width
    assert line.isprintable()


def test_counts_keep_every_digit() -> None:
    assert count(1234567).replace(THIN, "") == "1234567"


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_round_and_inside(low: float, span: float) -> None:
    high = low + span
    found = ticks(low, high)
    slack = 1e-6 * (abs(low) + span)
    assert all(low - slack <= tick <= high + slack for tick in found)
    if high - low > 1e-9 * abs(low):
        assert 1 <= len(found) <= 12


def test_scale_of_a_point_is_inside() -> None:
    assert 0 <= linear((2.0, 2.0), (0.0, 10.0))(2.0) <= 10


@given(st.text())
def test_elements_escape(text: str) -> None:
    drawn = str(element("text", text, x=1.0, label=text))
    assert drawn.count("<") == (2 if text else 1)
    assert drawn.count('"') == 4


@given(st.lists(st.integers(-30_000, 30_000), min_size=1, max_size=20))
def test_whole_cells_are_written_whole(values: list[int]) -> None:
    cells = np.array(values, dtype=float)
    decimals = decimals_of(cells)
    assert [value_of(cell(one, decimals)) for one in cells] == values


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_cells_of_a_column_are_told_apart_to_a_thousandth_of_its_range(values: list[float]) -> None:
    cells = np.array(values)
    span = float(np.ptp(cells))
    decimals = decimals_of(cells)
    if decimals is not None and span > 0:
        for one in cells:
            assert abs(value_of(cell(one, decimals)) - one) <= span / 1000 + 1e-9 * abs(one)


def test_a_year_has_its_digits() -> None:
    years = np.array([2010.0, 2012.0, 2014.0])
    low, high = (cell(one, decimals_of(years)) for one in years[[0, 2]])
    assert between(low, high) == "2010 to 2014"
    assert [tick(one, 1.0) for one in (2010.0, 2011.0)] == ["2010", "2011"]
    assert cell(2011.873, decimals_of(years, as_written=False)) == "2011.873"


@given(st.floats(-1e5, 1e5), st.floats(1e-3, 1e5))
def test_marks_of_an_axis_are_told_apart(low: float, span: float) -> None:
    marks = ticks(low, low + span)
    if len(marks) > 1 and span > 1e-5 * abs(low):
        told = [tick(one, marks[1] - marks[0]) for one in marks]
        assert len(set(told)) == len(told)


def test_an_interval_is_never_empty() -> None:
    nan = math.nan
    assert ends(nan, nan) == ends(0.1, nan) == "–"
    assert ends(0.5, 0.5) == "0.500"
    assert ends(0.5, 0.25 + 0.5, percent) == "50\xa0% to 75\xa0%"


HARMFUL = "\x00\x07\x1b[31m\x9b2J\u202e\u2066\u200f\u2028\ud800"


def test_nothing_that_steers_a_terminal_is_left() -> None:
    said = words.harmless(f"a\tb\n{HARMFUL}é ‒ 漢 \u202f")
    assert said.startswith("a\tb\n")
    assert said.endswith("é ‒ 漢 \u202f")
    assert not set(HARMFUL) - set("[31m2J") & set(said)
    assert said.encode()
    assert type(words.harmless(Markup("<b>"))) is Markup


def test_what_is_said_is_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    words.say("fine", f"not {HARMFUL}")
    assert not set(HARMFUL) - set("[31m2J") & set(capsys.readouterr().out)
