"""Copies of joined, turned, repeated and padded tensors on every device, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.operands import DTYPES, assert_equal, counted, operand, seeds
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorplay
import tensorplay.nn.functional as F
from tensorplay.errors import DTypeError, InvalidArgumentError, OutOfRangeError

few = settings(max_examples=12)
shapes = st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple)
layouts = st.sampled_from(["contiguous", "transposed", "stepped"])


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@few
@given(shape=shapes, layout=layouts, seed=seeds, data=st.data())
def test_turned_repeated_and_joined(
    device: str, dtype: tensorplay.DType, shape: tuple[int, ...], layout: str, seed: int, data: st.DataObject
) -> None:
    x, array = operand(device, shape, dtype, layout, seed)
    ndim = len(shape)
    dim = data.draw(st.integers(-ndim, ndim - 1))
    dims = data.draw(st.lists(st.integers(0, ndim - 1), min_size=1, max_size=3))
    shifts = data.draw(st.lists(st.integers(-7, 7), min_size=len(dims), max_size=len(dims)))
    counts = data.draw(st.lists(st.integers(0, 3), min_size=ndim, max_size=ndim + 1))
    turns = data.draw(st.integers(-5, 5))
    assert_equal(x.roll(shifts, dims), np.roll(array, shifts, dims))
    assert_equal(x.roll(shifts[0]), np.roll(array, shifts[0]))
    assert_equal(x.flipud(), np.flipud(array))
    if ndim > 1:
        assert_equal(x.fliplr(), np.fliplr(array))
        assert_equal(x.rot90(turns, (0, -1)), np.rot90(array, turns, (0, -1)))
    assert_equal(x.repeat(counts), np.tile(array, counts))
    assert_equal(x.tile(*counts[1:]), np.tile(array, counts[1:]))
    assert_equal(x.repeat_interleave(2, dim), array.repeat(2, dim))
    assert_equal(x.repeat_interleave(3), array.repeat(3))
    assert_equal(tensorplay.cat([x, x[..., :1], x], -1), np.concatenate([array, array[..., :1], array], -1))
    assert_equal(tensorplay.stack([x, x], dim), np.stack([array, array], dim))
    for name in ("hstack", "vstack", "dstack"):
        assert_equal(getattr(tensorplay, name)([x, x]), getattr(np, name)([array, array]))


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@few
@given(shape=st.lists(st.integers(3, 5), min_size=1, max_size=4).map(tuple), data=st.data())
def test_pad(device: str, mode: str, shape: tuple[int, ...], data: st.DataObject) -> None:
    x, array = counted(device, *shape)
    ndim = data.draw(st.integers(1, len(shape)))
    sides = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=ndim, max_size=ndim))
    pads = [number for side in reversed(sides) for number in side]
    name = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
    expected = np.pad(array, [(0, 0)] * (len(shape) - ndim) + sides, name)  # type: ignore[call-overload]
    assert_equal(F.pad(x, pads, mode), expected)


def test_pad_by_a_value_and_by_less_than_nothing(device: str) -> None:
    x, array = counted(device, 2, 4)
    assert_equal(F.pad(x, (1, 0), value=7), np.pad(array, ((0, 0), (1, 0)), constant_values=7))
    assert_equal(F.pad(x, (-1, 2)), np.pad(array[:, 1:], ((0, 0), (0, 2))))
    assert_equal(F.pad(x, (-1, 2), "replicate"), np.pad(array[:, 1:], ((0, 0), (0, 2)), "edge"))
    assert_equal(F.pad(x, (0, 0, -1, 0)), array[1:])
    with pytest.raises(InvalidArgumentError, match="pad: got 3 numbers"):
        F.pad(x, (1, 1, 1))
    with pytest.raises(InvalidArgumentError, match="expected at most 3 for 'reflect'"):
        F.pad(x, (4, 0), "reflect")
    with pytest.raises(InvalidArgumentError, match="pad: got -3 and -2 in dimension 1 of size 4"):
        F.pad(x, (-3, -2))
    with pytest.raises(DTypeError, match="pad: got mode 'mirror'"):
        F.pad(x, (1, 1), "mirror")


def test_counts_for_each_element(device: str) -> None:
    x, array = counted(device, 3, 2)
    counts = tensorplay.tensor([2, 0, 3], device=device)
    assert_equal(x.repeat_interleave(counts, 0), array.repeat([2, 0, 3], 0))
    assert_equal(x.repeat_interleave(counts, 0, output_size=5), array.repeat([2, 0, 3], 0))
    with pytest.raises(InvalidArgumentError, match="repeat_interleave: got a negative count"):
        x.repeat_interleave(counts - 1, 0)
    with pytest.raises(InvalidArgumentError, match=r"got repeats of shape \(3,\), expected one for each of 2"):
        x.repeat_interleave(counts, 1)


def test_copies_are_no_views(device: str) -> None:
    x, array = counted(device, 2, 3)
    for copy in (x.roll(0, 0), x.repeat(1, 1), x.tile(1), x.rot90(0), F.pad(x, (0, 0)), F.pad(x, (0, 0), "reflect")):
        copy.fill_(-1)
    assert_equal(x, array)


def test_diagonals_and_matrices(device: str) -> None:
    x, array = counted(device, 3)
    for offset in (-2, 0, 1):
        assert_equal(x.diag(offset), np.diag(array, offset))
        assert_equal(x.diag(offset).diag(offset), array)


def test_joined_dtypes_and_outputs(device: str) -> None:
    x, array = counted(device, 2, 3)
    nothing = tensorplay.zeros(0, device=device)
    assert_equal(tensorplay.cat([nothing, x, x.half()]), np.concatenate([array, array]).astype(np.float64))
    assert tensorplay.concat([nothing, x]).dtype is tensorplay.float32
    out = tensorplay.zeros(4, 3, device=device)
    assert tensorplay.cat([x, x], out=out) is out
    assert_equal(out, np.concatenate([array, array]).astype(np.float64))
    with pytest.raises(InvalidArgumentError, match=r"cat: got shapes \(2, 3\) and \(3, 2\)"):
        tensorplay.cat([x, x.T])
    with pytest.raises(OutOfRangeError, match="cat: got a tensor without dimensions"):
        tensorplay.cat([x[0, 0], x[0, 1]])
