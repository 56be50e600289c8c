"""Arithmetic of shapes and strides, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorplay import _shape
from tensorplay.errors import DTypeError, InvalidArgumentError

shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@given(first=shapes, second=shapes)
def test_broadcast(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    try:
        expected = np.broadcast_shapes(first, second)
    except ValueError:
        with pytest.raises(InvalidArgumentError, match="add: got shapes"):
            _shape.broadcast("add", first, second)
    else:
        assert _shape.broadcast("add", first, second) == expected


@given(shape=shapes, data=st.data())
def test_view_strides_are_those_of_a_view_that_needs_no_copy(shape: tuple[int, ...], data: st.DataObject) -> None:
    array = np.arange(int(np.prod(shape)), dtype=np.int8).reshape(shape)
    array = array.transpose(data.draw(st.permutations(range(len(shape)))))
    if data.draw(st.booleans()) and array.ndim:
        array = array[..., ::2]
    sizes = st.sampled_from([1, 2, 3, 4, 6, 8, max(array.size, 0)])
    wanted = data.draw(st.lists(sizes, max_size=4).map(tuple).filter(lambda s: int(np.prod(s)) == array.size))
    strides = _shape.view_strides(array.shape, array.strides, wanted)
    if strides is None:
        assert not np.shares_memory(array.reshape(wanted), array)
        return
    view = np.lib.stride_tricks.as_strided(array, wanted, strides)
    np.testing.assert_array_equal(view, array.reshape(wanted))


@pytest.mark.parametrize(("arguments", "expected"), [((2, 3), (2, 3)), (((2, 3),), (2, 3)), (([],), ()), ((), ())])
def test_integers_come_one_by_one_or_as_a_sequence(arguments: tuple[object, ...], expected: tuple[int, ...]) -> None:
    assert _shape.integers("view", arguments) == expected
    assert _shape.integers("view", (np.int64(5),)) == (5,)


@pytest.mark.parametrize("arguments", [(1.0,), ("2",), (2, None), (None,), ((2, 3), 4)])
def test_what_is_no_integer(arguments: tuple[object, ...]) -> None:
    with pytest.raises(DTypeError, match="view: got .* expected integers"):
        _shape.integers("view", arguments)
