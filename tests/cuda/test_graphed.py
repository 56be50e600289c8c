"""Callables that replay a graph in place of their work."""

from __future__ import annotations

from typing import Any

import pytest

import tensorplay as tp
from tensorplay import cuda, nn
from tensorplay.errors import DTypeError, InvalidArgumentError, StateError

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no CUDA device")


def test_a_function_replays_on_its_arguments() -> None:
    calls = []

    def function(x: tp.Tensor, y: tp.Tensor) -> tp.Tensor:
        calls.append(cuda.is_current_stream_capturing())
        return x * 2 + y

    samples = tp.zeros(2, device="cuda"), tp.zeros((), device="cuda")
    graphed = cuda.make_graphed_callables(function, samples)
    assert calls == [False] * 3 + [True]
    for value in (1.0, 2.0):
        x, y = tp.full((2,), value, device="cuda"), tp.full((), 10 * value, device="cuda")
        assert graphed(x, y).tolist() == [12 * value] * 2
    assert len(calls) == 4
    # The samples are the captured memory, and the result is overwritten by each call.
    assert samples[0].tolist() == [2, 2]
    assert graphed(*samples) is graphed(*samples)


def test_arguments_and_results_are_nested() -> None:
    def function(pair: tuple[tp.Tensor, tp.Tensor], by_name: dict[str, tp.Tensor]) -> Any:
        return {"sum": pair[0] + pair[1] + by_name["z"]}, 3

    def one(value: float) -> tp.Tensor:
        return tp.full((1,), value, device="cuda")

    graphed = cuda.make_graphed_callables(function, ((one(0), one(0)), {"z": one(0)}))
    found, three = graphed((one(1), one(2)), {"z": one(3)})
    assert (found["sum"].item(), three) == (6, 3)
    with pytest.raises(InvalidArgumentError, match="not built like the sample arguments"):
        graphed([one(1), one(2)], {"z": one(3)})


def test_a_sample_that_stands_for_two_arguments_takes_one_tensor() -> None:
    sample, x = tp.zeros(2, device="cuda"), tp.full((2,), 3.0, device="cuda")
    graphed = cuda.make_graphed_callables(lambda a, b: a + 10 * b, (sample, sample))
    assert graphed(x, x).tolist() == graphed(x[:], x.view(2)).tolist() == [33, 33]
    with pytest.raises(InvalidArgumentError, match="got two tensors as arguments 0 and 1, expected one for both"):
        graphed(x, x + 1)


def test_samples_that_share_memory_are_refused_unless_they_are_one() -> None:
    memory = tp.zeros(4, 6, device="cuda")
    for other in (memory[1:], memory.view(6, 4), memory.t(), memory[2], memory.view(tp.int32), memory[:, 3:5]):
        with pytest.raises(InvalidArgumentError, match=r"arguments 1 and 2 that share memory, .*: use clone\(\)"):
            cuda.make_graphed_callables(lambda c, a, b: a + c, (tp.zeros(1, device="cuda"), memory, other))
    for first, second in ((memory[0:2], memory[1:3]), (memory[:, 0:3], memory[:, 2:5])):
        with pytest.raises(InvalidArgumentError, match="arguments 0 and 1 that share memory"):
            cuda.make_graphed_callables(lambda a, b: a + b, (first, second))


def test_samples_may_be_parts_of_one_tensor() -> None:
    memory = tp.zeros(4, 6, device="cuda")
    for parts in (memory.chunk(3, 1), memory.chunk(2, 0), (memory[:, ::2], memory[:, 1::2]), (memory[:2], memory[3])):
        graphed = cuda.make_graphed_callables(lambda *given: [one * 2 for one in given], tuple(parts))
        fresh = [tp.full(part.shape, float(i + 1), device="cuda") for i, part in enumerate(parts)]
        for i, result in enumerate(graphed(*fresh)):
            assert (result == 2 * (i + 1)).all().item()


def test_an_expanded_sample_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"shape \(4,\) and strides \(0,\), whose elements share memory"):
        cuda.make_graphed_callables(lambda a: a + 1, (tp.zeros(1, device="cuda").expand(4),))


