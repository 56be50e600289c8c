"""Graphs written in the language DOT."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import dot

import tensorplay
from tensorplay import cuda
from tensorplay.cuda import graphs
from tensorplay.errors import DTypeError, StateError

pytestmark = pytest.mark.usefixtures("nothing_stays")

#: A dump of capture_bodies that a GPU's CUDA wrote.
WRITTEN_BY_CUDA = Path(__file__).with_name("bodies.dot")


def capture_diamond(x: tensorplay.Tensor) -> cuda.CUDAGraph:
    """exp, then sin beside cos, then abs: four kernels in place."""
    g, side = cuda.CUDAGraph(), cuda.Stream()
    with graphs.graph(g):
        y = x.exp_()[:500], x[500:]
        side.wait_stream(cuda.current_stream())
        y[0].sin_()
        with cuda.stream(side):
            y[1].cos_()
        cuda.current_stream().wait_stream(side)
        x.abs_()
    return g


def zeros() -> tensorplay.Tensor:
    return tensorplay.zeros(1000, device="cuda")


def test_nodes_and_edges_are_those_of_the_capture(tmp_path: Path) -> None:
    diamond = capture_diamond(zeros())
    diamond.debug_dump(tmp_path / "diamond.dot")
    graph = dot.read(tmp_path / "diamond.dot")
    names = [graph.find(f"tp_k_{operation}") for operation in ("exp", "sin", "cos", "abs")]
    assert [len(found) for found in names] == [1] * 4
    exp, sin, cos, abs_ = (found[0] for found in names)
    assert set(graph.nodes) == {exp, sin, cos, abs_}
    assert sorted(graph.edges) == sorted([(exp, sin), (exp, cos), (sin, abs_), (cos, abs_)])
    assert not graph.is_before(sin, cos)
    assert not graph.is_before(cos, sin)
    assert not graph.inside


def test_a_dump_needs_no_preparation_and_changes_nothing(tmp_path: Path) -> None:
    x = zeros()
    diamond = capture_diamond(x)
    handles = diamond.raw_cuda_graph(), diamond.raw_cuda_graph_exec()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        diamond.debug_dump(tmp_path / "1.dot")
        diamond.debug_dump(str(tmp_path / "1.dot"))
        graphs.export_dot(diamond, tmp_path / "2.dot")
    with pytest.raises(DTypeError, match="export_dot: got Tensor, expected a CUDAGraph"):
        graphs.export_dot(x, tmp_path / "3.dot")  # type: ignore[arg-type]
    assert (tmp_path / "1.dot").read_text() == (tmp_path / "2.dot").read_text()
    assert (diamond.raw_cuda_graph(), diamond.raw_cuda_graph_exec()) == handles
    for value in (0.0, 1.0):
        x.fill_(value)
        diamond.replay()
        y = tensorplay.full((500,), value, device="cuda").exp()
        assert x.tolist() == [*y.sin().abs().tolist(), *y.cos().abs().tolist()]


def test_debug_mode_tells_more_of_the_same_graph(tmp_path: Path) -> None:
    diamond = capture_diamond(zeros())
    diamond.debug_dump(tmp_path / "short.dot")
    diamond.enable_debug_mode()
    diamond.debug_dump(tmp_path / "long.dot")
    short, long = (dot.read(tmp_path / f"{name}.dot") for name in ("short", "long"))
    assert (long.nodes.keys(), sorted(long.edges)) == (short.nodes.keys(), sorted(short.edges))
    assert all(len(long.nodes[name]) > len(short.nodes[name]) for name in short.nodes)


def test_copies_and_fills_are_nodes(tmp_path: Path) -> None:
    source, target = tensorplay.ones(1000, device="cuda"), tensorplay.ones(1000, device="cuda")
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        source.zero_()
        target.copy_(source)
    g.debug_dump(tmp_path / "graph.dot")
    graph = dot.read(tmp_path / "graph.dot")
    assert len(graph.nodes) == 2
    assert len(graph.edges) == 1


def test_an_empty_graph_is_one_without_nodes(tmp_path: Path) -> None:
    g = cuda.CUDAGraph()
    with pytest.warns(UserWarning, match="the graph is empty"), graphs.graph(g):
        pass
    g.debug_dump(tmp_path / "empty.dot")
    assert dot.read(tmp_path / "empty.dot") == dot.Cluster()


def capture_bodies() -> cuda.CUDAGraph:
    """What WRITTEN_BY_CUDA shows: sin, perhaps cos, and the predicate's end in a loop between exp and abs."""
    x = zeros()
    predicate = tensorplay.ones((), dtype=tensorplay.bool, device="cuda")
    g = cuda.CUDAGraph()
    with graphs.graph(g):
        x.exp_()
        with g.while_(predicate):
            x.sin_()
            with g.if_(predicate):
                x.cos_()
            predicate.logical_not_()
        x.abs_()
    return g


