"""Operations that work element by element.

All of them broadcast, and promote dtypes by torch's rules: Python numbers are weaker than tensors without
dimensions, and those weaker than other tensors. Integers become float32 where a function gives fractions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _dispatch, _dtype
from ..errors import DTypeError

if TYPE_CHECKING:
    from .._backend import Scalar
    from .._tensor import Tensor


def _unary(op: str, a: Tensor, out: Tensor | None) -> Tensor:
    result = _dispatch.common(op, a, optional=(out,)).unary(op, a, out)
    return result if out is None else out


def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-input; bool is refused."""
    return _unary("neg", input, out)


def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Absolute value."""
    return _unary("abs", input, out)


def sqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Square root; nan for negative elements."""
    return _unary("sqrt", input, out)


def rsqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 / sqrt(input)."""
    return _unary("rsqrt", input, out)


def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """e to the power of each element."""
    return _unary("exp", input, out)


def log(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Natural logarithm."""
    return _unary("log", input, out)


def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hyperbolic tangent."""
    return _unary("tanh", input, out)


def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Error function."""
    return _unary("erf", input, out)


def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 / (1 + exp(-input))."""
    return _unary("sigmoid", input, out)


def relu(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The larger of 0 and the element; nan stays nan, bool is refused."""
    return _unary("relu", input, out)


def gelu(input: Tensor, approximate: str = "none", *, out: Tensor | None = None) -> Tensor:
    """The element times the normal distribution's share below it.

    Parameters
    ----------
    approximate : str
        ``"none"``: by the error function; ``"tanh"``: by the usual formula with tanh.
    """
    if not isinstance(approximate, str) or approximate not in ("none", "tanh"):
        raise DTypeError(f"gelu: got approximate={approximate!r}, expected 'none' or 'tanh'")
    return _unary("gelu" if approximate == "none" else "gelu_tanh", input, out)


def reciprocal(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 / input."""
    return _unary("reciprocal", input, out)


def sin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sine of radians."""
    return _unary("sin", input, out)


def cos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Cosine of radians."""
    return _unary("cos", input, out)


def logical_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the element is 0; bool."""
    return _unary("logical_not", input, out)


def add(input: Tensor | Scalar, other: Tensor | Scalar, *, out: Tensor | None = None) -> Tensor:
    """input + other; of bools: or."""
    return _dispatch.binary("add", input, other, out)


def sub(input: Tensor | Scalar, other: Tensor | Scalar, *, out: Tensor | None = None) -> Tensor:
    """input - other; bool is refused."""
    return _dispatch.binary("sub", input, other, out)


def mul(input: Tensor | Scalar, other: Tensor | Scalar, *, out: Tensor | None = None) -> Tensor:
    """input * other; of bools: and."""
    return _dispatch.binary("mul", input, other, out)


def div(input: Tensor | Scalar, other: Tensor | Scalar, *, out: Tensor | None = None) -> Tensor:
    """input / other, with fractions: integers give float32."""
    return _dispatch.binary("div", input, other, out)


def pow(input: Tensor | Scalar, exponent: Tensor | Scalar, *, out: Tensor | None = None) -> Tensor:
    """input to the power of exponent; bool is refused."""
    return _dispatch.binary("pow", input, exponent, out)


def maximum(input: Tensor | Scalar, other: Tensor | Scalar, *, out: Tensor | None = None) -> Tensor:
    """The larger of both; nan where either is nan. Unlike torch's, it takes a number too."""
    return _dispatch.binary("maximum", input, other, out)


def minimum(input: Tensor | Scalar, other: Tensor | Scalar, *, out: Tensor | None = None) -> Tensor:
    """The smaller of both; nan where either is nan. Unlike torch's, it takes a number too."""
    return _dispatch.binary("minimum", input, other, out)


def eq(input: Tensor | Scalar, other: Tensor | Scalar, *, out: Tensor | None = None) -> Tensor:
    """input == other; bool."""
    return _dispatch.binary("eq", input, other, out)


def ne(input: Tensor | Scalar, other: Tensor | Scalar, *, out: Tensor | None = None) -> Tensor:
    """input != other; bool."""
    return _dispatch.binary("ne", input, other, out)


def lt(input: Tensor | Scalar, other: Tensor | Scalar, *, out: Tensor | None = None) -> Tensor:
    """input < other; bool."""
    return _dispatch.binary("lt", input, other, out)


def le(input: Tensor | Scalar, other: Tensor | Scalar, *, out: Tensor | None = None) -> Tensor:
    """input <= other; bool."""
    return _dispatch.binary("le", input, other, out)


def gt(input: Tensor | Scalar, other: Tensor | Scalar, *, out: Tensor | None = None) -> Tensor:
    """input > other; bool."""
    return _dispatch.binary("gt", input, other, out)


def ge(input: Tensor | Scalar, other: Tensor | Scalar, *, out: Tensor | None = None) -> Tensor:
    """input >= other; bool."""
    return _dispatch.binary("ge", input, other, out)


def logical_and(input: Tensor | Scalar, other: Tensor | Scalar, *, out: Tensor | None = None) -> Tensor:
    """Whether both are not 0; bool."""
    return _dispatch.binary("logical_and", input, other, out)


def logical_or(input: Tensor | Scalar, other: Tensor | Scalar, *, out: Tensor | None = None) -> Tensor:
    """Whether one of them is not 0; bool."""
    return _dispatch.binary("logical_or", input, other, out)


def clamp(input: Tensor, min: Tensor | Scalar | None = None, max: Tensor | Scalar | None = None) -> Tensor:
    """Elements below `min` become `min`, elements above `max` become `max`; one of them may be None."""
    if min is None and max is None:
        raise DTypeError("clamp: got neither min nor max, expected at least one")
    result = input if min is None else maximum(input, min)
    return result if max is None else minimum(result, max)


def where(condition: Tensor, input: Tensor | Scalar, other: Tensor | Scalar, *, out: Tensor | None = None) -> Tensor:
    """`input` where the condition is true, else `other`; the condition is bool.

    Numbers take part in the promotion of dtypes as numbers do elsewhere.
    """
    from .._tensor import Tensor

    _dispatch.check_tensor("where", condition)
    values = [_dispatch.tensor_or_number("where", value) for value in (input, other)]
    tensors = [value for value in values if isinstance(value, Tensor)]
    backend = _dispatch.common("where", condition, *tensors, optional=(out,))
    a, b = (_filled(condition, value, tensors) for value in values)
    result = backend.where(condition, a, b, out)
    return result if out is None else out


def _filled(condition: Tensor, value: Tensor | Scalar, tensors: list[Tensor]) -> Tensor:
    """A number as a tensor without dimensions, of the dtype that it has beside the tensors."""
    from .._operands import scalar_dtype
    from .._tensor import Tensor

    if isinstance(value, Tensor):
        return value
    dtype = scalar_dtype("where", value)
    if tensors:
        dtype = _dtype.promote_weak(tensors[0].dtype, dtype)
    return condition._backend.full((), value, dtype, condition.device)


def masked_fill(input: Tensor, mask: Tensor, value: Scalar | Tensor) -> Tensor:
    """A copy with `value` where the bool mask is true. The dtype stays that of `input`, as in torch."""
    _dispatch.check_tensor("masked_fill", input, mask)
    plain = value if (given := _dispatch.number(value)) is None else given
    _dispatch.check_tensor("masked_fill", *([] if given is not None else [plain]))
    result = where(mask, plain, input)
    if result.dtype is not input.dtype:
        raise DTypeError(f"masked_fill: got a value of dtype {result.dtype.name} for a tensor of {input.dtype.name}")
    return result
