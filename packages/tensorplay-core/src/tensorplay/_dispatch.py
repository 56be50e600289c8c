"""From what a user passes to one call of one backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from . import _operands, _plugins
from ._handle import Handle
from .errors import DTypeError, InvalidArgumentError

if TYPE_CHECKING:
    from ._backend import Backend, Scalar
    from ._device import Device
    from ._dtype import DType
    from ._tensor import Tensor

#: Types that every backend takes as a number. Subclasses and NumPy's scalars go through `number`.
SCALARS = frozenset((bool, int, float, complex))

# By the kind of a NumPy dtype; ml_dtypes' types are of kind V.
_PLAIN: dict[str, type[bool] | type[int] | type[float] | type[complex]] = {
    "b": bool, "i": int, "u": int, "f": float, "V": float, "c": complex,
}  # fmt: skip


def number(value: object) -> Scalar | None:
    """The Python number of a number, a NumPy scalar or an array without dimensions; else None.

    Raises
    ------
    DTypeError
        An array with dimensions: which device and dtype it should have is for the caller to say.
    """
    if type(value) in SCALARS:
        return value  # type: ignore[return-value]
    if isinstance(value, np.ndarray) and value.ndim:
        raise DTypeError(
            f"got a NumPy array of shape {value.shape} as an operand, expected a tensor: "
            "use tensorplay.from_numpy(array) or tensorplay.tensor(array, device=...)"
        )
    if isinstance(value, (np.ndarray, np.generic)):
        plain = _PLAIN.get(value.dtype.kind)
        return None if plain is None else plain(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    return complex(value) if isinstance(value, complex) else None


def is_tensor(value: object) -> TypeGuard[Tensor]:
    """Whether a value is a tensor: `Tensor`, which imports this module, is the only class of handles."""
    return isinstance(value, Handle)


def tensor_or_number(operation: str, value: object) -> Tensor | Scalar:
    """An operand as backends take it.

    Raises
    ------
    DTypeError
        It is neither.
    """
    if is_tensor(value):
        return value
    plain = number(value)
    if plain is None:
        raise DTypeError(f"{operation}: got {type(value).__name__}, expected a tensor or a number")
    return plain


def real(operation: str, value: object) -> float:
    """A number that is no element: a limit, a probability.

    Raises
    ------
    DTypeError
        It is no real number.
    InvalidArgumentError
        It is an integer that no float holds.
    """
    plain = number(value)
    if plain is None or isinstance(plain, complex):
        raise DTypeError(f"{operation}: got {type(value).__name__}, expected a real number")
    try:
        return float(plain)
    except OverflowError:
        raise InvalidArgumentError(f"{operation}: got the integer {plain}, expected one that a float holds") from None


def flag(operation: str, name: str, value: object) -> bool:
    """An argument that is true or false.

    Raises
    ------
    DTypeError
        It is no bool: a number, or another argument in the wrong place.
    """
    if type(value) is not bool:
        raise DTypeError(f"{operation}: got {name}={value!r}, expected a bool")
    return value


def check_tensor(operation: str, *values: object) -> None:
    """Refuses what is no tensor.

    Raises
    ------
    DTypeError
        One of the values is none.
    """
    for value in values:
        if not isinstance(value, Handle):
            raise DTypeError(f"{operation}: got {type(value).__name__}, expected a tensor")


def tensor(operation: str, value: object) -> Tensor:
    """The value itself when it is a tensor; raises as `check_tensor` does."""
    check_tensor(operation, value)
    return value  # type: ignore[return-value]


def common(operation: str, *operands: Tensor, optional: tuple[Tensor | None, ...] = ()) -> Backend:
    """The one backend of the tensors; one that is optional may be None.

    Raises
    ------
    DTypeError
        An operand is no tensor.
    InvalidArgumentError
        They are on devices of different types.
    """
    for operand in optional:
        if operand is not None:
            operands = (*operands, operand)
    backend: Backend | None = None
    for operand in operands:
        if not isinstance(operand, Handle):
            check_tensor(operation, operand)
        if backend is None:
            backend = operand._backend
        elif operand._backend is not backend:
            check_tensor(operation, *operands)
            _operands.device_of(operation, *operands)
    assert backend is not None, "there is always an operand"
    return backend


def binary(operation: str, a: object, b: object, out: Tensor | None = None) -> Tensor:
    """Any two operands, at least one of them a tensor.

    As in torch, a host tensor without dimensions goes along with tensors of any device.
    """
    left, right = tensor_or_number(operation, a), tensor_or_number(operation, b)
    tensors = [operand for operand in (left, right) if is_tensor(operand)]
    if not tensors:
        raise DTypeError(f"{operation}: got two numbers, expected at least one tensor")
    backend = tensors[0]._backend
    if len(tensors) == 2 and tensors[1]._backend is not backend:
        left, right = _join(tensors[0], tensors[1])
        tensors = [left, right]
    if out is not None:
        tensors.append(out)
    result = common(operation, *tensors).binary(operation, left, right, out)
    return result if out is None else out


def _join(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Takes a 0-d host tensor to the other operand's device. Its value is filled in, so nothing waits."""
    if a.ndim == 0 and a.device.type == "cpu":
        return b._backend.full((), a.item(), a.dtype, b.device), b
    if b.ndim == 0 and b.device.type == "cpu":
        return a, a._backend.full((), b.item(), b.dtype, a.device)
    return a, b


def move(tensor: Tensor, backend: Backend, device: Device, dtype: DType, non_blocking: bool = False) -> Tensor:
    """A copy on any device of any backend. Casts run on the accelerator, where there is one."""
    source = tensor._backend
    if source is backend:
        return backend.to(tensor, dtype, device)
    _operands.check_device("to", device)
    if source.type == "cpu":
        moved = backend.from_host(source.to_host(tensor), device, non_blocking)
        return moved if moved.dtype is dtype else backend.to(moved, dtype, device)
    if tensor.dtype is not dtype:
        tensor = source.to(tensor, dtype, tensor.device)
    # The array is fresh, so that the host backend may share it.
    return backend.from_host(source.to_host(tensor, non_blocking and backend.type == "cpu"), device)


def copy_(target: Tensor, source: Tensor, non_blocking: bool = False) -> None:
    """target := source, cast and broadcast, between any two backends."""
    backend, other = target._backend, source._backend
    if other is backend:
        backend.copy_(target, source)
    elif other.type == "cpu":
        backend.copy_from_host_(target, other.to_host(source), non_blocking)
    elif backend.type == "cpu" and target.shape == source.shape and target.is_contiguous():
        if source.dtype is not target.dtype:
            source = other.to(source, target.dtype, source.device)
        other.copy_to_host_(backend.to_host(target), source, non_blocking)
    else:
        host = _plugins.get("cpu")
        fetched = host.from_host(other.to_host(source), _plugins.HOST)
        if backend is host:
            host.copy_(target, fetched)
        else:
            backend.copy_from_host_(target, host.to_host(fetched))


def into(operation: str, result: Tensor, out: Tensor | None) -> Tensor:
    """The result of what core composed; or `out`, once it was written there."""
    if out is None:
        return result
    common(operation, result, out)
    _operands.into(operation, _operands.Spec(result.shape, result.dtype, result.device, result.dtype), out)
    copy_(out, result)
    return out
