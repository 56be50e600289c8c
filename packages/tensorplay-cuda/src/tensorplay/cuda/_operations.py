"""Operations on CUDA tensors: each is one call of C, queued on the current stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorplay._backend import Scalar
from tensorplay._dtype import DType
from tensorplay._shape import wrap_dims
from tensorplay._tables import BINARY, REDUCE, UNARY
from tensorplay._tensor import Tensor

from ._check import refused
from ._library import native
from ._views import Views

_UNARY = {name: code for name, (code, _) in UNARY.items()}
_BINARY = {name: code for name, (code, _) in BINARY.items()}
_REDUCE = {name: code for name, (code, _) in REDUCE.items()}
_NO_DTYPE = -1  # TP_DTYPE_NONE


class Operations(Views):
    """The operations of `Backend`."""

    def unary(self, op: str, a: Tensor, out: Tensor | None = None) -> Tensor:
        return _given(out, self.made("unary", (op, a, out), native.tp_unary, _UNARY[op], a._impl, _or_null(out)))

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
            refused(impl, "binary", (op, a, b, out))
        if out is None:
            return self.wrap(impl)
        self.release(impl)
        return out

    def where(self, condition: Tensor, a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
        made = self.made(
            "where", (condition, a, b, out), native.tp_where, condition._impl, a._impl, b._impl, _or_null(out)
        )
        return _given(out, made)

    def reduce(
        self,
        op: str,
        a: Tensor,
        dims: Sequence[int] | None,
        keepdim: bool = False,
        dtype: DType | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        bits = _bits(op, dims, native.tp_tensor_ndim(a._impl)) if dims else 0
        code = _NO_DTYPE if dtype is None else dtype.code
        made = self.made(
            "reduce", (op, a, dims, keepdim, dtype, out),
            native.tp_reduce, _REDUCE[op], a._impl, bits, keepdim, code, _or_null(out),
        )  # fmt: skip
        return _given(out, made)

    def softmax(self, a: Tensor, dim: int, log: bool = False) -> Tensor:
        return self.made("softmax", (a, dim, log), native.tp_softmax, a._impl, dim, log, native.NULL)

    def layer_norm(
        self, a: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
    ) -> Tensor:
        arguments = (a, normalized_shape, weight, bias, eps)
        ndim = len(normalized_shape)
        # C gets their number only; it compares a weight with the input itself.
        sizes = a.shape[a.ndim - ndim :] if weight is None else weight.shape
        if sizes != tuple(normalized_shape):
            refused(None, "layer_norm", arguments)
        return self.made(
            "layer_norm", arguments,
            native.tp_layer_norm, a._impl, ndim, _or_null(weight), _or_null(bias), eps, native.NULL,
        )  # fmt: skip

    def index_select(self, a: Tensor, dim: int, index: Tensor) -> Tensor:
        return self.made("index_select", (a, dim, index), native.tp_index_select, a._impl, dim, index._impl)

    def embedding(self, weight: Tensor, index: Tensor) -> Tensor:
        return self.made("embedding", (weight, index), native.tp_embedding, weight._impl, index._impl)

    def matmul(self, a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
        return _given(out, self.made("matmul", (a, b, out), native.tp_matmul, a._impl, b._impl, _or_null(out)))

    def linear(self, a: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return self.made("linear", (a, weight, bias), native.tp_linear, a._impl, weight._impl, _or_null(bias))


def _binary_scalar(op: str, a: Any, scalar: Any, is_reversed: int, into: Any) -> Any:
    """A tensor and a number; the number comes first when reversed."""
    if isinstance(scalar, float):
        return native.tp_binary_float(_BINARY[op], a._impl, scalar, is_reversed, into)
    return native.tp_binary_int(_BINARY[op], a._impl, scalar, isinstance(scalar, bool), is_reversed, into)


def _bits(op: str, dims: Sequence[int], ndim: int) -> int:
    """The dimensions as bits, which cannot tell that one is named twice: so core refuses that here."""
    bits = 0
    for dim in dims:
        place = dim + ndim if dim < 0 else dim
        if not 0 <= place < ndim or bits >> place & 1:
            return sum(1 << wrapped for wrapped in wrap_dims(op, dims, ndim))
        bits |= 1 << place
    return bits


def _or_null(tensor: Tensor | None) -> Any:
    return native.NULL if tensor is None else tensor._impl


def _given(out: Tensor | None, made: Tensor) -> Tensor:
    """What the caller gets: `out` itself when C has written into it (`made` is another handle to it)."""
    return made if out is None else out
