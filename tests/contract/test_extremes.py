"""Largest and smallest elements, their places, and elements in order, on every device, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.operands import REAL, arranged, assert_equal, layouts, seeds, special
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorplay
from tensorplay.errors import DTypeError, OutOfRangeError

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
few = settings(max_examples=12)
real = pytest.mark.parametrize("dtype", REAL, ids=lambda dtype: dtype.name)
shapes = st.lists(st.sampled_from([1, 2, 3, 5, 9]), min_size=1, max_size=4).map(tuple)


def drawn(device: str, shape: tuple[int, ...], dtype: tensorplay.DType, layout: str, seed: int) -> tuple[Any, Any]:
    """Elements many of which are equal, and some of which are nan or infinite."""
    array = np.random.default_rng(seed).choice(special(dtype), shape)
    return arranged(array, dtype, device, layout)


@real
@few
@given(shape=shapes, layout=layouts, seed=seeds, keepdim=st.booleans(), data=st.data())
def test_along_a_dimension(
    device: str,
    dtype: tensorplay.DType,
    shape: tuple[int, ...],
    layout: str,
    seed: int,
    keepdim: bool,
    data: st.DataObject,
) -> None:
    x, array = drawn(device, shape, dtype, layout, seed)
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    for name, function in (("max", np.argmax), ("min", np.argmin)):
        places = np.asarray(function(array, axis=dim, keepdims=True))
        values, indices = getattr(x, name)(dim, keepdim)
        shaped = (lambda found: found) if keepdim else (lambda found: np.squeeze(found, dim))
        assert_equal(indices, shaped(places))
        assert_equal(values, shaped(np.take_along_axis(array, places, dim)))
        assert_equal(getattr(x, f"arg{name}")(dim, keepdim), shaped(places))
    low, high = x.aminmax(dim=dim, keepdim=keepdim)
    assert_equal(low, array.min(dim, keepdims=keepdim))
    assert_equal(high, array.max(dim, keepdims=keepdim))


@real
@few
@given(shape=shapes, layout=layouts, seed=seeds, descending=st.booleans(), data=st.data())
def test_in_order(
    device: str,
    dtype: tensorplay.DType,
    shape: tuple[int, ...],
    layout: str,
    seed: int,
    descending: bool,
    data: st.DataObject,
) -> None:
    x, array = drawn(device, shape, dtype, layout, seed)
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    size = shape[dim]
    order = np.argsort(array, dim, kind="stable")
    if descending:
        order = size - 1 - np.flip(np.argsort(np.flip(array, dim), dim, kind="stable"), dim)
    ordered = np.take_along_axis(array, order, dim)
    found = x.sort(dim, descending)
    assert_equal(found.values, ordered)
    assert_equal(found.indices, order)
    assert_equal(x.argsort(dim, descending), order)
    k = data.draw(st.integers(0, size))
    first = np.arange(k)
    values, indices = x.topk(k, dim, largest=descending)
    assert_equal(values, np.take(ordered, first, dim))
    assert_equal(indices, np.take(order, first, dim))
    if not descending:
        place = data.draw(st.integers(1, size))
        values, indices = x.kthvalue(place, dim, keepdim=True)
        assert_equal(values, np.take(ordered, [place - 1], dim))
        assert_equal(indices, np.take(order, [place - 1], dim))
        middle = np.take(ordered, [(size - 1) // 2], dim)
        if dtype.is_floating_point:
            middle = np.where(np.isnan(array).any(dim, keepdims=True), np.nan, middle)
        found = x.median(dim, True)
        assert_equal(found.values, middle)
        assert_equal(tensorplay.gather(x, dim, found.indices), middle)


def test_of_the_whole_and_of_two(device: str) -> None:
    x = tensorplay.tensor([[3, 1], [2, 5]], device=device)
    assert x.max().item() == 5
    assert tensorplay.min(x).item() == 1
    assert x.median().item() == 2
    assert tensorplay.max(x, 3 - x).tolist() == [[3, 2], [2, 5]]
    assert tensorplay.min(x, other=x[0]).tolist() == [[3, 1], [2, 1]]
    assert x.argmax(keepdim=True).tolist() == [[3]]
    assert np.isnan(tensorplay.zeros(0, device=device).median().item())
    for call in (lambda: x[:0].max(), lambda: x[:0].max(0), lambda: x[:0].median(0), lambda: x[:0].argmin()):
        with pytest.raises(OutOfRangeError, match="expected elements in dimension 0"):
            call()
    with pytest.raises(OutOfRangeError, match="^max: got shape"):
        x[:0].max(0)
    with pytest.raises(DTypeError, match="^min: got dtype complex64"):
        x.cfloat().min(0)


def test_of_a_tensor_without_dimensions(device: str) -> None:
    x = tensorplay.tensor(4.0, device=device)
    for found in (x.max(0), x.sort(), x.topk(1), x.kthvalue(1), x.median(-1)):
        assert (found.values.shape, found.values.item(), found.indices.item()) == ((), 4, 0)
    assert x.argmax().item() == 0


def test_outputs_are_pairs(device: str) -> None:
    x = tensorplay.tensor([[3.0, 1.0], [2.0, 5.0]], device=device)
    for call in (tensorplay.max, tensorplay.min, tensorplay.median):
        out = tensorplay.zeros(2, device=device), tensorplay.zeros(2, dtype=tensorplay.int64, device=device)
        found = call(x, 1, out=out)
        assert found.values is out[0]
        assert found.indices is out[1]
        assert [part.tolist() for part in out] == [part.tolist() for part in call(x, 1)]
    out = tensorplay.zeros(2, 1, device=device), tensorplay.zeros(2, 1, dtype=tensorplay.int64, device=device)
    assert tensorplay.topk(x, 1, out=out).indices is out[1]
    with pytest.raises(DTypeError, match="sort: got out of Tensor, expected two tensors"):
        tensorplay.sort(x, out=x)  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match="max: got tuple, expected a tensor"):
        tensorplay.max(x, out=out)


def test_numbers_out_of_range(device: str) -> None:
    x = tensorplay.ones(2, 3, device=device)
    with pytest.raises(OutOfRangeError, match="topk: got k=4, expected 0 to 3"):
        x.topk(4)
    with pytest.raises(OutOfRangeError, match="kthvalue: got k=0, expected 1 to 2"):
        x.kthvalue(0, 0)
    with pytest.raises(OutOfRangeError, match="sort: got dimension 2"):
        x.sort(2)
    with pytest.raises(DTypeError, match="argsort: got dtype complex64"):
        x.cfloat().sort()


def test_numbers_are_no_bools(device: str) -> None:
    x = tensorplay.ones(2, 3, device=device)
    for name, call in {
        "sort: got descending": lambda: x.sort(0, 1),  # type: ignore[arg-type]
        "unique: got return_inverse": lambda: x.unique(True, 1),  # type: ignore[arg-type]
        "unique_consecutive: got return_counts": lambda: x.unique_consecutive(False, 1),  # type: ignore[arg-type]
        "var: got unbiased": lambda: x.var(0, 1),  # type: ignore[arg-type]
        "isclose: got equal_nan": lambda: x.isclose(x, equal_nan=1),  # type: ignore[arg-type]
        "multinomial: got replacement": lambda: x.multinomial(1, 1),  # type: ignore[arg-type]
    }.items():
        with pytest.raises(DTypeError, match=f"{name}=1, expected a bool"):
            call()


@real
@few
@given(shape=shapes, layout=layouts, seed=seeds, data=st.data())
def test_distinct_elements(
    device: str, dtype: tensorplay.DType, shape: tuple[int, ...], layout: str, seed: int, data: st.DataObject
) -> None:
    array = np.random.default_rng(seed).choice(special(dtype), shape)
    array[np.isnan(array)] = 0
    x, array = arranged(array, dtype, device, layout)
    expected = np.unique(array, return_inverse=True, return_counts=True)
    found = x.unique(return_inverse=True, return_counts=True)
    for got, right in zip(found, (expected[0], expected[1].reshape(shape), expected[2]), strict=True):
        assert_equal(got, right)
    assert_equal(x.unique(), expected[0])
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    expected = np.unique(array, return_inverse=True, return_counts=True, axis=dim)
    found = x.unique(return_inverse=True, return_counts=True, dim=dim)
    for got, right in zip(found, (expected[0], expected[1].reshape(-1), expected[2]), strict=True):
        assert_equal(got, right)
    flat = array.reshape(-1)
    starts = np.flatnonzero(np.r_[True, flat[1:] != flat[:-1]])
    values, counts = x.unique_consecutive(return_counts=True)
    assert_equal(values, flat[starts])
    assert_equal(counts, np.diff(np.r_[starts, flat.size]))


def test_every_nan_is_different(device: str) -> None:
    x = tensorplay.tensor([np.nan, 1.0, np.nan, 1.0], device=device)
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert_equal(values, np.array([1.0, np.nan, np.nan]))
    assert inverse.tolist() == [1, 0, 2, 0]
    assert counts.tolist() == [2, 1, 1]
    assert x.reshape(2, 2).unique(dim=0).shape == (2, 2)


def test_distinct_elements_of_nothing(device: str) -> None:
    x = tensorplay.zeros(0, 3, device=device)
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert (values.shape, inverse.shape, counts.shape) == ((0,), (0, 3), (0,))
    assert x.unique(dim=0).shape == (0, 3)
