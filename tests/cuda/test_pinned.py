"""Pinned memory of the host: tensors in it, its cache, and its end."""

from __future__ import annotations

import contextlib
import sys
import threading

import numpy as np
import pytest
from helpers import fresh
from helpers.operands import DTYPES
from helpers.pinned import MiB, active, figure, filled

import tensorplay as tp
from tensorplay import cuda
from tensorplay.cuda._summary import summary
from tensorplay.errors import AcceleratorError, HostMemoryError, InvalidArgumentError, SizeOverflowError
from tensorplay.testing import emulated as control

pytestmark = pytest.mark.usefixtures("pinned")


# -- tensors in pinned memory ----------------------------------------------------------------------------------------


@pytest.mark.smoke
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_a_pinned_tensor_is_a_host_tensor(dtype: tp.DType) -> None:
    x = tp.ones(3, 4, dtype=dtype)
    pinned = x.T.pin_memory()
    assert (pinned.is_pinned(), x.is_pinned(), pinned.device, pinned.dtype) == (True, False, x.device, dtype)
    assert pinned.is_contiguous()
    assert pinned.tolist() == x.T.tolist()
    assert pinned.pin_memory() is pinned
    assert tp.pin_memory(pinned) is pinned
    for view in (pinned[1:], pinned.T, pinned[..., None], pinned[2, 2]):
        assert view.is_pinned()
    for copy in (pinned.clone(), pinned + pinned, pinned[:0], x.cuda()):
        assert not copy.is_pinned()
    assert pinned.numpy().base is not None
    assert np.shares_memory(pinned.numpy(), pinned[1:].numpy())


def test_functions_that_make_tensors_pin_them() -> None:
    like = tp.ones(2, 3)
    made: dict[str, tp.Tensor] = {
        "empty": tp.empty(2, 3, pin_memory=True), "zeros": tp.zeros(2, 3, pin_memory=True),
        "ones": tp.ones(2, 3, pin_memory=True), "full": tp.full((2, 3), 7, pin_memory=True),
        "empty_like": tp.empty_like(like, pin_memory=True), "zeros_like": tp.zeros_like(like, pin_memory=True),
        "ones_like": tp.ones_like(like, pin_memory=True), "full_like": tp.full_like(like, 7, pin_memory=True),
        "new_empty": like.new_empty(2, 3, pin_memory=True), "new_zeros": like.new_zeros(2, 3, pin_memory=True),
        "new_ones": like.new_ones(2, 3, pin_memory=True), "new_full": like.new_full((2, 3), 7, pin_memory=True),
        "empty_strided": tp.empty_strided((2, 3), (1, 2), pin_memory=True), "eye": tp.eye(2, 3, pin_memory=True),
        "arange": tp.arange(6, pin_memory=True), "linspace": tp.linspace(0, 1, 6, pin_memory=True),
        "logspace": tp.logspace(0, 1, 6, pin_memory=True), "rand": tp.rand(2, 3, pin_memory=True),
        "randn": tp.randn(2, 3, pin_memory=True), "rand_like": tp.rand_like(like, pin_memory=True),
        "randn_like": tp.randn_like(like, pin_memory=True), "randint": tp.randint(9, (2, 3), pin_memory=True),
        "randint_like": tp.randint_like(like, 9, pin_memory=True), "randperm": tp.randperm(6, pin_memory=True),
        "tensor": tp.tensor([[1, 2, 3], [4, 5, 6]], pin_memory=True), "of_tensor": tp.tensor(like, pin_memory=True),
        "new_tensor": like.new_tensor([1] * 6, pin_memory=True), "tril": tp.tril_indices(2, 2, pin_memory=True),
        "triu": tp.triu_indices(2, 2, pin_memory=True),
    }  # fmt: skip
    for name, x in made.items():
        assert x.is_pinned(), name
        assert x.numel() == 6, name
    assert made["full"].tolist() == [[7] * 3] * 2
    assert made["arange"].tolist() == list(range(6))
    assert made["tensor"].tolist() == [[1, 2, 3], [4, 5, 6]]
    tp.manual_seed(3)
    again = tp.rand(2, 3, pin_memory=True)
    tp.manual_seed(3)
    assert again.equal(tp.rand(2, 3))