def test_several_callables_share_a_pool() -> None:
    model = nn.Linear(4, 4, device="cuda").eval()

    def scale(x: tp.Tensor) -> tp.Tensor:
        return x * 3

    x = tp.randn(2, 4, device="cuda")
    expected = model(x) * 3
    pool = cuda.graph_pool_handle()
    first, second = cuda.make_graphed_callables(
        (model, scale), ((tp.zeros(2, 4, device="cuda"),), (tp.zeros(2, 4, device="cuda"),)), pool=pool
    )
    assert first is model
    tp.testing.assert_close(second(first(x)), expected)
    assert sum(one["total_size"] for one in cuda.memory_snapshot(tuple(pool))) > 0


def test_a_module_runs_its_own_forward_in_the_other_mode() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).to("cuda").eval()
    x = tp.randn(2, 3, device="cuda")
    expected = module(x)
    assert cuda.make_graphed_callables(module, (tp.zeros(2, 3, device="cuda"),)) is module
    result = module(x)
    tp.testing.assert_close(result, expected)
    assert module(x) is result
    module.train()
    other = module(x)
    assert other is not result
    assert ((other == 0) | (other - 2 * expected).abs().lt(1e-5)).all().item()
    module.eval()
    assert module(x) is result


def test_a_call_that_does_not_fit_is_refused() -> None:
    graphed = cuda.make_graphed_callables(lambda x: x + 1, (tp.zeros(4, 2, device="cuda"),))
    for wrong, said in (
        (tp.zeros(1, 2, device="cuda"), r"tensorplay.float32 of shape \(1, 2\) on cuda:0"),
        (tp.zeros(4, 2, dtype=tp.int32, device="cuda"), r"tensorplay.int32 of shape \(4, 2\)"),
        (tp.zeros(4, 2), r"on cpu"),
        (3, "got 3"),
    ):
        with pytest.raises(InvalidArgumentError, match=rf"{said}.* as argument 0, expected .*\(4, 2\) on cuda:0"):
            graphed(wrong)
    with pytest.raises(InvalidArgumentError, match="not built like"):
        graphed()
    with pytest.raises(TypeError):
        graphed(x=tp.zeros(4, 2, device="cuda"))


def test_what_cannot_be_graphed_is_refused() -> None:
    x = tp.zeros(2, device="cuda")
    with pytest.raises(DTypeError, match="got 5, expected a callable"):
        cuda.make_graphed_callables(5, (x,))
    with pytest.raises(DTypeError, match="got a Tensor as sample arguments, expected a tuple of tensors"):
        cuda.make_graphed_callables(tp.sin, x)  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match="got a list, expected a tuple of tuples of tensors"):
        cuda.make_graphed_callables((tp.sin, tp.cos), [(x,), (x,)])  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match="got a tensor on cpu as a sample argument"):
        cuda.make_graphed_callables(tp.sin, (tp.zeros(2),))
    with pytest.raises(DTypeError, match="got 2 as a sample argument"):
        cuda.make_graphed_callables(tp.sin, (2,))
    with pytest.raises(InvalidArgumentError, match="got 1 tuples of sample arguments for 2 callables"):
        cuda.make_graphed_callables((tp.sin, tp.cos), ((x,),))
    module = nn.Identity()
    module.register_forward_hook(lambda module, args, result: None)
    with pytest.raises(StateError, match="hooks"):
        cuda.make_graphed_callables(module, (x,))
    with pytest.raises(StateError, match="is being captured"):
        cuda.make_graphed_callables(lambda x: x.item(), (tp.zeros((), device="cuda"),))
    assert not cuda.is_current_stream_capturing()


def test_the_device_is_that_of_the_arguments(two_devices: tuple[str, str]) -> None:
    graphed = cuda.make_graphed_callables(lambda x: x + 1, (tp.zeros(2, device="cuda:1"),))
    assert cuda.current_device() == 0
    assert graphed(tp.ones(2, device="cuda:1")).tolist() == [2, 2]
    with pytest.raises(InvalidArgumentError, match=r"on devices \[0, 1\], expected one device"):
        cuda.make_graphed_callables(lambda x, y: x, (tp.ones(1, device="cuda:0"), tp.ones(1, device="cuda:1")))
