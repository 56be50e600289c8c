"""Running totals on every device, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.operands import (
    ARRANGEMENTS,
    DTYPES,
    FLOATING,
    arranged,
    assert_close,
    held,
    operand,
    place,
    poisoned,
    read,
)

import tensorplay
from tensorplay import _dtype
from tensorplay.errors import DTypeError, OutOfRangeError

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize("op", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_scan(device: str, op: str, dtype: tensorplay.DType, own_seed: int) -> None:
    function, formula = getattr(tensorplay, op), getattr(np, op)
    result = dtype if dtype.category >= _dtype.FLOAT else _dtype.int64
    for i, (shape, layout) in enumerate(ARRANGEMENTS):
        x, array = operand(device, shape, dtype, layout, own_seed + i)
        if op == "cumprod" and dtype.category >= _dtype.FLOAT:
            # Near 1, so that no order of the factors leaves what the dtype holds.
            x, array = arranged(held(1 + array / 64, dtype), dtype, device, layout)
        wide = array.astype(np.int64) if array.dtype == bool else array
        room = max(1.0, float(np.abs(wide).sum()))
        for dim in {0, len(shape) // 2, len(shape) - 1} if shape else {0}:
            expected = formula(wide, axis=dim) if shape else wide
            poisoned(shape, result, device)
            assert_close(function(x, dim), expected, result, room=room)
            out = poisoned(shape[::-1], result, device).T
            assert function(x, dim - max(len(shape), 1), out=out) is out
            assert_close(out, expected, result, room=room)


@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
def test_nan_and_infinity_stay(device: str, dtype: tensorplay.DType) -> None:
    array = np.array([1.0, np.inf, 2.0, -np.inf, 3.0])
    assert_close(place(array, dtype, device).cumsum(0), np.cumsum(array), dtype)
    array = np.array([2.0, 0.0, np.inf, 4.0])
    assert_close(place(array, dtype, device).cumprod(0), np.cumprod(array), dtype)


@pytest.mark.parametrize("shape", [(100_003,), (3, 5001), (5001, 3)])
def test_long_scans(device: str, shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).integers(-5, 6, shape)
    dim = int(np.argmax(shape))
    x = tensorplay.tensor(array, dtype=tensorplay.int8, device=device)
    np.testing.assert_array_equal(read(x.cumsum(dim)), array.cumsum(dim))
    once, again = x.float().mul(0.1).cumsum(dim), x.float().mul(0.1).cumsum(dim)
    assert tensorplay.equal(once, again)
    np.testing.assert_allclose(read(once), (array * np.float64(np.float32(0.1))).cumsum(dim), rtol=1e-5, atol=1e-2)


def test_dtype_of_the_result(device: str) -> None:
    x = tensorplay.ones(300, dtype=tensorplay.uint8, device=device)
    assert x.cumsum(0)[-1].item() == 300
    assert x.cumsum(0, dtype=tensorplay.uint8)[-1].item() == 300 - 256
    assert x.cumsum(0, dtype=tensorplay.float64).dtype is tensorplay.float64


def test_scans_in_place(device: str) -> None:
    x = tensorplay.ones(2, 3, dtype=tensorplay.uint8, device=device)
    assert x.cumsum_(1) is x
    assert x.tolist() == [[1, 2, 3], [1, 2, 3]]
    assert x.T.cumprod_(1).tolist() == [[1, 1], [2, 4], [3, 9]]
    assert x.tolist() == [[1, 2, 3], [1, 4, 9]]


def test_scans_refuse(device: str) -> None:
    x = tensorplay.ones(2, 3, device=device)
    with pytest.raises(OutOfRangeError, match="cumsum: got dimension 2, expected -2 to 1"):
        x.cumsum(2)
    with pytest.raises(DTypeError, match="cumprod: got out of dtype int64"):
        tensorplay.cumprod(x, 0, out=tensorplay.ones(2, 3, dtype=tensorplay.int64, device=device))
