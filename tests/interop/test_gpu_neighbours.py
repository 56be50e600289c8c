"""torch, CuPy, Numba and cuda.core on a real GPU, in one process: memory and streams shared both ways.

A slow kernel stands before what is shared. Who forgets to wait reads old values; who gives memory back too early finds
it overwritten.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from helpers import fresh
from helpers.operands import DTYPES

import tensorplay as tp

NUMEL = 1 << 20
ROUNDS = 20


@pytest.fixture(autouse=True)
def _real_gpu() -> Iterator[None]:
    if not tp.cuda.is_available() or tp._plugins.get("cuda").describe()["variant"] == "emulated":
        pytest.skip("a real GPU is needed")
    yield
    tp.cuda.synchronize()
    gc.collect()


@pytest.fixture
def torch() -> Any:
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("torch without CUDA")
    return module


@pytest.fixture
def cupy() -> Any:
    return pytest.importorskip("cupy")


@pytest.fixture
def numba_cuda() -> Any:
    try:
        import numba.cuda
    except Exception as error:  # Some versions fail beside a newer NumPy, with errors of any class.
        pytest.skip(f"Numba does not import: {error}")
    return numba.cuda


@pytest.fixture
def core() -> Any:
    return pytest.importorskip("cuda.core")


def slow() -> None:
    """Milliseconds of work on the current stream of TensorPlay."""
    matrix = tp.ones(4096, 4096, device="cuda")
    for _ in range(4):
        matrix = matrix @ matrix
        matrix.fill_(1)


def slow_in_torch(torch: Any) -> None:
    """The same on torch's current stream."""
    torch.cuda._sleep(20_000_000)


# -- torch ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_torch_shares_every_dtype_both_ways(dtype: tp.DType, torch: Any) -> None:
    ours = tp.ones(3, 4, dtype=dtype, device="cuda")[:, ::2]
    theirs = torch.from_dlpack(ours)
    assert (theirs.data_ptr(), tuple(theirs.shape), theirs.stride()) == (ours.data_ptr(), (3, 2), (4, 2))
    assert str(theirs.dtype) == f"torch.{dtype.name}"
    theirs[1, 1] = 0
    torch.cuda.synchronize()
    assert ours[1, 1].item() == 0
    lent = torch.ones(4, 3, dtype=theirs.dtype, device="cuda").T
    for taken in (tp.from_dlpack(lent), tp.asarray(lent), tp.as_tensor(lent)):
        assert (taken.data_ptr(), taken.shape, taken.stride(), taken.dtype) == (lent.data_ptr(), (3, 4), (1, 3), dtype)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (0, 4, 5)])
def test_torch_shares_shapes_without_elements(shape: tuple[int, ...], torch: Any) -> None:
    assert tuple(torch.from_dlpack(tp.ones(shape, device="cuda")).shape) == shape
    assert tp.from_dlpack(torch.ones(shape, device="cuda")).shape == shape
    assert tp.asarray(torch.ones(shape, device="cuda")).shape == shape


def test_torch_sees_finished_data_of_our_stream(torch: Any) -> None:
    for _ in range(ROUNDS):
        with tp.cuda.stream(tp.cuda.Stream()):
            ours = tp.zeros(NUMEL, device="cuda")
            slow()
            ours.fill_(7)
            with torch.cuda.stream(torch.cuda.Stream()):
                theirs = torch.from_dlpack(ours)
                assert theirs.sum().item() == 7 * NUMEL


def test_we_see_finished_data_of_torchs_stream(torch: Any) -> None:
    for take in (tp.from_dlpack, tp.asarray):
        for _ in range(ROUNDS):
            with torch.cuda.stream(torch.cuda.Stream()):
                theirs = torch.zeros(NUMEL, device="cuda")
                slow_in_torch(torch)
                theirs.fill_(7)
                with tp.cuda.stream(tp.cuda.Stream()):
                    assert take(theirs).sum().item() == 7 * NUMEL


def test_our_memory_is_used_again_only_after_torchs_work(torch: Any) -> None:
    for _ in range(ROUNDS):
        side = torch.cuda.Stream()
        ours = tp.full((NUMEL,), 3.0, device="cuda")
        with torch.cuda.stream(side):
            theirs = torch.from_dlpack(ours)
            slow_in_torch(torch)
            total = theirs.sum()
            del theirs
        del ours  # the last owner, while torch's sum has not begun
        for _ in range(4):
            tp.full((NUMEL,), -1.0, device="cuda")
        side.synchronize()
        assert total.item() == 3 * NUMEL


