"""NumPy on the host: the same memory, both ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.operands import DTYPES

import tensorplay as tp
from tensorplay.errors import DTypeError, ExchangeError, InvalidArgumentError


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_arrays_and_tensors_share_memory(dtype: tp.DType) -> None:
    tensor = tp.ones(3, 4, dtype=dtype)[:, ::2]
    ways = [np.asarray(tensor), tensor.numpy(), np.array(tensor, copy=False)]
    if dtype is not tp.bfloat16:  # of which NumPy's own from_dlpack knows nothing
        ways.append(np.from_dlpack(tensor))
    tensor[1, 1] = 0
    for array in ways:
        assert array.dtype == dtype.numpy
        assert array.shape == (3, 2)
        assert array.ctypes.data == tensor.data_ptr()
        assert array[1, 1] == 0
        again = tp.from_numpy(array) if array.flags.writeable else tp.tensor(array)
        assert again.dtype is dtype


@pytest.mark.parametrize("make", [tp.asarray, tp.as_tensor, tp.from_numpy, tp.from_dlpack])
def test_arrays_are_shared(make: Any) -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4).T
    tensor = make(array)
    assert tensor.data_ptr() == array.ctypes.data
    assert tensor.stride() == (1, 4)
    tensor[0, 1] = 50
    assert array[0, 1] == 50


def test_the_memory_outlives_the_array() -> None:
    tensor = tp.from_dlpack(np.full(1000, 3.0))
    array = np.from_dlpack(tp.full((1000,), 4.0))
    assert tensor.tolist() == [3.0] * 1000
    assert array.tolist() == [4.0] * 1000


def read_only() -> np.ndarray[Any, Any]:
    array = np.arange(4.0)
    array.flags.writeable = False
    return array


def test_read_only_memory_is_never_written() -> None:
    array = read_only()
    with pytest.raises(ValueError, match="may not be written"):
        tp.from_numpy(array)
    for tensor in (tp.asarray(array), tp.from_dlpack(array), tp.tensor(array)):
        tensor.fill_(9)
        assert array.tolist() == [0, 1, 2, 3]
    with pytest.raises(InvalidArgumentError, match="copy=False"):
        tp.asarray(array, copy=False)
    with pytest.raises(BufferError, match="read-only memory"):
        tp.from_dlpack(array, copy=False)


def test_our_memory_is_writable_elsewhere() -> None:
    array = np.from_dlpack(tp.zeros(3))
    assert array.flags.writeable
    assert np.asarray(tp.zeros(3)).flags.writeable


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4, 5)])
def test_arrays_without_elements(shape: tuple[int, ...]) -> None:
    tensor = tp.from_dlpack(np.zeros(shape, np.int16))
    assert (tensor.shape, tensor.dtype, tensor.data_ptr()) == (shape, tp.int16, 0)
    assert np.from_dlpack(tp.zeros(shape, dtype=tp.int16)).shape == shape
    assert tp.from_dlpack(np.zeros((4, 6))[1:1, ::2]).shape == (0, 3)


def test_what_no_tensor_describes() -> None:
    backwards = np.arange(4)[::-1]
    assert tp.from_dlpack(backwards).tolist() == [3, 2, 1, 0]
    with pytest.raises(ExchangeError, match="copy=False"):
        tp.from_dlpack(backwards, copy=False)
    with pytest.raises(DTypeError, match="32 bits"):
        tp.from_dlpack(np.zeros(3, np.uint32))
    with pytest.raises(DTypeError, match="__dlpack__"):
        tp.from_dlpack([1, 2])


def test_copies_where_they_are_asked_for(device: str) -> None:
    array = np.arange(3.0)
    copied = tp.from_dlpack(array, copy=True, device=device)
    array[0] = 9
    assert copied.device.type == device
    assert copied.tolist() == [0, 1, 2]
    if device != "cpu":
        with pytest.raises(ExchangeError, match="copy=False"):
            tp.from_dlpack(array, device=device, copy=False)


class OfTheHost:
    """An array of another library that NumPy can read, too."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        return self.array


def test_other_libraries_of_the_host() -> None:
    array = np.arange(4, dtype=np.int16)
    assert tp.asarray(OfTheHost(array)).data_ptr() == array.ctypes.data
    assert tp.tensor(OfTheHost(array)).data_ptr() != array.ctypes.data
    assert tp.asarray(OfTheHost(array), dtype=tp.int64).dtype is tp.int64
    wide = OfTheHost(np.arange(4, dtype=np.uint32))  # a dtype that no tensor has, but NumPy casts
    assert tp.asarray(wide, dtype=tp.int64).tolist() == [0, 1, 2, 3]
    with pytest.raises(DTypeError, match="32 bits"):
        tp.from_dlpack(wide)
