"""What would help takes away no more than all uncertainty."""

from __future__ import annotations

import pandas as pd
import pytest

from bayesrbf.app.report.uncertain_rows import what_would_help


@pytest.mark.parametrize(
    ("gain", "told"), [(0.191, "19.1\xa0%"), (1.0, "100\xa0%"), (1.91, "100\xa0%")]
)
def test_no_measurement_takes_away_more_than_all(gain: float, told: str) -> None:
    gains = pd.Series({"observed": float("nan"), "small": 0.01, "chol": gain})
    assert (
        what_would_help(gains, 0.9) == f"measure chol: takes away about {told} of the uncertainty"
    )


def test_without_a_cell_worth_measuring_rows_or_another_measurement_help() -> None:
    gains = pd.Series({"observed": float("nan"), "small": 0.01})
    inside, wide = (0.3, 0.6), (0.002, 0.944)
    assert what_would_help(gains, 0.51, inside) == "more labelled rows like it"
    assert "the classes overlap" in what_would_help(gains, 0.5, inside)
    assert "the classes overlap" in what_would_help(gains, 0.1, inside)
    # a class may be nearly sure there
    assert what_would_help(gains, 0.1, wide).endswith("; more labelled rows like it")
    assert what_would_help(gains, 0.1, (0.05, 0.6)) == "more labelled rows like it"
    assert "cannot be separated" in what_would_help({}, float("nan"))


def test_an_interval_that_leaves_every_answer_open_says_what_to_do() -> None:
    gains = pd.Series({"chol": 0.191})
    measure = "measure chol: takes away about 19.1\xa0% of the uncertainty"
    assert what_would_help(gains, 0.6, (0.002, 0.998)) == (
        f"refer: the interval leaves every answer open; {measure}"
    )
    assert what_would_help(gains, 0.6, (0.2, 0.9)) == measure
    assert what_would_help({}, 0.6, (0.05, 0.95)).startswith("refer")
    assert not what_would_help({}, float("nan")).startswith("refer")


def test_nothing_is_advised_where_the_threshold_is_far() -> None:
    gains = {"chol": 0.4}
    assert what_would_help(gains, 0.6, (0.6, 0.9), decided=True).startswith("nothing")
    assert what_would_help(gains, 0.6, (0.6, 0.9)).startswith("measure")
