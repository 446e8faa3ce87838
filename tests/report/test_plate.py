"""The plate diagram holds every node and edge of the declared graph, and edges point down."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bayesrbf.report.plate import gathered, layers, nodes_of, plate
from bayesrbf.report.records import Node
from tests.cases import generative


@pytest.fixture(scope="module")
def graph() -> tuple[tuple[Node, ...], dict[str, int]]:
    rng = np.random.default_rng(0)
    reals = rng.normal(size=(30, 2))
    codes = rng.integers(0, 2, (30, 5)).astype(float)
    model = generative(2, categorical_features=[2, 3, 4, 5, 6], random_state=0)
    model.fit(np.column_stack([reals, codes]), rng.integers(0, 2, 30))
    nodes, sizes = nodes_of(model.declare())
    return nodes, dict(sizes)


def test_nodes_are_those_of_the_graph(graph: tuple[tuple[Node, ...], dict[str, int]]) -> None:
    nodes, sizes = graph
    by_name = {node.name: node for node in nodes}
    assert by_name["x"].kind == "observed"
    above = set(by_name["x"].parents)
    above |= {parent for name in above for parent in by_name[name].parents}
    assert {"means", "class_probabilities", "weights_0", "weights_1"} <= above
    assert set(by_name["means"].parents) <= set(by_name)
    assert by_name["precision_diagonal"].distribution == "Gamma"
    assert by_name["precision_diagonal"].parents == ()
    assert sizes["component"] == 4
    assert sizes["obs"] == 30
    assert {f"probability_{i}" for i in range(5)} <= set(by_name)


def test_alike_nodes_are_gathered(graph: tuple[tuple[Node, ...], dict[str, int]]) -> None:
    names = [node.name for node in gathered(graph[0])]
    assert "probability_0 … 4" in names
    assert "weights_0" in names  # two are too few to gather
    (x,) = [node for node in gathered(graph[0]) if node.name == "x"]
    assert "probability_0 … 4" in x.parents


def test_edges_point_down(graph: tuple[tuple[Node, ...], dict[str, int]]) -> None:
    rows = layers(graph[0])
    level = {node.name: i for i, row in enumerate(rows) for node in row}
    assert sorted(level) == sorted(node.name for node in graph[0])
    for node in graph[0]:
        for parent in node.parents:
            kind = next(n.kind for n in graph[0] if n.name == parent)
            assert (level[parent] < level[node.name]) == (kind != "data")


def test_every_node_and_edge_is_drawn_once(
    graph: tuple[tuple[Node, ...], dict[str, int]],
) -> None:
    nodes = gathered(graph[0])
    drawn = str(plate(*graph))
    assert drawn.count('class="node-name"') == len(nodes)
    assert drawn.count('class="edge"') == sum(len(node.parents) for node in nodes)


def test_nodes_do_not_overlap_and_lie_inside(
    graph: tuple[tuple[Node, ...], dict[str, int]],
) -> None:
    drawn = str(plate(*graph))
    width, height = map(int, re.search(r'viewBox="0 0 (\d+) (\d+)"', drawn).groups())  # type: ignore[union-attr]
    spots = [
        tuple(map(float, spot))
        for spot in re.findall(r'class="node-name" x="([\d.]+)" y="([\d.]+)"', drawn)
    ]
    for i, (x, y) in enumerate(spots):
        assert 80 < x < width - 80
        assert 20 < y < height - 20
        assert all(abs(x - a) > 170 or abs(y - b) > 70 for a, b in spots[:i])


def test_lonely_and_empty_graphs_are_drawn() -> None:
    assert "<svg" in plate((), {})
    assert "alone" in plate((Node("alone", "free", "Normal", (), ()),), {})
