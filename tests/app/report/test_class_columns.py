"""The picture of a column class by class shows the labelled cells, and a curve that is theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayesrbf.app.report.learned import (
    MIN_FOR_CURVE,
    ClassCells,
    ClassColumn,
    by_class,
    read_class_column,
)
from bayesrbf.datasets import TARGET, demo_tables
from tests.app.report.test_collect import job
from tests.cases import first_quick

LEVELS = np.array([0.1, 0.5, 0.9])


def table_of(X: pd.DataFrame, y: Any) -> Any:
    """A job on columns, all of them real unless they hold texts."""
    numbers = {name: pd.api.types.is_numeric_dtype(X[name]) for name in X}
    kinds = {name: "real" if is_number else "categorical" for name, is_number in numbers.items()}
    return job(X=X, y=pd.Series(y, dtype=object), kinds=kinds)


def drawn_quantiles(column: ClassColumn, own: ClassCells) -> np.ndarray:
    """Quantiles of a class as its curve and its point masses have them."""
    width = column.edges[1] - column.edges[0]
    steps = np.diff(own.grid) * (own.curve[1:] + own.curve[:-1]) / 2 / width
    places = np.append((own.grid[1:] + own.grid[:-1]) / 2, own.point_masses)
    order = np.argsort(places)
    below = np.append(steps, own.masses)[order].cumsum()
    return np.array([places[order][np.searchsorted(below / below[-1], level)] for level in LEVELS])


def assert_true(column: ClassColumn, cells: np.ndarray, own: ClassCells) -> None:
    """Assert that bars, point masses and curve are those of the cells of the class."""
    assert own.cells == cells.size
    inside = (cells >= column.edges[0]) & (cells <= column.edges[-1])
    inside |= np.isin(cells, own.point_masses)
    assert own.bars.sum() + own.masses.sum() == pytest.approx(inside.mean())
    for value, mass in zip(own.point_masses, own.masses, strict=True):
        assert mass == pytest.approx((cells == value).mean())
    if not own.curve.size:
        return
    free = np.trapezoid(own.curve, own.grid) / (column.edges[1] - column.edges[0])
    assert free == pytest.approx(own.bars.sum(), abs=0.05)
    # Of the share below a place: the scale in which columns of all shapes are alike.
    below = np.array([(cells <= at).mean() for at in drawn_quantiles(column, own)])
    before = np.array([(cells < at).mean() for at in drawn_quantiles(column, own)])
    allowed = 2 * np.sqrt(LEVELS * (1 - LEVELS) / cells.size) + 0.02
    assert (below > LEVELS - allowed).all(), (column.name, below)
    assert (before < LEVELS + allowed).all(), (column.name, before)


@pytest.fixture(scope="module")
def demo() -> Any:
    table, _ = demo_tables(np.random.default_rng(0))
    return table_of(table.drop(columns=TARGET), table[TARGET])


@pytest.mark.parametrize("name", first_quick(["worst_area", "mean_concave_points", "area_error"]))
def test_quantiles_of_the_demo_are_those_of_its_cells(demo: Any, name: str) -> None:
    classes = ["benign", "malignant"]
    column = read_class_column(demo, name, classes)
    for label, own in zip(classes, column.classes, strict=True):
        cells = demo.X[name][demo.y == label].dropna().to_numpy()
        assert own.curve.size
        assert_true(column, cells, own)


def test_an_atom_is_a_bar_and_the_curve_is_of_the_rest() -> None:
    rng = np.random.default_rng(0)
    kinds = ["benign", "malignant"]
    y = np.repeat([*kinds, "none yet"], [300, 200, 50]).astype(object)
    at_one = rng.random(y.size) < np.where(y == "benign", 0.86, 0.1)
    size = np.where(at_one, 1.0, 1.5 + rng.lognormal(0.5, 0.4, y.size))
    labels = np.where(y == "none yet", None, y)
    found = read_class_column(table_of(pd.DataFrame({"size": size}), labels), "size", kinds)
    for label, own in zip(kinds, found.classes, strict=True):
        cells = size[labels == label]
        assert_true(found, cells, own)
        if label == "benign":
            assert own.point_masses.tolist() == [1.0]
            assert own.masses[0] > 0.75
            assert drawn_quantiles(found, own)[1] == 1.0


def test_a_column_of_few_values_has_a_bar_for_each_and_no_curve() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 100)
    size = np.where(rng.random(200) < np.where(y == "a", 0.86, 0.2), 1, rng.integers(2, 11, 200))
    X = pd.DataFrame({"size": size.astype(float)})
    found = read_class_column(table_of(X, y), "size", ["a", "b"])
    np.testing.assert_allclose((found.edges[:-1] + found.edges[1:]) / 2, np.arange(1, 11))
    for label, own in zip("ab", found.classes, strict=True):
        shares = [(size[y == label] == value).mean() for value in range(1, 11)]
        np.testing.assert_allclose(own.bars, shares)
        assert own.curve.size == own.point_masses.size == 0


def test_few_cells_no_cells_and_levels() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(["many", "few", "empty"], [60, MIN_FOR_CURVE - 1, 4])
    X = pd.DataFrame(
        {
            "real": np.where(y == "empty", np.nan, rng.normal(size=y.size)),
            "same": np.ones(y.size),
            "nothing": np.full(y.size, np.nan),
            "level": np.where(y == "few", "red", "blue"),
        }
    )
    classes = ["empty", "few", "many"]
    table = table_of(X, y)
    empty, few, many = read_class_column(table, "real", classes).classes
    assert (empty.cells, few.curve.size) == (0, 0)
    assert few.bars.sum() > 0.9
    assert many.curve.size
    assert [one.bars.tolist() for one in read_class_column(table, "level", classes).classes] == [
        [1, 0], [0, 1], [1, 0],
    ]  # fmt: skip
    for name in X:
        said = by_class(read_class_column(table, name, classes), classes, [0, 1])
        assert ("<rect" in said) == (name != "nothing")


def test_a_picture_names_its_classes_and_their_cells() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(["one", "two"], 40)
    column = read_class_column(
        table_of(pd.DataFrame({"x": rng.normal(size=80)}), y), "x", ["one", "two"]
    )
    said = by_class(column, ["one", "two"], [0, 1])
    assert "one (40 cells)" in said
    assert "two (40 cells)" in said
    assert said.count("<polyline") == 2
