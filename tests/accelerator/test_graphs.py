"""The facade's graphs: the specified class, over a backend made for these tests and over whatever is installed."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

import tensorplay
from tensorplay import accelerator
from tensorplay.accelerator import graphs
from tensorplay.errors import BackendUnavailableError, DTypeError, StateError

from .conftest import Place


class Calls:
    """Stands where a backend's graph would: notes calls, and gives itself or the name back."""

    def __init__(self, calls: list[tuple[Any, ...]]) -> None:
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> str:
            self._calls.append((name, *arguments))
            return name

        return call


class Context(AbstractContextManager[None]):
    def __init__(self, calls: list[tuple[Any, ...]]) -> None:
        self._calls = calls

    def __enter__(self) -> None:
        self._calls.append(("enter",))

    def __exit__(self, *exception: object) -> None:
        self._calls.append(("exit", exception[0]))


class Recorder:
    """Stands where a backend would."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.made: list[Calls] = []

    def graph(self, keep_graph: bool) -> Calls:
        self.calls.append(("graph", keep_graph))
        self.made.append(Calls(self.calls))
        return self.made[-1]

    def capture(self, graph: Calls, pool: Any, capture_error_mode: str) -> Context:
        self.calls.append(("capture", graph, pool, capture_error_mode))
        return Context(self.calls)

    def graph_pool_handle(self) -> str:
        return "handle"


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """The facade finds a Recorder."""
    backend = Recorder()
    monkeypatch.setattr(graphs, "needed", lambda operation: backend)
    return backend


def test_the_graph_is_what_the_module_and_the_package_name() -> None:
    assert accelerator.graphs.Graph is accelerator.Graph
    assert isinstance(accelerator.Graph.pool_id, property)


def test_calls_go_through(recorder: Recorder) -> None:
    g = accelerator.Graph(True)
    pred, path, static, fresh = object(), Path("graph.dot"), [object()], [object()]
    g.begin_capture_to_if_node(pred)  # type: ignore[arg-type]
    g.begin_capture_to_while_node(pred)  # type: ignore[arg-type]
    g.set_conditional_handle_for_current_node(pred)  # type: ignore[arg-type]
    g.end_capture_to_conditional_node()
    assert g.if_(pred) == "if_"  # type: ignore[arg-type, comparison-overlap]
    assert g.else_() == "else_"  # type: ignore[comparison-overlap]
    assert g.while_(pred) == "while_"  # type: ignore[arg-type, comparison-overlap]
    g.capture_end()
    g.instantiate()
    g.replay()
    g.replay("stream")
    g.stage_and_launch(static, fresh)  # type: ignore[arg-type]
    g.reset()
    g.enable_debug_mode()
    g.debug_dump(path)
    assert g.pool() == g.pool_id == "pool"
    assert recorder.calls == [
        ("graph", True),
        ("begin_capture_to_if_node", pred),
        ("begin_capture_to_while_node", pred),
        ("set_conditional_handle_for_current_node", pred),
        ("end_capture_to_conditional_node",),
        ("if_", pred),
        ("else_",),
        ("while_", pred),
        ("capture_end",),
        ("instantiate",),
        ("replay", None),
        ("replay", "stream"),
        ("stage_and_launch", static, fresh),
        ("reset",),
        ("enable_debug_mode",),
        ("debug_dump", path),
        ("pool",),
        ("pool",),
    ]


def test_the_mode_that_leaves_the_choice_is_global(recorder: Recorder) -> None:
    with accelerator.Graph(capture_error_mode="default") as g:
        pass
    g.capture_begin(capture_error_mode="default")
    assert recorder.calls[1] == ("capture", recorder.made[0], None, "global")
    assert recorder.calls[-1] == ("capture_begin", None, "global", None)


def test_a_capture_takes_the_settings_of_the_constructor_unless_told(recorder: Recorder) -> None:
    accelerator.Graph().capture_begin()
    accelerator.Graph(pool="shared", capture_error_mode="relaxed").capture_begin()
    g = accelerator.Graph(pool="shared", capture_error_mode="relaxed")
    g.capture_begin(None, "thread_local", "stream")
    other = accelerator.Graph(pool=g)
    other.capture_begin()
    other.capture_begin(pool="mine")
    assert [call[1:] for call in recorder.calls if call[0] == "capture_begin"] == [
        (None, "global", None),
        ("shared", "relaxed", None),
        (None, "thread_local", "stream"),
        (recorder.made[2], "global", None),
        ("mine", "global", None),
    ]


def test_the_block_is_captured(recorder: Recorder) -> None:
    first = accelerator.Graph(pool="shared", capture_error_mode="relaxed")
    with first as entered:
        assert entered is first
    with pytest.raises(ZeroDivisionError), accelerator.Graph(pool=first):
        1 / 0  # noqa: B018
    assert [call for call in recorder.calls if call[0] != "graph"] == [
        ("capture", recorder.made[0], "shared", "relaxed"),
        ("enter",),
        ("exit", None),
        ("capture", recorder.made[1], recorder.made[0], "global"),
        ("enter",),
        ("exit", ZeroDivisionError),
    ]


def test_the_pool_handle_is_the_backends(recorder: Recorder) -> None:
    assert accelerator.graphs.graph_pool_handle() == "handle"


def test_graphs_need_an_accelerator(place: Place) -> None:
    for call in (accelerator.Graph, accelerator.graphs.graph_pool_handle):
        with place.needs():
            call()


def test_a_backend_without_graphs_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    host = tensorplay.zeros(1)._backend
    monkeypatch.setattr(graphs, "needed", lambda operation: host)
    for call in (accelerator.Graph, accelerator.graphs.graph_pool_handle):
        with pytest.raises(BackendUnavailableError, match="the backend of type 'cpu' has no graphs"):
            call()


@pytest.fixture
def kind(here: Place) -> str:
    """The accelerator's type; a stream that can be captured is current."""
    accelerator.set_stream(here.new_stream())
    return here.type or ""


