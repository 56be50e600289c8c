"""Random tensors beside the same elements in NumPy, and how close a dtype comes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

import tensorplay

Array = npt.NDArray[Any]

DTYPES = [
    tensorplay.bool,
    tensorplay.int32,
    tensorplay.int64,
    tensorplay.float16,
    tensorplay.bfloat16,
    tensorplay.float32,
]
FLOATING = [dtype for dtype in DTYPES if dtype.is_floating_point]
INTEGERS = [tensorplay.int32, tensorplay.int64]

#: Relative error of one rounding, with room for a few of them.
PRECISION = {tensorplay.float16: 2e-3, tensorplay.bfloat16: 1.6e-2, tensorplay.float32: 2e-6}


class Operand(NamedTuple):
    """A tensor, and its elements as an array of the same shape in float64, int64 or bool."""

    tensor: tensorplay.Tensor
    array: Array


def values(shape: tuple[int, ...], dtype: tensorplay.DType, seed: int, scale: float = 2.0) -> Array:
    """Random elements that the dtype holds exactly, in float64, int64 or bool."""
    numbers = np.asarray(np.random.default_rng(seed).standard_normal(shape) * scale)
    if dtype is tensorplay.bool:
        return numbers > 0
    if dtype in INTEGERS:
        return np.round(numbers).astype(np.int64)
    return numbers.astype(dtype.numpy).astype(np.float64)


def place(array: Array, dtype: tensorplay.DType, device: str) -> tensorplay.Tensor:
    """A tensor with these elements."""
    return tensorplay.tensor(array, dtype=dtype, device=device)


def read(tensor: tensorplay.Tensor) -> Array:
    """The elements in float64, int64 or bool."""
    array = tensor.cpu().numpy()
    if tensor.dtype is tensorplay.bool:
        return array
    return array.astype(np.float64 if tensor.dtype.is_floating_point else np.int64)


def operand(
    device: str, shape: tuple[int, ...], dtype: tensorplay.DType, layout: str, seed: int, scale: float = 2.0
) -> Operand:
    """A tensor of this shape with one of the layouts of `LAYOUTS`."""
    if layout == "transposed":
        array = values(shape[::-1], dtype, seed, scale)
        return Operand(place(array, dtype, device).T, array.T)
    if layout == "stepped" and shape:
        array = values((*shape[:-1], 2 * shape[-1] + 1), dtype, seed, scale)
        return Operand(place(array, dtype, device)[..., 1::2], array[..., 1::2])
    if layout == "expanded" and shape:
        array = values((1, *shape[1:]), dtype, seed, scale)
        return Operand(place(array, dtype, device).expand(shape), np.broadcast_to(array, shape))
    array = values(shape, dtype, seed, scale)
    return Operand(place(array, dtype, device), array)


LAYOUTS = ["contiguous", "transposed", "stepped", "expanded"]

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
    if not dtype.is_floating_point:
        np.testing.assert_array_equal(read(got), expected)
        return
    precision = PRECISION[dtype]
    limit = float(np.finfo(np.float32).max if dtype is not tensorplay.float16 else 65504.0)
    # What the dtype cannot hold is infinite in it.
    held = np.where(np.abs(expected.astype(np.float64)) > limit, np.copysign(np.inf, expected), expected)
    np.testing.assert_allclose(read(got), held, rtol=precision, atol=precision * room)