def test_empty_tensors_are_nowhere() -> None:
    for x in (tp.empty(0, 3, pin_memory=True), tp.zeros(0).pin_memory()):
        assert x.numel() == 0
        assert not x.is_pinned()
        assert x.to("cuda", non_blocking=True).cpu().shape == x.shape
    assert active() == 0


def test_what_cannot_be_pinned_is_refused() -> None:
    on_device = tp.ones(2, device="cuda")
    for make in (
        on_device.pin_memory,
        lambda: tp.zeros(2, device="cuda", pin_memory=True),
        lambda: tp.arange(2, device="cuda", pin_memory=True),
        lambda: tp.empty_like(on_device, pin_memory=True),
    ):
        with pytest.raises(InvalidArgumentError, match="pin_memory: got device cuda.*, expected cpu"):
            make()
    with pytest.raises(InvalidArgumentError, match="empty: got size -1 in shape"):
        tp.empty(-1, 2, pin_memory=True)
    with pytest.raises(InvalidArgumentError, match="empty: got size -1 in shape"):
        tp.empty(-1, -2, pin_memory=True)
    with pytest.raises(SizeOverflowError, match="empty: "):
        tp.empty(2**40, 2**40, pin_memory=True)


def test_the_host_is_short_of_memory(emulated: None) -> None:
    with pytest.raises(HostMemoryError, match="pin_memory: the host has no room for .* more bytes of pinned memory"):
        tp.empty(2**57, pin_memory=True)
    kept = filled(1, pin_memory=True)
    with control.fail("cudaHostAlloc", 1), pytest.raises(AcceleratorError, match="pin_memory: cudaErrorUnknown"):
        tp.empty(MiB, pin_memory=True)
    assert filled(2, MiB, pin_memory=True).sum().item() == 2 * MiB
    assert kept[0].item() == 1


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("shape", [(), (0, 5), (7,), (2, 3, 4), (2,) * 16])
def test_arrays_of_every_shape_and_dtype(shape: tuple[int, ...], dtype: tp.DType) -> None:
    x = tp.empty(shape, dtype=dtype, pin_memory=True)
    assert (x.shape, x.dtype, x.is_contiguous(), x.is_pinned()) == (shape, dtype, True, x.numel() > 0)
    assert x.fill_(1).tolist() == tp.ones(shape, dtype=dtype).tolist()
    array = x.numpy()
    assert array.flags.writeable
    assert array.flags.aligned
    with pytest.raises(InvalidArgumentError, match="empty: "):
        tp.empty((2,) * 17, pin_memory=True)


def test_arrays_take_no_reference_with_them() -> None:
    dtype = tp.float32.numpy
    before = sys.getrefcount(dtype)
    for shape in [(3,), (0,), (2, -1), (2**62, 2)] * 50:
        with contextlib.suppress(InvalidArgumentError, SizeOverflowError):
            tp.empty(shape, pin_memory=True)
    assert sys.getrefcount(dtype) < before + 50


def test_memory_goes_back_with_the_last_array() -> None:
    x = tp.ones(MiB, pin_memory=True)
    address, view, array = x.data_ptr(), x[5:], x.numpy()
    del x, view
    array = array[7:]
    assert active() == 4 * MiB
    thread = threading.Thread(target=lambda held=[array]: held.clear())  # type: ignore[misc]
    del array
    thread.start()
    thread.join()
    del thread
    assert active() == 0
    assert tp.ones(MiB, pin_memory=True).data_ptr() == address
    cuda.empty_host_cache()
    assert figure("allocated_bytes.current") == 0


# -- the cache and its figures ---------------------------------------------------------------------------------------


def test_a_request_just_above_a_power_of_two_wastes_little() -> None:
    for nbytes in (8 * MiB, 32 * MiB):
        for asked in (nbytes - 1, nbytes, nbytes + 1):
            cuda.empty_host_cache()
            held = tp.empty(asked, dtype=tp.uint8, pin_memory=True)
            assert figure("requested_bytes.current") == asked
            assert asked <= active() == figure("allocated_bytes.current") <= asked * 17 / 16
            del held
    cuda.empty_host_cache()
    assert figure("allocated_bytes.current") == 0


