"""Exponentials that are put in relation to their sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _dispatch, _dtype, _shape
from ..errors import DTypeError
from .choice import where
from .reductions import Dims, amax, folded, sum
from .views import squeeze
from .wide import fractions, wide

if TYPE_CHECKING:
    from .._dtype import DType
    from .._tensor import Tensor


def softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """exp(input), scaled so that it adds up to 1 over `dim`; floating dtypes.

    Parameters
    ----------
    dtype : DType, optional
        What the input is cast to before.
    """
    return _softmax(input, dim, dtype, log=False)


def log_softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """Logarithm of `softmax`, without its rounding to 0."""
    return _softmax(input, dim, dtype, log=True)


def _softmax(a: Tensor, dim: int, dtype: DType | None, log: bool) -> Tensor:
    operation = "log_softmax" if log else "softmax"
    _dispatch.check_tensor(operation, a)
    if dim is None:
        raise DTypeError(f"{operation}: got no dim, expected one")
    dim = _shape.integer(operation, dim)
    if dtype is not None:
        a = a.to(dtype=_dtype.check(operation, dtype))
    return a._backend.softmax(a, dim, log)


def logsumexp(input: Tensor, dim: Dims, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the sum of exp(input) over some dimensions, without overflow. Of nothing: -inf.

    Bool and integers are taken to the default dtype, half types to float32 until the end.
    """
    _dispatch.check_tensor("logsumexp", input)
    _dispatch.flag("logsumexp", "keepdim", keepdim)
    result = fractions(input.dtype)
    x = wide(input, result)
    dims, count = folded("logsumexp", x, dim)
    if count:
        largest = amax(x, dims, keepdim=True)
        # What is infinite is left to exp and log: inf - inf is nan.
        largest = where(largest.isfinite(), largest, 0)
        total = sum((x - largest).exp(), dims, keepdim=True).log() + largest
    else:
        total = sum(x, dims, keepdim=True).log()
    if not keepdim:
        total = squeeze(total, dims)
    return _dispatch.into("logsumexp", total.to(result), out)