@pytest.mark.smoke
def test_a_replay_does_the_captured_work_again(kind: str) -> None:
    x = tensorplay.zeros(5, device=kind)
    with accelerator.Graph() as g:
        y = (x + 1) * 2
    for value in (3.0, -1.5):
        x.fill_(value)
        y.fill_(float("nan"))
        g.replay()
        assert y.tolist() == [(value + 1) * 2] * 5


def test_begin_and_end_without_a_block(kind: str) -> None:
    x = tensorplay.zeros(5, device=kind)
    g = accelerator.Graph()
    g.capture_begin(capture_error_mode="relaxed")
    y = x + 1
    g.capture_end()
    g.instantiate()
    g.replay()
    assert y.tolist() == [1] * 5


def test_the_default_stream_is_refused_with_the_way_out(here: Place) -> None:
    for begin in (accelerator.Graph().capture_begin, accelerator.Graph().__enter__):
        with pytest.raises(StateError, match="default stream cannot be captured: make another.* stream="):
            begin()
    g = accelerator.Graph()
    g.capture_begin(stream=here.new_stream())
    x = tensorplay.ones(3, device=here.type)
    g.capture_end()
    g.replay()
    assert x.tolist() == [1] * 3


@pytest.mark.parametrize("stream", [0, "stream", object()])
def test_what_is_no_stream_is_refused_and_the_graph_captures_still(kind: str, stream: object) -> None:
    g = accelerator.Graph()
    with pytest.raises(DTypeError, match=": got .*, expected a"):
        g.capture_begin(stream=stream)
    with g:
        x = tensorplay.ones(3, device=kind)
    with pytest.raises(DTypeError, match="replay: got .*, expected a"):
        g.replay(stream)
    g.replay()
    assert x.tolist() == [1] * 3


def test_a_second_block_of_a_graph_leaves_the_first_alone(kind: str) -> None:
    x = tensorplay.zeros(5, device=kind)
    with accelerator.Graph() as g:
        y = x + 1
        with pytest.raises(StateError, match="a capture of this graph is underway"):
            g.__enter__()
    with pytest.raises(StateError, match="has a capture already: reset"), g:
        pass
    g.replay()
    assert y.tolist() == [1] * 5


def test_inputs_are_staged(kind: str) -> None:
    x = tensorplay.zeros(5, device=kind)
    with accelerator.Graph() as g:
        y = x + 1
    for value in (3.0, -1.5):
        g.stage_and_launch([x], [tensorplay.full((5,), value, device=kind)])
        assert y.tolist() == [value + 1] * 5


def test_bodies_run_as_their_predicates_say(kind: str) -> None:
    x, n = tensorplay.zeros(5, device=kind), tensorplay.zeros((), dtype=tensorplay.int64, device=kind)
    wanted, going = (tensorplay.zeros((), dtype=tensorplay.bool, device=kind) for _ in range(2))
    with accelerator.Graph() as g:
        with g.if_(wanted):
            x.add_(1)
        g.begin_capture_to_if_node(wanted)
        x.mul_(10)
        g.end_capture_to_conditional_node()
        with g.while_(going):
            n.add_(1)
            going.copy_(n < 4)
        g.begin_capture_to_while_node(wanted)
        x.add_(0.5)
        g.set_conditional_handle_for_current_node(going)
        g.end_capture_to_conditional_node()
    for value, expected in ((False, 0.0), (True, 10.5), (False, 10.5)):
        wanted.fill_(value)
        going.fill_(True)
        n.fill_(0)
        g.replay()
        assert (x.tolist(), n.item()) == ([expected] * 5, 4)


def test_a_graph_is_dumped(kind: str, tmp_path: Path) -> None:
    with accelerator.Graph() as g:
        _ = tensorplay.ones(5, device=kind) + 1
    g.enable_debug_mode()
    g.debug_dump(tmp_path / "graph.dot")
    assert (tmp_path / "graph.dot").read_text().startswith("digraph")


def test_pools_are_shared_by_handle_by_graph_and_by_id(kind: str) -> None:
    handle = accelerator.graphs.graph_pool_handle()
    made = [accelerator.Graph(pool=handle)]
    kept = []
    for _ in range(3):
        with made[-1]:
            kept.append(tensorplay.ones(5, device=kind))
        assert made[-1].pool_id == handle
        assert hash(made[-1].pool()) == hash(handle)
        made.append(accelerator.Graph(pool=made[0] if len(made) == 1 else tuple(handle)))
    assert len(tuple(handle)) == 2
    for g, x in zip(made, kept, strict=False):
        g.replay()
        assert x.tolist() == [1] * 5


def test_an_exception_leaves_an_empty_graph(kind: str) -> None:
    g = accelerator.Graph()
    with pytest.raises(ZeroDivisionError), g:
        1 / 0  # noqa: B018
    with g:
        x = tensorplay.ones(5, device=kind)
    g.replay()
    assert x.tolist() == [1] * 5
    with pytest.raises(StateError, match="1 blocks of .* in use"):
        g.reset()
    del x
    g.reset()
    with pytest.raises(StateError, match="nothing was captured"):
        g.replay()
