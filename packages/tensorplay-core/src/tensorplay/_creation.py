"""Functions that make tensors.

`device` is the host by default; `dtype` is float32 by default, where it does not follow from the data.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _dispatch, _dtype, _operands, _plugins, _shape
from ._device import DeviceLike
from ._dtype import DType
from ._tensor import Tensor
from .errors import DTypeError, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._backend import Scalar


def tensor(data: Any, *, dtype: DType | None = None, device: DeviceLike | None = None) -> Tensor:
    """A new tensor with a copy of the data: numbers, nested sequences, an array or a tensor.

    Parameters
    ----------
    dtype : DType, optional
        By default that of an array or tensor; for Python's numbers bool, int64 or float32.
    device : Device or str or int, optional
        By default that of a tensor, else the host.

    Raises
    ------
    DTypeError
        Data of another kind, or an array of a dtype that no tensor has when `dtype` is not given.
    InvalidArgumentError
        Sequences of unequal lengths, or a device that does not exist.
    """
    if isinstance(data, Tensor):
        return data.to(data.device if device is None else device, data.dtype if dtype is None else dtype, copy=True)
    backend, place = _plugins.resolve(device)
    # The host backend shares what it gets, so the copy is made here.
    return backend.from_host(np.array(_as_array("tensor", data, dtype), order="C"), place)


def asarray(
    data: Any, *, dtype: DType | None = None, device: DeviceLike | None = None, copy: bool | None = None
) -> Tensor:
    """As `tensor`, without a copy where there need be none: a tensor as it is, a writable array shared.

    Parameters
    ----------
    copy : bool, optional
        True: always copy. False: raise where a copy is needed. None: copy where it is needed.

    Raises
    ------
    InvalidArgumentError
        ``copy=False``, and the data cannot be shared; otherwise as `tensor`.
    """
    if copy:
        return tensor(data, dtype=dtype, device=device)
    if isinstance(data, Tensor):
        result = data.to(data.device if device is None else device, data.dtype if dtype is None else dtype)
        shared = result is data
    else:
        backend, place = _plugins.resolve(device)
        array = _as_array("asarray", data, dtype)
        result = backend.from_host(array, place)
        shared = backend.type == "cpu" and isinstance(data, np.ndarray) and result.data_ptr() == data.ctypes.data
    if copy is False and not shared:
        raise InvalidArgumentError("asarray: got copy=False for data that a tensor cannot share, expected copy=None")
    return result


as_tensor = asarray


def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """A host tensor that shares the elements of an array.

    Raises
    ------
    DTypeError
        No array, or a dtype that no tensor has.
    InvalidArgumentError
        The array may not be written, or its strides are not whole elements forwards: `tensor` copies it.
    """
    if not isinstance(array, np.ndarray):
        raise DTypeError(f"from_numpy: got {type(array).__name__}, expected a NumPy array")
    _dtype.from_numpy("from_numpy", array.dtype)
    if not array.flags.writeable:
        raise InvalidArgumentError(
            "from_numpy: got an array that may not be written, expected a writable one: "
            "use tensorplay.tensor to copy the array"
        )
    if any(step < 0 or step % array.itemsize for step in array.strides):
        raise InvalidArgumentError(
            f"from_numpy: got strides of {array.strides} bytes, expected whole elements forwards: "
            "use tensorplay.tensor to copy the array"
        )
    backend, place = _plugins.resolve(None)
    return backend.from_host(array, place)


def _as_array(operation: str, data: Any, dtype: DType | None) -> np.ndarray[Any, Any]:
    """The data as an array of a tensor's dtype."""
    if dtype is not None:
        _dtype.check(operation, dtype)
    if isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(data)
    else:
        try:
            array = np.asarray(_plain(data))
        except (ValueError, OverflowError) as error:
            raise InvalidArgumentError(f"{operation}: {error}") from None
        if array.dtype.kind not in "biuf":
            raise DTypeError(f"{operation}: got {type(data).__name__} of {array.dtype}, expected numbers")
        if dtype is None:
            category = (
                _dtype.BOOL if array.dtype.kind == "b" else _dtype.INT if array.dtype.kind in "iu" else _dtype.FLOAT
            )
            # NumPy makes float64 of an empty list, and uint64 of integers that int64 does not hold.
            _check_range(operation, array)
            dtype = _dtype.DEFAULTS[category]
    if dtype is None:
        _dtype.from_numpy(operation, array.dtype)
        return array
    with np.errstate(all="ignore"):
        return array.astype(dtype.numpy, copy=False)


def _check_range(operation: str, array: np.ndarray[Any, Any]) -> None:
    if array.dtype == np.uint64:
        _operands.scalar_dtype(operation, int(array.max()))


def _plain(data: Any) -> Any:
    """Nested sequences with every tensor in them as Python numbers."""
    if isinstance(data, Tensor):
        return data.tolist()
    return [_plain(part) for part in data] if isinstance(data, (list, tuple)) else data