def test_torchs_memory_is_used_again_only_after_our_work(torch: Any) -> None:
    for _ in range(ROUNDS):
        theirs = torch.full((NUMEL,), 3.0, device="cuda")
        with tp.cuda.stream(tp.cuda.Stream()):
            ours = tp.from_dlpack(theirs)
            slow()
            total = ours.sum()
            del ours
            del theirs  # torch may hand the memory out again as soon as it has it back
            for _ in range(4):
                torch.full((NUMEL,), -1.0, device="cuda")
            assert total.item() == 3 * NUMEL


def test_torchs_memory_goes_back(torch: Any) -> None:
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    ours, ours_before = tp.from_dlpack(torch.ones(NUMEL, device="cuda")), tp.cuda.memory_allocated()
    assert torch.cuda.memory_allocated() > before
    assert tp.cuda.memory_allocated() == ours_before  # counted by its owner alone
    ours.add_(1)
    del ours
    tp.cuda.synchronize()
    assert torch.cuda.memory_allocated() == before


def test_streams_of_torch_and_of_ours(torch: Any) -> None:
    theirs = torch.cuda.Stream()
    with tp.cuda.stream(theirs):
        assert tp.cuda.current_stream().cuda_stream == theirs.cuda_stream
        slow()
        ours = tp.full((NUMEL,), 7.0, device="cuda")
        with torch.cuda.stream(theirs):  # one stream: the order is that of the calls
            assert torch.from_dlpack(ours).sum().item() == 7 * NUMEL
    stream = tp.cuda.Stream()
    with torch.cuda.stream(torch.cuda.ExternalStream(stream.cuda_stream)):
        assert torch.cuda.current_stream().cuda_stream == stream.cuda_stream
    ours.record_stream(theirs)
    tp.cuda.current_stream().wait_stream(theirs)


def test_operations_know_memory_that_came_back_from_torch(torch: Any) -> None:
    ours = tp.arange(NUMEL, device="cuda", dtype=tp.float32)
    again = tp.from_dlpack(torch.from_dlpack(ours)[1:])
    again.copy_(ours[:-1])
    assert ours[:4].tolist() == [0, 0, 1, 2]
    assert ours[-1].item() == NUMEL - 2


def test_torch_on_the_host() -> None:
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.bfloat16, torch.bool, torch.complex64):
        theirs = torch.ones(3, dtype=dtype)
        assert tp.from_dlpack(theirs).data_ptr() == theirs.data_ptr()
        assert torch.from_dlpack(tp.from_dlpack(theirs)).dtype == dtype


# -- CuPy -----------------------------------------------------------------------------------------------


def test_cupy_shares_memory_both_ways(cupy: Any) -> None:
    ours = tp.ones(3, 4, device="cuda")[:, ::2]
    for theirs in (cupy.from_dlpack(ours), cupy.asarray(ours)):
        assert (theirs.data.ptr, theirs.shape, theirs.strides) == (ours.data_ptr(), (3, 2), (16, 8))
    lent = cupy.arange(12, dtype=cupy.int16).reshape(3, 4).T
    for taken in (tp.from_dlpack(lent), tp.asarray(lent)):
        assert (taken.data_ptr(), taken.shape, taken.stride()) == (lent.data.ptr, (4, 3), (1, 4))
    for shape in ((0,), (3, 0), (0, 4, 5)):
        assert cupy.asarray(tp.ones(shape, device="cuda")).shape == shape
        assert tp.asarray(cupy.ones(shape)).shape == shape


def test_cupy_and_we_see_finished_data(cupy: Any) -> None:
    for take in (cupy.from_dlpack, cupy.asarray):
        for _ in range(ROUNDS):
            with tp.cuda.stream(tp.cuda.Stream()):
                ours = tp.zeros(NUMEL, device="cuda")
                slow()
                ours.fill_(7)
                with cupy.cuda.Stream(non_blocking=True):
                    assert float(take(ours).sum()) == 7 * NUMEL
    work = cupy.ones((4096, 4096), dtype=cupy.float32)
    for give in (tp.from_dlpack, tp.asarray):
        for _ in range(ROUNDS):
            with cupy.cuda.Stream(non_blocking=True):
                theirs = cupy.zeros(NUMEL, dtype=cupy.float32)
                for _ in range(4):
                    cupy.matmul(work, work)
                theirs.fill(7)
                with tp.cuda.stream(tp.cuda.Stream()):
                    assert give(theirs).sum().item() == 7 * NUMEL


