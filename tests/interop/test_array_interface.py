"""``__cuda_array_interface__`` both ways, and streams of other libraries."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from helpers.operands import DTYPES

import tensorplay as tp
from tensorplay.errors import DTypeError, ExchangeError, InvalidArgumentError, StateError


class Array:
    """An object with nothing but the interface."""

    def __init__(self, source: tp.Tensor, **changes: Any) -> None:
        self.source = source
        self.__cuda_array_interface__ = {**source.__cuda_array_interface__, **changes}


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype is not tp.bfloat16], ids=str)
def test_interface(dtype: tp.DType, cuda: Any) -> None:
    tensor = tp.ones(2, 3, dtype=dtype, device="cuda").T
    found = tensor.__cuda_array_interface__
    assert found == {
        "shape": (3, 2), "typestr": dtype.numpy.str, "data": (tensor.data_ptr(), False),
        "strides": (dtype.itemsize, 3 * dtype.itemsize), "version": 3, "stream": 1,
    }  # fmt: skip
    assert tensor.contiguous().__cuda_array_interface__["strides"] is None
    again = tp.asarray(Array(tensor))
    assert (again.dtype, again.shape, again.stride()) == (dtype, (3, 2), (1, 3))
    assert again.data_ptr() == tensor.data_ptr()


def test_interface_of_the_current_stream(cuda: Any) -> None:
    tensor = tp.ones(3, device="cuda")
    with cuda.stream(stream := cuda.Stream()):
        assert tensor.__cuda_array_interface__["stream"] == stream.cuda_stream


def test_tensors_without_the_interface(cuda: Any) -> None:
    assert not hasattr(tp.ones(3), "__cuda_array_interface__")
    assert not hasattr(tp.ones(3, dtype=tp.bfloat16, device="cuda"), "__cuda_array_interface__")


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4, 5)])
@pytest.mark.parametrize("strides", [None, "kept"])
def test_interface_without_elements(shape: tuple[int, ...], strides: str | None, cuda: Any) -> None:
    tensor = tp.ones(shape, device="cuda")
    assert tensor.__cuda_array_interface__["data"] == (0, False)
    steps = None if strides is None else tuple(4 * step for step in tensor.stride())
    for address in (0, None, 12345):
        again = tp.asarray(Array(tensor, strides=steps, data=(address, False)))
        assert (again.shape, again.device.type, again.data_ptr()) == (shape, "cuda", 0)


def test_nothing_is_asked_about_memory_without_elements(control: Any) -> None:
    """A reader that asks CUDA where address 0 lies gets an error for it."""
    slices = [tp.ones(4, 6, device="cuda")[1:1, ::2], tp.ones(9, device="cuda")[5:5:3]]
    tp.cuda.synchronize()
    with control.calls() as calls:
        for tensor in slices:
            array = Array(tensor)
            assert array.__cuda_array_interface__["data"] == (0, False)
            for again in (tp.asarray(array), tp.from_dlpack(tensor)):
                assert (again.shape, again.dtype, again.device) == (tensor.shape, tensor.dtype, tensor.device)
    assert calls["cudaPointerGetAttributes"] == calls["cudaEventRecord"] == 0


def test_interface_in_a_capture(cuda: Any) -> None:
    """An array of the captured stream, or of one that is forked from it, is taken; another one breaks nothing."""
    outside, side, g = Array(tp.ones(3, device="cuda")), cuda.Stream(), cuda.CUDAGraph()
    before = tp.asarray(outside)
    cuda.synchronize()
    with cuda.graph(g):
        own = tp.asarray(Array(before + 1))
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            forked = Array(own + 1)
        total = own + tp.asarray(forked) + before
        with pytest.raises(StateError, match="takes no part in the capture: take the array before the capture begins"):
            tp.asarray(outside)
    for value in (1, 5):
        before.fill_(value)
        g.replay()
        assert total.tolist() == [3 * value + 3] * 3


def test_interface_keeps_its_object_alive(cuda: Any) -> None:
    before = cuda.memory_allocated()
    tensor = tp.asarray(Array(tp.ones(1000, device="cuda")))
    gc.collect()
    assert cuda.memory_allocated() > before
    assert tensor.sum().item() == 1000
    del tensor
    cuda.synchronize()
    gc.collect()
    assert cuda.memory_allocated() == before


def test_interface_waits_for_its_stream(control: Any) -> None:
    producer = tp.cuda.Stream()
    tensor = tp.zeros(100, device="cuda")
    tp.cuda.synchronize()
    with control.hold(producer), tp.cuda.stream(producer):
        tensor.fill_(7)
        array = Array(tensor)
        with tp.cuda.stream(tp.cuda.default_stream()):
            again = tp.asarray(array)
            assert not tp.cuda.default_stream().query()
    assert again.tolist() == [7] * 100


def test_interface_of_an_older_version(control: Any) -> None:
    """It names no stream: DLPack is asked instead, and without it the default stream is waited for."""
    side = tp.cuda.Stream()
    tensor = tp.zeros(100, device="cuda")
    found = {**tensor.__cuda_array_interface__, "version": 2}
    del found["stream"]
    old = Array(tensor)
    old.__cuda_array_interface__ = found
    with control.hold(tp.cuda.default_stream()):
        tensor.fill_(7)
        with tp.cuda.stream(side):
            taken = tp.asarray(old)
            assert not side.query()
    assert taken.tolist() == [7] * 100

    asked = []
    old.__dlpack_device__ = tensor.__dlpack_device__  # type: ignore[attr-defined]
    old.__dlpack__ = lambda **wishes: asked.append(wishes) or tensor.__dlpack__(**wishes)  # type: ignore[attr-defined]
    assert tp.asarray(old).data_ptr() == tensor.data_ptr()
    assert len(asked) == 1


class Refusing:
    """As a tensor of torch in bfloat16: its interface raises, and DLPack serves."""

    def __init__(self, tensor: tp.Tensor) -> None:
        self.__dlpack__, self.__dlpack_device__ = tensor.__dlpack__, tensor.__dlpack_device__

    @property
    def __cuda_array_interface__(self) -> Any:
        raise TypeError("no name for bfloat16")


def test_interface_that_raises(cuda: Any) -> None:
    tensor = tp.ones(3, dtype=tp.bfloat16, device="cuda")
    assert tp.asarray(Refusing(tensor)).data_ptr() == tensor.data_ptr()


def test_interface_refusals(cuda: Any) -> None:
    tensor = tp.ones(4, 4, device="cuda")
    for error, changes in (
        (ExchangeError, {"mask": object()}),
        (ExchangeError, {"strides": (16, 3)}),
        (ExchangeError, {"strides": (-16, 4)}),
        (ExchangeError, {"data": (np.ones(16).ctypes.data, False)}),
        (DTypeError, {"typestr": "<u4"}),
        (InvalidArgumentError, {"stream": 0}),
        (InvalidArgumentError, {"data": (-1, False)}),
        (InvalidArgumentError, {"shape": (4, -4)}),
        (InvalidArgumentError, {"shape": (4, "x")}),
        (DTypeError, {"stream": "x"}),
    ):
        array = Array(tensor, **changes)  # type: ignore[arg-type]
        with pytest.raises(error):
            tp.asarray(array)
    read_only = Array(tensor, data=(tensor.data_ptr(), True))
    assert tp.asarray(read_only).data_ptr() != tensor.data_ptr()
    with pytest.raises(InvalidArgumentError, match="copy=False"):
        tp.asarray(read_only, copy=False)


class Theirs:
    """A stream of another library."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.stream.cuda_stream


