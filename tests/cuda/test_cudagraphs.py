"""The compiler backend: signatures, captures and replays, arguments and results."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import pytest
from helpers.managers import counts, vector

import tensorplay as tp
from tensorplay import cuda
from tensorplay.compiler.backends.cudagraphs import CudaGraphManager

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no CUDA device")


Pair = namedtuple("Pair", ["first", "second"])


def test_calls_are_warmed_up_then_captured_then_replayed() -> None:
    calls: list[bool] = []

    def double(x: tp.Tensor) -> tp.Tensor:
        calls.append(cuda.is_current_stream_capturing())
        return x * 2

    manager = CudaGraphManager(double, warmup=2)
    results = [manager(vector(value, 1)) for value in (1, 2, 3, 4, 5)]
    assert [result.tolist() for result in results] == [[2, 2], [4, 2], [6, 2], [8, 2], [10, 2]]
    assert calls == [False, False, True]
    assert counts(manager) == {"calls": 5, "warmups": 2, "captures": 1, "replays": 3, "entries": 1}


def test_every_call_does_the_work_once_as_without_graphs() -> None:
    total = tp.zeros(2, device="cuda")

    def add(x: tp.Tensor) -> tp.Tensor:
        total.add_(x)
        return total.clone()

    manager = CudaGraphManager(add)
    seen = [manager(vector(1, value)).tolist() for value in (10, 20, 30, 40)]
    assert seen == [[1, 10], [2, 30], [3, 60], [4, 100]]
    assert total.tolist() == [4, 100]


def test_a_signature_is_shape_dtype_strides_and_values() -> None:
    manager = CudaGraphManager(lambda x, factor, *, shift=0.0: x * factor + shift, warmup=0)
    x = tp.arange(6, device="cuda").reshape(2, 3)
    given: list[tuple[tp.Tensor, Any, Any]] = [
        (x, 2, 0.0),
        (x.reshape(3, 2), 2, 0.0),
        (x.t(), 2, 0.0),
        (x.float(), 2, 0.0),
        (x, 2.0, 0.0),
        (x, True, 0.0),
        (x, 2, -0.0),
        (x, 2, float("nan")),
    ]
    for _ in range(2):
        for tensor, factor, shift in given:
            result, expected = manager(tensor, factor, shift=shift), tensor * factor + shift
            tp.testing.assert_close(result, expected, equal_nan=True)
    assert counts(manager) == {"calls": 16, "captures": 8, "replays": 16, "entries": 8}


def test_settings_are_part_of_the_signature() -> None:
    manager = CudaGraphManager(lambda x: x / 2, warmup=0)
    x = tp.ones(3, dtype=tp.int32, device="cuda")
    assert manager(x).dtype is tp.float32
    try:
        tp.set_default_dtype(tp.float64)
        assert manager(x).dtype is tp.float64
    finally:
        tp.set_default_dtype(tp.float32)
    assert manager(x).dtype is tp.float32
    assert counts(manager) == {"calls": 3, "captures": 2, "replays": 3, "entries": 2}


def test_arguments_and_results_are_nested() -> None:
    def function(pair: Pair, rest: dict[str, Any], items: list[tp.Tensor]) -> Any:
        both = pair.first + pair.second * rest["factor"]
        return Pair(both, {"sum": both.sum(), "name": rest["name"]}), [both, items[0] - 1], (), None

    manager = CudaGraphManager(function)
    for value in (1.0, 2.0, 3.0):
        x = vector(value, 2)
        pair, items, empty, nothing = manager(Pair(x, x + 1), {"factor": 3, "name": "n"}, [x])
        assert isinstance(pair, Pair)
        assert pair.first.tolist() == [value + 3 * (value + 1), 11]
        assert pair.second["sum"].item() == 4 * value + 14
        assert pair.second["name"] == "n"
        assert items[0] is pair.first
        assert items[1].tolist() == [value - 1, 1]
        assert (empty, nothing) == ((), None)
    assert manager.statistics()["replays"] == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda value: vector(value, 1).expand(4, 2),
        lambda value: vector(value).expand(3),
        lambda value: tp.full((3, 4), value, device="cuda").t(),
        lambda value: tp.full((6,), value, device="cuda")[1::2],
        lambda value: tp.full((2, 0, 3), value, device="cuda"),
        lambda value: tp.full((6,), value, device="cuda").as_strided((0, 3, 2), (1, 1, 1)),
        lambda value: tp.full((), value, device="cuda"),
    ],
    ids=["expanded", "one-element", "transposed", "slice", "empty", "empty-that-would-overlap", "scalar"],
)
def test_layouts_of_arguments_are_kept(make: Callable[[float], tp.Tensor]) -> None:
    layouts: list[Any] = []

    def function(x: tp.Tensor) -> tp.Tensor:
        layouts.append((x.shape, x.stride()))
        return x + 1

    manager = CudaGraphManager(function)
    for value in (1.0, 2.0, 3.0):
        assert manager(make(value)).tolist() == (make(value) + 1).tolist()
    assert layouts[0] == layouts[1]
    assert manager.statistics()["replays"] == 2


def test_results_are_the_callers_own() -> None:
    manager = CudaGraphManager(lambda x: x + 1)
    results = [manager(vector(value)) for value in (1, 2, 3)]
    assert [result.item() for result in results] == [2, 3, 4]
    assert len({result.data_ptr() for result in results}) == 3


def test_results_can_stay_the_graphs() -> None:
    manager = CudaGraphManager(lambda x: (x + 1).t(), warmup=0, clone_outputs=False)
    first = manager(tp.zeros(2, 3, device="cuda"))
    second = manager(tp.ones(2, 3, device="cuda"))
    assert first is second
    assert first.tolist() == [[2, 2]] * 3


def test_views_of_arguments_are_views_of_the_given_ones() -> None:
    manager = CudaGraphManager(lambda x, y: (x, x[1:], y.t()[0], y), warmup=0)
    for value in (1.0, 2.0):
        whole = tp.full((5,), value, device="cuda")
        x, y = whole[1:4], tp.full((2, 2), value, device="cuda")
        same, tail, row, other = manager(x, y)
        assert same is x
        assert other is y
        tail.fill_(7)
        row.fill_(8)
        assert whole.tolist() == [value, value, 7, 7, value]
        assert y.tolist() == [[8, value], [8, value]]


def test_tensors_from_outside_are_returned_as_they_are() -> None:
    state = tp.zeros(2, device="cuda")
    manager = CudaGraphManager(lambda x: state.copy_(x), warmup=0)
    for value in (1.0, 2.0):
        assert manager(vector(value, value)) is state
        assert state.tolist() == [value, value]


def test_random_numbers_are_those_of_calls_without_graphs() -> None:
    def noisy(x: tp.Tensor) -> tp.Tensor:
        return x + tp.rand_like(x) + tp.nn.functional.dropout(x, 0.5)

    manager, x = CudaGraphManager(noisy), tp.ones(100, device="cuda")
    tp.manual_seed(5)
    expected = [noisy(x).tolist() for _ in range(4)]
    tp.manual_seed(5)
    assert [manager(x).tolist() for _ in range(4)] == expected
    assert counts(manager) == {"calls": 4, "warmups": 1, "captures": 1, "replays": 3, "entries": 1}


def test_without_arguments() -> None:
    state = tp.zeros(1, device="cuda")
    manager = CudaGraphManager(lambda: state.add_(1) * 10)
    assert [manager().item() for _ in range(4)] == [10, 20, 30, 40]
    assert manager.statistics()["replays"] == 3


def test_a_graph_that_queues_nothing() -> None:
    manager = CudaGraphManager(lambda x: x.reshape(1, 2), warmup=0)
    assert manager(vector(1, 2)).tolist() == [[1, 2]]
    assert manager(vector(3, 4)).tolist() == [[3, 4]]


def test_the_signature_that_was_not_called_for_longest_goes() -> None:
    manager = CudaGraphManager(lambda x: x + 1, warmup=0, max_entries=2)
    for size in (1, 2, 1, 3, 1, 2):
        assert manager(tp.zeros(size, device="cuda")).tolist() == [1] * size
    assert counts(manager) == {"calls": 6, "captures": 4, "replays": 6, "evictions": 2, "entries": 2}


def test_graphs_of_one_manager_share_memory_and_keep_their_results_apart() -> None:
    def function(x: tp.Tensor) -> tp.Tensor:
        for _ in range(4):
            x = x * 2
        return x

    manager = CudaGraphManager(function, warmup=0, clone_outputs=False)
    one = manager(tp.ones(2**18, device="cuda"))
    reserved = cuda.memory_reserved()
    two = manager(tp.ones(2**18 - 128, device="cuda"))
    # The second one's steps fit into the first one's memory; its argument and its result do not.
    assert cuda.memory_reserved() - reserved <= 2 * 2**20
    assert one.sum().item() == 16 * 2**18
    assert two.sum().item() == 16 * (2**18 - 128)


def test_inside_of_a_capture_it_becomes_part_of_it() -> None:
    manager = CudaGraphManager(lambda x: x * 2)
    x = vector(1)
    manager(x)
    manager(x)
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        y = manager(x) + 1
    x.fill_(5)
    g.replay()
    assert y.item() == 11
    assert manager.statistics()["eager"] == 1


def test_calls_of_compiled_functions_nest() -> None:
    inner = CudaGraphManager(lambda x: x + 1)
    outer = CudaGraphManager(lambda x: inner(x) * 2)
    assert [outer(vector(value)).item() for value in (1, 2, 3)] == [4, 6, 8]
    assert outer.statistics()["replays"] == 2


def test_nothing_stays_when_it_goes() -> None:
    before = cuda.memory_allocated()
    manager = CudaGraphManager(lambda x: x + 1)
    for _ in range(3):
        manager(tp.zeros(1000, device="cuda"))
    assert cuda.memory_allocated() > before
    del manager
    assert cuda.memory_allocated() == before


def test_memory_goes_back_when_it_is_cleared() -> None:
    cuda.empty_cache()
    before = cuda.memory_reserved()
    manager = CudaGraphManager(lambda x: x + 1, warmup=0)
    manager(tp.zeros(1000, device="cuda"))
    cuda.synchronize()
    manager.clear()
    cuda.empty_cache()
    assert cuda.memory_reserved() == before
    assert manager(tp.ones(1000, device="cuda"))[0].item() == 2
