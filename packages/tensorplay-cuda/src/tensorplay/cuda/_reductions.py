"""Operations over dimensions on CUDA tensors: each is one call of C, queued on the current stream."""

from __future__ import annotations

from collections.abc import Sequence

from tensorplay._dtype import DType
from tensorplay._tables import ARG_REDUCE, REDUCE, SCAN
from tensorplay._tensor import Tensor

from ._check import refused
from ._library import native
from ._views import Views, bits_of, given, or_null

_REDUCE = {name: row[0] for name, row in REDUCE.items()}
_ARG_REDUCE = {name: row[0] for name, row in ARG_REDUCE.items()}
_SCAN = {name: row[0] for name, row in SCAN.items()}
_NO_DTYPE = -1  # TP_DTYPE_NONE


class Reductions(Views):
    """The methods of `Backend` that work over dimensions."""

    def reduce(
        self,
        op: str,
        a: Tensor,
        dims: Sequence[int] | None,
        keepdim: bool = False,
        dtype: DType | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        bits = bits_of(op, dims, native.tp_tensor_ndim(a._impl)) if dims else 0
        code = _NO_DTYPE if dtype is None else dtype.code
        made = self.made(
            "reduce", (op, a, dims, keepdim, dtype, out),
            native.tp_reduce, _REDUCE[op], a._impl, bits, keepdim, code, or_null(out),
        )  # fmt: skip
        return given(out, made)

    def arg_reduce(self, op: str, a: Tensor, dim: int | None, keepdim: bool = False) -> Tensor:
        arguments = (op, a, dim, keepdim)
        if dim is None:
            return self.made("arg_reduce", arguments, native.tp_arg_reduce_all, _ARG_REDUCE[op], a._impl, keepdim)
        return self.made("arg_reduce", arguments, native.tp_arg_reduce, _ARG_REDUCE[op], a._impl, dim, keepdim)

    def scan(self, op: str, a: Tensor, dim: int, dtype: DType | None = None, out: Tensor | None = None) -> Tensor:
        code = _NO_DTYPE if dtype is None else dtype.code
        made = self.made("scan", (op, a, dim, dtype, out), native.tp_scan, _SCAN[op], a._impl, dim, code, or_null(out))
        return given(out, made)

    def argsort(self, a: Tensor, dim: int, descending: bool = False) -> Tensor:
        return self.made("argsort", (a, dim, descending), native.tp_argsort, a._impl, dim, descending)

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
            native.tp_layer_norm, a._impl, ndim, or_null(weight), or_null(bias), eps, native.NULL,
        )  # fmt: skip