def test_our_memory_is_used_again_only_after_cupys_work(cupy: Any) -> None:
    work = cupy.ones((4096, 4096), dtype=cupy.float32)
    for _ in range(ROUNDS):
        ours = tp.full((NUMEL,), 3.0, device="cuda")
        with cupy.cuda.Stream(non_blocking=True) as side:
            theirs = cupy.from_dlpack(ours)
            for _ in range(4):
                cupy.matmul(work, work)
            total = theirs.sum()
            del theirs
        del ours
        for _ in range(4):
            tp.full((NUMEL,), -1.0, device="cuda")
        side.synchronize()
        assert float(total) == 3 * NUMEL


def test_a_stream_of_cupy_that_is_gone(cupy: Any) -> None:
    """CuPy destroys its streams. Memory that was used on one comes back all the same."""
    code = """
    import gc, cupy, tensorplay as tp
    ours = tp.ones(1000, device="cuda")
    before = tp.cuda.memory_allocated()
    side = cupy.cuda.Stream(non_blocking=True)
    with side:
        theirs = cupy.from_dlpack(ours)
        theirs += 1
    side.synchronize()
    del side
    gc.collect()
    del theirs, ours
    gc.collect()
    tp.cuda.synchronize()
    tp.ones(1000, device="cuda").sum().item()
    tp.cuda.empty_cache()
    assert tp.cuda.memory_allocated() < before, tp.cuda.memory_stats()["active.all.current"]
    assert tp.cuda.memory_stats()["active.all.current"] == 0
    """
    fresh.run(code)


# -- Numba ----------------------------------------------------------------------------------------------


def test_numba_shares_memory_both_ways(numba_cuda: Any) -> None:
    @numba_cuda.jit
    def add_one(array: Any) -> None:
        place = numba_cuda.grid(1)
        if place < array.size:
            array[place] += 1

    ours = tp.zeros(NUMEL, device="cuda")
    with tp.cuda.stream(tp.cuda.Stream()):
        slow()
        ours.fill_(6)
        theirs = numba_cuda.as_cuda_array(ours)  # waits for our stream
        assert theirs.__cuda_array_interface__["data"][0] == ours.data_ptr()
        add_one[NUMEL // 256, 256](theirs)
        numba_cuda.synchronize()
        assert ours.sum().item() == 7 * NUMEL
    lent = numba_cuda.to_device(np.arange(12, dtype=np.float32).reshape(3, 4))
    taken = tp.asarray(lent)
    assert taken.data_ptr() == lent.__cuda_array_interface__["data"][0]
    assert taken.tolist() == np.arange(12).reshape(3, 4).tolist()
    del lent
    gc.collect()
    assert taken.sum().item() == 66
    assert numba_cuda.as_cuda_array(tp.ones(3, 0, device="cuda")).shape == (3, 0)


# -- cuda.core ------------------------------------------------------------------------------------------


def test_cuda_core_takes_our_streams_and_memory(core: Any) -> None:
    utils = pytest.importorskip("cuda.core.utils")
    device = core.Device(0)
    device.set_current()
    ours = tp.cuda.Stream()
    theirs = device.create_stream(ours)
    assert int(theirs.handle) == ours.cuda_stream
    tensor = tp.arange(12, device="cuda").view(3, 4)[:, 1::2]
    with tp.cuda.stream(ours):
        view = utils.StridedMemoryView.from_any_interface(tensor, stream_ptr=ours.cuda_stream)
    assert (view.ptr, tuple(view.shape), tuple(view.strides)) == (tensor.data_ptr(), (3, 2), (4, 2))


def test_we_take_streams_and_memory_of_cuda_core(core: Any) -> None:
    device = core.Device(0)
    device.set_current()
    theirs = device.create_stream()
    with tp.cuda.stream(theirs):
        assert tp.cuda.current_stream().cuda_stream == int(theirs.handle)
        assert tp.ones(100, device="cuda").sum().item() == 100
    buffer = device.allocate(4096, stream=theirs)
    theirs.sync()
    bytes_ = tp.from_dlpack(buffer)
    assert (bytes_.data_ptr(), bytes_.nbytes) == (int(buffer.handle), 4096)
