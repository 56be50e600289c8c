"""Functions that choose between elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from .. import _dispatch, _dtype, _limits, _operands
from ..errors import DTypeError, InvalidArgumentError
from . import promotion

if TYPE_CHECKING:
    from .._backend import Scalar
    from .._tensor import Tensor


@overload
def where(condition: Tensor) -> tuple[Tensor, ...]: ...
@overload
def where(
    condition: Tensor, input: Tensor | Scalar, other: Tensor | Scalar, *, out: Tensor | None = None
) -> Tensor: ...
def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Tensor | None = None) -> Any:
    """`input` where the condition is true, else `other`; the condition is bool.

    Numbers take part in the promotion of dtypes as numbers do elsewhere. With the condition alone: the indices of the
    elements that are true, a tensor for each dimension.

    Examples
    --------
    >>> x = tp.tensor([-1.0, 2.0, -3.0])
    >>> tp.where(x > 0, x, 0.0)
    tensor([0., 2., 0.])
    """
    _dispatch.check_tensor("where", condition)
    if input is None and other is None and out is None:
        return condition.nonzero(as_tuple=True)
    dtype = promotion.together("where", input, other)
    a, b = (_placed("where", condition, value, dtype) for value in (input, other))
    result = _dispatch.common("where", condition, a, b, optional=(out,)).where(condition, a, b, out)
    return result if out is None else out


def where_method(self: Tensor, condition: Tensor, other: Tensor | Scalar) -> Tensor:
    """The tensor's elements where the condition is true, else those of `other`."""
    return where(condition, self, other)


def _placed(operation: str, like: Tensor, value: Tensor | Scalar, dtype: _dtype.DType) -> Tensor:
    """A number as a tensor without dimensions beside another tensor; a host tensor without dimensions comes along."""
    plain = _dispatch.tensor_or_number(operation, value)
    if _dispatch.is_tensor(plain):
        if plain._backend is like._backend or plain.ndim or plain._backend.type != "cpu":
            return plain
        plain, dtype = plain.item(), plain.dtype
    return like._backend.full((), plain, dtype, like.device)  # type: ignore[arg-type]


def masked_fill(input: Tensor, mask: Tensor, value: Scalar | Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy with `value` where the bool mask is true, cast to the dtype of `input`.

    Parameters
    ----------
    value
        A number, or a tensor without dimensions.
    """
    _dispatch.check_tensor("masked_fill", input, mask)
    if mask.dtype is not _dtype.bool:
        raise DTypeError(f"masked_fill: got a mask of {mask.dtype.name}, expected bool")
    plain = _dispatch.tensor_or_number("masked_fill", value)
    if _dispatch.is_tensor(plain):
        if plain.ndim:
            raise InvalidArgumentError(f"masked_fill: got a value of shape {plain.shape}, expected no dimensions")
        given = plain.dtype
    else:
        given = _operands.scalar_dtype("masked_fill", plain)  # type: ignore[arg-type]
    if given.is_complex and input.dtype.category in (_dtype.INT, _dtype.FLOAT):
        raise DTypeError(f"masked_fill: got a complex value for a tensor of dtype {input.dtype.name}")
    filled = _placed("masked_fill", input, plain, input.dtype).to(input.dtype)
    return where(mask, filled, input, out=out)


def clamp(
    input: Tensor,
    min: Tensor | Scalar | None = None,
    max: Tensor | Scalar | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Elements below `min` become `min`, then those above `max` become `max`; one of them may be None."""
    if min is None and max is None:
        raise InvalidArgumentError("clamp: got neither min nor max, expected at least one")
    if min is None:
        return _dispatch.binary("minimum", input, max, out)
    if max is None:
        return _dispatch.binary("maximum", input, min, out)
    # Both limits have a say before either is applied.
    x = _dispatch.tensor("clamp", input).to(promotion.together("clamp", input, min, max))
    return _dispatch.binary("minimum", _dispatch.binary("maximum", x, min), max, out)


def clamp_min(input: Tensor, min: Tensor | Scalar, *, out: Tensor | None = None) -> Tensor:
    """Elements below `min` become `min`."""
    return _dispatch.binary("maximum", input, min, out)


def clamp_max(input: Tensor, max: Tensor | Scalar, *, out: Tensor | None = None) -> Tensor:
    """Elements above `max` become `max`."""
    return _dispatch.binary("minimum", input, max, out)


def nan_to_num(
    input: Tensor,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """nan and infinities become numbers: by default 0, the largest and the lowest number of the dtype."""
    _dispatch.check_tensor("nan_to_num", input)
    if not input.dtype.is_floating_point:
        return _dispatch.into("nan_to_num", input.clone(), out)
    limits = _limits.finfo(input.dtype)
    high = limits.max if posinf is None else _dispatch.real("nan_to_num", posinf)
    low = limits.min if neginf is None else _dispatch.real("nan_to_num", neginf)
    result = where(input.isnan(), _dispatch.real("nan_to_num", nan), input)
    result = where(input == float("inf"), high, result)
    return where(input == float("-inf"), low, result, out=out)
