"""New tensors, and values that are written into tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _dtype, _shape
from .._dtype import DType
from ..errors import DTypeError, InvalidArgumentError
from ._spec import Spec, check_device, check_target, scalar_dtype

if TYPE_CHECKING:
    import numpy as np

    from .._backend import Scalar
    from .._device import Device
    from .._tensor import Tensor


def empty(shape: Sequence[int], dtype: DType, device: Device) -> Spec:
    """A tensor without values."""
    return _new("empty", shape, dtype, device)


def full(shape: Sequence[int], value: Scalar, dtype: DType, device: Device) -> Spec:
    """A tensor of one value."""
    spec = _new("full", shape, dtype, device)
    _check_value("full", value, dtype)
    return spec


def arange(start: Scalar, step: Scalar, numel: int, dtype: DType, device: Device) -> Spec:
    """start + i * step."""
    for value in (start, step):
        if scalar_dtype("arange", value).is_complex:
            raise DTypeError(f"arange: got the number {value}, expected one that is not complex")
    spec = _new("arange", (numel,), dtype, device)
    if dtype.category not in (_dtype.INT, _dtype.FLOAT):
        raise DTypeError(f"arange: got dtype {dtype.name}, expected an integer or floating dtype")
    return spec


def from_host(array: np.ndarray[Any, Any], device: Device, non_blocking: bool = False) -> Spec:
    """A tensor with the elements of an array."""
    return _new("from_host", array.shape, _dtype.from_numpy("from_host", array.dtype), device)


def copy_from_host_(target: Tensor, array: np.ndarray[Any, Any], non_blocking: bool = False) -> None:
    """Values from an array."""
    _dtype.from_numpy("copy_", array.dtype)
    _check_copy(array.shape, target)


def to(tensor: Tensor, dtype: DType, device: Device) -> Spec:
    """A copy with another dtype or on another device."""
    return _new("to", tensor.shape, dtype, device)


def copy_(target: Tensor, source: Tensor) -> None:
    """Values from another tensor."""
    _check_copy(source.shape, target)


def fill_(target: Tensor, value: Scalar) -> None:
    """One value everywhere."""
    _check_value("fill_", value, target.dtype)


def _new(operation: str, shape: Sequence[int], dtype: DType, device: Device) -> Spec:
    _dtype.check(operation, dtype)
    check_device(operation, device)
    return Spec(_shape.check_sizes(operation, shape, dtype.itemsize), dtype, device, dtype)


def _check_value(operation: str, value: Scalar, dtype: DType) -> None:
    """Refuses what is no number, and an imaginary part that would be lost."""
    scalar_dtype(operation, value)
    if isinstance(value, complex) and value.imag and dtype.category in (_dtype.INT, _dtype.FLOAT):
        raise InvalidArgumentError(f"{operation}: got the number {value} for dtype {dtype.name}, expected a real one")


def _check_copy(shape: tuple[int, ...], target: Tensor) -> None:
    """Refuses a source that does not broadcast to the target, and a target that cannot be written."""
    if not _shape.broadcasts_to(shape, target.shape):
        raise InvalidArgumentError(
            f"copy_: got a source of shape {shape}, expected one that broadcasts to {target.shape}"
        )
    check_target("copy_", target)
