"""Operations on CUDA tensors: each is one call of C, queued on the current stream."""

from __future__ import annotations

from typing import Any

from tensorplay import _dtype, _plugins
from tensorplay._backend import Scalar
from tensorplay._dtype import DType
from tensorplay._tables import BINARY, UNARY
from tensorplay._tensor import Tensor

from ._check import check, refused
from ._indexing import Indexing
from ._library import native
from ._reductions import Reductions
from ._views import given, or_null

_UNARY = {name: row[0] for name, row in UNARY.items()}
_BINARY = {name: row[0] for name, row in BINARY.items()}


class Operations(Reductions, Indexing):
    """The elementwise operations and the products of `Backend`, and with its bases all others."""

    def set_default_dtype(self, dtype: DType) -> None:
        if native.is_started:  # else it is told at the start
            check(native.tp_dtype_set_default(dtype.code))

    def unary(self, op: str, a: Tensor, out: Tensor | None = None) -> Tensor:
        return given(out, self.made("unary", (op, a, out), native.tp_unary, _UNARY[op], a._impl, or_null(out)))

    def binary(self, op: str, a: Tensor | Scalar, b: Tensor | Scalar, out: Tensor | None = None) -> Tensor:
        # The operation that programs call most: written out, where the others share `made`.
        into = native.NULL if out is None else out._impl
        try:
            if isinstance(a, Tensor):
                if isinstance(b, Tensor):
                    impl = native.tp_binary(_BINARY[op], a._impl, b._impl, into)
                else:
                    impl = _binary_scalar(op, a, b, 0, into)
            else:
                impl = _binary_scalar(op, b, a, 1, into)
        except (OverflowError, TypeError):
            impl = None
        if not impl:
            again: Tensor = refused(impl, "binary", (op, a, b, out))
            return again
        if out is None:
            return self.wrap(impl)
        self.release(impl)
        return out

    def where(self, condition: Tensor, a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
        made = self.made(
            "where", (condition, a, b, out), native.tp_where, condition._impl, a._impl, b._impl, or_null(out)
        )
        return given(out, made)

    def matmul(self, a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
        return given(out, self.made("matmul", (a, b, out), native.tp_matmul, a._impl, b._impl, or_null(out)))

    def addmm(
        self, input: Tensor, a: Tensor, b: Tensor, beta: complex, alpha: complex, out: Tensor | None = None
    ) -> Tensor:
        factors = beta.real, beta.imag, alpha.real, alpha.imag
        impls = input._impl, a._impl, b._impl
        return given(
            out, self.made("addmm", (input, a, b, beta, alpha, out), native.tp_addmm, *impls, *factors, or_null(out))
        )

    def allow_tf32(self, allowed: bool) -> None:
        if native.is_started:  # else it is told at the start
            native.tp_blas_allow_tf32(allowed)

    def linear(self, a: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return self.made("linear", (a, weight, bias), native.tp_linear, a._impl, weight._impl, or_null(bias))

    def linear_gelu(self, op: str, a: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        impls = a._impl, weight._impl, or_null(bias)
        return self.made("linear_gelu", (op, a, weight, bias), native.tp_linear_gelu, *impls, op == "gelu_tanh")


def _binary_scalar(op: str, a: Any, scalar: Any, is_reversed: int, into: Any) -> Any:
    """A tensor and a number; the number comes first when reversed."""
    if isinstance(scalar, float):
        return native.tp_binary_float(_BINARY[op], a._impl, scalar, is_reversed, into)
    if isinstance(scalar, complex):
        return native.tp_binary_complex(_BINARY[op], a._impl, scalar.real, scalar.imag, is_reversed, into)
    return native.tp_binary_int(_BINARY[op], a._impl, scalar, isinstance(scalar, bool), is_reversed, into)


def _tell_settings() -> None:
    """What was set before CUDA started."""
    check(native.tp_dtype_set_default(_dtype.DEFAULTS[_dtype.FLOAT].code))
    native.tp_blas_allow_tf32(_plugins.allows_tf32())


native.at_start.append(_tell_settings)
