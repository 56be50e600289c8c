"""Totals of the elements so far along a dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _dispatch, _dtype, _shape

if TYPE_CHECKING:
    from .._dtype import DType
    from .._tensor import Tensor


def cumsum(input: Tensor, dim: int, *, dtype: DType | None = None, out: Tensor | None = None) -> Tensor:
    """Sums; bool and integers give int64, half types are added up in float32.

    Parameters
    ----------
    dtype : DType, optional
        Of the result, and what the elements are cast to before.
    """
    return _scan("cumsum", input, dim, dtype, out)


def cumprod(input: Tensor, dim: int, *, dtype: DType | None = None, out: Tensor | None = None) -> Tensor:
    """Products, with the dtypes of `cumsum`."""
    return _scan("cumprod", input, dim, dtype, out)


def cumsum_(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """As `cumsum`, in place."""
    return _scan("cumsum", input, dim, dtype, input)


def cumprod_(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """As `cumprod`, in place."""
    return _scan("cumprod", input, dim, dtype, input)


def _scan(op: str, input: Tensor, dim: int, dtype: DType | None, out: Tensor | None) -> Tensor:
    dim = _shape.integer(op, dim)
    if dtype is not None:
        _dtype.check(op, dtype)
    result = _dispatch.common(op, input, optional=(out,)).scan(op, input, dim, dtype, out)
    return result if out is None else out
