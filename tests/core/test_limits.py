"""Range and precision of dtypes."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplay
from tensorplay.errors import DTypeError


def test_numbers_by_name() -> None:
    assert (tensorplay.e, tensorplay.pi, tensorplay.inf) == (np.e, np.pi, np.inf)
    assert np.isnan(tensorplay.nan)


def test_floating_dtypes() -> None:
    half, single = tensorplay.finfo(tensorplay.float16), tensorplay.finfo(tensorplay.float32)
    assert (half.bits, half.max, half.min, half.eps) == (16, 65504.0, -65504.0, 2.0**-10)
    assert (half.tiny, half.smallest_normal, half.resolution) == (2.0**-14, 2.0**-14, 1e-3)
    assert (single.bits, single.eps, single.tiny, single.resolution) == (32, 2.0**-23, 2.0**-126, 1e-6)
    brain, double = tensorplay.finfo(tensorplay.bfloat16), tensorplay.finfo(tensorplay.float64)
    assert (brain.eps, brain.max, brain.tiny, brain.resolution) == (2.0**-7, (2 - 2.0**-7) * 2.0**127, 2.0**-126, 1e-2)
    assert (double.bits, double.eps, double.dtype) == (64, 2.0**-52, "float64")
    assert tensorplay.finfo(tensorplay.complex64) == tensorplay.finfo() == single
    assert tensorplay.finfo(tensorplay.complex128) == double


def test_integer_dtypes() -> None:
    for dtype, low, high in [
        (tensorplay.uint8, 0, 255),
        (tensorplay.int8, -128, 127),
        (tensorplay.int16, -(2**15), 2**15 - 1),
        (tensorplay.int32, -(2**31), 2**31 - 1),
        (tensorplay.int64, -(2**63), 2**63 - 1),
    ]:
        found = tensorplay.iinfo(dtype)
        assert (found.min, found.max, found.bits, found.dtype) == (low, high, 8 * dtype.itemsize, dtype.name)


def test_what_is_refused() -> None:
    with pytest.raises(DTypeError, match="finfo: got dtype int32, expected a floating or complex one"):
        tensorplay.finfo(tensorplay.int32)
    for dtype in (tensorplay.bool, tensorplay.float32, tensorplay.complex64):
        with pytest.raises(DTypeError, match=f"iinfo: got dtype {dtype.name}, expected an integer one"):
            tensorplay.iinfo(dtype)
    with pytest.raises(DTypeError, match="iinfo: got dtype <class 'int'>"):
        tensorplay.iinfo(int)  # type: ignore[arg-type]
