"""How elements are spread over dimensions, and how large they are together.

`dim` is one dimension, several, or None for all. Half types are computed in float32 and rounded once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .. import _dispatch, _dtype
from ..errors import DTypeError
from .reductions import Dims, amax, amin, folded, mean, sum
from .wide import wide

if TYPE_CHECKING:
    from .._dtype import DType
    from .._tensor import Tensor


def var(
    input: Tensor,
    dim: Dims | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Variance of floating or complex elements.

    Parameters
    ----------
    dim : int or sequence of int, optional
        As in torch, a bool in its place is `unbiased`.
    unbiased : bool, optional
        False is another spelling of ``correction=0``.
    correction : number
        What is subtracted from the number of elements that the squares are divided by, 1 by default; where nothing is
        left, 0 is divided by.
    """
    return _dispatch.into("var", _spread("var", input, dim, unbiased, keepdim, correction)[0], out)


def std(
    input: Tensor,
    dim: Dims | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Standard deviation: the square root of `var`, with its arguments."""
    return _dispatch.into("std", _spread("std", input, dim, unbiased, keepdim, correction)[0], out)


def var_mean(
    input: Tensor,
    dim: Dims | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """`var` and `mean`."""
    return _spread("var_mean", input, dim, unbiased, keepdim, correction)


def std_mean(
    input: Tensor,
    dim: Dims | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """`std` and `mean`."""
    return _spread("std_mean", input, dim, unbiased, keepdim, correction)


def _spread(
    operation: str,
    input: Tensor,
    dim: Dims | bool,
    unbiased: bool | None,
    keepdim: bool,
    correction: float | None,
) -> tuple[Tensor, Tensor]:
    """Variance or deviation, and mean."""
    dtype = _with_fractions(operation, input, None)
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None:
        _dispatch.flag(operation, "unbiased", unbiased)
    if unbiased is not None and correction is not None:
        raise DTypeError(f"{operation}: got unbiased={unbiased!r} and correction={correction!r}, expected one of them")
    less = float(unbiased is not False) if correction is None else _dispatch.real(operation, correction)
    _dispatch.flag(operation, "keepdim", keepdim)
    dims, count = folded(operation, input, dim)
    x = wide(input, dtype)
    centre = mean(x, dims, keepdim=True)
    distance = (x - centre).abs() if dtype.is_complex else x - centre
    variance = sum(distance * distance, dims, keepdim) / max(0.0, count - less)
    spread = variance.sqrt() if operation.startswith("std") else variance
    return spread.to(dtype.to_real()), centre.reshape(spread.shape).to(dtype)


def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: Dims = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: DType | None = None,
) -> Tensor:
    """p-norm of the elements over dimensions, seen as one vector.

    Parameters
    ----------
    p : number or "fro"
        2 is the length, as ``"fro"`` is; 1 the sum of magnitudes; infinity the largest magnitude, minus infinity the
        smallest; 0 the number of elements that are not 0.
    dtype : DType, optional
        What the elements are cast to before.
    """
    result = _with_fractions("norm", input, dtype)
    if isinstance(p, str) and p != "fro":
        raise DTypeError(f"norm: got p={p!r}, expected a number or 'fro'")
    power = 2.0 if p is None or isinstance(p, str) else _dispatch.real("norm", p)
    _dispatch.flag("norm", "keepdim", keepdim)
    dims, _ = folded("norm", input, dim)
    x = wide(input, result)
    if power == 2.0 and not x.dtype.is_complex:
        total = sum(x * x, dims, keepdim).sqrt()
    elif power == 0.0:
        total = sum(x != 0, dims, keepdim)
    elif math.isinf(power):
        total = (amax if power > 0 else amin)(x.abs(), dims, keepdim)
    elif power == 1.0:
        total = sum(x.abs(), dims, keepdim)
    else:
        total = sum(x.abs() ** power, dims, keepdim) ** (1.0 / power)
    return _dispatch.into("norm", total.to(result.to_real()), out)


def _with_fractions(operation: str, input: Tensor, dtype: DType | None) -> DType:
    """The dtype that is asked for, or that of the tensor, once it holds fractions."""
    _dispatch.check_tensor(operation, input)
    dtype = input.dtype if dtype is None else _dtype.check(operation, dtype)
    if dtype.category < _dtype.FLOAT:
        raise DTypeError(f"{operation}: got dtype {dtype.name}, expected a floating or complex dtype")
    return dtype
