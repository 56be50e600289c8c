"""Products of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _shape
from ..errors import InvalidArgumentError
from ._spec import Spec, device_of, floating, into

if TYPE_CHECKING:
    from .._tensor import Tensor


def matmul(a: Tensor, b: Tensor, out: Tensor | None = None) -> Spec:
    """Vectors, matrices, and batches of them."""
    device = device_of("matmul", a, b)
    dtype = floating("matmul", a, b)
    if a.ndim == 0 or b.ndim == 0:
        raise InvalidArgumentError(
            f"matmul: got shapes {a.shape} and {b.shape}, expected at least one dimension in each"
        )
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner:
        raise InvalidArgumentError(
            f"matmul: got shapes {a.shape} and {b.shape}, expected equal inner sizes, not {a.shape[-1]} and {inner}"
        )
    shape = (
        _shape.broadcast("matmul", a.shape[:-2], b.shape[:-2]) + a.shape[-2:-1] + (b.shape[-1:] if b.ndim > 1 else ())
    )
    return into("matmul", Spec(_shape.check_sizes("matmul", shape, dtype.itemsize), dtype, device, dtype), out)


def linear(a: Tensor, weight: Tensor, bias: Tensor | None) -> Spec:
    """a @ weight.T + bias."""
    device = device_of("linear", a, weight, bias)
    dtype = floating("linear", a, weight, bias)
    if weight.ndim != 2:
        raise InvalidArgumentError(f"linear: got a weight of shape {weight.shape}, expected two dimensions")
    rows, inner = weight.shape
    if a.ndim == 0 or a.shape[-1] != inner:
        raise InvalidArgumentError(f"linear: got an input of shape {a.shape}, expected {inner} in its last dimension")
    if bias is not None and bias.shape != (rows,):
        raise InvalidArgumentError(f"linear: got a bias of shape {bias.shape}, expected {(rows,)}")
    return Spec(_shape.check_sizes("linear", (*a.shape[:-1], rows), dtype.itemsize), dtype, device, dtype)
