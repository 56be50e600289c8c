"""Folds over dimensions.

A dimension may be negative, counted from the end; `dim` is one, several, or None (or ``()``) for all. With `keepdim`
the reduced dimensions stay, with size 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import _dispatch, _dtype, _shape
from .choice import where
from .wide import wide

if TYPE_CHECKING:
    from .._dtype import DType
    from .._tensor import Tensor

Dims = int | Sequence[int] | None


def dims_of(operation: str, dim: Dims) -> _shape.Shape | None:
    """The dimensions as backends take them; raises DTypeError for what is no integer."""
    return None if dim is None else _shape.integers(operation, (dim,))


def _reduce(
    op: str, a: Tensor, dim: Dims, keepdim: bool, dtype: DType | None = None, out: Tensor | None = None
) -> Tensor:
    dims = dims_of(op, dim)
    _dispatch.flag(op, "keepdim", keepdim)
    if dtype is not None:
        _dtype.check(op, dtype)
    result = _dispatch.common(op, a, optional=(out,)).reduce(op, a, dims, keepdim, dtype, out)
    return result if out is None else out


def folded(operation: str, input: Tensor, dim: Dims) -> tuple[_shape.Shape, int]:
    """The dimensions counted from the front, and how many elements are folded to one."""
    dims = _shape.wrap_dims(operation, dims_of(operation, dim), input.ndim)
    return dims, math.prod(input.shape[place] for place in dims)


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
    """Mean; the operand or `dtype` is floating or complex. Of nothing: nan."""
    _dispatch.check_tensor("mean", input)
    if (input.dtype if dtype is None else _dtype.check("mean", dtype)).is_complex:
        dims, count = folded("mean", input, dim)
        return _dispatch.into("mean", _reduce("sum", input, dims, keepdim, dtype) / count, out)
    return _reduce("mean", input, dim, keepdim, dtype, out)


def prod(
    input: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Product; bool and integers give int64, half types are multiplied in float32. Of nothing: 1."""
    return _reduce("prod", input, dim, keepdim, dtype, out)


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


def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """How many elements are not 0; int64."""
    _dispatch.check_tensor("count_nonzero", input)
    return _reduce("sum", input.bool(), dim, False)


def nansum(
    input: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """As `sum`, where nan counts as 0."""
    _dispatch.check_tensor("nansum", input)
    numbers = where(input.isnan(), 0, input) if input.dtype.is_floating_point else input
    return _reduce("sum", numbers, dim, keepdim, dtype, out)


def nanmean(
    input: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """As `mean`, of the elements that are not nan."""
    _dispatch.check_tensor("nanmean", input)
    result = _dtype.check_floating("nanmean", input.dtype if dtype is None else _dtype.check("nanmean", dtype))
    numbers = wide(input, result)
    absent = numbers.isnan()
    total = _reduce("sum", where(absent, 0, numbers), dim, keepdim)
    count = _reduce("sum", absent.logical_not(), dim, keepdim)
    return _dispatch.into("nanmean", (total / count).to(result), out)
