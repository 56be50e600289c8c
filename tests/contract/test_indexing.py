"""Indexing by masks, tensors, lists and bools on every device, against NumPy; views alone are in test_views."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.operands import DTYPES, counted, place, read, values
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorplay
from tensorplay.errors import DTypeError, IndexTypeError, InvalidArgumentError, OutOfRangeError

many = settings(max_examples=200)
Array = np.ndarray[Any, Any]


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A key of every kind of part, whose arrays mostly broadcast together."""
    sizes = list(shape)
    shared = draw(st.sampled_from([(2,), (3,), (2, 3), (1,)]))
    parts: list[Any] = []
    skipped = False
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["int", "slice", "index", "index", "mask", "None", "...", "bool"]))
        if kind == "..." and not skipped:
            skipped = True
            parts.append(...)
            del sizes[: draw(st.integers(0, len(sizes)))]
            continue
        if kind in ("None", "...", "bool") or not sizes:
            parts.append(draw(st.booleans()) if kind == "bool" else None)
            continue
        size = sizes.pop(0)
        if kind == "int" and size:
            parts.append(draw(st.integers(-size, max(size - 1, 0))))
        elif kind in ("int", "slice"):
            limits = st.none() | st.integers(-size - 1, size + 1)
            parts.append(slice(draw(limits), draw(limits), draw(st.sampled_from([None, 1, 2]))))
        elif kind == "index":
            own = shared[draw(st.integers(0, len(shared) - 1)) :] if size else (0,)
            numbers = st.integers(-size, max(size - 1, 0))
            flat = draw(st.lists(numbers, min_size=int(np.prod(own)), max_size=int(np.prod(own))))
            parts.append(np.array(flat, np.int64).reshape(own))
        else:
            random = np.random.default_rng(draw(st.integers(0, 2**16)))
            more = [sizes.pop(0)] if sizes and draw(st.booleans()) else []
            parts.append(random.random((size, *more)) > 0.5)
    if skipped:
        # What follows the Ellipsis are the last dimensions.
        parts += [slice(None)] * len(sizes)
    return tuple(parts)


def picked(array: Array, key: tuple[Any, ...]) -> tuple[Array, tuple[Any, ...]]:
    """A view by integers, slices and None, and the rest of the key for it: torch's order, which NumPy has not."""
    taken = sum(part.ndim if isinstance(part, np.ndarray) and part.dtype == bool else 1
                for part in key if part is not None and part is not ... and not isinstance(part, bool))  # fmt: skip
    written = [part for part in key if part is not ...]
    place_of_rest = next((number for number, part in enumerate(key) if part is ...), len(key))
    written[place_of_rest:place_of_rest] = [slice(None)] * (array.ndim - taken)
    basic: list[Any] = []
    rest: list[Any] = []
    for part in written:
        if isinstance(part, (np.ndarray, bool)):
            dims = 1 if isinstance(part, bool) or part.dtype != bool else part.ndim
            basic += [None] if isinstance(part, bool) else [slice(None)] * dims
            rest.append(np.zeros(int(part), np.int64) if isinstance(part, bool) else part)
        else:
            basic.append(part)
            if not isinstance(part, int):
                rest.append(slice(None))
    return array[(*basic, ...)], tuple(rest)


def moved(key: tuple[Any, ...], device: str, kind: int) -> Any:
    """The key with tensors on the device or the host, arrays or lists for its arrays."""

    def one(part: Any) -> Any:
        if not isinstance(part, np.ndarray):
            return part
        made = [
            lambda: tensorplay.tensor(part, device=device),
            lambda: tensorplay.tensor(part),
            lambda: part,
            lambda: part.tolist() if part.size else part,
        ]
        return made[kind]()

    return tuple(map(one, key)) if len(key) > 1 else one(key[0])


