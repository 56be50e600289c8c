"""Reads the language DOT, as far as CUDA writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|->|[\w.]+|[{}\[\]=;,]|(\S)', re.S)
_NAME = re.compile(r"\bgraph_\d+\b")


@dataclass
class Cluster:
    """One graph: its nodes with their labels, its edges, and the graphs inside of it, which are bodies and children."""

    label: str = field(default="", compare=False)
    nodes: dict[str, str] = field(default_factory=dict)
    edges: list[tuple[str, str]] = field(default_factory=list)
    inside: list[Cluster] = field(default_factory=list)

    def find(self, text: str) -> list[str]:
        """Nodes in whose labels the text is, those of graphs inside too."""
        own = [name for name, label in self.nodes.items() if text in label]
        return own + [name for cluster in self.inside for name in cluster.find(text)]

    def is_before(self, first: str, second: str) -> bool:
        """Whether a path leads from one node to the other."""
        reached, ahead = set[str](), [first]
        while ahead:
            name = ahead.pop()
            ahead += [target for source, target in self.edges if source == name and target not in reached]
            reached.update(ahead)
        return second in reached


def read(path: Path) -> Cluster:
    """The outermost graph of a file, in which graphs lie side by side and a node's label names those inside of it."""
    tokens = _tokens(path.read_text())
    assert next(tokens) == "digraph"
    next(tokens)  # its name
    assert next(tokens) == "{"
    whole = _block(tokens)
    assert next(tokens, None) is None, "something behind the graph"
    assert not whole.nodes
    outermost = {graph.label: graph for graph in whole.inside}
    assert len(outermost) == len(whole.inside), "two graphs of one name"
    for graph in whole.inside:
        assert not graph.inside, f"{graph.label} is written around another graph"
        for name in _NAME.findall("\n".join(graph.nodes.values())):
            graph.inside.append(outermost.pop(name))  # once: a graph is inside of one other
    (graph,) = outermost.values()
    assert graph is whole.inside[0], "the outermost graph is not the first"
    return graph


def _tokens(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        assert match[1] is None, f"{match[1]!r} at {match.start()} is no part of the language"
        yield match[0].strip('"')


def _block(tokens: Iterator[str]) -> Cluster:
    """Statements up to the closing brace, the opening one being read."""
    cluster = Cluster()
    subject = ""  # the name that the next token is about
    for token in tokens:
        if token == "}":
            _check_edges(cluster)
            return cluster
        if token == "subgraph":
            next(tokens)  # its name
            assert next(tokens) == "{"
            cluster.inside.append(_block(tokens))
        elif token == "->":
            target = next(tokens)
            cluster.edges.append((subject, target))
            subject = ""
        elif token == "=":
            attribute = next(tokens)
            if subject == "label":
                cluster.label = attribute
            subject = ""
        elif token == "[":
            attributes = _attributes(tokens)
            if "label" in attributes and subject:
                assert subject not in cluster.nodes, f"{subject} twice"
                cluster.nodes[subject] = attributes["label"]
            subject = ""
        elif token != ";":
            subject = token
    raise AssertionError("a brace is not closed")


def _attributes(tokens: Iterator[str]) -> dict[str, str]:
    found = {}
    for name in tokens:
        if name == "]":
            return found
        if name not in ",;":
            assert next(tokens) == "=", name
            found[name] = next(tokens)
    raise AssertionError("a bracket is not closed")


def _check_edges(cluster: Cluster) -> None:
    for edge in cluster.edges:
        assert set(edge) <= cluster.nodes.keys(), f"{edge} leads to no node"
