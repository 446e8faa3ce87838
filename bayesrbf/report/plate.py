"""The declared graph as a plate diagram: laid out in layers, drawn as SVG.

Graphviz would draw it too, but needs a program that few machines have.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from bayesrbf.report.records import Node, Role
from bayesrbf.report.svg import element, picture
from bayesrbf.report.words import clipped

if TYPE_CHECKING:
    import pymc as pm

WIDTH, HEIGHT, GAP, FLOOR = 172.0, 70.0, 22.0, 118.0
"""Size of a node, distance between nodes of a layer, distance between layers."""
EDGE_LANE = 14.0
"""Width of the slot in which an edge passes a layer."""
MANY_ALIKE = 4
"""Least number of nodes that differ only by their number and are drawn as one."""
Place = tuple[float, float]


def nodes_of(model: pm.Model) -> tuple[tuple[Node, ...], Mapping[str, int]]:
    """Nodes of a graph in the order of declaration, and the lengths of the dims they use."""
    variables: dict[str, tuple[Any, Role]] = {
        **{v.name: (v, "data") for v in model.data_vars},
        **{v.name: (v, "free") for v in model.free_RVs},
        **{v.name: (v, "deterministic") for v in model.deterministics},
        **{v.name: (v, "observed") for v in model.observed_RVs},
    }
    ids = {id(variable): name for name, (variable, _) in variables.items()}
    dims = {name: tuple(map(str, model.named_vars_to_dims.get(name, ()))) for name in variables}
    nodes = tuple(
        Node(name, kind, _distribution(variable, kind), dims[name], _parents(variable, ids))
        for name, (variable, kind) in variables.items()
    )
    used = {dim for node in nodes for dim in node.dims}
    sizes = {dim: len(model.coords[dim]) for dim in model.coords if dim in used}
    return nodes, sizes


def _distribution(variable: Any, kind: Role) -> str:
    """The line under a node's name."""
    if kind in ("data", "deterministic"):
        return kind
    operation = variable.owner.op
    printed = getattr(operation, "_print_name", None)
    name = str(printed[0]) if printed else type(operation).__name__.removesuffix("RV")
    return name.partition("_")[0]


def _parents(variable: Any, ids: Mapping[int, str]) -> tuple[str, ...]:
    """Named nodes that a variable depends on without another named node between."""
    parents: dict[str, None] = {}
    visited: set[int] = set()
    stack = list(variable.owner.inputs) if variable.owner is not None else []
    while stack:
        current = stack.pop()
        if id(current) in visited:
            continue
        visited.add(id(current))
        if id(current) in ids:
            parents[ids[id(current)]] = None
        elif current.owner is not None:
            stack.extend(current.owner.inputs)
    return tuple(parents)


def gathered(nodes: Sequence[Node]) -> list[Node]:
    """Nodes that differ by a number only, such as one per column, as one node.

    >>> alike = [Node(f"p_{i}", "free", "Normal", (f"level_{i}",), ()) for i in range(9)]
    >>> [(node.name, node.dims) for node in gathered(alike)]
    [('p_0 … 8', ('level_i',))]
    """
    families: dict[tuple[object, ...], list[Node]] = defaultdict(list)
    for node in nodes:
        stem, number = _stem(node.name)
        families[(stem, node.kind, node.parents) if number else (node.name,)].append(node)
    renamed: dict[str, str] = {}
    shown: list[Node] = []
    for members in families.values():
        if len(members) < MANY_ALIKE:
            shown += members
            continue
        name = f"{members[0].name} … {_stem(members[-1].name)[1]}"
        renamed |= {node.name: name for node in members}
        dims = tuple(re.sub(r"_\d+$", "_i", dim) for dim in members[0].dims)
        shown.append(replace(members[0], name=name, dims=dims))
    return [
        replace(node, parents=tuple(dict.fromkeys(renamed.get(p, p) for p in node.parents)))
        for node in shown
    ]


def _stem(name: str) -> tuple[str, str]:
    """A name without the number at its end, and the number."""
    match = re.fullmatch(r"(.*)_(\d+)", name)
    return (match[1], match[2]) if match else (name, "")


@dataclass(frozen=True)
class _Slot:
    """A place in a layer: a node, or a lane for an edge that passes."""

    key: tuple[str, ...]
    above: tuple[tuple[str, ...], ...]
    width: float


def layers(nodes: Sequence[Node]) -> list[list[Node]]:
    """Nodes by their distance from the roots, from top to bottom; given nodes come last.

    Every edge points down, except those from given nodes.
    """
    depth: dict[str, int] = {}
    given = {node.name for node in nodes if node.kind == "data"}
    by_name = {node.name: node for node in nodes if node.name not in given}

    def deep(name: str) -> int:
        if name not in depth:
            drawn = [parent for parent in by_name[name].parents if parent in by_name]
            depth[name] = 1 + max((deep(parent) for parent in drawn), default=-1)
        return depth[name]

    for name in by_name:
        deep(name)
    for name, node in by_name.items():  # a root stands right above its first child
        below = [depth[n.name] for n in by_name.values() if name in n.parents]
        if below and not set(node.parents) & set(by_name):
            depth[name] = min(below) - 1
    rows: list[list[Node]] = [[] for _ in range(1 + max(depth.values(), default=-1))]
    for node in by_name.values():
        rows[depth[node.name]].append(node)
    return [*rows, [node for node in nodes if node.name in given]]


