"""Random tensors beside the same elements in NumPy, and how close a dtype comes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

import tensorplay
from tensorplay import _dtype

Array = npt.NDArray[Any]

DTYPES = list(_dtype.DTYPES.values())
FLOATING = [dtype for dtype in DTYPES if dtype.is_floating_point]
REAL = [dtype for dtype in DTYPES if not dtype.is_complex]
COMPLEX = [dtype for dtype in DTYPES if dtype.is_complex]
INTEGERS = [dtype for dtype in DTYPES if dtype.category == _dtype.INT]

#: Relative error of one rounding, with room for a few of them.
PRECISION = {
    _dtype.float16: 2e-3,
    _dtype.bfloat16: 1.6e-2,
    _dtype.float32: 2e-6,
    _dtype.float64: 4e-15,
    _dtype.complex64: 2e-6,
    _dtype.complex128: 4e-15,
}

#: Numbers at which formulas break, by category; a dtype's own extremes come on top.
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -1.5, 2.5, 6e4, -6e4, 90.0, -90.0]


class Operand(NamedTuple):
    """A tensor, and its elements as an array of the same shape in the dtype's widest kind (see `widest`)."""

    tensor: tensorplay.Tensor
    array: Array


def widest(dtype: tensorplay.DType) -> type:
    """What NumPy computes the right results in: bool, int64, float64 or complex128."""
    kinds = {_dtype.BOOL: np.bool_, _dtype.INT: np.int64, _dtype.FLOAT: np.float64, _dtype.COMPLEX: np.complex128}
    return kinds[dtype.category]


def held(array: Any, dtype: tensorplay.DType) -> Array:
    """Elements as a dtype holds them (float64 to half types by float32, integers wrap), in its widest kind."""
    array = np.asarray(array)
    if array.dtype.kind == "f" and dtype.itemsize == 2:
        array = array.astype(np.float32)
    if array.dtype.kind == "c" and not dtype.is_complex and dtype is not _dtype.bool:
        array = array.real
    with np.errstate(all="ignore"):
        return np.asarray(array.astype(dtype.numpy).astype(widest(dtype)))


def values(shape: tuple[int, ...], dtype: tensorplay.DType, seed: int, scale: float = 2.0) -> Array:
    """Random elements that the dtype holds exactly, in its widest kind."""
    random = np.random.default_rng(seed)
    numbers = np.asarray(random.standard_normal(shape) * scale)
    if dtype is _dtype.bool:
        return numbers > 0
    if dtype in INTEGERS:
        return held(np.round(numbers if dtype.is_signed else np.abs(numbers)).astype(np.int64), dtype)
    if dtype.is_complex:
        return held(numbers + 1j * random.standard_normal(shape) * scale, dtype)
    return held(numbers, dtype)


def special(dtype: tensorplay.DType) -> Array:
    """The numbers at which formulas break, as the dtype holds them: not numbers, infinite, extreme, denormal."""
    if dtype is _dtype.bool:
        return np.array([False, True])
    if dtype in INTEGERS:
        extremes = np.iinfo(dtype.numpy)
        least = 0 if not dtype.is_signed else -2
        return np.array([extremes.min, extremes.max, extremes.min + 1, extremes.max - 1, *range(least, 3)], np.int64)
    real = dtype.to_real()
    # NumPy does not know the limits of bfloat16, which are those of float32 but for the last digits.
    limits = np.finfo(np.float32 if real is _dtype.bfloat16 else real.numpy)
    numbers = held([*SPECIAL, float(limits.tiny), float(limits.tiny) / 4, float(limits.max) / 2], real)
    if dtype.is_complex:
        finite = numbers[np.isfinite(numbers)]
        return np.concatenate([finite + 0j, 1j * finite, finite[::-1] - 1j * finite])
    return numbers


def place(array: Array, dtype: tensorplay.DType, device: str) -> tensorplay.Tensor:
    """A tensor with these elements."""
    return tensorplay.tensor(array, dtype=dtype, device=device)


def read(tensor: tensorplay.Tensor) -> Array:
    """The elements in the dtype's widest kind."""
    array: Array = tensor.cpu().numpy()
    return array.astype(widest(tensor.dtype))


def assert_equal(got: tensorplay.Tensor, expected: Any) -> None:
    """The shape and the elements, nan being equal to nan."""
    assert got.shape == expected.shape
    np.testing.assert_array_equal(read(got), expected)


