"""Operations over dimensions: totals, extremes and their places, running totals, and what normalises rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _operands, _shape
from .._dtype import DType
from .._tensor import Tensor
from . import arrays
from .arrays import Array
from .views import Views

_TOTALS: dict[str, Any] = {"sum": np.add, "mean": np.add, "prod": np.multiply, "cumsum": np.add, "cumprod": np.multiply}
_FOLDS: dict[str, Any] = {"any": np.any, "all": np.all, "amax": np.amax, "amin": np.amin}
_PLACES: dict[str, Any] = {"argmax": np.argmax, "argmin": np.argmin}


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
        spec = _operands.reduce(op, a, dims, keepdim, dtype, out)
        axes = _shape.wrap_dims(op, dims, a.ndim)
        with np.errstate(all="ignore"):
            if op in _TOTALS:
                terms = _terms(a._impl, spec.dtype)
                total = _TOTALS[op].reduce(terms, axis=axes, keepdims=keepdim, dtype=_exact(spec.dtype))
                if op == "mean":
                    total = _quotient(total, math.prod(a.shape[axis] for axis in axes))
                return self.finish(total, spec, out)
            # ml_dtypes' types have no such loops.
            array = arrays.cast(a._impl, np.dtype(bool)) if op in ("any", "all") else _comparable(a._impl)
            return self.finish(_FOLDS[op](array, axis=axes, keepdims=keepdim), spec, out)

    def arg_reduce(self, op: str, a: Tensor, dim: int | None, keepdim: bool = False) -> Tensor:
        spec = _operands.arg_reduce(op, a, dim, keepdim)
        axis = None if dim is None or not a.ndim else dim
        return self.finish(_PLACES[op](_comparable(a._impl), axis=axis, keepdims=keepdim), spec)

    def scan(self, op: str, a: Tensor, dim: int, dtype: DType | None = None, out: Tensor | None = None) -> Tensor:
        spec = _operands.scan(op, a, dim, dtype, out)
        terms = _terms(a._impl, spec.dtype)
        with np.errstate(all="ignore"):
            totals = _TOTALS[op].accumulate(np.atleast_1d(terms), axis=dim, dtype=_exact(spec.dtype))
            if op == "cumsum":
                totals += 0  # They start at 0, so none is -0.
            return self.finish(totals.reshape(spec.shape), spec, out)

    def argsort(self, a: Tensor, dim: int, descending: bool = False) -> Tensor:
        spec = _operands.argsort(a, dim, descending)
        array = _comparable(a._impl)
        if not array.ndim:
            return self.finish(np.zeros((), np.int64), spec)
        if not descending:
            return self.finish(np.argsort(array, axis=dim, kind="stable"), spec)
        # Backwards twice, so that equal elements keep their order.
        places = np.argsort(np.flip(array, dim), axis=dim, kind="stable")
        return self.finish(array.shape[dim] - 1 - np.flip(places, dim), spec)

    def softmax(self, a: Tensor, dim: int, log: bool = False) -> Tensor:
        spec = _operands.softmax(a, dim, log)
        array = arrays.widened(a._impl, spec.compute)
        if not array.size:
            return self.wrap(np.empty(spec.shape, spec.dtype.numpy))
        rows = array if array.ndim else array.reshape(1)
        with np.errstate(all="ignore"):
            # A row of -inf alone gives nan, as in torch.
            shifted = rows - np.amax(rows, axis=dim, keepdims=True)
            powers = np.exp(shifted)
            total = np.sum(powers, axis=dim, keepdims=True, dtype=np.float64).astype(rows.dtype)
            result = shifted - np.log(total) if log else powers / total
        return self.finish(result.reshape(spec.shape), spec)

    def layer_norm(
        self, a: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
    ) -> Tensor:
        spec = _operands.layer_norm(a, normalized_shape, weight, bias, eps)
        array = arrays.widened(a._impl, spec.compute)
        axes = tuple(range(a.ndim - len(normalized_shape), a.ndim))
        with np.errstate(all="ignore"):
            centred = array - np.mean(array, axis=axes, keepdims=True, dtype=np.float64).astype(array.dtype)
            variance = np.mean(np.square(centred), axis=axes, keepdims=True, dtype=np.float64)
            result = centred * (1.0 / np.sqrt(variance + eps)).astype(array.dtype)
            if weight is not None:
                result = result * arrays.widened(weight._impl, spec.compute)
            if bias is not None:
                result = result + arrays.widened(bias._impl, spec.compute)
        return self.finish(result, spec)


def _exact(result: DType) -> type[Any]:
    """What totals of a dtype are added up in: NumPy adds float32 up pairwise along the last dimension only."""
    if result.is_complex:
        return np.complex128
    return np.float64 if result.is_floating_point else np.int64


def _terms(array: Array, result: DType) -> Array:
    """The elements as they are added up: of the result's dtype, unless both have fractions."""
    has_fractions = array.dtype.kind in "fcV" and (result.is_complex or result.is_floating_point)
    if not has_fractions or (array.dtype.kind == "c" and not result.is_complex):
        array = arrays.cast(array, result.numpy)
    return _comparable(array)


def _quotient(total: Array, count: int) -> Array:
    """The total divided, each part of a complex one by itself: dividing by count + 0j makes nan of infinity."""
    result = np.array(total, order="C")
    parts = result.reshape(-1).view(np.float64)
    parts /= np.float64(count)
    return result


def _comparable(array: Array) -> Array:
    """The elements in a dtype that NumPy's own functions take: ml_dtypes' types are of kind V."""
    return arrays.cast(array, np.dtype(np.float32)) if array.dtype.kind == "V" else array
