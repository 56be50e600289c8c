"""Operations over dimensions, on arrays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from . import arrays

if TYPE_CHECKING:
    from .._dtype import DType

Array = np.ndarray[Any, Any]


def reduce(op: str, a: Array, dims: tuple[int, ...], keepdim: bool, result: DType) -> Array:
    """One of the reductions of ops.def; `result` is its dtype."""
    if op in ("sum", "mean"):
        # Sums of fractions in float64: NumPy adds float32 up pairwise along the last dimension only.
        exact = np.float64 if result.is_floating_point else result.numpy
        # ml_dtypes has no loop from its types to float64.
        source = a.astype(np.float32) if a.dtype.kind == "V" else a
        if source.dtype.kind == "f" and exact is not np.float64:
            source = arrays.cast(source, result.numpy)
        with np.errstate(all="ignore"):
            reduced = np.sum(source, axis=dims, keepdims=keepdim, dtype=exact)
            if op == "mean":
                reduced = reduced / np.float64(math.prod(a.shape[dim] for dim in dims))
    elif op in ("any", "all"):
        truth = arrays.cast(a, np.dtype(bool))
        reduced = (np.any if op == "any" else np.all)(truth, axis=dims, keepdims=keepdim)
    else:
        wide = arrays.cast(a, arrays.working(result))
        with np.errstate(all="ignore"):
            reduced = (np.amax if op == "amax" else np.amin)(wide, axis=dims, keepdims=keepdim)
    return np.asarray(reduced)


def softmax(a: Array, dim: int, log: bool) -> Array:
    """Of float32 elements. A row of -inf alone gives nan, as in torch."""
    if not a.size:
        return a
    if not a.ndim:
        return np.zeros_like(a) if log else np.ones_like(a)
    with np.errstate(all="ignore"):
        shifted = a - np.amax(a, axis=dim, keepdims=True)
        powers = np.exp(shifted)
        total = np.sum(powers, axis=dim, keepdims=True, dtype=np.float64).astype(np.float32)
        result: Array = shifted - np.log(total) if log else powers / total
    return result


def layer_norm(a: Array, ndim: int, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """Of float32 elements, over the last dimensions."""
    axes = tuple(range(a.ndim - ndim, a.ndim))
    with np.errstate(all="ignore"):
        centred = a - np.mean(a, axis=axes, keepdims=True, dtype=np.float64).astype(np.float32)
        variance = np.mean(np.square(centred), axis=axes, keepdims=True, dtype=np.float64)
        result: Array = centred * (1.0 / np.sqrt(variance + eps)).astype(np.float32)
        if weight is not None:
            result = result * weight
        if bias is not None:
            result = result + bias
    return result
