"""Casts and numbers on the host: the rules of kernels/element.h."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tensorplay import _dtype
from tensorplay._host import arrays

pytestmark = pytest.mark.filterwarnings("error")

nan, inf = float("nan"), float("inf")
INT32, INT64 = 2**31, 2**63


@pytest.mark.parametrize("source", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("target", "values"),
    [
        ("bool", [True, True, True, False, False, True, True]),
        ("uint8", [44, 255, 254, 0, 0, 0, 255]),
        ("int8", [44, -1, -2, 0, 0, 0, -1]),
        ("int16", [300, -1, -2, 0, 0, 0, -1]),
        ("int32", [300, -1, -2, 0, 0, -INT32, INT32 - 1]),
        ("int64", [300, -1, -2, 0, 0, -INT64, INT64 - 1]),
    ],
)
def test_fractions_to_integers(source: Any, target: str, values: list[int]) -> None:
    array = np.array([300.0, -1.5, -2.25, 0.0, -0.0, -inf, inf]).astype(source)
    # 255 and -1: the lowest bits of the number next to infinity.
    assert arrays.cast(array, np.dtype(target)).tolist() == values


def test_nan_is_what_a_gpu_makes_of_it() -> None:
    found = {name: arrays.cast(np.array(nan), np.dtype(name)).item() for name in ("bool", "uint8", "int32", "int64")}
    assert found == {"bool": True, "uint8": 0, "int32": 0, "int64": -INT64}


@pytest.mark.parametrize("value", [2.0**31, 1e10, 2.0**63, 1e30])
def test_beyond_the_range_is_the_last_number(value: float) -> None:
    for sign, last in ((1, INT32 - 1), (-1, -INT32)):
        assert arrays.cast(np.array([sign * value]), np.dtype(np.int32)).tolist() == [last]
    if value >= 2.0**63:
        assert arrays.cast(np.array([value, -value], np.float32), np.dtype(np.int64)).tolist() == [INT64 - 1, -INT64]


def test_complex_numbers_lose_their_imaginary_part() -> None:
    array = np.array([1.5 + 2j, 0.25j, 0, complex(nan, 1)])
    for dtype in _dtype.DTYPES.values():
        values = arrays.cast(array, dtype.numpy)
        assert values.dtype == dtype.numpy
        if dtype is _dtype.bool:
            assert values.tolist() == [True, True, False, True]
        elif not dtype.is_complex:
            assert values[:3].tolist() == ([1.5, 0, 0] if dtype.is_floating_point else [1, 0, 0])


@pytest.mark.parametrize("half", [_dtype.float16, _dtype.bfloat16], ids=lambda dtype: dtype.name)
def test_half_types_are_made_of_float32(half: _dtype.DType) -> None:
    """A float64 just above the middle of two halves is that middle in float32, and goes to the even one."""
    step = 2.0**-10 if half is _dtype.float16 else 2.0**-7
    just_above = np.array(1 + step / 2 + 2.0**-40)
    assert float(arrays.cast(just_above, half.numpy)) == 1


@pytest.mark.parametrize("name", _dtype.DTYPES)
def test_integers_that_are_too_large_wrap(name: str) -> None:
    dtype = _dtype.DTYPES[name]
    value = arrays.scalar(2**40 + 300, dtype.numpy)
    assert (value.shape, value.dtype) == ((), dtype.numpy)
    if dtype.category == _dtype.INT:
        bits = 8 * dtype.itemsize
        wrapped = (2**40 + 300) % 2**bits
        assert value.item() == (wrapped - 2**bits if dtype.is_signed and wrapped >= 2 ** (bits - 1) else wrapped)


@pytest.mark.parametrize("name", _dtype.DTYPES)
def test_every_pair_of_dtypes_without_a_warning(name: str) -> None:
    array = np.array([0, 1, 2, 100]).astype(_dtype.DTYPES[name].numpy)
    for target in _dtype.DTYPES.values():
        once = arrays.cast(array, target.numpy)
        assert once.dtype == target.numpy
        assert arrays.cast(once, np.dtype(bool)).tolist() == [False, True, True, True]
        assert (once is array) == (target.name == name)
