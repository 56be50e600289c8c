"""A tensor plus a product: ``beta * input + alpha * product``, rounded once.

`input` broadcasts to the product, and is not read where `beta` is 0, so that it may hold anything then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .. import _dispatch, _dtype
from ..errors import DTypeError, InvalidArgumentError
from . import views
from .products import check_batches, check_ndims

if TYPE_CHECKING:
    from .._backend import Scalar
    from .._dtype import DType
    from .._tensor import Tensor


def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1, out: Tensor | None = None
) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2), of two matrices."""
    check_ndims("addmm", (mat1, 2), (mat2, 2))
    return _added("addmm", input, mat1, mat2, beta, alpha, out)


def addmv(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1, out: Tensor | None = None
) -> Tensor:
    """beta * input + alpha * (mat @ vec), of a matrix and a vector."""
    check_ndims("addmv", (mat, 2), (vec, 1))
    return _added("addmv", input, mat, vec, beta, alpha, out)


def addr(
    input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1, out: Tensor | None = None
) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2)."""
    check_ndims("addr", (vec1, 1), (vec2, 1))
    return _added("addr", input, views.unsqueeze(vec1, 1), views.unsqueeze(vec2, 0), beta, alpha, out)


def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1, out: Tensor | None = None
) -> Tensor:
    """beta * input + alpha * (batch1 @ batch2), of two batches of matrices."""
    check_batches("baddbmm", batch1, batch2)
    return _added("baddbmm", input, batch1, batch2, beta, alpha, out)


def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1, out: Tensor | None = None
) -> Tensor:
    """beta * input + alpha * the sum of a batch's products: one product whose inner dimension is longer."""
    check_batches("addbmm", batch1, batch2)
    count, rows, inner = batch1.shape
    if batch2.shape[1] != inner:
        raise InvalidArgumentError(
            f"addbmm: got shapes {batch1.shape} and {batch2.shape}, "
            f"expected equal inner sizes, not {inner} and {batch2.shape[1]}"
        )
    left = batch1.permute(1, 0, 2).reshape(rows, count * inner)
    return _added("addbmm", input, left, batch2.reshape(count * inner, batch2.shape[2]), beta, alpha, out)


def _added(
    operation: str, input: Tensor, a: Tensor, b: Tensor, beta: Scalar, alpha: Scalar, out: Tensor | None
) -> Tensor:
    backend = _dispatch.common(operation, input, a, b, optional=(out,))
    keep, scale = (_factor(operation, value, a.dtype) for value in (beta, alpha))
    result = backend.addmm(input, a, b, keep, scale, out)
    return result if out is None else out


def _factor(operation: str, value: Scalar, dtype: DType) -> complex:
    """A number that elements of the dtype can be multiplied with, as a float or as a complex number."""
    factor = _dispatch.number(value)
    fits = (
        factor is not None
        and (dtype.is_complex or not isinstance(factor, complex))
        and (dtype.category != _dtype.INT or not isinstance(factor, float))
        and (not isinstance(factor, int) or abs(factor) <= 2**53)  # every one of them is a float
    )
    if factor is None or not fits:
        raise DTypeError(f"{operation}: got the factor {value!r}, expected a number that {dtype.name} holds exactly")
    return complex(factor) if dtype.is_complex else float(factor.real)


def _in_place(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def method(self: Tensor, first: Tensor, second: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> Tensor:
        return function(self, first, second, beta=beta, alpha=alpha, out=self)

    method.__name__ = method.__qualname__ = f"{function.__name__}_"
    method.__doc__ = f"As `{function.__name__}`, in place."
    return method


addmm_, addmv_, addr_, baddbmm_, addbmm_ = map(_in_place, (addmm, addmv, addr, baddbmm, addbmm))
