"""Copies and casts between any two devices."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from helpers.operands import (
    DTYPES,
    INTEGERS,
    LAYOUTS,
    arranged,
    dtypes,
    held,
    layouts,
    operand,
    read,
    seeds,
    shapes,
    special,
    widest,
)
from hypothesis import given

import tensorplay
from tensorplay.errors import DTypeError, InvalidArgumentError

#: Numbers at which casts differ: what narrow integers wrap, what integers cannot hold, what half types round.
EDGES = [300.7, -300.7, 3e9, -3e9, 1e20, -1e20, 65519.0, 65520.0, 2049.0, 2051.0, 2.0**-24, 2.0**-25]


def whole(number: float, dtype: tensorplay.DType) -> int:
    """A number in an integer dtype: cut off and kept to the range of int32 or int64, of which narrow ones wrap."""
    if isinstance(number, float):
        end = 2 ** (31 if dtype is tensorplay.int32 else 63)
        if number != number:
            number = 0 if dtype is tensorplay.int32 else -end
        number = int(max(-end, min(number, end - 1)))
    half = 2 ** (8 * dtype.itemsize - 1) if dtype.is_signed else 0
    return (number + half) % 2 ** (8 * dtype.itemsize) - half


def cast(array: Any, dtype: tensorplay.DType) -> Any:
    """Elements as a dtype holds them, in its widest kind."""
    array = np.asarray(array)
    if dtype is tensorplay.bool:
        return array != 0
    if array.dtype.kind == "c" and not dtype.is_complex:
        array = array.real
    if dtype in INTEGERS:
        return np.array([whole(number, dtype) for number in array.reshape(-1).tolist()], np.int64).reshape(array.shape)
    with np.errstate(all="ignore"):
        if dtype.itemsize == 2:
            array = array.astype(np.float32)
        return array.astype(dtype.numpy).astype(widest(dtype))


def assert_same(got: Any, expected: Any) -> None:
    """Equal elements with equal signs of zeros."""
    np.testing.assert_array_equal(got, expected)
    for part in ("real", "imag"):
        signs = [np.signbit(getattr(x, part)) & ~np.isnan(getattr(x, part)) for x in (got, expected) if x.dtype != bool]
        np.testing.assert_array_equal(*(signs or [True, True]))


@pytest.mark.parametrize("source", DTYPES, ids=lambda dtype: dtype.name)
def test_casts_of_special_numbers(device: str, source: tensorplay.DType) -> None:
    array = special(source)
    if source.category >= tensorplay.float32.category:
        array = np.concatenate([array, held(EDGES, source)])
    array = np.tile(array, 3)  # more than a vector, and a rest
    for layout in ("contiguous", "stepped"):
        x, array = arranged(array, source, device, layout)
        for target in DTYPES:
            assert_same(read(x.to(target)), cast(array, target))


@given(shape=shapes, source=dtypes, target=dtypes, layout=layouts, seed=seeds)
def test_casts(
    device: str,
    shape: tuple[int, ...],
    source: tensorplay.DType,
    target: tensorplay.DType,
    layout: str,
    seed: int,
) -> None:
    x, array = operand(device, shape, source, layout, seed, scale=50.0)
    got = x.to(target)
    assert got.dtype is target
    assert (got is x) == (source is target)
    np.testing.assert_array_equal(read(got), cast(array, target))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("source", DTYPES, ids=lambda dtype: dtype.name)
def test_copy_between_layouts(device: str, layout: str, source: tensorplay.DType) -> None:
    x, array = operand(device, (3, 4), source, layout, seed=3)
    for target_layout in ("contiguous", "transposed", "stepped"):
        for other in ("cpu", device):
            for dtype in (source, tensorplay.float32):
                y, _ = operand(other, (3, 4), dtype, target_layout, seed=4)
                assert y.copy_(x) is y
                np.testing.assert_array_equal(read(y), cast(array, dtype))
        y.copy_(x[:1])
        np.testing.assert_array_equal(read(y), np.broadcast_to(cast(array, tensorplay.float32)[:1], (3, 4)))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_fill_is_a_cast(device: str, dtype: tensorplay.DType) -> None:
    numbers = [True, 7, -1, 2**40 + 5, -(2**63), 0.0, -0.0, float("nan"), float("-inf"), *EDGES, 2 + 0j]
    if dtype.is_complex or dtype is tensorplay.bool:
        numbers += [1.5 - 2j, 1j]
    for length in (1, 5, 40):
        for number in numbers:
            expected = cast(np.full(length, number), dtype)
            x = tensorplay.zeros(length + 2, dtype=dtype, device=device)
            x[1:-1].fill_(number)
            assert_same(read(x)[1:-1], expected)
            assert not read(x)[[0, -1]].any()
            assert_same(read(tensorplay.full((length,), number, dtype=dtype, device=device)), expected)


def test_an_imaginary_part_is_not_lost_in_silence(device: str) -> None:
    x = tensorplay.zeros(3, device=device)
    with pytest.raises(InvalidArgumentError, match="fill_: got the number 2j for dtype float32, expected a real one"):
        x.fill_(2j)
    with pytest.raises(InvalidArgumentError, match="full: got the number 2j for dtype int8, expected a real one"):
        tensorplay.full((2,), 2j, dtype=tensorplay.int8, device=device)
    assert not x.any()


def test_copy_to_an_overlapping_view(device: str) -> None:
    for target, source in ((slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None))):
        x = tensorplay.arange(1000, device=device)
        expected = np.arange(1000)
        x[target].copy_(x[source])
        expected[target] = expected[source].copy()
        assert x.tolist() == expected.tolist()


def test_copy_refuses(device: str) -> None:
    x = tensorplay.zeros(2, 3, device=device)
    for source in (tensorplay.ones(3, 2, device=device), tensorplay.ones(3, 2), tensorplay.ones(1, 2, 3)):
        with pytest.raises(InvalidArgumentError, match=r"copy_: got a source of shape .* broadcasts to \(2, 3\)"):
            x.copy_(source)
    with pytest.raises(DTypeError, match="copy_: got list, expected a tensor"):
        x.copy_([1.0])  # type: ignore[arg-type]
    assert not x.any()


def test_spellings_of_to(device: str) -> None:
    x = tensorplay.ones(2, device=device)
    here = x.device
    assert x.to(device) is x
    assert x.to(here) is x
    assert x.to(tensorplay.float32) is x
    assert x.to(device, copy=True) is not x
    assert x.to(tensorplay.float32, False, True) is not x
    assert x.to(device=device, dtype=tensorplay.float16, non_blocking=True).dtype is tensorplay.float16
    assert x.to(device, tensorplay.int32).dtype is tensorplay.int32
    assert x.to(None, tensorplay.int32).device == here
    like = tensorplay.zeros(1, dtype=tensorplay.int64)
    assert x.to(like).dtype is tensorplay.int64
    assert x.to(like).device == like.device
    for method, dtype in [
        ("float", tensorplay.float32), ("half", tensorplay.float16), ("bfloat16", tensorplay.bfloat16),
        ("int", tensorplay.int32), ("long", tensorplay.int64), ("bool", tensorplay.bool),
    ]:  # fmt: skip
        assert getattr(x, method)().dtype is dtype
    for bad in [(1.5,), (device, device), (tensorplay.float32, device), ([],)]:
        with pytest.raises(DTypeError, match=r"(to|device): got"):
            x.to(*bad)


def test_a_copy_to_the_host_is_complete_on_return(device: str) -> None:
    x = tensorplay.zeros(1000, 1000, device=device)
    for _ in range(5):
        x += 1
    for y in (x.to("cpu"), x.T.cpu(), x[::2].cpu(), x.half().cpu(), x.sum().cpu()):
        assert (y.numpy() == y.flatten()[0].item()).all()


@given(shape=shapes, source=dtypes, target=dtypes, layout=layouts, seed=seeds)
def test_copies_that_do_not_block(
    device: str,
    shape: tuple[int, ...],
    source: tensorplay.DType,
    target: tensorplay.DType,
    layout: str,
    seed: int,
) -> None:
    """The same elements once they were waited for, whatever the layout, the dtypes, and the memory on the host."""
    for place, other in (("cpu", device), (device, "cpu")):
        x, array = operand(place, shape, source, layout, seed, scale=50.0)
        into = tensorplay.empty(shape, dtype=target, device=other)
        copies = x.to(other, target, non_blocking=True), into.copy_(x, non_blocking=True)
        tensorplay._plugins.get(device).synchronize(None)
        for arrived in copies:
            np.testing.assert_array_equal(read(arrived), cast(array, target))


def test_a_refused_copy_that_does_not_block(device: str) -> None:
    for place, other in (("cpu", device), (device, "cpu")):
        x = tensorplay.ones(2, 3, device=place)
        with pytest.raises(InvalidArgumentError, match=r"copy_: got a source of shape .* broadcasts to \(3, 2\)"):
            tensorplay.zeros(3, 2, device=other).copy_(x, non_blocking=True)


def test_a_source_may_change_after_the_call(device: str) -> None:
    array = np.ones(100_000, np.float32)
    x = tensorplay.from_numpy(array).to(device, copy=True)
    array[:] = 2
    assert x.sum().item() == 100_000


def test_clone_detach_and_contiguous(device: str) -> None:
    x, array = operand(device, (3, 4), tensorplay.float16, "transposed", seed=0)
    clone, alias = x.clone(), x.detach()
    x.zero_()
    np.testing.assert_array_equal(read(clone), array)
    assert clone.is_contiguous()
    assert not alias.any()
    assert clone.contiguous() is clone
    assert not x.is_contiguous()
    assert x.contiguous().is_contiguous()


def test_numbers_come_out(device: str) -> None:
    for dtype in DTYPES:
        x = tensorplay.ones(1, 1, dtype=dtype, device=device)
        assert type(x.item()) is type(x.tolist()[0][0])
        assert x.item() == 1
        assert bool(x) is True
        assert int(x) == 1
        assert float(x) == 1.0
    assert f"{tensorplay.ones((), dtype=tensorplay.float32, device=device):.2f}" == "1.00"
    assert [10, 20, 30][tensorplay.tensor(2, device=device)] == 30
    with pytest.raises(InvalidArgumentError, match=r"item: got a tensor of shape \(2,\), expected one element"):
        tensorplay.ones(2, device=device).item()
    with pytest.raises(InvalidArgumentError, match="bool: got a tensor"):
        bool(tensorplay.ones(2, device=device))
    with pytest.raises(DTypeError, match="index: got a tensor"):
        [1][tensorplay.tensor(0.0, device=device)]


def test_numpy_of_a_device_is_asked_for(device: str) -> None:
    x = tensorplay.arange(3, device=device)
    np.testing.assert_array_equal(x.numpy(force=True), [0, 1, 2])
    if device == "cpu":
        assert np.shares_memory(x.numpy(), np.asarray(x))
        assert np.asarray(x, np.float32).dtype == np.float32
        return
    for convert in (lambda: x.numpy(), lambda: np.asarray(x)):
        with pytest.raises(DTypeError, match="numpy: got a tensor on cuda:0, expected one on cpu"):
            convert()


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_pickle_and_copy(device: str, dtype: tensorplay.DType) -> None:
    x, array = operand(device, (3, 4), dtype, "stepped", seed=2)
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.deepcopy([x, x])[1]):
        assert (y.dtype, y.device) == (x.dtype, x.device)
        np.testing.assert_array_equal(read(y), array)
    shared = copy.copy(x)
    x.zero_()
    assert not shared.any()
    np.testing.assert_array_equal(read(y), array)


def test_a_tensor_can_be_replaced_in_place(device: str) -> None:
    x = tensorplay.ones(2, 3)
    assert (x.shape, x.dtype) == ((2, 3), tensorplay.float32)
    y = tensorplay.arange(4, device=device)
    x._replace(y)
    y.zero_()
    assert (x.shape, x.dtype, x.device.type) == ((4,), tensorplay.int64, device)
    assert x.tolist() == [0, 0, 0, 0]


def test_between_two_devices(two_devices: tuple[str, str]) -> None:
    first, second = two_devices
    x, array = operand(first, (5, 7), tensorplay.float32, "transposed", seed=1)
    y = x.to(second)
    assert str(y.device) == second
    np.testing.assert_array_equal(read(y), array)
    z = tensorplay.zeros(5, 7, dtype=tensorplay.float16, device=first)
    z.copy_(y)
    np.testing.assert_array_equal(read(z), cast(array, tensorplay.float16))
    assert y.to(second) is y


@pytest.mark.parametrize("place", [True, 1.5, tensorplay.ones(1)], ids=repr)
def test_what_names_no_device_is_refused_as_one(device: str, place: object) -> None:
    x = tensorplay.ones(2, device=device)
    with pytest.raises(DTypeError, match="device: got"):
        x.cuda(place)  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match="device: got"):
        x.to(device=place)


def test_cuda_goes_to_devices_of_cuda_alone() -> None:
    x = tensorplay.ones(2)
    for place in ("cpu", tensorplay.device("cpu", 0)):
        with pytest.raises(InvalidArgumentError, match="cuda: got cpu.*, expected a cuda device"):
            x.cuda(place)


def test_one_value_goes_into_elements_that_share_memory(device: str) -> None:
    x = tensorplay.zeros(2, 1, device=device)
    assert x.expand(2, 3).fill_(4).tolist() == [[4.0] * 3] * 2
    x.expand(2, 3)[1:] = 5
    assert x.tolist() == [[4.0], [5.0]]
    assert x.expand(2, 3).zero_().tolist() == [[0.0] * 3] * 2
