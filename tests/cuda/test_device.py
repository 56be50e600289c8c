"""Devices: arguments, choosing, properties."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from helpers import fresh

import tensorplay as tp
from tensorplay import cuda
from tensorplay.errors import DTypeError, InvalidArgumentError

# What the other arguments without a default may be.
OTHERS: dict[str, Callable[[], Any]] = {
    "data_ptr": lambda: 0,
    "fraction": lambda: 1.0,
    "name": lambda: "segment.all.peak",
    "nbytes": lambda: None,
    "new_state": lambda: tp.zeros(16, dtype=tp.uint8),
    "peer_device": lambda: 0,
    "pool": cuda.MemPool,
    "size": lambda: 512,
    "stream_ptr": lambda: 0,
}


def takes_a_device(module: ModuleType) -> dict[str, Callable[[Any], Any]]:
    """Everything public in a module that has an argument `device`, as a function of that argument."""
    found = {}
    for name, call in vars(module).items():
        if name.startswith("_") or not callable(call) or not call.__module__.startswith("tensorplay"):
            continue
        if isinstance(call, type) and issubclass(call, Exception):
            continue
        parameters = inspect.signature(call).parameters
        if "device" in parameters and parameters["device"].annotation == "DeviceArgument":
            needed = [key for key, one in parameters.items() if one.default is one.empty and key != "device"]
            found[name] = partial(call_and_enter, call, needed)
    return found


def call_and_enter(call: Callable[..., Any], needed: list[str], device: Any) -> None:
    """Calls it, and enters what is a context."""
    made = call(device=device, **{name: OTHERS[name]() for name in needed})
    if call is cuda.caching_allocator_alloc:
        cuda.caching_allocator_delete(made)
    with made if isinstance(made, AbstractContextManager) else nullcontext():
        pass


FOUND = takes_a_device(cuda) | takes_a_device(cuda.memory) | takes_a_device(cuda.streams)
CONTEXT = FOUND.pop("device")
TAKES_A_DEVICE = [pytest.param(call, id=name) for name, call in sorted(FOUND.items())]
SETTERS = [pytest.param(cuda.set_device, id="set_device"), pytest.param(CONTEXT, id="device")]


@pytest.fixture(scope="module", autouse=True)
def _no_garbage() -> None:
    """What earlier tests have left goes before figures of memory are compared."""
    gc.collect()


def test_all_that_takes_a_device_is_found() -> None:
    assert {"Stream", "ExternalStream", "synchronize", "mem_get_info", "use_mem_pool", "set_memory_limit"} <= set(FOUND)


@pytest.mark.parametrize("call", TAKES_A_DEVICE)
@pytest.mark.parametrize("device", [None, 0, np.int64(0), "cuda", "cuda:0", tp.device("cuda"), tp.device("cuda", 0)])
def test_every_spelling_is_taken(gpu: None, call: Callable[[Any], Any], device: Any) -> None:
    call(device)


@pytest.mark.parametrize("call", TAKES_A_DEVICE + SETTERS)
@pytest.mark.parametrize("device", ["count", 99, 127, 128, 255, 256, 2**31 - 1, "cuda:99"])
def test_index_past_the_end(gpu: None, call: Callable[[Any], Any], device: Any) -> None:
    device = cuda.device_count() if device == "count" else device
    index = device if isinstance(device, int) else 99
    before = cuda.current_device(), cuda.current_stream(), cuda.memory_stats()
    with pytest.raises(InvalidArgumentError) as caught:
        call(device)
    assert f"device {index} asked for, {cuda.device_count()} visible" in str(caught.value)
    assert (cuda.current_device(), cuda.current_stream(), cuda.memory_stats()) == before


@pytest.mark.parametrize("call", TAKES_A_DEVICE)
@pytest.mark.parametrize("index", [-1, -2, -(2**40)])
def test_negative_index_is_refused(gpu: None, call: Callable[[Any], Any], index: int) -> None:
    with pytest.raises(InvalidArgumentError, match=f"device {index} asked for"):
        call(index)


@pytest.mark.parametrize("call", TAKES_A_DEVICE + SETTERS)
@pytest.mark.parametrize(
    "text",
    ["cuda:2 cuda:3", "cuda0", "cuda:", "cuda:-1", "cuda:01", "cuda: 1", " cuda", "CUDA:0", "cuda:1.0", "",
     "cuda:99999999999", "cpu:-1", "gpu"],
)  # fmt: skip
def test_bad_spelling_is_refused_with_the_one_text(gpu: None, call: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(InvalidArgumentError) as expected:
        tp.device(text)
    with pytest.raises(InvalidArgumentError) as caught:
        call(text)
    assert str(caught.value) == str(expected.value)


@pytest.mark.parametrize("call", TAKES_A_DEVICE + SETTERS)
@pytest.mark.parametrize("text", ["cpu", "cpu:0", "cpu:1"])
def test_the_host_is_refused_and_named(gpu: None, call: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"got {text}, expected a cuda device"):
        call(text)


@pytest.mark.parametrize("call", TAKES_A_DEVICE + SETTERS)
@pytest.mark.parametrize("device", [1.0, True, [0], b"cuda"])
def test_wrong_type_is_refused(gpu: None, call: Callable[[Any], Any], device: Any) -> None:
    with pytest.raises(DTypeError) as caught:
        call(device)
    assert repr(device) in str(caught.value)


def test_negative_index_sets_nothing(gpu: None) -> None:
    cuda.set_device(-1)
    assert cuda.current_device() == 0
    with cuda.device(-5):
        assert cuda.current_device() == 0


def test_device_context_puts_back(two_gpus: None) -> None:
    with cuda.device("cuda:1"):
        assert cuda.current_device() == 1
        with cuda.device(None):
            assert cuda.current_device() == 1
        assert tp.zeros(2, device="cuda").device == tp.device("cuda:1")
    assert cuda.current_device() == 0
    with pytest.raises(KeyError), cuda.device(1):
        raise KeyError
    assert cuda.current_device() == 0


def test_a_device_context_may_be_entered_again_in_its_block(two_gpus: None) -> None:
    context = cuda.device(1)
    with context, cuda.device(0):
        with context:
            assert cuda.current_device() == 1
        assert cuda.current_device() == 0
    assert cuda.current_device() == 0
    cuda.set_device(1)
    context.__exit__(None, None, None)  # a second time
    assert cuda.current_device() == 1


def test_cuda_without_index_is_the_current_device(two_gpus: None) -> None:
    cuda.set_device(1)
    assert tp.zeros(1, device="cuda").device.index == 1
    assert cuda.Stream("cuda").device_index == 1
    assert cuda.default_stream().device_index == 1


def test_properties_are_consistent(gpu: None) -> None:
    found = cuda.get_device_properties()
    assert found.name == cuda.get_device_name()
    assert (found.major, found.minor) == cuda.get_device_capability()
    assert found.total_memory >= cuda.mem_get_info()[1] > 0
    assert found.warp_size == 32
    assert found.max_threads_per_block >= 512
    assert found.multi_processor_count >= 1


QUERIES = """
    import tensorplay, tensorplay.cuda as cuda
    for device in (None, 0, "cuda", "cuda:0", tensorplay.device("cuda", 0)):
        for query in (cuda.memory_allocated, cuda.memory_reserved, cuda.max_memory_allocated,
                      cuda.max_memory_reserved):
            assert query(device) == 0
        stats = cuda.memory_stats(device)
        assert list(stats) == sorted(stats) and len(stats) > 100 and not any(stats.values())
        assert cuda.memory_stats_as_nested_dict(device)["segment"]["all"]["peak"] == 0
        assert len(cuda.memory_summary(device).splitlines()) > 30
        assert cuda.reset_peak_memory_stats(device) is None
        assert cuda.reset_accumulated_memory_stats(device) is None
        assert cuda.synchronize(device) is None
    cuda.empty_cache()
    cuda.manual_seed(1)
    cuda.manual_seed_all(2)
    assert cuda.current_device() == 0
    assert not cuda.stream(None).__enter__()
    print(cuda.is_available(), cuda.device_count())
    from tensorplay.cuda._library import native
    print(native.is_started)
