"""The parts of complex numbers, as views: no element is copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _dispatch, _dtype
from ..errors import DTypeError, InvalidArgumentError

if TYPE_CHECKING:
    from .._tensor import Tensor


def view_as_real(input: Tensor) -> Tensor:
    """The elements of a complex tensor as pairs of real and imaginary part: a new last dimension of size 2.

    Raises
    ------
    DTypeError
        The elements are not complex.
    """
    return _pairs("view_as_real", _dispatch.tensor("view_as_real", input))


def view_as_complex(input: Tensor) -> Tensor:
    """Pairs along the last dimension as complex numbers, without that dimension.

    Raises
    ------
    DTypeError
        The elements are neither float32 nor float64.
    InvalidArgumentError
        The last dimension has another size than 2.
    StateError
        The pairs are not adjacent, or begin at an odd element.
    """
    tensor = _dispatch.tensor("view_as_complex", input)
    if tensor.dtype not in (_dtype.float32, _dtype.float64):
        raise DTypeError(f"view_as_complex: got dtype {tensor.dtype.name}, expected float32 or float64")
    if tensor.shape[-1:] != (2,):
        raise InvalidArgumentError(f"view_as_complex: got shape {tensor.shape}, expected a last dimension of size 2")
    numbers = tensor._backend.view_dtype(tensor, tensor.dtype.to_complex())
    return numbers._backend.squeeze(numbers, -1)


def real(input: Tensor) -> Tensor:
    """The real parts; the tensor itself when it is not complex."""
    tensor = _dispatch.tensor("real", input)
    return _part("real", tensor, 0) if tensor.dtype.is_complex else tensor


def imag(input: Tensor) -> Tensor:
    """The imaginary parts.

    Raises
    ------
    DTypeError
        The elements are not complex.
    """
    return _part("imag", _dispatch.tensor("imag", input), 1)


def _pairs(operation: str, tensor: Tensor) -> Tensor:
    if not tensor.dtype.is_complex:
        raise DTypeError(f"{operation}: got dtype {tensor.dtype.name}, expected a complex one")
    single = tensor._backend.unsqueeze(tensor, -1)
    return single._backend.view_dtype(single, tensor.dtype.to_real())


def _part(operation: str, tensor: Tensor, place: int) -> Tensor:
    pairs = _pairs(operation, tensor)
    return pairs._backend.select(pairs, -1, place)