def arranged(array: Array, dtype: tensorplay.DType, device: str, layout: str) -> Operand:
    """A tensor with these elements in one of the layouts of `LAYOUTS`; expanded, the first row repeats."""
    shape = array.shape
    if layout == "transposed":
        return Operand(place(array.T, dtype, device).T, array)
    if layout == "stepped" and shape:
        room = np.zeros((*shape[:-1], 2 * shape[-1] + 1), array.dtype)
        room[..., 1::2] = array
        return Operand(place(room, dtype, device)[..., 1::2], array)
    if layout == "expanded" and shape:
        row = array[:1] if shape[0] else np.zeros((1, *shape[1:]), array.dtype)
        return Operand(place(row, dtype, device).expand(shape), np.broadcast_to(row, shape))
    return Operand(place(array, dtype, device), array)


def operand(
    device: str, shape: tuple[int, ...], dtype: tensorplay.DType, layout: str, seed: int, scale: float = 2.0
) -> Operand:
    """A random tensor of this shape with one of the layouts of `LAYOUTS`."""
    return arranged(values(shape, dtype, seed, scale), dtype, device, layout)


def poisoned(shape: tuple[int, ...], dtype: tensorplay.DType, device: str) -> tensorplay.Tensor:
    """A tensor of elements that no result has by chance: nan, or the largest integer."""
    if dtype.category >= _dtype.FLOAT:
        return tensorplay.full(shape, float("nan"), dtype=dtype, device=device)
    return tensorplay.full(
        shape, True if dtype is _dtype.bool else np.iinfo(dtype.numpy).max, dtype=dtype, device=device
    )


def counted(device: str, *shape: int) -> Operand:
    """Elements that tell their place."""
    array = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    return Operand(tensorplay.tensor(array, device=device), array)


LAYOUTS = ["contiguous", "transposed", "stepped", "expanded"]

#: What one case of an operation goes through: a shape with a layout, without dimensions, empty, of eight dimensions.
ARRANGEMENTS: list[tuple[tuple[int, ...], str]] = [
    ((), "contiguous"),
    ((0, 3), "contiguous"),
    ((7, 0, 2), "transposed"),
    ((531,), "contiguous"),
    ((7, 67), "transposed"),
    ((6, 3, 19), "stepped"),
    ((4, 33), "expanded"),
    ((2, 1, 3, 2, 1, 2, 3, 2), "transposed"),
]

layouts = st.sampled_from(LAYOUTS)
dtypes = st.sampled_from(DTYPES)
floating = st.sampled_from(FLOATING)
seeds = st.integers(0, 2**16)
shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@st.composite
def broadcastable(draw: st.DrawFn, count: int = 2) -> list[tuple[int, ...]]:
    """Shapes that broadcast together."""
    whole = draw(st.lists(st.integers(0, 4), max_size=4))
    found = []
    for _ in range(count):
        kept = [size if draw(st.booleans()) else 1 for size in whole]
        found.append(tuple(kept[draw(st.integers(0, len(kept))) :]))
    return found


def promoted(left: tensorplay.DType, right: tensorplay.DType) -> tensorplay.DType:
    """torch's promotion of two tensors with dimensions, written out once more."""
    low, high = sorted((left, right), key=lambda dtype: (dtype.category, dtype.itemsize))
    if high.is_complex and _dtype.float64 in (low, high):
        return _dtype.complex128
    if low.category != high.category or low is high:
        return high
    if low.itemsize == high.itemsize:  # float16 with bfloat16, int8 with uint8
        return _dtype.float32 if low.is_floating_point else _dtype.int16
    return high


def assert_close(
    got: tensorplay.Tensor,
    expected: Any,
    dtype: tensorplay.DType,
    *,
    room: float = 1.0,
) -> None:
    """Dtype, shape, and the elements: exact for integers and bool, within a few roundings otherwise.

    `room` multiplies the absolute error that is allowed, for sums of large numbers that cancel.
    """
    expected = np.asarray(expected)
    assert got.dtype is dtype
    assert got.shape == expected.shape
    if dtype.category < _dtype.FLOAT:
        np.testing.assert_array_equal(read(got), held(expected, dtype))
        return
    precision = PRECISION[dtype]
    # What the dtype cannot hold is infinite in it.
    np.testing.assert_allclose(read(got), held(expected, dtype), rtol=precision, atol=precision * room)