def empty(*size: int | Sequence[int], dtype: DType | None = None, device: DeviceLike | None = None) -> Tensor:
    """Elements without defined values.

    Parameters
    ----------
    size
        The sizes one by one, ``empty(2, 3)``, or as one sequence, ``empty((2, 3))``.

    Raises
    ------
    InvalidArgumentError
        A negative size, more than 16 dimensions, or a device that does not exist.
    SizeOverflowError
        More bytes than 63 bits count.
    OutOfMemoryError
        More bytes than there are.
    """
    try:
        backend, place = _plugins.places[device]  # type: ignore[index]
    except (KeyError, TypeError):
        backend, place = _plugins.place(device)
    if dtype is None:
        dtype = _dtype.float32
    elif not isinstance(dtype, DType):
        _dtype.check("empty", dtype)
    shape = size if len(size) == 1 and type(size[0]) is int else _shape.integers("empty", size)
    return backend.empty(shape, dtype, place)  # type: ignore[arg-type]


def zeros(*size: int | Sequence[int], dtype: DType | None = None, device: DeviceLike | None = None) -> Tensor:
    """Elements of 0; raises as `empty` does."""
    return full(_shape.integers("zeros", size), 0, dtype=_dtype.float32 if dtype is None else dtype, device=device)


def ones(*size: int | Sequence[int], dtype: DType | None = None, device: DeviceLike | None = None) -> Tensor:
    """Elements of 1; raises as `empty` does."""
    return full(_shape.integers("ones", size), 1, dtype=_dtype.float32 if dtype is None else dtype, device=device)


def full(
    size: int | Sequence[int], fill_value: Scalar, *, dtype: DType | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Elements of one value; the dtype follows from it by default. Raises as `empty` does."""
    backend, place = _plugins.place(device)
    value = _number("full", fill_value)
    default = _operands.scalar_dtype("full", value)
    dtype = default if dtype is None else _dtype.check("full", dtype)
    return backend.full(_shape.integers("full", (size,)), value, dtype, place)


def empty_like(input: Tensor, *, dtype: DType | None = None, device: DeviceLike | None = None) -> Tensor:
    """`empty` of the shape, dtype and device of another tensor; contiguous."""
    _dispatch.check_tensor("empty_like", input)
    place = input.device if device is None else device
    return empty(input.shape, dtype=input.dtype if dtype is None else dtype, device=place)


def zeros_like(input: Tensor, *, dtype: DType | None = None, device: DeviceLike | None = None) -> Tensor:
    """`zeros` of the shape, dtype and device of another tensor; contiguous."""
    return full_like(input, 0, dtype=dtype, device=device)


def ones_like(input: Tensor, *, dtype: DType | None = None, device: DeviceLike | None = None) -> Tensor:
    """`ones` of the shape, dtype and device of another tensor; contiguous."""
    return full_like(input, 1, dtype=dtype, device=device)


def full_like(
    input: Tensor, fill_value: Scalar, *, dtype: DType | None = None, device: DeviceLike | None = None
) -> Tensor:
    """`full` of the shape, dtype and device of another tensor; contiguous."""
    _dispatch.check_tensor("full_like", input)
    place = input.device if device is None else device
    return full(input.shape, fill_value, dtype=input.dtype if dtype is None else dtype, device=place)


def arange(
    start: Scalar,
    end: Scalar | None = None,
    step: Scalar = 1,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """start, start + step, ... as long as it is before `end`; with one number: from 0 up to it.

    The dtype is int64 when all numbers are integers, else float32.

    Raises
    ------
    InvalidArgumentError
        A step of 0, a step away from the end, or numbers that are not finite.
    """
    first, last = (0, start) if end is None else (start, end)
    low, high, by = (_number("arange", value) for value in (first, last, step))
    if not all(math.isfinite(value) for value in (low, high, by)):
        raise InvalidArgumentError(f"arange: got {low} to {high} by {by}, expected finite numbers")
    if by == 0 or (high - low) * by < 0:
        raise InvalidArgumentError(f"arange: got {low} to {high} by {by}, expected a step towards the end")
    is_float = any(isinstance(value, float) for value in (low, high, by))
    numel = math.ceil((high - low) / by) if is_float else -int((low - high) // by)
    backend, place = _plugins.resolve(device)
    default = _dtype.float32 if is_float else _dtype.int64
    dtype = default if dtype is None else _dtype.check("arange", dtype)
    return backend.arange(low, by, numel, dtype, place)


def rand(*size: int | Sequence[int], dtype: DType | None = None, device: DeviceLike | None = None) -> Tensor:
    """Random numbers, 0 <= x < 1, from the device's generator."""
    return empty(_shape.integers("rand", size), dtype=dtype, device=device).uniform_()


def randn(*size: int | Sequence[int], dtype: DType | None = None, device: DeviceLike | None = None) -> Tensor:
    """Random numbers of mean 0 and standard deviation 1, from the device's generator."""
    return empty(_shape.integers("randn", size), dtype=dtype, device=device).normal_()


def _number(operation: str, value: object) -> Scalar:
    if isinstance(value, Tensor):
        value = value.item()
    plain = _dispatch.number(value)
    if plain is None:
        raise DTypeError(f"{operation}: got {type(value).__name__}, expected a number")
    return plain


def is_tensor(value: object) -> bool:
    """Whether it is a tensor."""
    return isinstance(value, Tensor)
