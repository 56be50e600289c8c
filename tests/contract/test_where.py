"""`where` and what chooses by a mask, on every device."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.operands import (
    DTYPES,
    arranged,
    assert_close,
    broadcastable,
    dtypes,
    held,
    layouts,
    operand,
    poisoned,
    promoted,
    seeds,
    special,
)
from hypothesis import given

import tensorplay
from tensorplay.errors import DTypeError


@given(three=broadcastable(3), dtype_a=dtypes, dtype_b=dtypes, layout=layouts, seed=seeds)
def test_where(
    device: str,
    three: list[tuple[int, ...]],
    dtype_a: tensorplay.DType,
    dtype_b: tensorplay.DType,
    layout: str,
    seed: int,
) -> None:
    condition, mask = operand(device, three[0], tensorplay.bool, layout, seed)
    a, x = operand(device, three[1], dtype_a, layout, seed + 1)
    b, y = operand(device, three[2], dtype_b, layout, seed + 2)
    dtype = promoted(a.dtype, b.dtype)
    if (a.ndim == 0) != (b.ndim == 0):
        strong, weak = (b, a) if a.ndim == 0 else (a, b)
        if strong.dtype.category >= weak.dtype.category:
            dtype = strong.dtype
        elif weak.dtype.is_complex and strong.dtype.is_floating_point:
            dtype = strong.dtype.to_complex()
    assert_close(tensorplay.where(condition, a, b), np.where(mask, held(x, dtype), held(y, dtype)), dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_special_numbers_are_only_moved(device: str, dtype: tensorplay.DType) -> None:
    numbers = special(dtype)
    x, array = arranged(numbers, dtype, device, "stepped")
    mask = np.arange(len(numbers)) % 2 == 0
    out = poisoned(numbers.shape, dtype, device)
    tensorplay.where(tensorplay.tensor(mask, device=device), x, x[:1], out=out)
    assert_close(out, np.where(mask, array, array[:1]), dtype)


def test_where_with_numbers(device: str) -> None:
    mask = tensorplay.tensor([True, False], device=device)
    x = tensorplay.tensor([1.0, 2.0], dtype=tensorplay.float16, device=device)
    assert tensorplay.where(mask, x, 0.5).dtype is tensorplay.float16
    assert tensorplay.where(mask, x, 0.5).tolist() == [1.0, 0.5]
    assert tensorplay.where(mask, 1, 2).tolist() == [1, 2]


def test_masked_fill_and_clamp(device: str) -> None:
    x = tensorplay.tensor([-2.0, 0.5, 7.0], device=device)
    assert x.masked_fill(x < 0, -float("inf")).tolist() == [-float("inf"), 0.5, 7.0]
    assert x.clamp(-1, 1).tolist() == [-1.0, 0.5, 1.0]
    assert x.clamp(min=0).tolist() == [0.0, 0.5, 7.0]
    assert x.masked_fill_(x > 1, 1).tolist() == [-2.0, 0.5, 1.0]
    assert tensorplay.arange(3, device=device).masked_fill(x < 1, 9.5).tolist() == [9, 9, 2]
    with pytest.raises(DTypeError, match="masked_fill: got"):
        tensorplay.arange(3, device=device).masked_fill(x < 0, 1j)
    with pytest.raises(DTypeError, match="masked_fill: got a mask of float32, expected bool"):
        x.masked_fill(x, 0)
