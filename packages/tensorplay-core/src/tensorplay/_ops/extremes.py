"""Largest and smallest elements, and where they are. nan counts as both; of equal elements, the first is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, overload

from .. import _dispatch, _operands, _shape
from ..errors import DTypeError
from .reductions import amax, amin
from .views import squeeze

if TYPE_CHECKING:
    from .._tensor import Tensor


class Found(NamedTuple):
    """Elements of a tensor, and their indices along a dimension."""

    values: Tensor
    indices: Tensor


class Extremes(NamedTuple):
    """The smallest and the largest elements."""

    min: Tensor
    max: Tensor


@overload
def max(
    input: Tensor, dim: Tensor | None = None, *, other: Tensor | None = None, out: Tensor | None = None
) -> Tensor: ...
@overload
def max(input: Tensor, dim: int, keepdim: bool = False, *, out: tuple[Tensor, Tensor] | None = None) -> Found: ...
def max(
    input: Tensor,
    dim: int | Tensor | None = None,
    keepdim: bool = False,
    *,
    other: Tensor | None = None,
    out: Tensor | tuple[Tensor, Tensor] | None = None,
) -> Tensor | Found:
    """The largest element; with `dim`, those along a dimension and their indices; of two tensors, as `maximum`.

    Parameters
    ----------
    dim : int or Tensor, optional
        A dimension, or the other tensor.
    out : Tensor or (Tensor, Tensor)
        With a dimension, for the values and the indices.
    """
    return _extreme("max", input, dim, keepdim, other, out)


@overload
def min(
    input: Tensor, dim: Tensor | None = None, *, other: Tensor | None = None, out: Tensor | None = None
) -> Tensor: ...
@overload
def min(input: Tensor, dim: int, keepdim: bool = False, *, out: tuple[Tensor, Tensor] | None = None) -> Found: ...
def min(
    input: Tensor,
    dim: int | Tensor | None = None,
    keepdim: bool = False,
    *,
    other: Tensor | None = None,
    out: Tensor | tuple[Tensor, Tensor] | None = None,
) -> Tensor | Found:
    """The smallest element; with `dim`, those along a dimension and their indices; of two tensors, as `minimum`.

    The arguments are those of `max`.
    """
    return _extreme("min", input, dim, keepdim, other, out)


def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Index of the largest element along a dimension; without one, its place in C order; int64."""
    return _place("argmax", input, dim, keepdim, out)


def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Index of the smallest element along a dimension; without one, its place in C order; int64."""
    return _place("argmin", input, dim, keepdim, out)


def aminmax(
    input: Tensor, *, dim: int | None = None, keepdim: bool = False, out: tuple[Tensor, Tensor] | None = None
) -> Extremes:
    """`amin` and `amax`."""
    low_out, high_out = pair_of("aminmax", out)
    dims = () if dim is None else dim
    return Extremes(amin(input, dims, keepdim, out=low_out), amax(input, dims, keepdim, out=high_out))


def found(
    operation: str, input: Tensor, dim: int, places: Tensor, keepdim: bool, out: tuple[Tensor, Tensor] | None
) -> Found:
    """The elements at places along a dimension, which is dropped where it is not kept; written to `out`."""
    values = input._backend.gather(input, dim, places)
    if not keepdim:
        values, places = squeeze(values, dim), squeeze(places, dim)
    values_out, places_out = pair_of(operation, out)
    return Found(_dispatch.into(operation, values, values_out), _dispatch.into(operation, places, places_out))


def pair_of(operation: str, out: object) -> tuple[Tensor | None, Tensor | None]:
    """What two results are written to."""
    if out is None:
        return None, None
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise DTypeError(f"{operation}: got out of {type(out).__name__}, expected two tensors")
    return _dispatch.tensor(operation, out[0]), _dispatch.tensor(operation, out[1])


def _extreme(
    name: str,
    input: Tensor,
    dim: int | Tensor | None,
    keepdim: bool,
    other: Tensor | None,
    out: Tensor | tuple[Tensor, Tensor] | None,
) -> Tensor | Found:
    if other is None and _dispatch.is_tensor(dim):
        dim, other = None, dim
    if dim is None:
        single = None if out is None else _dispatch.tensor(name, out)
        if other is not None:
            _dispatch.check_tensor(name, input, other)
            return _dispatch.binary(f"{name}imum", input, other, single)
        return (amax if name == "max" else amin)(input, (), keepdim, out=single)
    _dispatch.flag(name, "keepdim", keepdim)
    _dispatch.check_tensor(name, input)
    place = _shape.wrap_dim(name, _shape.integer(name, dim), input.ndim)
    if not input.numel() or input.dtype.is_complex:
        _operands.arg_reduce(name, input, place)  # What it refuses, it refuses in the name that was called.
    places = input._backend.arg_reduce(f"arg{name}", input, place, True)
    return found(name, input, place, places, keepdim, out)  # type: ignore[arg-type]


def _place(op: str, input: Tensor, dim: int | None, keepdim: bool, out: Tensor | None) -> Tensor:
    _dispatch.flag(op, "keepdim", keepdim)
    place = None if dim is None else _shape.integer(op, dim)
    return _dispatch.into(op, _dispatch.common(op, input).arg_reduce(op, input, place, keepdim), out)
