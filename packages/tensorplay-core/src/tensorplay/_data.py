"""Tensors of data that exist: numbers, sequences, arrays, other tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _dispatch, _dlpack, _dtype, _operands, _pinned, _plugins
from ._device import DeviceLike
from ._dtype import DType
from ._handle import Handle
from .errors import DTypeError, InvalidArgumentError

if TYPE_CHECKING:
    from ._tensor import Tensor

# What needs no protocol. NumPy's arrays have DLPack too, but more dtypes without it.
_OURS = (Handle, np.ndarray, np.generic, list, tuple, bool, int, float, complex)

_KINDS = {"b": _dtype.BOOL, "i": _dtype.INT, "u": _dtype.INT, "f": _dtype.FLOAT, "c": _dtype.COMPLEX}


def tensor(
    data: Any, *, dtype: DType | None = None, device: DeviceLike | None = None, pin_memory: bool = False
) -> Tensor:
    """A new tensor with a copy of the data: numbers, nested sequences, an array or a tensor.

    Parameters
    ----------
    dtype : DType, optional
        By default that of an array or tensor; for Python's numbers bool, int64, the default dtype or its complex
        counterpart.
    device : Device or str or int, optional
        By default that of a tensor, else the host.
    pin_memory : bool
        Whether the copy lies in pinned memory of the host (see `Tensor.pin_memory`).

    Raises
    ------
    DTypeError
        Data of another kind, or an array of a dtype that no tensor has when `dtype` is not given.
    InvalidArgumentError
        Sequences of unequal lengths, or a device that does not exist.
    """
    if not isinstance(data, _OURS) and (found := _dlpack.borrowed(data)) is not None:
        data = found[0]
    if _dispatch.is_tensor(data):
        made = data.to(data.device if device is None else device, data.dtype if dtype is None else dtype, copy=True)
        return _pinned.pinned(made, pin_memory)
    backend, place = _plugins.resolve(device)
    # The host backend shares what it gets, so the copy is made here.
    array = np.array(_as_array("tensor", data, dtype), order="C")
    return _pinned.pinned(backend.from_host(array, place), pin_memory)


def asarray(
    data: Any, *, dtype: DType | None = None, device: DeviceLike | None = None, copy: bool | None = None
) -> Tensor:
    """As `tensor`, without a copy where there need be none: a tensor as it is, another library's memory shared.

    Memory is found by ``__cuda_array_interface__``, by DLPack, or as NumPy finds it, in this order.

    Parameters
    ----------
    copy : bool, optional
        True: always copy. False: raise where a copy is needed. None: copy where it is needed.

    Raises
    ------
    InvalidArgumentError
        ``copy=False``, and the data cannot be shared; otherwise as `tensor`.
    """
    if copy is not None and type(copy) is not bool:
        raise DTypeError(f"asarray: got copy={copy!r}, expected a bool or None")
    if copy:
        return tensor(data, dtype=dtype, device=device)
    flags = 0
    if not isinstance(data, _OURS) and (found := _dlpack.borrowed(data)) is not None:
        data, flags = found
    if _dispatch.is_tensor(data):
        place = data.device if device is None else device
        result = data.to(place, data.dtype if dtype is None else dtype, copy=flags == _dlpack.READ_ONLY)
        shared = result is data and not flags & _dlpack.COPIED
    else:
        backend, place = _plugins.resolve(device)
        array = _as_array("asarray", data, dtype)
        result = backend.from_host(array, place)
        shared = backend.type == "cpu" and isinstance(data, np.ndarray) and result.data_ptr() == data.ctypes.data
    if copy is False and not shared:
        raise InvalidArgumentError("asarray: got copy=False for data that a tensor cannot share, expected copy=None")
    return result


as_tensor = asarray


def new_tensor(
    self: Tensor, data: Any, *, dtype: DType | None = None, device: DeviceLike | None = None, pin_memory: bool = False
) -> Tensor:
    """A copy of the data with the tensor's dtype, on its device."""
    place = self.device if device is None else device
    return tensor(data, dtype=self.dtype if dtype is None else dtype, device=place, pin_memory=pin_memory)


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
        if array.dtype.kind not in _KINDS:
            raise DTypeError(f"{operation}: got {type(data).__name__} of {array.dtype}, expected numbers")
        if dtype is None:
            # NumPy makes float64 of an empty list, and uint64 of integers that int64 does not hold.
            _check_range(operation, array)
            dtype = _dtype.DEFAULTS[_KINDS[array.dtype.kind]]
        elif array.dtype.kind == "c" and not dtype.is_complex:
            raise DTypeError(f"{operation}: got complex numbers for dtype {dtype.name}, expected a complex one")
    if dtype is None:
        _dtype.from_numpy(operation, array.dtype)
        return array
    return array if array.dtype == dtype.numpy else _cast(array, dtype)


def _cast(array: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """The elements in a dtype, by the rules of a tensor's casts."""
    if array.dtype not in _dtype.NUMPY:
        # What no tensor has: other byte orders, wider and unsigned numbers.
        with np.errstate(all="ignore"):
            array = array.astype(_dtype.DTYPES[_WIDEST.get(array.dtype.kind, "float64")].numpy)
    host = _plugins.get("cpu")
    return host.to_host(host.to(host.from_host(array, _plugins.HOST), dtype, _plugins.HOST))


_WIDEST = {"b": "bool", "i": "int64", "u": "int64", "c": "complex128"}


def _check_range(operation: str, array: np.ndarray[Any, Any]) -> None:
    if array.dtype == np.uint64:
        _operands.scalar_dtype(operation, int(array.max()))


def _plain(data: Any) -> Any:
    """Nested sequences with every tensor in them as Python numbers."""
    if _dispatch.is_tensor(data):
        return data.tolist()
    return [_plain(part) for part in data] if isinstance(data, (list, tuple)) else data


def is_tensor(value: object) -> bool:
    """Whether it is a tensor."""
    return _dispatch.is_tensor(value)