"""


def test_queries_before_first_use_start_nothing(gpu: None) -> None:
    assert fresh.run(QUERIES) == f"True {cuda.device_count()}\nFalse\n"


def test_queries_without_a_device() -> None:
    assert fresh.run(QUERIES, TENSORPLAY_CUDA_RUNTIME="none") == "False 0\nFalse\n"


def test_a_device_that_is_not_there_is_refused_before_first_use() -> None:
    code = """
        import tensorplay, tensorplay.cuda as cuda
        for call in (cuda.memory_allocated, cuda.synchronize, cuda.memory_stats, cuda.set_device, cuda.Stream):
            try:
                call(7)
            except tensorplay.errors.InvalidArgumentError as error:
                print(error)
    """
    out = fresh.run(code, TENSORPLAY_CUDA_RUNTIME="none")
    assert out == "device 7 asked for, 0 visible\n" * 5


def test_work_on_one_device_leaves_the_other_alone(two_gpus: None) -> None:
    code = """
        import tensorplay as tp
        from tensorplay import cuda
        from tensorplay.cuda._library import native
        x = tp.ones(1000, device="cuda:1")
        y = (x + x).cpu()
        with cuda.device(1):
            side, start, end = cuda.Stream(), cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
            start.record()
            side.wait_event(start)
            with cuda.stream(side):
                x.record_stream(side)
                end.record()
        end.synchronize()
        start.elapsed_time(end), end.query()
        del x
        tp.zeros(1000, device="cuda:1").sum().item()
        cuda.memory_stats(1), cuda.memory_summary(1), cuda.memory_stats(0), cuda.mem_get_info(1)
        cuda.synchronize(1), cuda.synchronize(0), cuda.reset_peak_memory_stats(0), cuda.manual_seed_all(1)
        cuda.empty_cache()
        print(cuda.current_device(), native.tp_device_is_started(0), native.tp_device_is_started(1))
    """
    assert fresh.run(code) == "0 0 1\n"


def test_work_on_one_device_makes_no_call_for_the_other(two_gpus: None, emulated: None) -> None:
    """Pinned memory and caches too: they visit the devices that are in use, and no context comes up elsewhere."""
    code = """
        import tensorplay as tp
        from tensorplay import cuda
        from tensorplay.testing import emulated as control
        x = tp.ones(1000, device="cuda:1")
        with control.calls(0) as others, control.calls(1) as own:
            pinned = tp.ones(1000).pin_memory()
            x.copy_(pinned, non_blocking=True)
            (x + x).to("cpu")
            with cuda.device(1):
                start, end = (cuda.Event(enable_timing=True) for _ in range(2))
                start.record(), end.record(), end.synchronize(), start.elapsed_time(end)
            cuda.memory_stats(1), cuda.memory_summary(1), cuda.synchronize(1), cuda.reset_peak_memory_stats(1)
            del x, pinned
            tp.empty(1000, pin_memory=True)
            freed = own["cudaFree"], own["cudaFreeHost"]
            cuda.empty_cache(), cuda.empty_host_cache()
            print(own["cudaFree"] > freed[0], own["cudaFreeHost"] > freed[1])
        print([name for name, count in others.items() if count], cuda.current_device())
    """
    assert fresh.run(code) == "True True\n[] 0\n"


def test_device_of_is_the_device_of_a_tensor(two_gpus: None) -> None:
    with cuda.device_of(tp.ones(1, device="cuda:1")):
        assert cuda.current_device() == 1
        with cuda.device_of(tp.ones(1)):
            assert cuda.current_device() == 1
    assert cuda.current_device() == 0
    with pytest.raises(tp.errors.DTypeError, match="device_of: got str, expected a tensor"):
        cuda.device_of("cuda:1")  # type: ignore[arg-type]


def test_peers(two_gpus: None) -> None:
    assert not cuda.can_device_access_peer(0, 0)
    assert cuda.can_device_access_peer(0, 1) == cuda.can_device_access_peer("cuda:1", None)
    with pytest.raises(InvalidArgumentError, match="device 99 asked for"):
        cuda.can_device_access_peer(0, 99)


def test_copies_between_devices_without_access_are_staged(two_gpus: None, emulated: None) -> None:
    code = """
        import tensorplay as tp
        from tensorplay import cuda
        print(cuda.can_device_access_peer(0, 1), cuda.can_device_access_peer(1, 0))
        x = tp.arange(12, device="cuda:0").view(3, 4)
        for source in (x, x.t(), x[:, 1:3], x[::2]):
            assert source.to("cuda:1").cpu().tolist() == source.cpu().tolist()
            y = tp.full(source.shape, -1.0, device="cuda:1")
            y.copy_(source, non_blocking=True)  # to another dtype
            assert y.tolist() == source.tolist()
            assert (y + 1).to("cuda:0").tolist() == (source + 1).tolist()
    """
    assert fresh.run(code, TENSORPLAY_EMULATED_PEERS="0") == "False False\n"


def test_kernels_fit_the_device(gpu: None) -> None:
    architectures = cuda.get_arch_list()
    assert any(name.startswith(f"sm_{cuda.get_device_capability()[0]}") for name in architectures)
    assert cuda.is_bf16_supported()
    assert cuda.is_bf16_supported(False) == (cuda.get_device_capability() >= (8, 0))


def test_init_starts_the_library_and_no_device(gpu: None) -> None:
    code = """
        import tensorplay as tp
        from tensorplay.cuda._library import native
        print(tp.cuda.is_initialized(), tp.cuda.get_arch_list() != [], tp.cuda.is_initialized())
        tp.cuda.init()
        print(tp.cuda.is_initialized(), native.tp_device_is_started(0))
    """
    assert fresh.run(code) == "False True False\nTrue 0\n"


def test_nothing_is_initialized_without_a_device() -> None:
    code = """
        import tensorplay as tp
        print(tp.cuda.is_initialized(), tp.cuda.get_arch_list(), tp.cuda.is_bf16_supported())
        try:
            tp.cuda.init()
        except tp.errors.BackendUnavailableError as error:
            print("none" in str(error))
    """
    assert fresh.run(code, TENSORPLAY_CUDA_RUNTIME="none") == "False [] False\nTrue\n"
