"""What the tests of tensorplay.cuda share."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

import tensorplay
from tensorplay import cuda
from tensorplay.cuda import sanitizer
from tensorplay.errors import BackendUnavailableError


@pytest.fixture
def gpu() -> None:
    """A device, real or emulated."""
    if not cuda.is_available():
        pytest.skip(f"no CUDA device: {cuda.unavailable_reason()}")


@pytest.fixture
def two_gpus(gpu: None, two_devices: tuple[str, str]) -> None:
    """Two devices."""


@pytest.fixture
def emulated(gpu: None) -> None:
    """The emulated device, whose streams and failures a test commands."""
    variant = tensorplay._plugins.get("cuda").describe()["variant"]
    if variant != "emulated":
        pytest.skip(f"the emulated device is needed, {variant} serves")


def refusal_of_else() -> str:
    """Why if nodes have no second body here; empty where they have."""
    graph, predicate = cuda.CUDAGraph(), tensorplay.full((), True, device="cuda")
    try:
        with cuda.graph(graph):
            with graph.if_(predicate):
                predicate.fill_(True)
            with graph.else_():
                predicate.fill_(True)
    except BackendUnavailableError as refusal:
        return str(refusal)
    return ""


@pytest.fixture
def with_else(gpu: None) -> None:
    """Graphs whose if nodes have a second body."""
    if refusal := refusal_of_else():
        pytest.skip(refusal)


@pytest.fixture
def checker(gpu: None) -> Iterator[None]:
    """The order checker, on for one test."""
    cuda.synchronize()
    sanitizer.enable()
    yield
    sanitizer.disable()


@pytest.fixture
def history(gpu: None) -> Iterator[None]:
    """History of memory, switched on while no cache holds anything; off afterwards."""
    gc.collect()
    cuda.empty_cache()
    cuda.memory._record_memory_history()
    yield
    cuda.memory._record_memory_history(None)


@pytest.fixture
def pinned(gpu: None) -> Iterator[None]:
    """A test starts with an empty cache of pinned memory and gives back what it takes."""
    gc.collect()
    cuda.synchronize()
    cuda.empty_host_cache()
    before = cuda.host_memory_stats()["active_bytes.current"]
    yield
    gc.collect()
    cuda.synchronize()
    assert cuda.host_memory_stats()["active_bytes.current"] == before


@pytest.fixture
def small(emulated: None) -> Iterator[int]:
    """Devices that have 64 MiB for blocks; the bytes beside them, which the library holds on device 0 for itself."""
    from tensorplay.testing import emulated as control

    gc.collect()
    cuda.empty_cache()
    free, total = cuda.mem_get_info(0)
    own = total - free - cuda.memory_reserved(0)
    with control.capacity(64 * 2**20 + own):
        yield own
    cuda.empty_cache()


@pytest.fixture
def nothing_stays(gpu: None) -> Iterator[None]:
    """Afterwards the stream is the one from before, nothing is captured, and captures hold no memory."""
    gc.collect()
    cuda.empty_cache()
    reserved, stream = cuda.memory_reserved(), cuda.current_stream()
    yield
    assert cuda.current_stream() == stream
    assert not cuda.is_current_stream_capturing()
    gc.collect()  # An exception that a test looks at holds the test's own frame.
    cuda.empty_cache()
    assert cuda.memory_reserved() <= reserved
