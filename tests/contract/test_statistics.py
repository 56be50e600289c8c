"""Statistics over dimensions that core composes, on every device, against float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from helpers.operands import COMPLEX, DTYPES, FLOATING, REAL, assert_close, layouts, operand, place, read, seeds
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorplay
from tensorplay.errors import DTypeError, InvalidArgumentError, OutOfRangeError

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
few = settings(max_examples=15)
shapes = st.lists(st.sampled_from([1, 2, 3, 5, 9]), min_size=1, max_size=4).map(tuple)
of_fractions = pytest.mark.parametrize("dtype", [*FLOATING, *COMPLEX], ids=lambda dtype: dtype.name)


def some_dims(data: st.DataObject, ndim: int) -> tuple[Any, tuple[int, ...]]:
    """Dimensions as they are passed, and as NumPy takes them."""
    dims = data.draw(
        st.none() | st.integers(-ndim, ndim - 1) | st.sets(st.integers(0, ndim - 1), min_size=1).map(tuple)
    )
    return dims, tuple(range(ndim)) if dims is None else (dims,) if isinstance(dims, int) else dims


@of_fractions
@few
@given(shape=shapes, layout=layouts, seed=seeds, keepdim=st.booleans(), data=st.data())
def test_spread(
    device: str,
    dtype: tensorplay.DType,
    shape: tuple[int, ...],
    layout: str,
    seed: int,
    keepdim: bool,
    data: st.DataObject,
) -> None:
    x, array = operand(device, shape, dtype, layout, seed)
    dims, axes = some_dims(data, len(shape))
    correction = data.draw(st.sampled_from([0, 1, 0.5]))
    count = math.prod(shape[axis] for axis in axes)
    centre = array.mean(axis=axes, keepdims=True)
    squares = (np.abs(array - centre) ** 2).sum(axis=axes, keepdims=keepdim)
    variance = squares / np.float64(max(0.0, count - correction))
    real = dtype.to_real()
    assert_close(x.var(dims, correction=correction, keepdim=keepdim), variance, real, room=9)
    assert_close(x.std(dims, correction=correction, keepdim=keepdim), np.sqrt(variance), real, room=9)
    spread, mean = tensorplay.var_mean(x, dims, correction=correction, keepdim=keepdim)
    assert_close(spread, variance, real, room=9)
    assert_close(mean, array.mean(axis=axes, keepdims=keepdim), dtype, room=9)


def test_forms_of_the_correction(device: str) -> None:
    x, array = operand(device, (4, 5), tensorplay.float64, "contiguous", seed=1)
    assert_close(x.var(), array.var(ddof=1), tensorplay.float64)
    assert_close(x.std(False), array.std(), tensorplay.float64)
    assert_close(x.std(1, False, True), array.std(1, keepdims=True), tensorplay.float64)
    deviation, mean = tensorplay.std_mean(x, 0, unbiased=False)
    assert_close(deviation, array.std(0), tensorplay.float64)
    assert_close(mean, array.mean(0), tensorplay.float64)
    assert np.isnan(x[:1, :1].var().item())
    assert np.isnan(x[:0].var().item())
    with pytest.raises(DTypeError, match="var: got unbiased=True and correction=1"):
        x.var(0, True, correction=1)
    with pytest.raises(DTypeError, match="std: got dtype int64, expected a floating or complex dtype"):
        x.long().std()
    with pytest.raises(OutOfRangeError, match="var: got dimension 2"):
        x.var(2)


@of_fractions
@few
@given(shape=shapes, layout=layouts, seed=seeds, p=st.sampled_from([0, 1, 2, 3, 0.5, np.inf, -np.inf]), data=st.data())
def test_norm(
    device: str, dtype: tensorplay.DType, shape: tuple[int, ...], layout: str, seed: int, p: float, data: st.DataObject
) -> None:
    x, array = operand(device, shape, dtype, layout, seed)
    dims, axes = some_dims(data, len(shape))
    sizes = np.abs(array)
    if p == 0:
        expected = (array != 0).sum(axis=axes).astype(np.float64)
    elif np.isinf(p):
        expected = (np.max if p > 0 else np.min)(sizes, axis=axes)
    else:
        expected = (sizes**p).sum(axis=axes) ** (1 / p)
    assert_close(x.norm(p, dims), expected, dtype.to_real(), room=9)


def test_norm_of_other_arguments(device: str) -> None:
    x, array = operand(device, (3, 4), tensorplay.float16, "contiguous", seed=2)
    assert_close(tensorplay.norm(x, dtype=tensorplay.float32), np.sqrt((array**2).sum()), tensorplay.float32)
    assert_close(x.norm("fro", 1, True), np.sqrt((array**2).sum(1, keepdims=True)), tensorplay.float16)
    with pytest.raises(DTypeError, match="norm: got p='nuc'"):
        x.norm("nuc")
    with pytest.raises(OutOfRangeError, match="amax of nothing has no value"):
        x[:0].norm(float("inf"))


@pytest.mark.parametrize("dtype", REAL, ids=lambda dtype: dtype.name)
@few
@given(shape=shapes, layout=layouts, seed=seeds, data=st.data())
def test_logsumexp(
    device: str, dtype: tensorplay.DType, shape: tuple[int, ...], layout: str, seed: int, data: st.DataObject
) -> None:
    x, array = operand(device, shape, dtype, layout, seed, scale=20)
    dims, axes = some_dims(data, len(shape))
    wide = array.astype(np.float64)
    largest = wide.max(axis=axes, keepdims=True)
    expected = np.log(np.exp(wide - largest).sum(axis=axes, keepdims=True)) + largest
    result = dtype if dtype.is_floating_point else tensorplay.float32
    assert_close(x.logsumexp(dims, True), expected, result, room=30)


def test_logsumexp_of_infinities_and_of_nothing(device: str) -> None:
    inf = np.inf
    x = tensorplay.tensor([[-inf, -inf], [inf, 1.0], [inf, -inf], [np.nan, 1.0], [1000.0, 1000.0]], device=device)
    np.testing.assert_allclose(read(x.logsumexp(1)), [-inf, inf, inf, np.nan, 1000 + np.log(2)], rtol=1e-6)
    assert x[:0].logsumexp(0).tolist() == [-inf, -inf]


@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
def test_nan_that_does_not_count(device: str, dtype: tensorplay.DType) -> None:
    array = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan], [2.0, 4.0, 7.0]])
    x = place(array, dtype, device)
    assert_close(x.nansum(1), np.nansum(array, 1), dtype)
    assert_close(x.nanmean(1), np.nanmean(array, 1), dtype)
    assert_close(x.nansum(), np.nansum(array), dtype)
    with pytest.raises(DTypeError, match="nanmean: got dtype int64"):
        tensorplay.ones(2, dtype=tensorplay.int64, device=device).nanmean()


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_count_nonzero(device: str, dtype: tensorplay.DType) -> None:
    x, array = operand(device, (5, 3, 4), dtype, "transposed", seed=3, scale=0.7)
    assert_close(x.count_nonzero(), np.count_nonzero(array), tensorplay.int64)
    assert_close(tensorplay.count_nonzero(x, dim=(0, -1)), np.count_nonzero(array, (0, 2)), tensorplay.int64)


def test_mean_of_complex_numbers(device: str) -> None:
    x, array = operand(device, (3, 4), tensorplay.complex64, "contiguous", seed=4)
    assert_close(x.mean(1), array.mean(1), tensorplay.complex64)
    out = tensorplay.zeros(4, dtype=tensorplay.complex128, device=device)
    assert tensorplay.mean(x, 0, out=out) is out
    assert_close(out.cfloat(), array.mean(0), tensorplay.complex64)
    with pytest.raises(InvalidArgumentError, match=r"mean: got out of shape \(4,\), expected \(3,\)"):
        tensorplay.mean(x, 1, out=out)
