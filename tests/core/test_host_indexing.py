"""Indices on the host, against loops and NumPy's own indexing."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tensorplay
from tensorplay import _dtype, _plugins
from tensorplay.errors import DTypeError, InvalidArgumentError, OutOfRangeError

HOST = _plugins.get("cpu")
DTYPES = list(_dtype.DTYPES.values())
Array = np.ndarray[Any, Any]


def by_name(dtype: _dtype.DType) -> str:
    """For ids."""
    return dtype.name


def numbers(random: np.random.Generator, shape: tuple[int, ...], dtype: _dtype.DType) -> Array:
    """Small whole numbers, which every dtype holds."""
    return random.integers(0, 5, shape).astype(dtype.numpy)


def tensor(array: Array) -> tensorplay.Tensor:
    """A tensor over the array's elements."""
    return tensorplay.from_numpy(array)


@pytest.mark.parametrize("dtype", DTYPES, ids=by_name)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gather_and_scatter(dtype: _dtype.DType, dim: int, own_seed: int) -> None:
    random = np.random.default_rng(own_seed)
    array = numbers(random, (4, 5, 3), dtype)
    shape = [3, 2, 2]
    shape[dim] = 7
    index = random.integers(0, array.shape[dim], shape)
    source = numbers(random, (7, 7, 7), dtype)
    assigned, added = array.copy(), array.astype(np.complex128)
    gathered = np.empty(shape, dtype.numpy)
    for place in itertools.product(*map(range, shape)):
        there = list(place)
        there[dim] = index[place]
        gathered[place] = array[tuple(there)]
        assigned[tuple(there)] = source[place]
        added[tuple(there)] += complex(source[place])
    found = HOST.gather(tensor(array), dim, tensor(index.astype(np.int32)))
    np.testing.assert_array_equal(found.numpy(), gathered)
    target = tensor(array.copy())
    HOST.scatter_(target, dim, tensor(index), tensor(source))
    np.testing.assert_array_equal(target.numpy(), assigned)
    target = tensor(array.copy())
    HOST.scatter_(target, dim, tensor(index), tensor(source), True)
    expected = added != 0 if dtype is _dtype.bool else added
    np.testing.assert_array_equal(target.numpy().astype(np.complex128), expected)


def test_gather_and_scatter_without_dimensions() -> None:
    x, zero = tensorplay.tensor(3.0), tensorplay.tensor(0)
    assert HOST.gather(x, 0, zero).item() == 3
    assert HOST.gather(x, 0, tensorplay.tensor([0, 0])).tolist() == [3, 3]
    HOST.scatter_(x, 0, zero, tensorplay.tensor(4.0), True)
    assert x.item() == 7
    HOST.scatter_(x, -1, tensorplay.tensor([0]), tensorplay.tensor([1.0]))
    assert x.item() == 1


KEYS: list[tuple[Any, ...]] = [
    ([1, -2],),
    (None, [0, 2, 2]),
    ([[0], [-1]], [1, 0]),
    (None, 2, [0, 1]),
    ([0, 1], None, 1),
    (1, None, -1),
    (-1,),
    ([],),
    (np.zeros((0, 2), int), None, [0, 1]),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=by_name)
@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_index_and_index_put(dtype: _dtype.DType, key: tuple[Any, ...], own_seed: int) -> None:
    random = np.random.default_rng(own_seed)
    array = numbers(random, (4, 3, 5), dtype)
    indices = [None if part is None else tensorplay.tensor(np.array(part, np.int64)) for part in key]
    # Broadcast, so that all are arrays with dimensions, as NumPy would otherwise take a number for a basic index.
    parts = iter(np.broadcast_arrays(*(np.array(part, np.int64) for part in key if part is not None)))
    numpy_key = tuple(slice(None) if part is None else next(parts) for part in key)
    expected = array[numpy_key]
    x = tensor(array.copy())
    found = HOST.index(x, indices)
    assert (found.shape, found.is_contiguous()) == (expected.shape, True)
    np.testing.assert_array_equal(found.numpy(), expected)

    values = numbers(random, expected.shape, dtype)
    HOST.index_put_(x, indices, tensor(values))
    assigned = array.copy()
    assigned[numpy_key] = values
    np.testing.assert_array_equal(x.numpy(), assigned)

    x = tensor(array.copy())
    HOST.index_put_(x, indices, tensor(values), True)
    added = array.astype(np.complex128)
    np.add.at(added, numpy_key, values.astype(np.complex128))
    np.testing.assert_array_equal(x.numpy().astype(np.complex128), added != 0 if dtype is _dtype.bool else added)