def _slots(rows: Sequence[Sequence[Node]]) -> list[list[_Slot]]:
    """Layers with lanes for the edges that skip one, ordered so that few edges cross."""
    level = {node.name: i for i, row in enumerate(rows) for node in row}
    lanes: list[list[_Slot]] = [[] for _ in rows]
    above: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for node in (node for row in rows for node in row):
        for parent in (p for p in node.parents if level.get(p, len(rows)) < level[node.name]):
            key: tuple[str, ...] = (parent,)
            for i in range(level[parent] + 1, level[node.name]):
                lane = _Slot((parent, node.name, str(i)), (key,), EDGE_LANE)
                lanes[i].append(lane)
                key = lane.key
            above[node.name].append(key)
    slots = [
        [*(_Slot((node.name,), tuple(above[node.name]), WIDTH) for node in row), *lanes[i]]
        for i, row in enumerate(rows)
    ]
    for _ in range(4):
        for upper, lower in pairwise(slots):
            place = {slot.key: (i + 0.5) / len(upper) for i, slot in enumerate(upper)}
            lower.sort(key=lambda slot: _mean([place[k] for k in slot.above if k in place]))
        for lower, upper in pairwise(slots[::-1]):
            place = {slot.key: (i + 0.5) / max(len(lower), 1) for i, slot in enumerate(lower)}
            below = {s.key: [place[t.key] for t in lower if s.key in t.above] for s in upper}
            upper.sort(key=lambda slot: _mean(below[slot.key]))
    return slots


def _mean(values: Sequence[float]) -> float:
    """Mean place; the middle for a node without neighbours."""
    return sum(values) / len(values) if values else 0.5


def plate(nodes: Sequence[Node], sizes: Mapping[str, int]) -> Markup:
    """Draw a graph, every node with its distribution and dims."""
    nodes = gathered(nodes)
    slots = [row for row in _slots(layers(nodes)) if row]
    widths = [sum(slot.width + GAP for slot in row) - GAP for row in slots]
    width = max(widths, default=WIDTH) + 2 * GAP
    place: dict[tuple[str, ...], Place] = {}
    for i, (row, wide) in enumerate(zip(slots, widths, strict=True)):
        x = (width - wide) / 2
        for slot in row:
            place[slot.key] = (x + slot.width / 2, GAP + i * FLOOR + HEIGHT / 2)
            x += slot.width + GAP
    edges = [_way(parent, node, place) for node in nodes for parent in node.parents]
    drawn = [_node(node, *place[(node.name,)], sizes) for node in nodes]
    text = "; ".join(f"{n.name} from {', '.join(n.parents)}" for n in nodes if n.parents)
    head = element("path", class_="fill ink", d="M0,0L8,4L0,8z")
    marker = element(
        "marker", head, id="head", markerWidth=8, markerHeight=8, refX=8, refY=4, orient="auto"
    )
    title = f"Plate diagram of the declared graph: {text}"
    height = 2 * GAP + (len(slots) - 1) * FLOOR + HEIGHT
    return picture(width, height, title, element("defs", marker), *edges, *drawn)


def _way(parent: str, node: Node, place: Mapping[tuple[str, ...], Place]) -> Markup:
    """An edge from node to node, through its lanes; from below where the parent is given."""
    if (parent,) not in place:
        return Markup("")
    start, end = place[(parent,)], place[(node.name,)]
    side = 1 if start[1] < end[1] else -1
    lanes = sorted(spot for key, spot in place.items() if key[:2] == (parent, node.name))
    lanes.sort(key=lambda spot: side * spot[1])
    stops = [(start[0], start[1] + side * HEIGHT / 2)]
    for x, y in lanes:
        stops += [(x, y - side * HEIGHT / 2), (x, y + side * HEIGHT / 2)]
    stops.append((end[0], end[1] - side * (HEIGHT / 2 + 1)))
    path = f"M{stops[0][0]:.0f},{stops[0][1]:.0f}"
    for (x0, y0), (x1, y1) in pairwise(stops):
        middle = (y0 + y1) / 2
        path += f"C{x0:.0f},{middle:.0f} {x1:.0f},{middle:.0f} {x1:.0f},{y1:.0f}"
    return element("path", class_="edge", d=path, marker_end="url(#head)")


def _node(node: Node, x: float, y: float, sizes: Mapping[str, int]) -> Markup:
    """An oval for what is drawn, a box for what is computed or given."""
    style = f"node {node.kind}"
    if node.kind in ("free", "observed"):
        shape = element("ellipse", class_=style, cx=x, cy=y, rx=WIDTH / 2, ry=HEIGHT / 2)
    else:
        corner = 10 if node.kind == "deterministic" else 0
        shape = element(
            "rect",
            class_=style,
            x=x - WIDTH / 2,
            y=y - HEIGHT / 2,
            width=WIDTH,
            height=HEIGHT,
            rx=corner,
        )
    axes = " × ".join(f"{dim} {sizes[dim]}" if dim in sizes else dim for dim in node.dims)
    return element(
        "g",
        element("title", f"{node.name}: {node.distribution} ({axes or 'scalar'})"),
        shape,
        element("text", clipped(node.name, 22), class_="node-name", x=x, y=y - 9),
        element("text", clipped(node.distribution, 24), class_="node-kind", x=x, y=y + 6),
        element("text", clipped(axes, 28), class_="node-dims", x=x, y=y + 20),
    )
