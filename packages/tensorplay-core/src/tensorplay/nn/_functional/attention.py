"""Attention, composed of two products and a softmax."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ... import _creation, _dispatch, _dtype
from ..._operands._spec import floating
from ..._ops.choice import where
from ..._ops.exponentials import softmax
from ...errors import DTypeError, InvalidArgumentError
from .dropout import dropout

if TYPE_CHECKING:
    from ..._tensor import Tensor

_NAME = "scaled_dot_product_attention"


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
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
        Broadcasts to (..., l, s). bool: True where a key takes part; or the query's dtype or float32: added to the
        scores. A query without any key gets zeros.
    dropout_p : float
        Probability with which a weight is dropped; it applies always, so pass 0 outside training.
    is_causal : bool
        Query i sees keys 0 to i only. It excludes `attn_mask`.
    scale : float, optional
        ``1 / sqrt(e)`` by default.
    enable_gqa : bool
        Whether several heads of the query, in its third last dimension, share one of key and value.

    Returns
    -------
    Tensor
        Shape (..., l, v).
    """
    _dispatch.common(_NAME, query, key, value, optional=(attn_mask,))
    floating(_NAME, query, key, value)
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise InvalidArgumentError(
            f"{_NAME}: got shapes {query.shape}, {key.shape} and {value.shape}, expected at least 2 dimensions"
        )
    if _dispatch.flag(_NAME, "is_causal", is_causal) and attn_mask is not None:
        raise InvalidArgumentError(f"{_NAME}: got attn_mask and is_causal, expected only one of them")
    if _dispatch.flag(_NAME, "enable_gqa", enable_gqa):
        key, value = (_shared(query, heads) for heads in (key, value))
    factor = 1.0 / math.sqrt(max(query.shape[-1], 1)) if scale is None else _dispatch.real(_NAME, scale)
    # The query is the smallest operand that the factor can go to, and scaled first, float16 overflows later.
    scores = (query * factor) @ key.transpose(-2, -1)
    if is_causal:
        # Every query sees the first key, so no row is without any.
        weights = softmax(where(_causal(query, key), scores, -math.inf), -1)
    else:
        weights = softmax(scores, -1) if attn_mask is None else _masked_softmax(scores, attn_mask)
    if dropout_p:
        weights = dropout(weights, dropout_p)
    return weights @ value


def _causal(query: Tensor, key: Tensor) -> Tensor:
    """Which keys each query sees."""
    rows, columns = query.shape[-2], key.shape[-2]
    places = _creation.arange(max(rows, columns), device=query.device)
    return places[:rows].unsqueeze(1) >= places[:columns]


def _masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last dimension, zero wherever the mask excludes a key."""
    dtype = scores.dtype
    if mask.dtype is _dtype.bool:
        scores, allowed = where(mask, scores, -math.inf), mask
    elif mask.dtype in (dtype, _dtype.float32):
        scores, allowed = scores + mask, mask > -math.inf
    else:
        raise DTypeError(f"{_NAME}: got a mask of dtype {mask.dtype.name}, expected bool or the query's {dtype.name}")
    # Where every key of a row is excluded, softmax alone is nan.
    return where(allowed, softmax(scores, -1), 0.0).to(dtype)


def _shared(query: Tensor, heads: Tensor) -> Tensor:
    """Each head as often as the query has heads for it, as a view where strides allow it."""
    if min(query.ndim, heads.ndim) < 3 or not heads.shape[-3] or query.shape[-3] % heads.shape[-3]:
        raise InvalidArgumentError(
            f"{_NAME}: got shapes {query.shape} and {heads.shape} with enable_gqa, "
            "expected a number of heads in the third last dimension that divides the query's"
        )
    *lead, count, length, width = heads.shape
    times = query.shape[-3] // count
    return heads.unsqueeze(-3).expand(*lead, count, times, length, width).reshape(*lead, count * times, length, width)
