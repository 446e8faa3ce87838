"""Degenerate tables have a right answer or a named error."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cases import some_quick
from tests.degenerate import (
    FAMILIES,
    METHODS,
    NAMED,
    RIGHT,
    SAME,
    TABLES,
    counted,
    degenerate,
    grid,
    same,
    tried,
    wrong,
)

QUICK = list(METHODS)[:7]


@pytest.mark.parametrize("method", some_quick(QUICK, "mixture", "kernel network"))
def test_some_tables_have_a_right_answer_or_a_named_error(method: str) -> None:
    """Every twelfth table; the next method takes the tables after them."""
    tables = list(TABLES)[QUICK.index(method) :: 12]
    outcomes = {table: degenerate(method, table, 0) for table in tables}
    assert set(outcomes.values()) <= {RIGHT, NAMED}, outcomes


@pytest.mark.parametrize("kind", SAME)
def test_another_array_of_the_same_numbers_has_the_same_answer(kind: str) -> None:
    assert same("density", kind, 0) == RIGHT


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_every_table_has_a_right_answer_or_a_named_error(method: str) -> None:
    """A method that draws from the posterior of such a fit takes a fifth of the tables."""
    counts, through = counted(grid(1, [method], 1 if method in FAMILIES else 5))
    assert through == []
    assert counts[RIGHT] > counts[NAMED]


@pytest.mark.parametrize(
    "error", [np.linalg.LinAlgError("singular"), ZeroDivisionError(), ValueError("from here")]
)
def test_other_errors_are_seen(error: Exception) -> None:
    def work() -> str:
        raise error

    assert tried(work) not in (RIGHT, NAMED)


def test_warnings_of_arithmetic_are_seen() -> None:
    assert "RuntimeWarning" in tried(lambda: str(np.float64(1) / np.float64(0)))


@pytest.mark.parametrize("p", [[[np.nan, 0.5]], [[0.5, 0.4]], [[1.5, -0.5]], [[0.1, 0.9]]], ids=str)
def test_wrong_answers_are_seen(p: list[list[float]]) -> None:
    said = {"predict_proba": np.array(p), "predict": np.array(["yes"])}
    assert wrong(said, np.array(["no"]), telling=True)


def test_a_step_that_leaves_the_range_of_numbers_is_taken_back() -> None:
    """A fold without the cell of 1e150 begins at a variance of 1e284 in its own units."""
    assert degenerate("RBF regression", "cell of 1e150", 1) == RIGHT
