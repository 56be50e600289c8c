"""Tensors of values that a rule gives.

`device` is the host by default; `dtype` is the default dtype where it does not follow from the values.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from . import _dispatch, _dtype, _operands, _pinned, _plugins, _shape
from ._device import DeviceLike
from ._dtype import DType
from ._ops.choice import where
from .errors import DTypeError, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._backend import Scalar
    from ._tensor import Tensor


def empty(
    *size: int | Sequence[int], dtype: DType | None = None, device: DeviceLike | None = None, pin_memory: bool = False
) -> Tensor:
    """Elements without defined values.

    Parameters
    ----------
    size
        The sizes one by one, ``empty(2, 3)``, or as one sequence, ``empty((2, 3))``.
    pin_memory : bool
        Whether the elements lie in pinned memory of the host (see `Tensor.pin_memory`).

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
        dtype = _dtype.DEFAULTS[_dtype.FLOAT]
    elif not isinstance(dtype, DType):
        _dtype.check("empty", dtype)
    shape = size if len(size) == 1 and type(size[0]) is int else _shape.integers("empty", size)
    if pin_memory:
        return _pinned.empty(shape, dtype, place)  # type: ignore[arg-type]
    return backend.empty(shape, dtype, place)  # type: ignore[arg-type]


def zeros(
    *size: int | Sequence[int], dtype: DType | None = None, device: DeviceLike | None = None, pin_memory: bool = False
) -> Tensor:
    """Elements of 0; raises as `empty` does."""
    kind = _dtype.DEFAULTS[_dtype.FLOAT] if dtype is None else _dtype.check("zeros", dtype)
    return full(_shape.integers("zeros", size), 0, dtype=kind, device=device, pin_memory=pin_memory)


def ones(
    *size: int | Sequence[int], dtype: DType | None = None, device: DeviceLike | None = None, pin_memory: bool = False
) -> Tensor:
    """Elements of 1; raises as `empty` does."""
    kind = _dtype.DEFAULTS[_dtype.FLOAT] if dtype is None else _dtype.check("ones", dtype)
    return full(_shape.integers("ones", size), 1, dtype=kind, device=device, pin_memory=pin_memory)


