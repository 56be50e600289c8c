"""Making tensors on every device."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from helpers.operands import DTYPES, FLOATING, INTEGERS, assert_close, read, values

import tensorplay
from tensorplay.errors import DTypeError, InvalidArgumentError, OutOfMemoryError, SizeOverflowError


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_values_and_dtypes(device: str, dtype: tensorplay.DType) -> None:
    for made, value in [
        (tensorplay.zeros(2, 3, dtype=dtype, device=device), 0),
        (tensorplay.ones((2, 3), dtype=dtype, device=device), 1),
        (tensorplay.full((2, 3), 1, dtype=dtype, device=device), 1),
    ]:
        assert made.dtype is dtype
        assert made.device.type == device
        assert made.is_contiguous()
        np.testing.assert_array_equal(read(made), np.full((2, 3), value))
    like = tensorplay.zeros_like(made)
    assert (like.dtype, like.device, like.shape) == (dtype, made.device, (2, 3))
    assert tensorplay.empty_like(made, dtype=tensorplay.bool).dtype is tensorplay.bool


def test_default_dtypes(device: str) -> None:
    assert tensorplay.empty(1, device=device).dtype is tensorplay.float32
    for value, dtype in [(True, tensorplay.bool), (1, tensorplay.int64), (1.0, tensorplay.float32)]:
        assert tensorplay.full((1,), value, device=device).dtype is dtype
        assert tensorplay.tensor(value, device=device).dtype is dtype
        assert tensorplay.tensor([[value]], device=device).dtype is dtype
    assert tensorplay.tensor([], device=device).dtype is tensorplay.float32
    assert tensorplay.tensor([1, 2.5], device=device).tolist() == [1.0, 2.5]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_arrays_go_there_and_back(device: str, dtype: tensorplay.DType) -> None:
    array = values((3, 4), dtype, seed=0).astype(dtype.numpy)
    for source in (array, array.T, array[::-1], array[:, 1::2], array[:0], array[0, 0, ...]):
        x = tensorplay.tensor(source, device=device)
        back = x.cpu().numpy()
        assert x.dtype is dtype
        assert back.dtype == dtype.numpy
        np.testing.assert_array_equal(back, source)
        assert not np.shares_memory(back, array)


def test_data_of_python(device: str) -> None:
    inner = tensorplay.tensor([1, 2], device=device)
    assert tensorplay.tensor([inner, [3, 4]], device=device).tolist() == [[1, 2], [3, 4]]
    assert tensorplay.tensor(np.float32(2.5), device=device).tolist() == 2.5
    for bad in ("abc", None, object(), [None], ["a"]):
        with pytest.raises(DTypeError, match="tensor: got"):
            tensorplay.tensor(bad, device=device)
    with pytest.raises(InvalidArgumentError, match="tensor: "):
        tensorplay.tensor([[1, 2], [3]], device=device)
    with pytest.raises(InvalidArgumentError, match="tensor: got the integer"):
        tensorplay.tensor([2**63], device=device)


@pytest.mark.parametrize("dtype", [np.uint16, np.uint64, np.longdouble, ">f4", ml_dtypes.float8_e4m3fn])
def test_dtypes_that_no_tensor_has(device: str, dtype: Any) -> None:
    array = np.zeros(2, dtype)
    with pytest.raises(DTypeError, match=f"tensor: got NumPy dtype {array.dtype}, expected one of bool, int32"):
        tensorplay.tensor(array, device=device)
    with pytest.raises(DTypeError, match="from_numpy: got NumPy dtype"):
        tensorplay.from_numpy(array)


def test_a_dtype_makes_any_numbers_fit(device: str) -> None:
    x = tensorplay.tensor(np.array([1.5, -2.5]), dtype=tensorplay.bfloat16, device=device)
    assert x.tolist() == [1.5, -2.5]
    for make in (tensorplay.empty, tensorplay.zeros, tensorplay.ones):
        with pytest.raises(DTypeError, match=f"{make.__name__}: got dtype 'float32', expected a tensorplay dtype"):
            make(1, dtype="float32", device=device)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [((5,), range(5)), ((2, 5), range(2, 5)), ((0, 7, 3), range(0, 7, 3)), ((5, 0, -2), range(5, 0, -2)), ((3, 3), [])],
)
def test_arange_of_integers(device: str, arguments: tuple[int, ...], expected: Any) -> None:
    assert_close(tensorplay.arange(*arguments, device=device), np.array(expected, np.int64), tensorplay.int64)
    got = tensorplay.arange(*arguments, dtype=tensorplay.float16, device=device)
    assert_close(got, np.array(expected, np.float64), tensorplay.float16)


def test_arange_of_fractions(device: str) -> None:
    assert_close(tensorplay.arange(0, 1, 0.1, device=device), np.arange(0, 1, 0.1), tensorplay.float32)
    for bad in [(0.0, 1e20, 2**63), (0, 5, 0), (0, 5, -1), (5, 0), (0.0, float("inf")), (float("nan"),)]:
        with pytest.raises(InvalidArgumentError, match="arange: got"):
            tensorplay.arange(*bad, device=device)


@pytest.mark.parametrize("make", [tensorplay.empty, tensorplay.zeros, tensorplay.rand], ids=lambda f: f.__name__)
def test_sizes_that_no_tensor_has(device: str, make: Any) -> None:
    for shape, error, words in [
        ((-1,), InvalidArgumentError, r"got size -1 in shape \(-1,\), expected 0 or more"),
        ((2, -5), InvalidArgumentError, "got size -5"),
        ((2**62,), SizeOverflowError, "expected fewer than 2"),
        ((2**63,), SizeOverflowError, "expected fewer than 2"),
        ((2**64 - 1,), SizeOverflowError, "expected fewer than 2"),
        ((2**64,), SizeOverflowError, "expected fewer than 2"),
        ((2**32, 2**32), SizeOverflowError, "expected fewer than 2"),
        ((0, 2**32, 2**32), SizeOverflowError, "expected fewer than 2"),
        ((1,) * 17, InvalidArgumentError, "got 17 dimensions, expected at most 16"),
        ((1.5,), DTypeError, "expected integers"),
        (("3",), DTypeError, "expected integers"),
    ]:
        with pytest.raises(error, match=words):
            make(*shape, device=device)
    assert make(0, 3, device=device).numel() == 0
    assert make((1,) * 16, device=device).ndim == 16


def test_sizes_that_are_merely_too_large(device: str) -> None:
    with pytest.raises(OutOfMemoryError) as caught:
        tensorplay.empty(2**58, device=device)
    assert isinstance(caught.value, MemoryError)
    assert isinstance(caught.value, RuntimeError)
    # Beyond the addresses that a process has: hosts may promise memory that they do not have.
    x = tensorplay.ones(1, device=device).expand(2**50)
    for call in (x.neg, x.clone, x.contiguous, x.argsort, lambda: x + 1, lambda: x.flip(0)):
        with pytest.raises(OutOfMemoryError):
            call()


def test_tensors_without_elements_have_no_address(device: str) -> None:
    assert tensorplay.empty(0, device=device).data_ptr() == 0
    assert tensorplay.empty(3, device=device)[3:].data_ptr() == 0


def test_live_tensors_do_not_overlap(device: str) -> None:
    made = [tensorplay.empty(n, device=device) for n in (1, 127, 128, 129, 5)]
    spans = sorted((x.data_ptr(), x.data_ptr() + x.nbytes) for x in made)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))


def test_asarray_shares_where_it_can(device: str) -> None:
    x = tensorplay.ones(2, device=device)
    assert tensorplay.asarray(x) is x
    assert tensorplay.asarray(x, copy=False) is x
    assert tensorplay.asarray(x, copy=True) is not x
    with pytest.raises(InvalidArgumentError, match="asarray: got copy=False"):
        tensorplay.asarray(x, dtype=tensorplay.float16, copy=False)
    with pytest.raises(InvalidArgumentError, match="asarray: got copy=False"):
        tensorplay.asarray([1, 2], device=device, copy=False)


def test_from_numpy_shares(device: str) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = tensorplay.from_numpy(array[:, 1:])
    array[0, 1] = 7
    assert x[0, 0].item() == 7
    x[1] = -1
    assert array.tolist() == [[0, 7, 2], [3, -1, -1]]
    assert x.to(device).tolist() == [[7, 2], [-1, -1]]


def test_arrays_that_may_not_be_written(device: str) -> None:
    array = np.arange(3, dtype=np.int64)
    array.flags.writeable = False
    with pytest.raises(InvalidArgumentError, match="from_numpy: got an array that may not be written"):
        tensorplay.from_numpy(array)
    for x in (tensorplay.tensor(array, device=device), tensorplay.asarray(array, device=device)):
        x += 1
        assert x.tolist() == [1, 2, 3]
    assert array.tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
def test_fills_are_cast(device: str, dtype: tensorplay.DType) -> None:
    x = tensorplay.empty(3, dtype=dtype, device=device)
    assert x.fill_(True).tolist() == [1.0] * 3
    assert x.fill_(tensorplay.tensor(2.5)).tolist() == [2.5] * 3
    assert x.zero_().tolist() == [0.0] * 3
    assert tensorplay.full((2,), float("inf"), dtype=dtype, device=device).tolist() == [float("inf")] * 2


def test_complex_numbers_as_data(device: str) -> None:
    x = tensorplay.tensor([1, 2j], device=device)
    assert x.dtype is tensorplay.complex64
    assert x.tolist() == [1 + 0j, 2j]
    assert tensorplay.full((2,), 1j, dtype=tensorplay.complex128, device=device).tolist() == [1j, 1j]
    assert tensorplay.full((), 2 - 1j, device=device).item() == 2 - 1j
    with pytest.raises(DTypeError, match="tensor: got complex numbers for dtype float32"):
        tensorplay.tensor([1j], dtype=tensorplay.float32, device=device)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_data_is_cast_as_elements_are(device: str, dtype: tensorplay.DType) -> None:
    data = [1.75, -2.5, 300.0, 0.0]
    got = tensorplay.tensor(data, dtype=dtype, device=device)
    assert got.dtype is dtype
    assert got.tolist() == tensorplay.tensor(data, device=device).to(dtype).tolist()
    assert tensorplay.tensor(np.array(data, ">f4"), dtype=dtype, device=device).tolist() == got.tolist()


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_new_tensors_like_this_one(device: str, dtype: tensorplay.DType) -> None:
    x = tensorplay.ones(2, dtype=dtype, device=device)
    for made, expected in [
        (x.new_zeros(2, 2), [[0, 0], [0, 0]]),
        (x.new_ones((3,)), [1, 1, 1]),
        (x.new_full((2,), 1), [1, 1]),
        (x.new_tensor([0, 1]), [0, 1]),
    ]:
        assert (made.dtype, made.device) == (dtype, x.device)
        np.testing.assert_array_equal(read(made), expected)
    assert (x.new_empty(4, 0).shape, x.new_empty(1).dtype) == ((4, 0), dtype)
    assert x.new_zeros(1, dtype=tensorplay.int16, device="cpu").dtype is tensorplay.int16


@pytest.mark.parametrize("dtype", [*FLOATING, *INTEGERS], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("ends", [(0, 10), (3, -2), (1, 1), (0, 1)])
def test_equal_distances(device: str, dtype: tensorplay.DType, ends: tuple[int, int]) -> None:
    if dtype is tensorplay.uint8 and min(ends) < 0:
        pytest.skip("not a range of uint8")
    for steps in (0, 1, 2, 5, 11):
        expected = np.linspace(*ends, steps)
        if dtype in INTEGERS:
            expected = np.trunc(np.round(expected, 9)).astype(np.int64)
        got = tensorplay.linspace(*ends, steps, dtype=dtype, device=device)
        assert_close(got, expected, dtype)
        if steps > 1:
            assert got.tolist()[:: steps - 1] == list(ends)


def test_equal_ratios(device: str) -> None:
    assert_close(tensorplay.logspace(-1, 2, 4, device=device), np.logspace(-1, 2, 4), tensorplay.float32)
    got = tensorplay.logspace(0, 5, 6, base=2, dtype=tensorplay.int64, device=device)
    assert got.tolist() == [1, 2, 4, 8, 16, 32]
    with pytest.raises(InvalidArgumentError, match="linspace: got -1 steps"):
        tensorplay.linspace(0, 1, -1, device=device)
    with pytest.raises(DTypeError, match="logspace: got dtype bool, expected an integer or floating dtype"):
        tensorplay.logspace(0, 1, 3, dtype=tensorplay.bool, device=device)


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda dtype: dtype.name)
def test_arange_cuts_fractions_as_torch_does(device: str, dtype: tensorplay.DType) -> None:
    expected = [0, 1] if dtype is tensorplay.int64 else [0, 1, 2]
    assert tensorplay.arange(0, 2.5, dtype=dtype, device=device).tolist() == expected
    assert tensorplay.arange(0.5, 3.5, dtype=dtype, device=device).tolist() == [0, 1, 2]
    for bad in (tensorplay.bool, tensorplay.complex64):
        with pytest.raises(DTypeError, match=f"arange: got dtype {bad.name}"):
            tensorplay.arange(3, dtype=bad, device=device)
    with pytest.raises(DTypeError, match="arange: got the number"):
        tensorplay.arange(1j, device=device)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (0, 3), (0, 0)])
def test_identity(device: str, dtype: tensorplay.DType, shape: tuple[int, int]) -> None:
    got = tensorplay.eye(*shape, dtype=dtype, device=device)
    assert got.dtype is dtype
    np.testing.assert_array_equal(read(got), np.eye(*shape))


def test_strides_of_choice(device: str) -> None:
    x = tensorplay.empty_strided((2, 3), (1, 2), dtype=tensorplay.int8, device=device)
    assert (x.shape, x.stride(), x.dtype) == ((2, 3), (1, 2), tensorplay.int8)
    assert x.fill_(3).tolist() == [[3, 3, 3], [3, 3, 3]]
    assert tensorplay.empty_strided((0, 3), (5, 1), device=device).shape == (0, 3)
    with pytest.raises(InvalidArgumentError, match="as_strided: got"):
        tensorplay.empty_strided((2, 3), (1,), device=device)
