"""Products of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import _operands
from .._tensor import Tensor
from . import arrays
from .arrays import Array
from .views import Views

if TYPE_CHECKING:
    from .._dtype import DType


class Products(Views):
    """The methods of `Backend` that multiply matrices."""

    def matmul(self, a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
        spec = _operands.matmul(a, b, out)
        return self.finish(_matmul(a._impl, b._impl, spec.compute), spec, out)

    def addmm(
        self, input: Tensor, a: Tensor, b: Tensor, beta: complex, alpha: complex, out: Tensor | None = None
    ) -> Tensor:
        spec = _operands.addmm(input, a, b, beta, alpha, out)
        product = _matmul(a._impl, b._impl, spec.compute)
        # Infinite elements times the parts that numbers lack would be nan.
        with np.errstate(all="ignore"):
            if alpha != 1:
                product = product * arrays.scalar(alpha, product.dtype)
            if beta != 0:
                addend = arrays.widened(input._impl, spec.compute)
                product = product + (addend if beta == 1 else addend * arrays.scalar(beta, product.dtype))
        return self.finish(product, spec, out)

    def linear(self, a: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        spec = _operands.linear(a, weight, bias)
        rows = a._impl
        rows = rows.reshape(-1 if rows.size else int(np.prod(rows.shape[:-1])), rows.shape[-1])
        product = _matmul(rows, weight._impl.T, spec.compute).reshape(spec.shape)
        if bias is not None:
            product = product + arrays.widened(bias._impl, spec.compute)
        return self.finish(product, spec)

    def linear_gelu(self, op: str, a: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        _operands.linear_gelu(op, a, weight, bias)
        product = self.linear(a, weight, bias)
        return self.unary(op, product, product)


def _matmul(a: Array, b: Array, dtype: DType) -> Array:
    """a @ b, added up in the working dtype."""
    with np.errstate(all="ignore"):
        return np.asarray(np.matmul(arrays.widened(a, dtype), arrays.widened(b, dtype)))