def full(
    size: int | Sequence[int],
    fill_value: Scalar,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """Elements of one value; the dtype follows from it by default. Raises as `empty` does."""
    backend, place = _plugins.place(device)
    value = _number("full", fill_value)
    default = _operands.scalar_dtype("full", value)
    dtype = default if dtype is None else _dtype.check("full", dtype)
    shape = _shape.integers("full", (size,))
    if pin_memory:
        _operands.full(shape, value, dtype, place)
        return _pinned.empty(shape, dtype, place).fill_(value)
    return backend.full(shape, value, dtype, place)


def empty_like(
    input: Tensor, *, dtype: DType | None = None, device: DeviceLike | None = None, pin_memory: bool = False
) -> Tensor:
    """`empty` of the shape, dtype and device of another tensor; contiguous."""
    _dispatch.check_tensor("empty_like", input)
    place = input.device if device is None else device
    return empty(input.shape, dtype=input.dtype if dtype is None else dtype, device=place, pin_memory=pin_memory)


def zeros_like(
    input: Tensor, *, dtype: DType | None = None, device: DeviceLike | None = None, pin_memory: bool = False
) -> Tensor:
    """`zeros` of the shape, dtype and device of another tensor; contiguous."""
    return full_like(input, 0, dtype=dtype, device=device, pin_memory=pin_memory)


def ones_like(
    input: Tensor, *, dtype: DType | None = None, device: DeviceLike | None = None, pin_memory: bool = False
) -> Tensor:
    """`ones` of the shape, dtype and device of another tensor; contiguous."""
    return full_like(input, 1, dtype=dtype, device=device, pin_memory=pin_memory)


def full_like(
    input: Tensor,
    fill_value: Scalar,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """`full` of the shape, dtype and device of another tensor; contiguous."""
    _dispatch.check_tensor("full_like", input)
    place = input.device if device is None else device
    dtype = input.dtype if dtype is None else dtype
    return full(input.shape, fill_value, dtype=dtype, device=place, pin_memory=pin_memory)


def new_empty(
    self: Tensor,
    *size: int | Sequence[int],
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """`empty` of the tensor's dtype, on its device."""
    place = self.device if device is None else device
    return empty(*size, dtype=self.dtype if dtype is None else dtype, device=place, pin_memory=pin_memory)


def new_zeros(
    self: Tensor,
    *size: int | Sequence[int],
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """`zeros` of the tensor's dtype, on its device."""
    place = self.device if device is None else device
    return zeros(*size, dtype=self.dtype if dtype is None else dtype, device=place, pin_memory=pin_memory)


def new_ones(
    self: Tensor,
    *size: int | Sequence[int],
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """`ones` of the tensor's dtype, on its device."""
    place = self.device if device is None else device
    return ones(*size, dtype=self.dtype if dtype is None else dtype, device=place, pin_memory=pin_memory)


def new_full(
    self: Tensor,
    size: int | Sequence[int],
    fill_value: Scalar,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """`full` of the tensor's dtype, on its device."""
    place = self.device if device is None else device
    dtype = self.dtype if dtype is None else dtype
    return full(size, fill_value, dtype=dtype, device=place, pin_memory=pin_memory)


def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """`empty` with the given strides, in elements."""
    shape, strides = _shape.integers("empty_strided", (size,)), _shape.integers("empty_strided", (stride,))
    last = sum((count - 1) * step for count, step in zip(shape, strides, strict=False))
    numel = last + 1 if all(shape) else 0
    made = empty(max(numel, 0), dtype=dtype, device=device, pin_memory=pin_memory)
    return made.as_strided(shape, strides)


def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """A matrix of n rows and m columns (n by default) with 1 on its diagonal, else 0."""
    rows = _shape.integer("eye", n)
    columns = rows if m is None else _shape.integer("eye", m)
    made = zeros(rows, columns, dtype=dtype, device=device, pin_memory=pin_memory)
    made.as_strided((min(rows, columns),), (columns + 1,)).fill_(1)
    return made


def arange(
    start: Scalar,
    end: Scalar | None = None,
    step: Scalar = 1,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """start, start + step, ... as long as it is before `end`; with one number: from 0 up to it.

    The dtype is int64 when all numbers are integers, else the default dtype.

    Raises
    ------
    InvalidArgumentError
        A step of 0, a step away from the end, or numbers that are not finite.
    DTypeError
        Complex numbers, or a dtype that is bool or complex.
    """
    first, last = (0, start) if end is None else (start, end)
    low, high, by = (_real("arange", value) for value in (first, last, step))
    if not all(math.isfinite(value) for value in (low, high, by)):
        raise InvalidArgumentError(f"arange: got {low} to {high} by {by}, expected finite numbers")
    is_float = any(isinstance(value, float) for value in (low, high, by))
    default = _dtype.DEFAULTS[_dtype.FLOAT] if is_float else _dtype.int64
    dtype = default if dtype is None else _dtype.check("arange", dtype)
    is_towards = (high - low) * by >= 0
    if dtype is _dtype.int64:
        low, high, by = int(low), int(high), int(by)
    if by == 0 or not is_towards:
        raise InvalidArgumentError(f"arange: got {low} to {high} by {by}, expected a step towards the end")
    exact = all(isinstance(value, int) for value in (low, high, by))
    numel = -((low - high) // by) if exact else math.ceil((high - low) / by)
    if dtype.category == _dtype.INT:
        # As in torch: the numbers are cut, but only for int64 before they are counted.
        low, by = int(low), int(by)
    backend, place = _plugins.resolve(device)
    return _pinned.pinned(backend.arange(low, by, int(numel), dtype, place), pin_memory)


def linspace(
    start: float,
    end: float,
    steps: int,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """`steps` numbers from `start` to `end`, both included, at equal distances; integer dtypes lose the fractions."""
    made = _spaced_dtype("linspace", dtype)
    first, last = (_dispatch.real("linspace", value) for value in (start, end))
    if made.category == _dtype.INT:
        first, last = math.trunc(first), math.trunc(last)
    return _pinned.pinned(_spaced("linspace", first, last, steps, device).to(made), pin_memory)


def logspace(
    start: float,
    end: float,
    steps: int,
    base: float = 10.0,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """`base` to the powers of `linspace`."""
    first, last = (_dispatch.real("logspace", value) for value in (start, end))
    powers = _spaced("logspace", first, last, steps, device)
    made = _dispatch.binary("pow", _real("logspace", base), powers).to(_spaced_dtype("logspace", dtype))
    return _pinned.pinned(made, pin_memory)


def _spaced(operation: str, first: float, last: float, steps: int, device: DeviceLike | None) -> Tensor:
    """Equal distances in float64, counted from the nearer end, so that both are met exactly."""
    count = _shape.integer(operation, steps)
    if count < 0:
        raise InvalidArgumentError(f"{operation}: got {count} steps, expected 0 or more")
    place = arange(0, count, dtype=_dtype.float64, device=device)
    by = (last - first) / max(count - 1, 1)
    return where(place < count // 2 + (count == 1), place * by + first, (place - (count - 1)) * by + last)


def _spaced_dtype(operation: str, dtype: DType | None) -> DType:
    if dtype is None:
        return _dtype.DEFAULTS[_dtype.FLOAT]
    if _dtype.check(operation, dtype).category not in (_dtype.INT, _dtype.FLOAT):
        raise DTypeError(f"{operation}: got dtype {dtype.name}, expected an integer or floating dtype")
    return dtype


def _number(operation: str, value: object) -> Scalar:
    if _dispatch.is_tensor(value):
        value = value.item()
    plain = _dispatch.number(value)
    if plain is None:
        raise DTypeError(f"{operation}: got {type(value).__name__}, expected a number")
    return plain


def _real(operation: str, value: object) -> int | float:
    """A number as it is, unless it is complex."""
    plain = _number(operation, value)
    if isinstance(plain, complex):
        raise DTypeError(f"{operation}: got the number {plain}, expected one that is not complex")
    return plain
