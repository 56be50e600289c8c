"""Attention on every device, against a formula in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.operands import FLOATING, Array, assert_close, operand

import tensorplay
from tensorplay.errors import DTypeError, InvalidArgumentError
from tensorplay.nn.functional import scaled_dot_product_attention

each_dtype = pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)


def attend(query: Array, key: Array, value: Array, mask: Array | None = None, added: Array | None = None) -> Array:
    """mask: True where a key takes part."""
    scores = query @ np.swapaxes(key, -1, -2) / math.sqrt(query.shape[-1])
    powers = np.exp(scores if added is None else scores + added)
    powers = powers if mask is None else np.where(mask, powers, 0.0)
    total = powers.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(powers, total, out=np.zeros_like(powers), where=total > 0) @ value)


def operands(device: str, dtype: tensorplay.DType, *lead: int) -> tuple[list[tensorplay.Tensor], list[Array]]:
    """Query, key and value of 4 queries and 5 keys."""
    shapes = ((*lead, 4, 8), (*lead, 5, 8), (*lead, 5, 6))
    made = [operand(device, shape, dtype, "contiguous", seed, scale=1.0) for seed, shape in enumerate(shapes)]
    return [one.tensor for one in made], [one.array for one in made]


# Scores and weights are rounded to the dtype on the way.
ROOM = 3


@each_dtype
@pytest.mark.parametrize("lead", [(), (3,), (2, 3)], ids=str)
def test_without_a_mask(device: str, dtype: tensorplay.DType, lead: tuple[int, ...]) -> None:
    tensors, arrays = operands(device, dtype, *lead)
    assert_close(scaled_dot_product_attention(*tensors), attend(*arrays), dtype, room=ROOM)


@each_dtype
def test_causal(device: str, dtype: tensorplay.DType) -> None:
    tensors, arrays = operands(device, dtype, 2)
    wanted = attend(*arrays, np.tri(4, 5, dtype=bool))
    assert_close(scaled_dot_product_attention(*tensors, is_causal=True), wanted, dtype, room=ROOM)


@each_dtype
def test_with_masks(device: str, dtype: tensorplay.DType) -> None:
    tensors, arrays = operands(device, dtype, 2)
    mask = np.random.default_rng(5).standard_normal((4, 5)) > 0
    mask[2] = False  # a query that may look at nothing
    wanted = attend(*arrays, mask)
    allowed = tensorplay.tensor(mask, device=device)
    assert_close(scaled_dot_product_attention(*tensors, allowed), wanted, dtype, room=ROOM)
    excluded = tensorplay.tensor(np.where(mask, 0.0, -np.inf), dtype=dtype, device=device)
    assert_close(scaled_dot_product_attention(*tensors, excluded), wanted, dtype, room=ROOM)


@each_dtype
def test_with_something_added_to_the_scores(device: str, dtype: tensorplay.DType) -> None:
    tensors, arrays = operands(device, dtype, 2, 3)
    bias, b = operand(device, (3, 4, 5), dtype, "contiguous", 4, scale=1.0)
    wanted = attend(*arrays, added=b)
    assert_close(scaled_dot_product_attention(*tensors, bias), wanted, dtype, room=ROOM)
    if dtype is not tensorplay.float64:
        assert_close(scaled_dot_product_attention(*tensors, bias.float()), wanted, dtype, room=ROOM)


@each_dtype
def test_heads_that_share_keys(device: str, dtype: tensorplay.DType) -> None:
    (_, key, value), (_, k, v) = operands(device, dtype, 2, 2)
    query, q = operand(device, (2, 6, 4, 8), dtype, "contiguous", 7, scale=1.0)
    wanted = attend(q, np.repeat(k, 3, axis=1), np.repeat(v, 3, axis=1))
    assert_close(scaled_dot_product_attention(query, key, value, enable_gqa=True), wanted, dtype, room=ROOM)


def test_scale_and_dropout(device: str) -> None:
    (query, key, value), (_, _, v) = operands(device, tensorplay.float32)
    same = scaled_dot_product_attention(query, key, value, scale=0.0)
    assert_close(same, np.tile(v.mean(axis=0), (4, 1)), tensorplay.float32)
    nothing = scaled_dot_product_attention(query, key, value, dropout_p=1.0)
    assert not nothing.any()


def test_refusals(device: str) -> None:
    x = tensorplay.ones(2, 3, device=device)
    mask = tensorplay.ones(2, 2, dtype=tensorplay.bool, device=device)
    with pytest.raises(InvalidArgumentError, match="only one of them"):
        scaled_dot_product_attention(x, x, x, attn_mask=mask, is_causal=True)
    with pytest.raises(DTypeError, match="expected bool or the query's"):
        scaled_dot_product_attention(x, x, x, attn_mask=mask.half())
    with pytest.raises(DTypeError, match="got float32 and float16"):
        scaled_dot_product_attention(x, x.half(), x)
    with pytest.raises(InvalidArgumentError, match="at least 2 dimensions"):
        scaled_dot_product_attention(x[0], x, x)
    with pytest.raises(InvalidArgumentError, match="divides the query's"):
        scaled_dot_product_attention(x.expand(3, 2, 3), x.expand(2, 2, 3), x.expand(2, 2, 3), enable_gqa=True)
