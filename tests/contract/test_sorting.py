"""Order on every device, against NumPy: sort, argsort, topk, unique and nonzero."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.operands import ARRANGEMENTS, DTYPES, FLOATING, REAL, arranged, assert_close, operand, place, read, special

import tensorplay
from tensorplay import _dtype
from tensorplay.errors import DTypeError, OutOfRangeError


def places(array: Any, dim: int, descending: bool) -> Any:
    """Places in order; equal elements keep theirs, nan is the largest."""
    if not array.ndim:
        return np.zeros((), np.int64)
    rank = np.searchsorted(np.unique(array[~np.isnan(array)]), array)
    rank = np.where(np.isnan(array), array.size, rank)
    return np.argsort(-rank if descending else rank, axis=dim, kind="stable")


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", REAL, ids=lambda dtype: dtype.name)
def test_sort(device: str, dtype: tensorplay.DType, descending: bool, own_seed: int) -> None:
    cases = [operand(device, shape, dtype, layout, own_seed + i) for i, (shape, layout) in enumerate(ARRANGEMENTS)]
    cases += [arranged(np.resize(special(dtype), (3, 40)), dtype, device, "transposed")]
    for x, array in cases:
        for dim in {0, x.ndim - 1} if x.ndim else {0}:
            order = places(array, dim, descending)
            ordered, indices = tensorplay.sort(x, dim, descending)
            assert_close(indices, order, _dtype.int64)
            assert_close(ordered, np.take_along_axis(array, order, dim) if x.ndim else array, dtype)
            assert_close(tensorplay.argsort(x, dim, descending), order, _dtype.int64)


@pytest.mark.parametrize("shape", [(70_001,), (5, 3000), (3000, 5)])
@pytest.mark.parametrize("dtype", [_dtype.int16, _dtype.int64, _dtype.float16, _dtype.float64], ids=lambda d: d.name)
def test_long_sorts(device: str, dtype: tensorplay.DType, shape: tuple[int, ...], own_seed: int) -> None:
    x, array = operand(device, shape, dtype, "contiguous", own_seed, scale=100.0)
    dim = int(np.argmax(shape))
    assert_close(tensorplay.argsort(x, dim), np.argsort(array, axis=dim, kind="stable"), _dtype.int64)


def test_minus_zero_equals_zero(device: str) -> None:
    for dtype in FLOATING:
        x = tensorplay.tensor([0.0, -0.0, -1.0, -0.0, 0.0], dtype=dtype, device=device)
        assert tensorplay.argsort(x).tolist() == [2, 0, 1, 3, 4]
        assert tensorplay.argsort(x, descending=True).tolist() == [0, 1, 3, 4, 2]


@pytest.mark.parametrize("dtype", REAL, ids=lambda dtype: dtype.name)
def test_topk(device: str, dtype: tensorplay.DType, own_seed: int) -> None:
    x, array = operand(device, (5, 37), dtype, "transposed", own_seed, scale=20.0)
    for dim, k, largest in ((1, 4, True), (0, 5, False), (-1, 1, True), (1, 0, True)):
        found, indices = tensorplay.topk(x, k, dim, largest)
        order = np.sort(array, axis=dim)
        order = np.flip(order, dim) if largest else order
        assert_close(found, np.take(order, range(k), dim), dtype)
        np.testing.assert_array_equal(np.take_along_axis(array, read(indices), dim), read(found))
    with pytest.raises(OutOfRangeError, match="topk: got k"):
        x.topk(38)


@pytest.mark.parametrize("dtype", REAL, ids=lambda dtype: dtype.name)
def test_unique(device: str, dtype: tensorplay.DType, own_seed: int) -> None:
    for i, (shape, layout) in enumerate(ARRANGEMENTS):
        x, array = operand(device, shape, dtype, layout, own_seed + i)
        found, inverse, counts = tensorplay.unique(x, return_inverse=True, return_counts=True)
        expected, back, repeated = np.unique(array, return_inverse=True, return_counts=True)
        assert_close(found, expected, dtype)
        assert_close(inverse, back.reshape(shape), _dtype.int64)
        assert_close(counts, repeated, _dtype.int64)
        assert_close(tensorplay.unique(x), expected, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_nonzero(device: str, dtype: tensorplay.DType, own_seed: int) -> None:
    for i, (shape, layout) in enumerate(ARRANGEMENTS):
        x, array = operand(device, shape, dtype, layout, own_seed + i, scale=0.6)
        expected = np.argwhere(array)
        assert_close(tensorplay.nonzero(x), expected, _dtype.int64)
        if shape:
            for found, right in zip(tensorplay.nonzero(x, as_tuple=True), np.nonzero(array), strict=True):
                assert_close(found, right, _dtype.int64)
            assert_close(tensorplay.count_nonzero(x, 0), np.count_nonzero(array, axis=0), _dtype.int64)
        assert_close(tensorplay.count_nonzero(x), np.count_nonzero(array), _dtype.int64)


def test_nan_and_zero(device: str) -> None:
    array = np.array([0.0, -0.0, np.nan, 1.0])
    x = place(array, _dtype.float32, device)
    assert tensorplay.nonzero(x).tolist() == [[2], [3]]
    assert tensorplay.count_nonzero(x).item() == 2
    assert np.isnan(tensorplay.sort(x)[0][-1].item())


def test_order_refuses(device: str) -> None:
    x = tensorplay.ones(2, 3, dtype=tensorplay.complex64, device=device)
    for call in (tensorplay.argsort, tensorplay.sort, tensorplay.unique):
        with pytest.raises(DTypeError, match="got dtype complex64"):
            call(x)
    with pytest.raises(OutOfRangeError, match="sort: got dimension 2"):
        x.real.sort(2)
