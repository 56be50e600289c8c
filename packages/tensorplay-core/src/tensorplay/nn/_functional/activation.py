"""Elementwise nonlinearities, and softmax. With `inplace` the result is written into the input."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ... import _dispatch, _dtype, _functions, _shape
from ..._ops import activation, exponentials
from ..._ops.choice import clamp, where
from ..._ops.wide import wide
from ...errors import DTypeError, InvalidArgumentError

if TYPE_CHECKING:
    from ..._dtype import DType
    from ..._tensor import Tensor

_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(x, 0)``."""
    return _functions.relu(input, out=_target("relu", input, inplace))


def sigmoid(input: Tensor) -> Tensor:
    """``1 / (1 + exp(-x))``."""
    return _functions.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return _functions.tanh(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * sigmoid(x)``."""
    return activation.silu(input, out=_target("silu", input, inplace))


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``x`` above 0, else ``x * negative_slope``."""
    slope = _dispatch.real("leaky_relu", negative_slope)
    return _composed("leaky_relu", input, lambda x: where(x > 0, x, x * slope), inplace)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """``x`` above 0, else ``x * weight``, which has one element, or one for each channel (the second dimension)."""
    _dispatch.common("prelu", input, weight)
    slope = weight
    if weight.numel() != 1:
        if input.ndim < 2 or weight.shape != (input.shape[1],):
            raise InvalidArgumentError(
                f"prelu: got a weight of shape {weight.shape} for shape {input.shape}, expected one element, "
                "or one for each channel"
            )
        slope = weight.reshape(-1, *(1,) * (input.ndim - 2))
    elif weight.ndim > 1:
        raise InvalidArgumentError(f"prelu: got a weight of shape {weight.shape}, expected at most one dimension")
    else:
        slope = weight.reshape(())
    if weight.dtype is not input.dtype:
        raise DTypeError(f"prelu: got {input.dtype.name} and {weight.dtype.name}, expected one floating dtype")
    return _composed("prelu", input, lambda x: where(x > 0, x, x * slope))


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` above 0, else ``alpha * (exp(x) - 1)``."""
    factor = _dispatch.real("elu", alpha)
    return _composed("elu", input, lambda x: where(x > 0, x, x.expm1() * factor), inplace)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """`elu` with the factors that keep mean 0 and variance 1."""
    low = _SELU_ALPHA * _SELU_SCALE
    return _composed("selu", input, lambda x: where(x > 0, x * _SELU_SCALE, x.expm1() * low), inplace)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` above 0, else ``alpha * (exp(x / alpha) - 1)``."""
    factor = _dispatch.real("celu", alpha)
    if not factor:
        raise InvalidArgumentError("celu: got alpha=0, expected another number")
    return _composed("celu", input, lambda x: where(x > 0, x, (x / factor).expm1() * factor), inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * tanh(softplus(x))``."""
    return _composed("mish", input, lambda x: x * activation.softplus(x).tanh(), inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """The nearest number from `min_val` to `max_val`."""
    low, high = _dispatch.real("hardtanh", min_val), _dispatch.real("hardtanh", max_val)
    if low > high:
        raise InvalidArgumentError(f"hardtanh: got min_val={low} and max_val={high}, expected rising ones")
    return _clamped("hardtanh", input, low, high, inplace)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """The nearest number from 0 to 6."""
    return _clamped("relu6", input, 0.0, 6.0, inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``relu6(x + 3) / 6``."""
    return _composed("hardsigmoid", input, lambda x: clamp(x + 3.0, 0.0, 6.0) / 6.0, inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * relu6(x + 3) / 6``."""
    return _composed("hardswish", input, lambda x: x * clamp(x + 3.0, 0.0, 6.0) / 6.0, inplace)


def softsign(input: Tensor) -> Tensor:
    """``x / (1 + |x|)``."""
    return _composed("softsign", input, lambda x: x / (x.abs() + 1.0))


def logsigmoid(input: Tensor) -> Tensor:
    """``log(sigmoid(x))``, without its rounding to 0."""
    return _composed("logsigmoid", input, lambda x: x.clamp_max(0.0) - (-x.abs()).exp().log1p())


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of a dimension times the sigmoid of the second half."""
    _dispatch.check_tensor("glu", input)
    dim = _shape.sized_dim("glu", _shape.integer("glu", dim), input.ndim)
    half, rest = divmod(input.shape[dim], 2)
    if rest:
        raise InvalidArgumentError(f"glu: got size {input.shape[dim]} in dimension {dim}, expected an even one")
    return _composed("glu", input, lambda x: x.narrow(dim, 0, half) * x.narrow(dim, half, half).sigmoid())


def softmax(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """``exp(x)``, scaled so that it adds up to 1 over `dim`.

    Parameters
    ----------
    dtype : DType, optional
        What the input is cast to before.
    """
    return exponentials.softmax(input, dim, dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """Logarithm of `softmax`, without its rounding to 0."""
    return exponentials.log_softmax(input, dim, dtype)


def softmin(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """`softmax` of ``-x``."""
    _dispatch.check_tensor("softmin", input)
    return exponentials.softmax(-input, dim, dtype)


def _target(operation: str, input: Tensor, inplace: bool) -> Tensor | None:
    return input if _dispatch.flag(operation, "inplace", inplace) else None


def _composed(operation: str, input: Tensor, formula: Callable[[Tensor], Tensor], inplace: bool = False) -> Tensor:
    """A formula in the dtype that is computed in, rounded once; floating dtypes."""
    _dispatch.check_tensor(operation, input)
    _dtype.check_floating(operation, input.dtype)
    result = formula(wide(input, input.dtype)).to(input.dtype)
    return _dispatch.into(operation, result, _target(operation, input, inplace))


def _clamped(operation: str, input: Tensor, low: float, high: float, inplace: bool) -> Tensor:
    _dispatch.check_tensor(operation, input)
    _dtype.check_floating(operation, input.dtype)
    if math.isnan(low) or math.isnan(high):
        raise InvalidArgumentError(f"{operation}: got limits {low} and {high}, expected numbers")
    return clamp(input, low, high, out=_target(operation, input, inplace))
