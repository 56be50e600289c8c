"""Elements written, added and taken by indices, as functions and methods, on every device, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.operands import DTYPES, assert_close, assert_equal, counted, operand
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorplay
from tensorplay import _dtype
from tensorplay.errors import DTypeError, InvalidArgumentError, OutOfRangeError

few = settings(max_examples=25)
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
shapes = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)


@every_dtype
@pytest.mark.parametrize("integers", [tensorplay.int32, tensorplay.int64], ids=lambda dtype: dtype.name)
def test_slices(device: str, dtype: tensorplay.DType, integers: tensorplay.DType) -> None:
    x, array = operand(device, (4, 5, 3), dtype, "transposed", seed=1)
    source, added = operand(device, (4, 3, 3), dtype, "stepped", seed=2)
    places = np.array([4, 0, 4])
    index = tensorplay.tensor(places, dtype=integers, device=device)
    total = array.copy()
    if dtype is _dtype.bool:
        np.logical_or.at(total, (slice(None), places), added)
    else:
        np.add.at(total, (slice(None), places), added)
    assert_close(x.index_add(1, index, source), total, dtype)
    if dtype is not _dtype.bool:
        twice = array.copy()
        np.add.at(twice, (slice(None), places), 2 * added)
        assert_close(tensorplay.index_add(x, 1, index, source, alpha=2), twice, dtype, room=2)
    copied, filled = array.copy(), array.copy()
    copied[:, [4, 0]] = added[:, :2]
    filled[:, [4, 0]] = 1
    assert_equal(x.index_copy(1, index[:2], source[:, :2]), copied)
    assert_equal(x.index_fill(1, index, 1), filled)
    assert_equal(x.index_fill(1, index, tensorplay.ones((), device=device)), filled)
    assert_equal(x.index_select(1, index), array[:, places])
    assert_equal(x, array)
    assert x.index_fill_(dim=-2, index=index, value=1) is x
    assert_equal(x, filled)


@every_dtype
@few
@given(shape=shapes, data=st.data())
def test_scatter_and_gather(device: str, dtype: tensorplay.DType, shape: tuple[int, ...], data: st.DataObject) -> None:
    x, array = operand(device, shape, dtype, "contiguous", seed=3)
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    places = np.argsort(np.random.default_rng(data.draw(st.integers(0, 99))).random(shape), dim)
    index = tensorplay.tensor(places, device=device)
    source, written = operand(device, shape, dtype, "contiguous", seed=4)
    expected = array.copy()
    np.put_along_axis(expected, places, written, dim)
    assert_equal(x.scatter(dim, index, source), expected)
    assert_equal(x.gather(dim, index), np.take_along_axis(array, places, dim))
    assert_equal(x.take_along_dim(index, dim), np.take_along_axis(array, places, dim))
    assert_equal(x.take_along_dim(index - shape[dim], dim), np.take_along_axis(array, places, dim))
    np.put_along_axis(expected, places, 1, dim)
    assert_equal(tensorplay.scatter(x, dim, index, value=1), expected)
    assert_close(x.scatter_add(dim, index, x), added(array, places, array, dim), dtype)
    assert_equal(x, array)


def added(array: Any, places: Any, source: Any, dim: int) -> Any:
    """The sum, as a dtype of bools has it, too."""
    moved = np.zeros_like(array)
    np.put_along_axis(moved, places, source, dim)
    return array | moved if array.dtype == bool else array + moved


def test_take_and_its_shapes(device: str) -> None:
    x, array = counted(device, 3, 4)
    index = tensorplay.tensor([[0, -1], [5, 11]], device=device)
    assert_equal(x.T.take(index), array.T.take([[0, -1], [5, 11]]))
    assert_equal(x.take_along_dim(index[1:]), array.take([5, 11]))
    assert_equal(x.take_along_dim(index[1:, :1] - 4, 1), array[:, [1]])


def test_values_for_repeated_places_are_added(device: str) -> None:
    x = tensorplay.zeros(3, device=device)
    index = tensorplay.tensor([0, 2, 0, 0], device=device)
    x.scatter_add_(0, index, tensorplay.tensor([1.0, 2.0, 3.0, 4.0], device=device))
    assert x.tolist() == [8, 0, 2]
    x.index_put_([index], tensorplay.ones((), device=device), accumulate=True)
    assert x.tolist() == [11, 0, 3]
    assert x.index_put((x == 3,), tensorplay.ones(1, device=device)).tolist() == [11, 0, 1]


def test_half_types_are_added_up_before_they_are_rounded(device: str) -> None:
    x = tensorplay.full((1,), 2048, dtype=tensorplay.float16, device=device)
    index = tensorplay.zeros(4, dtype=tensorplay.int64, device=device)
    assert x.index_add(0, index, tensorplay.ones(4, dtype=x.dtype, device=device)).item() == 2052


def test_a_tensor_without_dimensions(device: str) -> None:
    x = tensorplay.tensor(1.0, device=device)
    index = tensorplay.tensor(0, device=device)
    assert x.scatter(0, index, 5.0).item() == 5
    assert x.gather(0, index).item() == 1
    assert x.index_add(0, index, x).item() == 2
    assert x.index_fill(0, index, 3).item() == 3


def test_refused(device: str) -> None:
    x = tensorplay.zeros(2, 3, device=device)
    index = tensorplay.zeros(2, 3, dtype=tensorplay.int64, device=device)
    with pytest.raises(InvalidArgumentError, match=r"index_add_: got a source of shape \(2, 2\), expected \(2, 3\)"):
        x.index_add_(1, index[0], x[:, :2])
    with pytest.raises(InvalidArgumentError, match="index_fill_: got an index of shape"):
        x.index_fill_(1, index, 1)
    with pytest.raises(DTypeError, match="scatter_: got values of dtype int64, expected float32"):
        x.scatter_(1, index, index)
    with pytest.raises(DTypeError, match="scatter_: got NoneType, expected a tensor or a number"):
        x.scatter_(1, index)
    with pytest.raises(OutOfRangeError, match="got 3 indices, expected at most 2"):
        x.index_put_((index, index, index), x)
    with pytest.raises(InvalidArgumentError, match="got no indices"):
        x.index_put_((None,), x)
    with pytest.raises(OutOfRangeError, match="index -1 is out of range for a dimension of size 3"):
        x.gather(1, index - 1).cpu()
