"""Masks, tensors and lists between brackets, for reading and writing, on every device, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.operands import DTYPES, assert_close, operand, place, read, seeds
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import tensorplay
from tensorplay import _dtype
from tensorplay.errors import OutOfRangeError

same_device = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
SHAPES = [(3,), (4, 3), (2, 3, 4), (3, 2, 2, 3)]


@st.composite
def keys(draw: st.DrawFn) -> tuple[tuple[int, ...], list[Any]]:
    """A shape, and what goes between brackets: arrays stand for tensors."""
    shape = draw(st.sampled_from(SHAPES))
    common = draw(st.sampled_from([(), (2,), (1,), (2, 3), (0,)]))
    key: list[Any] = []
    dim = 0
    while dim < len(shape):
        kind = draw(st.sampled_from(["array", "array", "slice", "all", "number", "none", "mask", "list", "stop"]))
        if kind == "stop":
            break
        size = shape[dim]
        if kind == "none":
            if sum(part is None for part in key) < 2:
                key.append(None)
            continue
        if kind == "mask":
            covered = draw(st.integers(1, len(shape) - dim))
            random = np.random.default_rng(draw(seeds))
            key.append(random.random(shape[dim : dim + covered]) < 0.5)
            dim += covered
            continue
        if kind == "array":
            random = np.random.default_rng(draw(seeds))
            part = draw(st.sampled_from([common, (), (1,)[: len(common)]]))
            key.append(random.integers(-size, size, part))
        elif kind == "list":
            key.append(draw(st.lists(st.integers(-size, size - 1), min_size=1, max_size=2)))
        elif kind == "number":
            key.append(draw(st.integers(-size, size - 1)))
        else:
            key.append(slice(None) if kind == "all" else draw(st.sampled_from([slice(1, None), slice(None, None, 2)])))
        dim += 1
    if draw(st.booleans()) and dim < len(shape):
        key.insert(draw(st.integers(0, len(key))), ...)
        assume(key[-1] is ...)
    return shape, key


def on(device: str, key: list[Any]) -> tuple[Any, ...]:
    """The key with tensors for its arrays."""
    return tuple(tensorplay.tensor(part, device=device) if isinstance(part, np.ndarray) else part for part in key)


def part_of(array: Any, key: list[Any]) -> tuple[Any, tuple[Any, ...]]:
    """The array after the numbers of the key, and the rest of it: torch's order, in NumPy numbers count as arrays."""
    first: list[Any] = []
    for part in key:
        if isinstance(part, int) or (isinstance(part, np.ndarray) and part.ndim == 0):
            first.append(int(part))
        elif part is not None:
            is_mask = isinstance(part, np.ndarray) and part.dtype == bool
            first += [...] if part is ... else [slice(None)] * (part.ndim if is_mask else 1)
    rest = [part for part in key if not isinstance(part, int) and not (isinstance(part, np.ndarray) and part.ndim == 0)]
    return array[(*first, *([] if any(part is ... for part in first) else [...]))], tuple(rest)


def outcome(call: Any) -> Any:
    """What a call gives, or that it refuses."""
    try:
        return call()
    except (IndexError, ValueError):
        return None


@same_device
@given(drawn=keys(), seed=seeds)
def test_reading(device: str, drawn: tuple[tuple[int, ...], list[Any]], seed: int) -> None:
    shape, key = drawn
    x, array = operand(device, shape, _dtype.float32, "transposed", seed)
    view, rest = part_of(array, key)
    expected = outcome(lambda: view[rest])
    found = outcome(lambda: x[on(device, key)])
    assert (found is None) == (expected is None)
    if expected is not None:
        assert_close(found, expected, _dtype.float32)


@same_device
@given(drawn=keys(), seed=seeds, number=st.booleans())
def test_writing(device: str, drawn: tuple[tuple[int, ...], list[Any]], seed: int, number: bool) -> None:
    shape, key = drawn
    x, array = operand(device, shape, _dtype.float32, "contiguous", seed)
    array = array.copy()
    view, rest = part_of(array, key)
    target = outcome(lambda: view[rest])
    assume(target is not None)
    if number:
        x[on(device, key)] = 7
        view[rest] = 7
    else:
        value, values = operand(device, target.shape[-1:], _dtype.float32, "contiguous", seed + 1)
        # Where a place repeats, all of its values are the same.
        value, values = (value[:1], values[:1]) if value.ndim else (value, values)
        x[on(device, key)] = value
        view[rest] = values
    assert_close(x, array, _dtype.float32)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_every_dtype(device: str, dtype: tensorplay.DType, fresh_seed: int) -> None:
    random = np.random.default_rng(fresh_seed)
    x, array = operand(device, (5, 7, 3), dtype, "stepped", fresh_seed)
    rows, columns = random.integers(-5, 5, 4), random.integers(-7, 7, (2, 1))
    at, to = (place(part, _dtype.int64, device) for part in (rows, columns))
    assert_close(x[at], array[rows], dtype)
    assert_close(x[at, to], array[rows, columns], dtype)
    assert_close(x[at, :, 1], array[rows, :, 1], dtype)
    mask = random.random((5, 7)) < 0.4
    assert_close(x[tensorplay.tensor(mask, device=device)], array[mask], dtype)
    assert_close(
        tensorplay.masked_select(x, tensorplay.tensor(mask[..., None], device=device)), array[mask].ravel(), dtype
    )
    y, expected = x.clone(), array.copy()
    y[at, to] = 1
    expected[rows, columns] = 1
    assert_close(y, expected, dtype)
    y[tensorplay.tensor(mask, device=device)] = 0
    expected[mask] = 0
    assert_close(y, expected, dtype)
    values, added = operand(device, (2, 4, 3), dtype, "transposed", fresh_seed + 1)
    assert_close(
        y.index_put((at, to), values, accumulate=True), summed(expected, (rows, columns), added), dtype, room=64.0
    )


def summed(array: Any, key: Any, values: Any) -> Any:
    """The array with the values added at the key, repeated places as often as they repeat."""
    result = array.copy()
    np.add.at(result, key, values)
    return result


def test_places_out_of_range(device: str) -> None:
    x = tensorplay.ones(2, 3, device=device)
    for number in (3, -4):
        at = tensorplay.tensor([0, number], device=device)
        with pytest.raises(OutOfRangeError, match=f"index {number}"):
            x[:, at].cpu()
        with pytest.raises(OutOfRangeError, match=f"index {number}"):
            x[:, [0, number]].cpu()
        with pytest.raises(OutOfRangeError, match=f"index {number}"):
            x.index_put_((tensorplay.zeros(2, dtype=tensorplay.int64, device=device), at), x[0, 0] * 0).cpu()
    # A device may have written where the other indices are.
    assert read(x).tolist() in ([[1, 1, 1], [1, 1, 1]], [[0, 1, 1], [1, 1, 1]])


def test_keys_that_are_refused(device: str) -> None:
    x = tensorplay.ones(2, 3, device=device)
    two = tensorplay.tensor([0, 1], device=device)
    with pytest.raises(OutOfRangeError, match=r"shapes \(2,\) and \(3,\)"):
        x[two, tensorplay.tensor([0, 1, 2], device=device)]
    with pytest.raises(OutOfRangeError, match="got 3 indices, expected at most 2"):
        x[two, two, two]
    with pytest.raises(OutOfRangeError, match="mask"):
        x[tensorplay.ones(3, dtype=tensorplay.bool, device=device)]
