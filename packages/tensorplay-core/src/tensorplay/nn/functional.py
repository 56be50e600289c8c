"""Layers as functions: torch's names, arguments and meaning."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import _creation, _dispatch, _dtype, _shape
from .._functions import maximum, relu, sigmoid, tanh
from .._ops import sampling
from .._ops.activation import gelu, silu, softplus
from .._ops.choice import where
from .._ops.exponentials import log_softmax, softmax
from .._ops.padding import pad
from .._ops.statistics import norm
from .._ops.wide import wide
from .._tensor import Tensor
from ..errors import DTypeError, InvalidArgumentError

__all__ = [
    "dropout",
    "embedding",
    "gelu",
    "layer_norm",
    "linear",
    "log_softmax",
    "normalize",
    "pad",
    "relu",
    "scaled_dot_product_attention",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "tanh",
]


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``.

    Parameters
    ----------
    input : Tensor
        Shape (..., in_features).
    weight : Tensor
        Shape (out_features, in_features).
    bias : Tensor, optional
        Shape (out_features,).

    Returns
    -------
    Tensor
        Shape (..., out_features).
    """
    return _dispatch.common("linear", input, weight, optional=(bias,)).linear(input, weight, bias)


def embedding(input: Tensor, weight: Tensor) -> Tensor:
    """Row i of a table for each index i.

    Parameters
    ----------
    input : Tensor
        int64 or int32, any shape (...).
    weight : Tensor
        Shape (rows, width).

    Returns
    -------
    Tensor
        Shape (..., width).

    Raises
    ------
    OutOfRangeError
        An IndexError, for an index outside 0 to rows - 1: on the host at once, on a device at the next call
        that waits for it.
    """
    return _dispatch.common("embedding", input, weight).embedding(weight, input)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 over the last dimensions, then ``* weight + bias``.

    Parameters
    ----------
    input : Tensor
        Shape (..., *normalized_shape), a floating dtype. The arithmetic is float32 or better.
    normalized_shape : sequence of int
        Sizes of the last dimensions.
    weight, bias : Tensor, optional
        Shape `normalized_shape`.
    eps : float
        Added to the variance.
    """
    backend = _dispatch.common("layer_norm", input, optional=(weight, bias))
    sizes = _shape.integers("layer_norm", (normalized_shape,))
    return backend.layer_norm(input, sizes, weight, bias, _dispatch.real("layer_norm", eps))


def dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Sets elements to zero at random and divides the others by ``1 - p``.

    Parameters
    ----------
    input : Tensor
        A floating dtype, any shape.
    p : float
        Probability of a zero, 0 to 1.
    training : bool
        False: the input is returned as it is.
    """
    _dispatch.check_tensor("dropout", input)
    p = check_probability("dropout", p)
    if not training or p == 0.0:
        return input
    kept = sampling.rand(input.shape, device=input.device) >= p
    scale = 1.0 / (1.0 - p) if p < 1.0 else 0.0
    return where(kept, input * scale, 0.0)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
) -> Tensor:
    """``softmax(query @ key.mT * scale + mask) @ value``.

    Parameters
    ----------
    query : Tensor
        Shape (..., l, e).
    key : Tensor
        Shape (..., s, e).
    value : Tensor
        Shape (..., s, v).
    attn_mask : Tensor, optional
        Broadcasts to (..., l, s). bool: True where a key takes part; or the query's dtype: added to the
        scores. A query without any key gets zeros.
    dropout_p : float
        Probability with which a weight is dropped; it applies always, so pass 0 outside training.
    is_causal : bool
        Query i sees keys 0 to i only. It excludes `attn_mask`.
    scale : float, optional
        ``1 / sqrt(e)`` by default.

    Returns
    -------
    Tensor
        Shape (..., l, v).
    """
    operation = "scaled_dot_product_attention"
    _dispatch.check_tensor(operation, query, key, value)
    if query.ndim < 2 or key.ndim < 2:
        raise InvalidArgumentError(
            f"{operation}: got shapes {query.shape} and {key.shape}, expected at least 2 dimensions"
        )
    if is_causal:
        if attn_mask is not None:
            raise InvalidArgumentError(f"{operation}: got attn_mask and is_causal, expected only one of them")
        places = _creation.arange(max(query.shape[-2], key.shape[-2]), device=query.device)
        attn_mask = places[: query.shape[-2]].unsqueeze(1) >= places[: key.shape[-2]]
    if scale is None:
        scale = 1.0 / math.sqrt(max(query.shape[-1], 1))
    # The query is the smallest operand that the factor can go to, and scaled first, float16 overflows later.
    scores = (query * scale) @ key.transpose(-2, -1)
    weights = softmax(scores, -1) if attn_mask is None else _masked_softmax(operation, scores, attn_mask)
    if dropout_p:
        weights = dropout(weights, dropout_p)
    return weights @ value


def _masked_softmax(operation: str, scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last dimension, zero wherever the mask excludes a key."""
    _dispatch.check_tensor(operation, mask)
    if mask.dtype is _dtype.bool:
        scores, allowed = where(mask, scores, -math.inf), mask
    elif mask.dtype is scores.dtype:
        scores, allowed = scores + mask, mask > -math.inf
    else:
        raise DTypeError(f"{operation}: got a mask of {mask.dtype}, expected bool or the query's {scores.dtype}")
    # Where every key of a row is excluded, softmax alone is nan.
    return where(allowed, softmax(scores, -1), 0.0)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divides vectors by their p-norm, or by `eps` where that is larger.

    Parameters
    ----------
    input : Tensor
        A floating dtype, any shape. Half types are computed in float32.
    p : float
        The norm: greater than 0, infinity included.
    dim : int
        The dimension along which the vectors lie.
    eps : float
        The smallest divisor.
    """
    _dispatch.check_tensor("normalize", input)
    if not input.dtype.is_floating_point:
        raise DTypeError(f"normalize: got {input.dtype}, expected a floating dtype")
    p, dim = _dispatch.real("normalize", p), _shape.integer("normalize", dim)
    if not p > 0:
        raise InvalidArgumentError(f"normalize: got p={p}, expected a number greater than 0")
    x = wide(input, input.dtype)
    return (x / maximum(norm(x, p, dim, keepdim=True), eps)).to(input.dtype)


def check_probability(operation: str, p: float) -> float:
    """The probability as a float.

    Raises
    ------
    InvalidArgumentError
        If it is not between 0 and 1.
    """
    p = _dispatch.real(operation, p)
    if not 0.0 <= p <= 1.0:
        raise InvalidArgumentError(f"{operation}: got p={p}, expected 0 to 1")
    return p
