"""Views on every device, against NumPy's, and basic indexing for reading and writing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.operands import assert_equal, counted, dtypes, seeds
from hypothesis import assume, given
from hypothesis import strategies as st

import tensorplay
from tensorplay.errors import DTypeError, InvalidArgumentError, OutOfRangeError, StateError

small = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@given(shape=small, data=st.data())
def test_views_in_a_row(device: str, shape: tuple[int, ...], data: st.DataObject) -> None:
    x, array = counted(device, *shape)
    storage = x._backend.storage_id(x._impl)
    for _ in range(data.draw(st.integers(1, 4))):
        ndim = array.ndim
        kinds = ["unsqueeze"] if ndim < 6 else []
        kinds += ["transpose", "permute", "squeeze", "slice", "select", "expand"] if ndim else ["expand"]
        kind = data.draw(st.sampled_from(kinds))
        dim = data.draw(st.integers(-max(ndim, 1), max(ndim, 1) - 1))
        if kind == "unsqueeze":
            dim = data.draw(st.integers(-ndim - 1, ndim))
            x, array = x.unsqueeze(dim), np.expand_dims(array, dim)
        elif kind == "transpose":
            other = data.draw(st.integers(-ndim, ndim - 1))
            x, array = x.transpose(dim, other), array.swapaxes(dim, other)
        elif kind == "permute":
            order = data.draw(st.permutations(range(ndim)))
            x, array = x.permute(*order), array.transpose(order)
        elif kind == "squeeze":
            x, array = x.squeeze(dim), array.squeeze(dim) if array.shape[dim] == 1 else array
        elif kind == "slice":
            start, stop, step = data.draw(st.tuples(st.integers(-5, 5), st.integers(-5, 5), st.integers(1, 3)))
            key = (slice(None),) * (dim % ndim) + (slice(start, stop, step),)
            x, array = x[key], array[key]
        elif kind == "select":
            assume(array.shape[dim])
            index = data.draw(st.integers(-array.shape[dim], array.shape[dim] - 1))
            x, array = x.select(dim, index), array[(slice(None),) * (dim % ndim) + (index, ...)]
        else:
            wanted = (2, *(3 if size == 1 else size for size in array.shape))
            x, array = x.expand(wanted), np.broadcast_to(array, wanted)
            assume(array.ndim < 7)
        assert_equal(x, array)
        assert not array.size or x._backend.storage_id(x._impl) == storage
        assert x.is_contiguous() == array.flags.c_contiguous
        assert_equal(x.contiguous(), array)


@given(shape=small, data=st.data())
def test_view_and_reshape(device: str, shape: tuple[int, ...], data: st.DataObject) -> None:
    x, array = counted(device, *shape)
    if data.draw(st.booleans()):
        x, array = x.T, array.T
    sizes = [1, 2, 3, 4, 6, 8, array.size]
    wanted = data.draw(st.lists(st.sampled_from(sizes), max_size=4).filter(lambda s: int(np.prod(s)) == array.size))
    result = x.reshape(wanted)
    assert_equal(result, array.reshape(wanted))
    try:
        view = x.view(wanted)
    except StateError as error:
        assert "reshape() copies" in str(error)
        assert x._backend.storage_id(result._impl) != x._backend.storage_id(x._impl)
    else:
        assert_equal(view, array.reshape(wanted))
        assert x._backend.storage_id(view._impl) == x._backend.storage_id(x._impl)


def test_one_size_is_deduced(device: str) -> None:
    x, array = counted(device, 2, 3, 4)
    assert_equal(x.view(-1, 4), array.reshape(6, 4))
    assert_equal(x.reshape(2, -1), array.reshape(2, 12))
    assert_equal(x.flatten(1), array.reshape(2, 12))
    assert_equal(x.flatten(0, 1), array.reshape(6, 4))
    for method in ("view", "reshape"):
        with pytest.raises(InvalidArgumentError, match=rf"{method}: got shape \(-1, 5\)"):
            getattr(x, method)(-1, 5)
        with pytest.raises(InvalidArgumentError, match=f"{method}: got shape .* at most one -1"):
            getattr(x, method)(-1, -1)
        with pytest.raises(InvalidArgumentError, match=f"{method}: got shape .* expected 24 elements"):
            getattr(x, method)(5, 5)


def test_properties_that_turn_dimensions(device: str) -> None:
    x, array = counted(device, 2, 3, 4)
    assert_equal(x.T, array.T)
    assert_equal(x.mT, array.swapaxes(-1, -2))
    assert_equal(x[0].t(), array[0].T)
    with pytest.raises(InvalidArgumentError, match="t: got shape"):
        x.t()


def test_split_chunk_and_narrow(device: str) -> None:
    x, array = counted(device, 7, 2)
    assert [part.tolist() for part in x.split(3)] == [array[:3].tolist(), array[3:6].tolist(), array[6:].tolist()]
    assert [part.shape for part in x.split([5, 2])] == [(5, 2), (2, 2)]
    assert [part.shape for part in x.chunk(3)] == [(3, 2), (3, 2), (1, 2)]
    assert_equal(x.narrow(0, -2, 2), array[-2:])
    with pytest.raises(OutOfRangeError, match="narrow: got 3 from 5 in dimension 0 of size 7"):
        x.narrow(0, 5, 3)


def test_as_strided_stays_inside_the_storage(device: str) -> None:
    x, array = counted(device, 3, 4)
    assert_equal(x[1:].as_strided((2, 2), (5, 1), 1), np.array([[1, 2], [6, 7]]))
    assert_equal(x[1:].as_strided((2,), (1,)), array[1, :2])
    with pytest.raises(OutOfRangeError, match="reach element 12, .* 12 elements of the storage"):
        x.as_strided((2, 2), (4, 1), 7)
    # The storage of what has no elements has none, wherever a slice begins.
    assert tensorplay.zeros(3, 1, 0, device=device)[1::2].diagonal().shape == (0, 1)
    with pytest.raises(InvalidArgumentError, match="expected 0 or more"):
        x.as_strided((2,), (-1,), 5)


@given(shape=small, source=dtypes, target=dtypes, data=st.data())
def test_view_as_another_dtype(
    device: str, shape: tuple[int, ...], source: tensorplay.DType, target: tensorplay.DType, data: st.DataObject
) -> None:
    raw = np.random.default_rng(data.draw(seeds)).integers(0, 2, int(np.prod(shape)) * source.itemsize, np.uint8)
    array = raw.view(source.numpy).reshape(shape)
    x = tensorplay.tensor(array, dtype=source, device=device)
    if shape and data.draw(st.booleans()):
        start, step = data.draw(st.integers(0, 2)), data.draw(st.integers(1, 2))
        x, array = x[..., start::step], array[..., start::step]
    if shape and data.draw(st.booleans()):
        x, array = x.transpose(0, -1), array.swapaxes(0, -1)
    ratio = max(1, target.itemsize // source.itemsize)
    try:
        view = x.view(target)
    except (InvalidArgumentError, StateError) as error:
        assert str(error).startswith("view: got")
        # Other tensors of these elements have such a view, or none has.
        odd = any(stride % ratio for stride in x.stride()[:-1]) or x.storage_offset() % ratio
        assert not shape or array.shape[-1] % ratio or odd or x.stride(-1) != 1
    else:
        if view.numel():
            assert view._backend.storage_id(view._impl) == x._backend.storage_id(x._impl)
        expected = np.ascontiguousarray(array).reshape(array.shape).view(target.numpy)
        assert (view.dtype, view.shape) == (target, expected.shape)
        assert view.cpu().contiguous().numpy().tobytes() == expected.tobytes()
        assert_equal(view.view(source), array)


def test_what_has_no_view_as_another_dtype(device: str) -> None:
    x = tensorplay.zeros(4, 6, device=device)
    assert x.view(tensorplay.int16).shape == (4, 12)
    assert x.T.view(tensorplay.int32).stride() == (1, 6)
    for tensor, dtype, error in (
        (x[:, ::2], tensorplay.int16, StateError),  # elements are apart
        (x[:, 1:5], tensorplay.int64, StateError),  # begins between two new ones
        (x.view(-1)[:20].view(4, 5)[:, :4], tensorplay.int64, StateError),  # an odd stride
        (x[:, :3], tensorplay.int64, InvalidArgumentError),  # half an element is left over
        (x.sum(), tensorplay.int64, InvalidArgumentError),
    ):
        with pytest.raises(error, match="view: got"):
            tensor.view(dtype)


def test_parts_of_complex_numbers(device: str) -> None:
    array = np.array([[1 + 2j, 3 - 4j, 0], [5, 6j, -7 - 8j]], np.complex64)
    x = tensorplay.tensor(array, device=device)
    for tensor, numbers in ((x, array), (x.T, array.T), (x[:, 1:], array[:, 1:]), (x[0, 1], array[0, 1])):
        assert_equal(tensor.real, numbers.real)
        assert_equal(tensorplay.imag(tensor), numbers.imag)
        pairs = tensorplay.view_as_real(tensor)
        assert_equal(pairs, np.stack([numbers.real, numbers.imag], -1))
        assert_equal(tensorplay.view_as_complex(pairs), numbers)
    x.imag.zero_()
    assert_equal(x, array.real.astype(np.complex64))
    plain = tensorplay.ones(2, 2, device=device)
    assert plain.real is plain
    with pytest.raises(DTypeError, match="imag: got dtype float32, expected a complex one"):
        plain.imag  # noqa: B018
    with pytest.raises(DTypeError, match="view_as_real: got dtype float32"):
        tensorplay.view_as_real(plain)
    with pytest.raises(DTypeError, match="view_as_complex: got dtype int64"):
        tensorplay.view_as_complex(plain.long())
    with pytest.raises(InvalidArgumentError, match=r"view_as_complex: got shape \(2, 1\)"):
        tensorplay.view_as_complex(plain[:, :1])
    with pytest.raises(StateError, match="view: got strides"):
        tensorplay.view_as_complex(plain.T)


@given(shape=small, data=st.data())
def test_flip(device: str, shape: tuple[int, ...], data: st.DataObject) -> None:
    x, array = counted(device, *shape)
    if data.draw(st.booleans()):
        x, array = x.T, array.T
    ndim = len(shape)
    dims = data.draw(st.lists(st.integers(-ndim, ndim - 1), unique_by=lambda dim: dim % ndim) if ndim else st.just([]))
    turned = x.flip(dims)
    assert_equal(turned, np.flip(array, tuple(dims)))
    assert turned.is_contiguous()
    turned.fill_(-1)
    assert_equal(x, array)


def test_flip_refuses(device: str) -> None:
    x = tensorplay.zeros(2, 3, device=device)
    with pytest.raises(OutOfRangeError, match="flip: got dimension 2"):
        x.flip(2)
    with pytest.raises(InvalidArgumentError, match=r"flip: got dimensions \(0, -2\), expected each of them once"):
        x.flip(0, -2)


def test_writing_to_a_view_shows_in_the_others(device: str) -> None:
    x, array = counted(device, 3, 4)
    x[1:].T[2].fill_(-1)
    array[1:].T[2] = -1
    assert_equal(x, array)


KEYS: list[Any] = [0, -1, slice(None), slice(1, None), slice(None, None, 2), slice(2, 1), slice(-9, 9), None, ...]


@given(
    keys=st.lists(st.sampled_from(KEYS), max_size=5).map(tuple), shape=st.sampled_from([(3,), (2, 3), (4, 2, 3), ()])
)
def test_basic_indexing(device: str, keys: tuple[Any, ...], shape: tuple[int, ...]) -> None:
    assume(sum(key is ... for key in keys) <= 1)
    x, array = counted(device, *shape)
    try:
        expected = array[(*keys, ...)] if ... not in keys else array[keys]
    except IndexError:
        with pytest.raises(OutOfRangeError, match=r"tensor\[\.\.\.\]: got"):
            x[keys]
        return
    assert_equal(x[keys], expected)
    x[keys] = 7
    array[keys] = 7
    assert_equal(x, array)
    x[keys] = tensorplay.full((1,) * 3, -2.5)
    array[keys] = -2
    assert_equal(x, array)


def test_values_are_cast_and_broadcast_when_written(device: str) -> None:
    x = tensorplay.zeros(2, 3, dtype=tensorplay.float16, device=device)
    x[:, 1:] = tensorplay.tensor([[1.5], [2.5]], device=device)
    x[1] = tensorplay.arange(3)
    assert x.tolist() == [[0, 1.5, 1.5], [0, 1, 2]]
    with pytest.raises(InvalidArgumentError, match=r"copy_: got a source of shape \(2,\), expected .* \(2, 3\)"):
        x[...] = tensorplay.ones(2, device=device)


def test_integers_in_tensors_and_arrays_are_indices(device: str) -> None:
    x, array = counted(device, 3, 4)
    assert_equal(x[tensorplay.tensor(1, device=device)], array[1])
    assert_equal(x[np.int64(-1), np.array(2)], array[-1, 2])


@pytest.mark.parametrize(
    ("key", "error", "words"),
    [
        (3, OutOfRangeError, "got index 3, expected -3 to 2"),
        ((0, 0, 0), OutOfRangeError, "got 3 indices, expected at most 2"),
        (slice(None, None, -1), InvalidArgumentError, "expected a step of 1 or more"),
        (slice(None, None, 0), InvalidArgumentError, "expected a step of 1 or more"),
        (slice("a", None), DTypeError, "expected integers in a slice"),
        (1.0, DTypeError, "got float as an index, expected integers, slices, None, Ellipsis, bools"),
    ],
)
def test_bad_keys(device: str, key: Any, error: type[Exception], words: str) -> None:
    x, array = counted(device, 3, 4)
    with pytest.raises(error, match=words):
        x[key]
    with pytest.raises(error, match=words):
        x[key] = 1
    assert_equal(x, array)


def test_length_iteration_and_membership(device: str) -> None:
    x, array = counted(device, 3, 2)
    assert len(x) == 3
    assert [row.tolist() for row in x] == array.tolist()
    assert 5 in x
    assert 6 not in x
    with pytest.raises(DTypeError, match="len: got a tensor without dimensions"):
        len(x.sum())


def test_dimensions_that_do_not_exist(device: str) -> None:
    x, _ = counted(device, 3, 4)
    for call in (
        lambda: x.transpose(0, 2),
        lambda: x.squeeze(5),
        lambda: x.unsqueeze(-4),
        lambda: x.select(2, 0),
        lambda: x.size(-3),
        lambda: x.permute(0, 2),
        lambda: x.flatten(0, 2),
    ):
        with pytest.raises(OutOfRangeError, match="got dimension"):
            call()
    with pytest.raises(InvalidArgumentError, match="permute: got dimensions"):
        x.permute(0, 0)
    with pytest.raises(InvalidArgumentError, match=r"expand: got shape \(3, 5\)"):
        x.expand(3, 5)


def test_expand_repeats_without_memory(device: str) -> None:
    x, array = counted(device, 1, 3)
    wide = x.expand(4, -1)
    assert wide.stride() == (0, 1)
    assert_equal(wide, np.broadcast_to(array, (4, 3)))
    assert_equal(x.squeeze(0).expand(2, 2, 3), np.broadcast_to(array[0], (2, 2, 3)))