def test_figures_of_pinned_memory() -> None:
    cuda.reset_peak_host_memory_stats()
    cuda.reset_accumulated_host_memory_stats()
    held = [tp.empty(MiB, dtype=tp.uint8, pin_memory=True) for _ in range(3)]
    del held[1:]
    stats = cuda.host_memory_stats()
    assert list(stats) == sorted(stats)
    assert all(type(value) is int for value in stats.values())
    assert [stats[f"active_bytes.{name}"] // MiB for name in ("current", "peak", "allocated", "freed")] == [1, 3, 3, 2]
    assert (stats["num_host_alloc"], stats["num_host_free"], stats["host_alloc_time.count"]) == (3, 0, 3)
    assert stats["host_alloc_time.min"] <= stats["host_alloc_time.avg"] <= stats["host_alloc_time.max"]
    nested = cuda.host_memory_stats_as_nested_dict()
    assert nested["allocations"]["current"] == 3
    assert nested["host_free_time"]["count"] == nested["num_host_free"] == 0
    cuda.reset_peak_host_memory_stats()
    assert figure("active_bytes.peak") == MiB
    cuda.reset_accumulated_host_memory_stats()
    assert (figure("active_bytes.allocated"), figure("num_host_alloc")) == (0, 0)


def test_pinned_bytes_appear_in_the_summary() -> None:
    held = tp.empty(10 * MiB, dtype=tp.uint8, pin_memory=True)
    row, used = [line for line in cuda.memory_summary().splitlines() if "Pinned host" in line or "in use" in line]
    assert "10240 KiB" in row
    assert f"{held.nbytes // 1024} KiB" in used


def test_the_summary_keeps_its_columns_when_memory_was_used_again_and_again() -> None:
    for times in (10**3, 10**6, 10**9):
        host = dict.fromkeys(cuda.host_memory_stats(), 4096) | {"active_bytes.allocated": 4096 * times}
        table = summary(0, cuda.memory_stats(), host, abbreviated=True)
        assert {len(line) for line in table.splitlines()} == {77}
    assert f"{4096 * 10**9 >> 30} GiB" in table


def test_the_cache_is_bounded() -> None:
    before = cuda.memory.get_allocator_settings()
    try:
        cuda.memory.set_allocator_settings("pinned_max_cached_size_mb:2")
        held = [tp.empty(MiB, dtype=tp.uint8, pin_memory=True) for _ in range(5)]
        held.clear()
        assert figure("allocated_bytes.current") == 2 * MiB
    finally:
        cuda.memory.set_allocator_settings(before)


# -- without a device, forks, the end --------------------------------------------------------------------------------


def test_questions_start_nothing() -> None:
    code = """
        import tensorplay as tp
        x = tp.ones(3)
        assert not x.is_pinned()
        stats = tp.cuda.host_memory_stats()
        assert len(stats) == 32 and not any(stats.values())
        tp.cuda.reset_peak_host_memory_stats(), tp.cuda.reset_accumulated_host_memory_stats()
        tp.cuda.empty_host_cache()
        assert not x.is_pinned()
        print(tp.cuda._library.native.is_started)
    """
    assert fresh.run(code).strip() == "False"


def test_pinned_memory_uses_a_device_that_is_started(two_gpus: None, emulated: None) -> None:
    code = """
        import tensorplay as tp
        from tensorplay.cuda._library import native
        tp.ones(1, device="cuda:1")
        x = tp.ones(1000).pin_memory()
        print(native.tp_device_is_started(0), native.tp_device_is_started(1), x.is_pinned())
    """
    assert fresh.run(code).strip() == "0 1 True"


def test_a_forked_child_leaves_pinned_memory_alone() -> None:
    code = """
        import os
        import tensorplay as tp
        x = tp.ones(1000).pin_memory()
        child = os.fork()
        if not child:
            assert not x.is_pinned()
            try:
                tp.ones(3).pin_memory()
            except tp.AcceleratorError as error:
                assert "forked" in str(error)
                del x
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert x.is_pinned() and x.sum().item() == 1000
    """
    fresh.run(code)


def test_the_end_of_a_process_with_pinned_memory_is_silent() -> None:
    code = """
        import tensorplay as tp
        kept = tp.ones(1000).pin_memory()
        array = kept.numpy()
        class Node: pass
        node = Node()
        node.self, node.tensor = node, tp.zeros(5, pin_memory=True)
        copy = kept.to("cuda", non_blocking=True)
        back = copy.to("cpu", non_blocking=True)
        tp.kept_by_the_module = tp.zeros(3, pin_memory=True)
    """
    for _ in range(3):
        done = fresh.start(code)
        assert (done.returncode, done.stderr) == (0, "")