@many
@given(shape=st.lists(st.integers(0, 4), max_size=4).map(tuple), kind=st.integers(0, 3), data=st.data())
def test_reading_and_writing(device: str, shape: tuple[int, ...], kind: int, data: st.DataObject) -> None:
    x, array = counted(device, *shape)
    key = data.draw(keys(shape))
    view, rest = picked(array, key)
    asked = moved(key, device, kind)
    try:
        expected = view[rest]
    except IndexError:
        for act in (lambda: x[asked], lambda: x.__setitem__(asked, 1)):
            with pytest.raises(OutOfRangeError, match=r"tensor\[...\]: got"):
                act()
        return
    result = x[asked]
    assert result.shape == expected.shape
    np.testing.assert_array_equal(read(result), expected)
    x[asked] = -1
    view[rest] = -1
    np.testing.assert_array_equal(read(x), array)
    # Of equal indices any value may stay, so all of a place are equal: the place's own.
    again, before = counted(device, *shape)
    again[asked] = tensorplay.tensor(expected[None] * 2, device=device)
    view, rest = picked(before, key)
    view[rest] = expected * 2
    np.testing.assert_array_equal(read(again), before)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_every_dtype(device: str, dtype: tensorplay.DType) -> None:
    array = values((5, 4), dtype, seed=3)
    x = place(array, dtype, device)
    mask, rows = array != 0, np.array([3, -5, 3])
    np.testing.assert_array_equal(read(x[tensorplay.tensor(mask, device=device)]), array[mask])
    np.testing.assert_array_equal(read(x[rows, :2]), array[rows, :2])
    x[mask] = x[:1, :1]
    array[mask] = array[0, 0]
    x[rows] = 1
    array[rows] = 1
    np.testing.assert_array_equal(read(x), array)


