"""Draws a graph from its dump in the language DOT, as an SVG file: the picture of graphs.md."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import tensorplay as tp

#: Pixels of a character, of a node's height, of a title, and between nodes and around them.
CHARACTER, HEIGHT, TITLE, GAP = 7.0, 26.0, 20.0, 22.0
WORK, BODY, EDGE, LINE = "#f3c98b", "#eef3f8", "#7b8794", "#555555"

NODE = re.compile(r'"(\w+)"\[.*label="([^"]*)"')
ARROW = re.compile(r'"(\w+)" -> "(\w+)"')
INNER = re.compile(r"\bgraph_\d+\b")


@dataclass
class Node:
    """A node with the graphs in it, which are the bodies of a conditional node."""

    name: str
    bodies: list[Graph]


@dataclass
class Graph:
    """Nodes by their names in the dump, in its order, and which comes behind which."""

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[tuple[str, str]] = field(default_factory=list)


def dump() -> str:
    """A graph with a fork, a loop, and a choice, as CUDA writes it."""
    x, flag = tp.ones((), device="cuda"), tp.zeros((), dtype=tp.bool, device="cuda")
    g, side = tp.cuda.CUDAGraph(), tp.cuda.Stream()
    with tp.cuda.graph(g):
        main = tp.cuda.current_stream()
        side.wait_stream(main)
        with tp.cuda.stream(side):
            root = x.sqrt()
        double = x * 2
        main.wait_stream(side)
        total = root + double
        is_small = total < 100
        with g.while_(is_small):
            total.mul_(3)
            tp.lt(total, 100, out=is_small)
        with g.if_(flag):
            x.sub_(1)
        with g.else_():
            x.add_(1)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "graph.dot"
        g.debug_dump(path)
        return path.read_text()


def read(text: str) -> Graph:
    """The outermost graph of a dump, which comes first. A node names the graphs in it in its label."""
    graphs: defaultdict[str, Graph] = defaultdict(Graph)
    for part in text.split("subgraph cluster_")[1:]:
        graph = graphs["graph_" + part.split()[0]]
        for node, label in NODE.findall(part):
            name = label.split("\n")[1].removeprefix("tp_k_").lower()
            graph.nodes[node] = Node(name, [graphs[inner] for inner in INNER.findall(label)])
        graph.edges = ARROW.findall(part)
    return next(iter(graphs.values()))


def content(body: Graph) -> Graph:
    """The graph of a body: in the dump a body holds one child node, which holds that graph."""
    only = list(body.nodes.values())
    return only[0].bodies[0] if len(only) == 1 and INNER.match(only[0].name) else body


def columns(graph: Graph) -> list[list[str]]:
    """The nodes by the longest way to them, from the left."""
    depth: dict[str, int] = {}
    for name in graph.nodes:  # the dump names a node behind those that it follows
        depth[name] = 1 + max((depth[start] for start, end in graph.edges if end == name), default=-1)
    return [[name for name in graph.nodes if depth[name] == place] for place in range(max(depth.values()) + 1)]


def size(node: Node) -> tuple[float, float]:
    """Width and height of a node's drawing."""
    if not node.bodies:
        return CHARACTER * len(node.name) + GAP, HEIGHT
    parts = [extent(content(body)) for body in node.bodies]
    return max(width for width, _ in parts) + GAP, sum(high + TITLE + GAP / 2 for _, high in parts) + TITLE


def extent(graph: Graph) -> tuple[float, float]:
    """Width and height of a graph's drawing."""
    sizes = [[size(graph.nodes[name]) for name in column] for column in columns(graph)]
    width = sum(max(wide for wide, _ in column) + GAP for column in sizes) + GAP
    return width, max(sum(high + GAP / 2 for _, high in column) for column in sizes) + GAP / 2


def text(x: float, y: float, words: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{words}</text>'


def box(x: float, y: float, width: float, height: float, fill: str, dash: str = "") -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4" fill="{fill}" '
        f'stroke="#9aa5b1"{dash}/>'
    )


def draw_node(node: Node, x: float, y: float) -> list[str]:
    width, height = size(node)
    if not node.bodies:
        return [box(x, y, width, height, WORK), text(x + width / 2, y + HEIGHT / 2 + 4, node.name)]
    lines = [box(x, y, width, height, BODY), text(x + width / 2, y + 15, node.name)]
    top = y + TITLE
    for number, body in enumerate(node.bodies):
        _, high = extent(content(body))
        lines.append(box(x + GAP / 2, top, width - GAP, high + TITLE, "#ffffff", ' stroke-dasharray="4 3"'))
        lines.append(text(x + width / 2, top + 15, f"body {number}"))
        lines += draw_graph(content(body), x + GAP / 2, top + TITLE)
        top += high + TITLE + GAP / 2
    return lines


def draw_graph(graph: Graph, x: float, y: float) -> list[str]:
    _, height = extent(graph)
    left: dict[str, tuple[float, float]] = {}
    right: dict[str, tuple[float, float]] = {}
    nodes: list[str] = []
    x += GAP
    for column in columns(graph):
        sizes = [size(graph.nodes[name]) for name in column]
        top = y + (height - sum(high for _, high in sizes) - GAP / 2 * (len(column) - 1)) / 2
        for name, (wide, high) in zip(column, sizes, strict=True):
            nodes += draw_node(graph.nodes[name], x, top)
            left[name], right[name] = (x, top + high / 2), (x + wide, top + high / 2)
            top += high + GAP / 2
        x += max(wide for wide, _ in sizes) + GAP
    edges = [
        '<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="{}" marker-end="url(#head)"/>'.format(
            *right[start], *left[end], EDGE
        )
        for start, end in graph.edges
    ]
    return [*edges, *nodes]


def draw(graph: Graph) -> str:
    """The text of the file."""
    width, height = extent(graph)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'font-family="sans-serif" font-size="12" fill="{LINE}">\n'
        f'<marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        f'<path d="M0 0 L8 4 L0 8 z" fill="{EDGE}"/></marker>\n'
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>'
    )
    return "\n".join([head, *draw_graph(graph, 0, 0), "</svg>\n"])


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(draw(read(dump())))
