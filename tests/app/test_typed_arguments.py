"""Typed costs are parsed, and values that begin with a minus are no options."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from bayesrbf import TableError
from bayesrbf.app.arguments import costs_in, need, typed, with_values_joined
from bayesrbf.app.commands import app
from bayesrbf.base.table_options import PLAIN, TableOptions
from bayesrbf.reading.cells import as_typed
from bayesrbf.reading.read import read_file
from tests.commands import answer


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


@pytest.mark.parametrize(
    "options",
    [
        PLAIN,
        TableOptions(na=("-999", "not known", "a,b"), id="case no", ignore=("x", "y,z")),
        TableOptions(day_first=True, decimal=",", thousands=".", below="missing", na=("n.a.",)),
        TableOptions(dates=("seen",), time="seen", group="it's", ordered=("pain=none<mild",)),
    ],
)
def test_options_as_typed_are_read_as_they_were(options: TableOptions, tmp_path: Path) -> None:
    words = shlex.split(f"look {tmp_path / 't.csv'} {as_typed(options)}")
    _, bound, _ = app.parse_args(with_values_joined(words))
    assert typed(bound.arguments.get("reading", PLAIN), tmp_path / "t.csv") == options


def test_look_reads_what_seems_missing_and_says_the_options_for_it(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    rows = [f"{20 + i % 40},{3 + i / 7:.2f},{'yes' if i % 3 else 'no'}" for i in range(60)]
    rows[5], rows[7], rows[9] = "-999,3.1,yes", "21,pending,no", "22,<1,yes"
    rows[15] = rows[25] = rows[5]
    file.write_text("\n".join(["age,level,outcome", *rows]) + "\n")
    found = answer("look", file, "--target", "outcome")
    kinds = {column["name"]: column["kind"] for column in found["columns"]}
    assert kinds == {"age": "real", "level": "real", "outcome": "yes or no"}
    assert found["command"].endswith("--target outcome --out DIR --na pending,-999")
    words = shlex.split(found["command"])[1:]
    _, bound, _ = app.parse_args(with_values_joined(words))
    table = read_file(file, "outcome", typed(bound.arguments["reading"], file))
    assert table.frame.isna().sum().tolist() == [3, 1]