def test_sums_of_many_are_rounded_once() -> None:
    x = tensorplay.zeros(2, dtype=tensorplay.float16)
    index = tensorplay.zeros(5000, dtype=tensorplay.int64)
    HOST.index_put_(x, [index], tensorplay.ones(5000, dtype=tensorplay.float16), True)
    assert x.tolist() == [5000, 0]
    HOST.scatter_(x, 0, index, tensorplay.full((5000,), 0.1, dtype=tensorplay.float16), True)
    assert x[0].item() == 5500


def test_values_that_are_the_target() -> None:
    x = tensorplay.arange(6)
    HOST.index_put_(x, [tensorplay.arange(5) + 1], x[:-1])
    assert x.tolist() == [0, 0, 1, 2, 3, 4]
    HOST.scatter_(x, 0, tensorplay.tensor([5, 4, 3, 2, 1, 0]), x)
    assert x.tolist() == [4, 3, 2, 1, 0, 0]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x, i: HOST.gather(x, 1, i), "gather: index -1 is out of range for a dimension of size 3 on cpu"),
        (lambda x, i: HOST.scatter_(x, 0, i, x), "scatter_: index -1 is out of range for a dimension of size 2"),
        (lambda x, i: HOST.index(x, [i * 3]), "index: index -3 is out of range for a dimension of size 2 on cpu"),
        (lambda x, i: HOST.index_put_(x, [None, i + 4], x[:1, :1]), "index_put_: index 4 is out of range"),
        (lambda x, i: HOST.index_select(x, 1, i[0]), "index_select: index -1 is out of range"),
    ],
)
def test_indices_out_of_range(call: Any, text: str) -> None:
    x = tensorplay.zeros(2, 3)
    with pytest.raises(OutOfRangeError, match=text):
        call(x, tensorplay.tensor([[0, -1]]))
    assert x.tolist() == [[0] * 3] * 2


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x, i: HOST.gather(x, 0, i[0]), InvalidArgumentError, "gather: got an index of shape"),
        (lambda x, i: HOST.gather(x[:, :1], 0, i), InvalidArgumentError, "expected no larger size in any other"),
        (lambda x, i: HOST.gather(x, 0, i.float()), DTypeError, "gather: got an index of dtype float32"),
        (lambda x, i: HOST.gather(x, 0, i.byte()), DTypeError, "gather: got an index of dtype uint8"),
        (lambda x, i: HOST.scatter_(x, 0, i, x[:, :1]), InvalidArgumentError, "expected a source of the index's shape"),
        (lambda x, i: HOST.scatter_(x, 0, i, x.double()), DTypeError, "scatter_: got values of dtype float64"),
        (lambda x, i: HOST.scatter_(x[:1].expand(2, 3), 0, i, x), InvalidArgumentError, "whose elements share"),
        (lambda x, i: HOST.index(x, [None]), InvalidArgumentError, "index: got 1 indices, 0 of them tensors"),
        (lambda x, i: HOST.index(x, [i, i, i]), InvalidArgumentError, "index: got 3 indices"),
        (lambda x, i: HOST.index(x, [i, tensorplay.arange(3)]), InvalidArgumentError, "index: got shapes"),
        (lambda x, i: HOST.index_put_(x, [i], x.T), InvalidArgumentError, "expected ones that broadcast to"),
        (lambda x, i: HOST.index_put_(x, [i], x.half()), DTypeError, "index_put_: got values of dtype float16"),
    ],
)
def test_what_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(tensorplay.zeros(2, 3), tensorplay.tensor([[0, 1]]))
