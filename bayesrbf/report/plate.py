"""The declared graph as a plate diagram: laid out in layers, drawn as SVG.

Graphviz would draw it too, but needs a program that few machines have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from bayesrbf.report.records import Node, Role
from bayesrbf.report.svg import element, picture
from bayesrbf.report.words import clipped

if TYPE_CHECKING:
    import pymc as pm

WIDTH, HEIGHT, GAP, FLOOR = 168.0, 66.0, 26.0, 122.0
"""Size of a node, room between nodes of a layer, distance of the layers."""


def nodes_of(model: pm.Model) -> tuple[tuple[Node, ...], Mapping[str, int]]:
    """Nodes of a graph with their parents, and the lengths of its dims.

    Parameters
    ----------
    model : pymc.Model
        A declared graph.

    Returns
    -------
    nodes : tuple of Node
        In the order of declaration.
    sizes : mapping of str to int
        Length of every dim that a node uses.
    """
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
    """What stands under a node's name."""
    if kind in ("data", "deterministic"):
        return kind
    operation = variable.owner.op
    printed = getattr(operation, "_print_name", None)
    return str(printed[0]) if printed else type(operation).__name__.removesuffix("RV")


def _parents(variable: Any, ids: Mapping[int, str]) -> tuple[str, ...]:
    """Named nodes that a variable depends on without another named node between."""
    found: dict[str, None] = {}
    seen: set[int] = set()
    stack = list(variable.owner.inputs) if variable.owner is not None else []
    while stack:
        current = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if id(current) in ids:
            found[ids[id(current)]] = None
        elif current.owner is not None:
            stack.extend(current.owner.inputs)
    return tuple(found)


def layers(nodes: Sequence[Node]) -> list[list[Node]]:
    """Nodes by their distance from the roots, neighbours near each other.

    Parameters
    ----------
    nodes : sequence of Node
        A directed graph without cycles.

    Returns
    -------
    list of list of Node
        From top to bottom; every edge points down.
    """
    by_name = {node.name: node for node in nodes}
    depth: dict[str, int] = {}

    def deep(name: str) -> int:
        if name not in depth:
            known = [p for p in by_name[name].parents if p in by_name]
            depth[name] = 1 + max((deep(parent) for parent in known), default=-1)
        return depth[name]

    children = {name: [n.name for n in nodes if name in n.parents] for name in by_name}
    for name in by_name:
        deep(name)
    for node in nodes:  # a root stands right above its first child, not far up
        if not node.parents and children[node.name]:
            depth[node.name] = min(depth[child] for child in children[node.name]) - 1
    rows: list[list[Node]] = [[] for _ in range(1 + max(depth.values(), default=0))]
    for node in nodes:
        rows[depth[node.name]].append(node)
    return _ordered(rows)


def _ordered(rows: list[list[Node]]) -> list[list[Node]]:
    """Every node near the middle of its parents, then of its children: few crossings."""
    for _ in range(4):
        for upper, lower in pairwise(rows):
            place = {node.name: i / max(len(upper), 1) for i, node in enumerate(upper)}
            lower.sort(key=lambda node: _mean([place[p] for p in node.parents if p in place]))
        for upper, lower in zip(rows[-2::-1], rows[:0:-1], strict=False):
            below = {node.name: i / max(len(lower), 1) for i, node in enumerate(lower)}
            wanted = {n.name: [below[c.name] for c in lower if n.name in c.parents] for n in upper}
            upper.sort(key=lambda node: _mean(wanted[node.name]))
    return rows


def _mean(values: Sequence[float]) -> float:
    """Mean place; the middle for a node without neighbours."""
    return sum(values) / len(values) if values else 0.5


def plate(nodes: Sequence[Node], sizes: Mapping[str, int]) -> Markup:
    """Draw a graph, every node with its distribution and dims.

    Parameters
    ----------
    nodes : sequence of Node
        The graph.
    sizes : mapping of str to int
        Lengths of the dims.

    Returns
    -------
    Markup
        A picture.
    """
    rows = [row for row in layers(nodes) if row]
    widest = max((len(row) for row in rows), default=1)
    width = widest * (WIDTH + GAP) + GAP
    place: dict[str, tuple[float, float]] = {}
    for i, row in enumerate(rows):
        start = (width - len(row) * (WIDTH + GAP) + GAP) / 2
        for j, node in enumerate(row):
            place[node.name] = (start + j * (WIDTH + GAP) + WIDTH / 2, 12 + i * FLOOR + HEIGHT / 2)
    edges = [
        _edge(place[parent], place[node.name])
        for node in nodes
        for parent in node.parents
        if parent in place
    ]
    drawn = [_node(node, *place[node.name], sizes) for node in nodes]
    height = 24 + (len(rows) - 1) * FLOOR + HEIGHT
    told = "; ".join(f"{n.name} from {', '.join(n.parents)}" for n in nodes if n.parents)
    head = element("path", class_="fill ink", d="M0,0L8,4L0,8z")
    marker = element(
        "marker", head, id="head", markerWidth=8, markerHeight=8, refX=8, refY=4, orient="auto"
    )
    title = f"Plate diagram of the declared graph: {told}"
    return picture(width, height, title, element("defs", marker), *edges, *drawn)


def _edge(start: tuple[float, float], end: tuple[float, float]) -> Markup:
    """A curve from the foot of one node to the head of another."""
    x0, y0, x1, y1 = start[0], start[1] + HEIGHT / 2, end[0], end[1] - HEIGHT / 2 - 1
    bend = (y1 - y0) / 2
    path = f"M{x0:.0f},{y0:.0f}C{x0:.0f},{y0 + bend:.0f} {x1:.0f},{y1 - bend:.0f} {x1:.0f},{y1:.0f}"
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
        element("text", clipped(axes, 28), class_="node-dims", x=x, y=y + 21),
    )
