"""Typed costs are parsed, and values that begin with a minus are no options."""

from __future__ import annotations

import pytest

from bayesrbf.commands.typed_arguments import costs_in, need, with_values_joined


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


def test_a_value_may_begin_with_a_minus() -> None:
    typed = ["look", "a.csv", "--na", "-999,0", "--na", "-.5", "--na", "--json"]
    expected = ["look", "a.csv", "--na=-999,0", "--na=-.5", "--na", "--json"]
    assert with_values_joined(typed) == expected


def test_packages_that_are_absent_are_named_with_the_line_that_installs_them() -> None:
    need(("json", "numpy"))
    with pytest.raises(ImportError, match="install it by: pip install absent gone"):
        need(("json", "absent", "gone"), "server")