def test_a_mask_that_gets_one_value_waits_for_nothing(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, array = counted(device, 3, 4)
    mask = x % 2 == 0
    value = tensorplay.tensor(-3, device=device)

    def refuse(*_: object) -> None:
        raise AssertionError("the elements went to the host")

    with monkeypatch.context() as patch:
        patch.setattr(type(x._backend), "to_host", refuse)
        x[mask] = -1
        x[1:][mask[1:]] = value
        x[x[:, 0] > 7] = 0
        x[tensorplay.full((2,), 1, dtype=tensorplay.int64, device=device)] = 7
    array[array % 2 == 0] = -1
    array[1:][array[1:] == -1] = -3
    array[array[:, 0] > 7] = 0
    array[1] = 7
    np.testing.assert_array_equal(read(x), array)


def test_adding_to_what_is_picked_counts_repeated_indices_once(device: str) -> None:
    x = tensorplay.zeros(4, device=device)
    x[[1, 1, 3]] += 2
    assert x.tolist() == [0, 2, 0, 2]
    x.index_put_((tensorplay.tensor([1, 1, -1], device=device),), tensorplay.ones(3, device=device), accumulate=True)
    assert x.tolist() == [0, 4, 0, 3]


def test_picking_from_itself(device: str) -> None:
    x = tensorplay.tensor([2, 0, 1, 3], device=device)
    x[x] = x
    assert x.tolist() == [0, 1, 2, 3]
    x[[0, 1, 2]] = x[1:]
    assert x.tolist() == [1, 2, 3, 3]
    x = tensorplay.tensor([2, 0, 1, 3], device=device)
    x.scatter_(0, x, x)
    assert x.tolist() == [0, 1, 2, 3]
    x = tensorplay.tensor([2, 0, 1, 3], device=device)
    x.index_put_((x,), x + 0, accumulate=True)
    assert x.tolist() == [2, 1, 3, 6]


def test_values_are_cast_and_fetched(device: str) -> None:
    x = tensorplay.zeros(4, dtype=tensorplay.int32, device=device)
    x[[0, 2]] = tensorplay.tensor([1.5, -2.5], device=device)
    x[[3]] = tensorplay.tensor(7)
    assert x.tolist() == [1, 0, -2, 7]
    with pytest.raises(InvalidArgumentError, match=r"index_put_: got values of shape \(3,\), expected"):
        x[[0, 1]] = tensorplay.zeros(3, device=device)


@pytest.mark.parametrize(
    ("key", "error", "words"),
    [
        (np.array([0, 3]), OutOfRangeError, "index 3 is out of range for a dimension of size 3"),
        ((0, np.array([-5])), OutOfRangeError, "index -5 is out of range for a dimension of size 4"),
        (np.ones((3, 3), bool), OutOfRangeError, r"got a mask of shape \(3, 3\), expected \(3, 4\), as dim.* 0 to 1"),
        (np.ones((3, 4, 1), bool), OutOfRangeError, "got 3 indices, expected at most 2"),
        (([0, 1], [0, 1, 2]), OutOfRangeError, r"got shapes \(2,\) and \(3,\)"),
        ([1.0], IndexTypeError, "got list as an index, expected integers, slices, None, Ellipsis"),
        ([[0], [0, 1]], IndexTypeError, "got list as an index"),
        (np.array([1], np.uint8), IndexTypeError, r"got a uint8 ndarray of shape \(1,\) as an index"),
    ],
)
def test_bad_keys(device: str, key: Any, error: type[Exception], words: str) -> None:
    x, _ = counted(device, 3, 4)
    with pytest.raises(error, match=words):
        x[key].cpu()


def test_bad_indices_are_told_when_writing_too(device: str) -> None:
    x, _ = counted(device, 3, 4)

    def write(key: Any) -> None:
        x[key] = tensorplay.ones(4, dtype=x.dtype, device=device)
        x.tolist()  # A device tells it now.

    with pytest.raises(OutOfRangeError, match="index -4 is out of range for a dimension of size 3"):
        write([-4, 0])
    with pytest.raises(IndexTypeError, match="got str as an index"):
        write("a")
    with pytest.raises(OutOfRangeError, match="got a mask of shape"):
        x[np.ones(4, bool)] = 1


def test_tensors_of_other_dtypes_and_devices_are_no_indices(device: str) -> None:
    x, _ = counted(device, 3, 4)
    with pytest.raises(IndexTypeError, match="got a tensorplay.float32 Tensor"):
        x[tensorplay.ones(2, device=device)]
    with pytest.raises(IndexTypeError, match="got a tensorplay.uint8 Tensor"):
        x[tensorplay.ones(2, dtype=tensorplay.uint8, device=device)]
    with pytest.raises(IndexTypeError, match="got a tensorplay.int8 Tensor"):
        x[tensorplay.ones((), dtype=tensorplay.int8, device=device)]
    if device != "cpu":
        with pytest.raises(InvalidArgumentError, match="on different devices"):
            x.cpu()[tensorplay.zeros(2, dtype=tensorplay.int64, device=device)]


def test_nothing_to_pick_from(device: str) -> None:
    x = tensorplay.zeros(0, 3, device=device)
    assert x[[]].shape == (0, 3)
    assert x[tensorplay.zeros(0, dtype=tensorplay.bool, device=device)].shape == (0, 3)
    assert x[x > 0].shape == (0,)
    with pytest.raises(OutOfRangeError, match="dimension 0 of size 0"):
        x[[0]]


@many
@given(shape=st.lists(st.integers(0, 5), max_size=4).map(tuple), seed=st.integers(0, 2**16))
def test_places_that_are_not_zero(device: str, shape: tuple[int, ...], seed: int) -> None:
    array = np.random.default_rng(seed).integers(-1, 2, shape)
    x = tensorplay.tensor(array, device=device)
    np.testing.assert_array_equal(read(x.nonzero()), np.argwhere(array))
    np.testing.assert_array_equal(read(tensorplay.argwhere(x)), np.argwhere(array))
    for got, expected in zip(x.nonzero(as_tuple=True), np.atleast_1d(array).nonzero(), strict=True):
        np.testing.assert_array_equal(read(got), expected)
    np.testing.assert_array_equal(read(x.masked_select(x > 0)), array[array > 0])
    alone = tensorplay.where(x != 0)
    assert [part.tolist() for part in alone] == [part.tolist() for part in np.atleast_1d(array).nonzero()]
    count = int((array < 0).sum())
    source = np.arange(10, 12 + count)
    expected = array.copy()
    expected[array < 0] = source[:count]
    np.testing.assert_array_equal(read(x.masked_scatter(x < 0, tensorplay.tensor(source, device=device))), expected)


def test_masks_broadcast_where_they_are_arguments(device: str) -> None:
    x, array = counted(device, 2, 3)
    mask = tensorplay.tensor([True, False, True], device=device)
    np.testing.assert_array_equal(read(x.masked_select(mask)), array[:, [0, 2]].reshape(-1))
    with pytest.raises(DTypeError, match="masked_select: got a mask of int64, expected bool"):
        x.masked_select(x)
    with pytest.raises(InvalidArgumentError, match="masked_scatter_: got 1 elements in source, expected 4"):
        x.masked_scatter_(mask, tensorplay.ones(1, dtype=x.dtype, device=device))


def test_keys_of_views_and_numbers_are_still_views(device: str) -> None:
    x, array = counted(device, 3, 4)
    x[1:, None][0].fill_(0)
    x[tensorplay.tensor(2, device=device), 1:].fill_(-1)
    array[1], array[2, 1:] = 0, -1
    np.testing.assert_array_equal(read(x), array)
