"""Operations over dimensions.

A dimension may be negative, counted from the end; `dim` is one, several, or None (or ``()``) for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import _dispatch, _dtype, _shape
from ..errors import DTypeError

if TYPE_CHECKING:
    from .._dtype import DType
    from .._tensor import Tensor

Dims = int | Sequence[int] | None


def _reduce(
    op: str, a: Tensor, dim: Dims, keepdim: bool, dtype: DType | None = None, out: Tensor | None = None
) -> Tensor:
    dims = None if dim is None else _shape.integers(op, (dim,))
    if type(keepdim) is not bool:
        raise DTypeError(f"{op}: got keepdim={keepdim!r}, expected a bool")
    if dtype is not None:
        _dtype.check(op, dtype)
    result = _dispatch.common(op, a, optional=(out,)).reduce(op, a, dims, keepdim, dtype, out)
    return result if out is None else out


def sum(
    input: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Sum; bool and integers give int64, half types are added up in float32. Of nothing: 0."""
    return _reduce("sum", input, dim, keepdim, dtype, out)


def mean(
    input: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Mean; the operand or `dtype` is floating. Of nothing: nan."""
    return _reduce("mean", input, dim, keepdim, dtype, out)


def amax(input: Tensor, dim: Dims = (), keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Largest element; nan where there is one. Of nothing: refused."""
    return _reduce("amax", input, dim, keepdim, None, out)


def amin(input: Tensor, dim: Dims = (), keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Smallest element; nan where there is one. Of nothing: refused."""
    return _reduce("amin", input, dim, keepdim, None, out)


def any(input: Tensor, dim: Dims = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Whether an element is not 0; bool. Of nothing: False."""
    return _reduce("any", input, dim, keepdim, None, out)


def all(input: Tensor, dim: Dims = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Whether no element is 0; bool. Of nothing: True."""
    return _reduce("all", input, dim, keepdim, None, out)


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
        a = a.to(dtype=dtype)
    return a._backend.softmax(a, dim, log)