def check_bodies(graph: dot.Cluster) -> None:
    exp, loop, abs_ = (graph.find(text)[0] for text in ("tp_k_exp", "WHILE", "tp_k_abs"))
    assert {exp, loop, abs_} <= graph.nodes.keys()
    assert graph.is_before(exp, loop)
    assert graph.is_before(loop, abs_)
    (body,) = graph.inside
    (choice,) = body.find("IF")
    assert choice in body.nodes
    assert choice not in graph.nodes
    for operation in ("sin", "cos"):
        (name,) = graph.find(f"tp_k_{operation}")
        assert name not in body.nodes
        assert [name in part.find("") for part in body.inside].count(True) == 1


def test_bodies_are_graphs_inside(tmp_path: Path) -> None:
    capture_bodies().debug_dump(tmp_path / "bodies.dot")
    check_bodies(dot.read(tmp_path / "bodies.dot"))


def test_a_dump_that_cuda_wrote_is_read() -> None:
    check_bodies(dot.read(WRITTEN_BY_CUDA))


def test_the_emulated_device_writes_what_cuda_writes(emulated: None, with_else: None, tmp_path: Path) -> None:
    capture_bodies().debug_dump(tmp_path / "bodies.dot")
    assert renumber((tmp_path / "bodies.dot").read_text()) == renumber(WRITTEN_BY_CUDA.read_text())


def renumber(text: str) -> str:
    """The text with its graphs counted as they come: their own numbers tell how many there were before."""
    numbers: dict[str, int] = {}
    return re.sub(r"(cluster|graph)_(\d+)", lambda m: f"{m[1]}_{numbers.setdefault(m[2], len(numbers))}", text)


@pytest.mark.parametrize(
    ("place", "error"),
    [
        (lambda folder: folder / "missing" / "graph.dot", FileNotFoundError),
        (lambda folder: folder, IsADirectoryError),
        (lambda folder: f"{folder}/graph.dot\0", ValueError),
    ],
)
def test_a_bad_path_is_the_systems_own_error(
    tmp_path: Path, place: Callable[[Path], Path], error: type[Exception]
) -> None:
    diamond = capture_diamond(zeros())
    with pytest.raises(error):
        diamond.debug_dump(place(tmp_path))
    assert not list(tmp_path.iterdir())
    diamond.debug_dump(tmp_path / "graph.dot")
    assert len(dot.read(tmp_path / "graph.dot").nodes) == 4


def test_without_a_capture_nothing_is_written(tmp_path: Path) -> None:
    diamond = capture_diamond(zeros())

    def check_refused(g: cuda.CUDAGraph, text: str = "nothing was captured") -> None:
        with pytest.raises(StateError, match=f"debug_dump: {text}"):
            g.debug_dump(tmp_path / "graph.dot")
        assert not list(tmp_path.iterdir())

    check_refused(cuda.CUDAGraph())
    diamond.debug_dump(tmp_path / "graph.dot")
    (tmp_path / "graph.dot").unlink()
    diamond.reset()
    check_refused(diamond)
    with graphs.graph(diamond):
        _ = zeros()
        check_refused(diamond, "the capture is underway: end it first")
