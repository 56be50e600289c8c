"""Products of vectors and matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _dispatch
from ..errors import InvalidArgumentError
from . import views

if TYPE_CHECKING:
    from .._tensor import Tensor


def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Matrix product, torch's rules: (n, k) @ (k, m), vectors on either side, and batches that broadcast.

    Both operands have one dtype, not bool; half types are added up in float32, integers wrap.
    """
    result = _dispatch.common("matmul", input, other, optional=(out,)).matmul(input, other, out)
    return result if out is None else out


def check_ndims(operation: str, *operands: tuple[Tensor, int]) -> None:
    """Refuses what is no tensor, or has another number of dimensions than it is given with.

    Raises
    ------
    DTypeError
        No tensor.
    InvalidArgumentError
        Another number of dimensions.
    """
    for operand, ndim in operands:
        if _dispatch.tensor(operation, operand).ndim != ndim:
            words = ", ".join(str(ndim) for _, ndim in operands)
            shapes = ", ".join(str(given.shape) for given, _ in operands if _dispatch.is_tensor(given))
            raise InvalidArgumentError(f"{operation}: got shapes {shapes}, expected {words} dimensions")


def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product of two matrices."""
    check_ndims("mm", (input, 2), (mat2, 2))
    return matmul(input, mat2, out=out)


def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Products of two batches of matrices, (b, n, k) and (b, k, m)."""
    check_batches("bmm", input, mat2)
    return matmul(input, mat2, out=out)


def check_batches(operation: str, batch1: Tensor, batch2: Tensor) -> None:
    """Refuses what are not two batches of as many matrices."""
    check_ndims(operation, (batch1, 3), (batch2, 3))
    if batch1.shape[0] != batch2.shape[0]:
        raise InvalidArgumentError(
            f"{operation}: got shapes {batch1.shape} and {batch2.shape}, expected as many matrices in each"
        )


def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product of a matrix and a vector."""
    check_ndims("mv", (input, 2), (vec, 1))
    return matmul(input, vec, out=out)


def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sum of the products of two vectors' elements."""
    check_ndims("dot", (input, 1), (tensor, 1))
    return matmul(input, tensor, out=out)


def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As `dot`, with the conjugates of the first vector's elements."""
    check_ndims("vdot", (input, 1), (other, 1))
    left = input._backend.unary("conj", input) if input.dtype.is_complex else input
    return matmul(left, other, out=out)


def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Products of each element of a vector with each of another."""
    check_ndims("outer", (input, 1), (vec2, 1))
    return _dispatch.binary("mul", views.unsqueeze(input, 1), vec2, out)


def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Kronecker product: `other` times each element of `input`, in blocks."""
    _dispatch.check_tensor("kron", input, other)
    ndim = max(input.ndim, other.ndim)
    shapes = [(1,) * (ndim - operand.ndim) + operand.shape for operand in (input, other)]
    left = input.reshape([size for pair in zip(shapes[0], (1,) * ndim, strict=True) for size in pair])
    right = other.reshape([size for pair in zip((1,) * ndim, shapes[1], strict=True) for size in pair])
    result = _dispatch.binary("mul", left, right)
    return _dispatch.into("kron", result.reshape([a * b for a, b in zip(*shapes, strict=True)]), out)
