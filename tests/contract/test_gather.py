"""Elements by tensors of places, one dimension at a time, on every device: gather, scatter and their like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.operands import ARRANGEMENTS, DTYPES, FLOATING, LAYOUTS, assert_close, operand, place, poisoned, read

import tensorplay
from tensorplay import _dtype
from tensorplay.errors import DTypeError, InvalidArgumentError, OutOfRangeError

SHAPES = [(shape, layout) for shape, layout in ARRANGEMENTS if 0 not in shape and shape]


def indices(random: np.random.Generator, shape: tuple[int, ...], size: int, device: str) -> tuple[Any, Any]:
    """Random places in a dimension of this size, as a tensor (int32 or int64, any layout) and as an array."""
    array = random.integers(0, size, shape)
    dtype = [_dtype.int32, _dtype.int64][random.integers(2)]
    turned = place(array.T, dtype, device).T if random.integers(2) else place(array, dtype, device)
    return turned, array


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_gather(device: str, dtype: tensorplay.DType, own_seed: int) -> None:
    random = np.random.default_rng(own_seed)
    for i, (shape, layout) in enumerate(SHAPES):
        x, array = operand(device, shape, dtype, layout, own_seed + i)
        dim = int(random.integers(len(shape)))
        wanted = tuple(int(random.integers(1, size + 1)) if d != dim else size + 1 for d, size in enumerate(shape))
        index, at = indices(random, wanted, shape[dim], device)
        trimmed = array[tuple(slice(n) if d != dim else slice(None) for d, n in enumerate(wanted))]
        poisoned(wanted, dtype, device)
        assert_close(x.gather(dim, index), np.take_along_axis(trimmed, at, dim), dtype)
        index, at = indices(random, (7,), shape[dim], device)
        assert_close(x.index_select(dim, index), np.take(array, at, dim), dtype)
        whole, at = indices(random, shape, shape[dim], device)
        assert_close(tensorplay.take_along_dim(x, whole.long(), dim), np.take_along_axis(array, at, dim), dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_scatter(device: str, dtype: tensorplay.DType, own_seed: int) -> None:
    random = np.random.default_rng(own_seed)
    for i, (shape, _) in enumerate(SHAPES):
        x, array = operand(device, shape, dtype, "transposed", own_seed + i)
        source, values = operand(device, shape, dtype, LAYOUTS[random.integers(4)], own_seed - i)
        dim = int(random.integers(len(shape)))
        # Each place once: of several writes any one may stay.
        at = random.permuted(np.indices(shape)[dim], axis=dim)
        expected = array.copy()
        np.put_along_axis(expected, at, values, dim)
        assert_close(x.scatter(dim, place(at, _dtype.int64, device), source), expected, dtype)
        np.put_along_axis(expected, at, 1, dim)
        assert_close(x.scatter(dim, place(at, _dtype.int64, device), 1), expected, dtype)
        assert_close(x, array, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_sums_by_index(device: str, dtype: tensorplay.DType, own_seed: int) -> None:
    """Repeated places add up, in the same order from run to run."""
    random = np.random.default_rng(own_seed)
    for i, (shape, layout) in enumerate(SHAPES):
        x, array = operand(device, shape, dtype, "contiguous", own_seed + i)
        source, values = operand(device, shape, dtype, layout, own_seed - i)
        dim = int(random.integers(len(shape)))
        index, at = indices(random, shape, shape[dim], device)
        expected = array.copy()
        places = list(np.indices(shape))
        places[dim] = at
        np.add.at(expected, tuple(places), values)
        room = 1 + float(np.abs(values).sum())
        assert_close(x.scatter_add(dim, index, source), expected, dtype, room=room)
        again = x.scatter_add(dim, index, source)
        assert tensorplay.equal(again, x.scatter_add(dim, index, source))
        index, at = indices(random, (shape[dim],), shape[dim], device)
        expected = array.copy()
        np.add.at(expected, (*[slice(None)] * dim, at), values)
        assert_close(x.index_add(dim, index, source), expected, dtype, room=room)


def test_many_repeated_places(device: str) -> None:
    places = np.random.default_rng(0).integers(0, 7, 20_000)
    for dtype in (_dtype.int64, *FLOATING):
        source, values = operand(device, (20_000,), dtype, "contiguous", 1)
        total = tensorplay.zeros(7, dtype=dtype, device=device).scatter_add(
            0, place(places, _dtype.int64, device), source
        )
        expected = np.zeros(7, values.dtype)
        np.add.at(expected, places, values)
        assert_close(total, expected, dtype, room=3000.0)


def test_places_without_dimensions(device: str) -> None:
    x, at = tensorplay.ones((), device=device), tensorplay.tensor(0, device=device)
    source = tensorplay.tensor([3.0, 4.0], device=device)
    assert x.scatter(0, at, source).item() == 3
    assert x.scatter_add(-1, at, source).item() == 4
    assert source.gather(0, at).item() == 3
    with pytest.raises(InvalidArgumentError, match="expected a source of the index's shape or more"):
        x.scatter(0, at, source[:0])


def test_places_out_of_range(device: str) -> None:
    x = tensorplay.ones(2, 3, device=device)
    for number in (3, -1):
        index = tensorplay.full((2, 1), number, dtype=tensorplay.int64, device=device)
        for call in (
            lambda index=index: x.gather(1, index),
            lambda index=index: x.scatter(1, index, 0.0),
            lambda index=index: x.scatter_add(1, index, x),
            lambda index=index: x.index_select(1, index[0]),
        ):
            with pytest.raises(OutOfRangeError, match=f"index {number}"):
                call().cpu()
    assert read(x).tolist() == [[1, 1, 1], [1, 1, 1]]


def test_places_in_nothing_are_told_at_once(device: str) -> None:
    index = tensorplay.zeros(1, dtype=tensorplay.int64, device=device)
    x = tensorplay.zeros(0, device=device)
    for call in (
        lambda: x.gather(0, index),
        lambda: x.scatter(0, index, 1.0),
        lambda: x.index_select(0, index),
        lambda: tensorplay.nn.functional.embedding(index, tensorplay.zeros(0, 3, device=device)),
    ):
        with pytest.raises(OutOfRangeError, match=r"got an index into shape \(0,.*\) where a dimension has size 0"):
            call()


def test_no_place_is_looked_at_where_the_result_is_empty(device: str) -> None:
    wrong = tensorplay.full((1,), 7, dtype=tensorplay.int64, device=device)
    x = tensorplay.zeros(3, 2, 0, device=device)
    assert x.index_select(0, wrong).cpu().shape == (1, 2, 0)
    assert tensorplay.nn.functional.embedding(wrong, x[:, 0]).cpu().shape == (1, 0)
    assert x[wrong, wrong].cpu().shape == (1, 0)
    x[wrong, wrong] = 1.0
    assert x.cpu().shape == (3, 2, 0)


def test_operands_that_are_refused(device: str) -> None:
    x = tensorplay.ones(2, 3, device=device)
    index = tensorplay.zeros(2, 3, dtype=tensorplay.int64, device=device)
    with pytest.raises(DTypeError, match="gather: got an index of dtype float32"):
        x.gather(0, x)
    with pytest.raises(InvalidArgumentError, match="gather: got"):
        x.gather(0, index[0])
    with pytest.raises(OutOfRangeError, match="gather: got dimension 2"):
        x.gather(2, index)
    with pytest.raises(DTypeError, match="scatter"):
        x.scatter(0, index, x.double())


def test_dimensions_that_no_c_integer_holds(device: str) -> None:
    x, places = tensorplay.zeros(3, device=device), tensorplay.zeros(3, dtype=tensorplay.int64, device=device)
    for call in (
        lambda: x.gather(2**50, places), lambda: x.scatter_(2**50, places, x), lambda: x.index_select(2**50, places),
        lambda: x.cumsum(2**50), lambda: x.argsort(2**50), lambda: x.argmax(2**50), lambda: x.softmax(2**50),
        lambda: x.select(2**50, 0), lambda: x.unsqueeze(2**50), lambda: x.flip(2**50), lambda: x.sum(2**50),
    ):  # fmt: skip
        with pytest.raises(OutOfRangeError, match=f"got dimension {2**50}, expected -"):
            call()
