"""Typed costs are parsed, and values that begin with a minus are no options."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayesrbf import TableError
from bayesrbf.app.arguments import costs_in, need, typed, with_values_joined
from bayesrbf.base.table_options import TableOptions
from bayesrbf.reading.read import read_file


@pytest.mark.parametrize(
    "tokens",
    [
        ["sick=10,well=1"],
        ["sick=10", "well=1"],
        ['{"sick": 10, "well": 1.0}'],
        ['"sick"=10,well=1'],
    ],
)
def test_costs_are_typed_as_pairs_or_as_an_object(tokens: list[str]) -> None:
    assert costs_in(tokens) == {"sick": 10.0, "well": 1.0}


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("sick", "class=number"),
        ("{sick: 10}", "no JSON object"),
        ('{"sick": {"wait": 20}}', "one number for each class"),
        ('{"sick": true}', "one number for each class"),
    ],
)
def test_what_is_no_cost_is_refused(token: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        costs_in([token])


@pytest.mark.parametrize("asked", ["-999,0", "a=-999,0"])
def test_a_value_in_the_notation_of_the_file_is_one(asked: str, tmp_path: Path) -> None:
    commas, points = tmp_path / "commas.csv", tmp_path / "points.csv"
    commas.write_text("a;b;y\n1,5;0;x\n-999,0;3;y\n0,0;7;x\n2,5;8;y\n")
    points.write_text("a,b,y\n1.5,0,x\n-999,3,y\n0,7,x\n2.5,8,y\n")
    options = typed(TableOptions(na=(asked,)), commas)
    assert options.na == (asked,)
    read = read_file(commas, "y", options).frame
    assert read["a"].isna().tolist() == [False, True, False, False]
    assert read["b"].notna().all()
    assert typed(TableOptions(na=(asked,)), points).na == (asked.removesuffix(",0"), "0")
    assert typed(TableOptions(na=("-999,-998", "u,v")), commas).na == ("-999", "-998", "u", "v")
    assert typed(TableOptions(na=('"1,5",x',)), commas).na == ("1,5", "x")


def test_values_joined_by_a_comma_are_refused_where_numbers_have_one(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a;b\n1,5;0\n77,0;3\n99,0;7\n")
    with pytest.raises(TableError, match=r"no cell '77,99'; .* by --na 77 --na 99"):
        read_file(tmp_path / "t.csv", None, typed(TableOptions(na=("77,99",)), tmp_path / "t.csv"))


def test_a_value_may_begin_with_a_minus() -> None:
    typed = ["look", "a.csv", "--na", "-999,0", "--na", "-.5", "--na", "--json"]
    expected = ["look", "a.csv", "--na=-999,0", "--na=-.5", "--na", "--json"]
    assert with_values_joined(typed) == expected


def test_packages_that_are_absent_are_named_with_the_line_that_installs_them() -> None:
    need(("json", "numpy"))
    with pytest.raises(ImportError, match="install it by: pip install absent gone"):
        need(("json", "absent", "gone"), "server")