class LikeTorch:
    """A stream that tells its handle and its device."""

    def __init__(self, stream: Any) -> None:
        self.cuda_stream, self.device_index = stream.cuda_stream, stream.device_index


@pytest.mark.parametrize("kind", [Theirs, LikeTorch])
def test_streams_of_others_are_taken(kind: Any, cuda: Any) -> None:
    stream = cuda.Stream()
    theirs = kind(stream)
    assert stream.__cuda_stream__() == (0, stream.cuda_stream)
    with cuda.stream(theirs):
        assert cuda.current_stream() == stream
        tensor = tp.ones(3, device="cuda")
    tensor.record_stream(theirs)
    cuda.current_stream().wait_stream(theirs)
    cuda.Event().record(theirs)
    assert cuda.ExternalStream(stream.cuda_stream) == stream
    assert cuda.ExternalStream(0) == cuda.ExternalStream(1) == cuda.default_stream()
    with pytest.raises(DTypeError, match="expected a tensorplay"):
        cuda.stream(object())
    for handle in (-1, 2**64):
        with pytest.raises(InvalidArgumentError, match="handle"):
            cuda.ExternalStream(handle)


def test_lent_memory_meets_our_own(cuda: Any) -> None:
    """Memory that went out and came back under another owner still counts as the same memory."""
    tensor = tp.arange(8, device="cuda", dtype=tp.float32)
    again = tp.asarray(Array(tensor))
    again[1:].copy_(tensor[:-1])
    assert tensor.tolist() == [0, 0, 1, 2, 3, 4, 5, 6]
