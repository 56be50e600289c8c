"""Elementwise functions that core composes, on every device, against NumPy in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers.operands import COMPLEX, FLOATING, INTEGERS, LAYOUTS, assert_close, held, operand, place, poisoned, read

import tensorplay
from tensorplay import _dtype
from tensorplay.errors import DTypeError, InvalidArgumentError

pytestmark = pytest.mark.filterwarnings("ignore:.*(encountered|invalid value).*:RuntimeWarning")

Formula = Callable[..., Any]

#: Of each function its form on tensors, which takes ``out=`` too, and the same in NumPy; all take three operands.
FUNCTIONS: dict[str, tuple[Formula, Formula]] = {
    "square": (lambda a, b, c, **o: tensorplay.square(a, **o), lambda a, b, c: a * a),
    "logit": (lambda a, b, c, **o: tensorplay.logit(a, 0.25, **o), lambda a, b, c: _logit(np.clip(a, 0.25, 0.75))),
    "softplus": (
        lambda a, b, c, **o: tensorplay.softplus(a, 2.0, 3.0, **o),
        lambda a, b, c: np.where(a * 2 > 3, a, np.log1p(np.exp(a * 2)) / 2),
    ),
    "lerp": (lambda a, b, c, **o: tensorplay.lerp(a, b, 0.25, **o), lambda a, b, c: a + 0.25 * (b - a)),
    "lerp by tensor": (lambda a, b, c, **o: tensorplay.lerp(a, b, c, **o), lambda a, b, c: a + c * (b - a)),
    "addcmul": (lambda a, b, c, **o: tensorplay.addcmul(a, b, c, value=0.5, **o), lambda a, b, c: a + 0.5 * b * c),
    "addcdiv": (lambda a, b, c, **o: tensorplay.addcdiv(a, b, c, value=3, **o), lambda a, b, c: a + 3 * b / c),
    "add": (lambda a, b, c, **o: tensorplay.add(a, b, alpha=0.3, **o), lambda a, b, c: a + 0.3 * b),
    "sub": (lambda a, b, c, **o: tensorplay.sub(a, b, alpha=0.3, **o), lambda a, b, c: a - 0.3 * b),
    "clamp": (lambda a, b, c, **o: tensorplay.clamp(a, -1, b, **o), lambda a, b, c: np.minimum(np.maximum(a, -1), b)),
    "round": (lambda a, b, c, **o: tensorplay.round(a * 8, decimals=-1, **o), lambda a, b, c: np.round(a * 8, -1)),
}


def _logit(x: Any) -> Any:
    return np.log(x / (1 - x))


@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_fractions(device: str, name: str, dtype: tensorplay.DType) -> None:
    function, formula = FUNCTIONS[name]
    for seed, layout in enumerate(LAYOUTS):
        operands = [operand(device, (3, 4), dtype, layout, 10 * seed + place) for place in range(3)]
        expected = formula(*(array for _, array in operands))
        poisoned((3, 4), dtype, device)  # Its block serves next.
        # Divisors near 0 make large sums.
        room = max(1.0, float(np.abs(expected).max()))
        tensors = [tensor for tensor, _ in operands]
        assert_close(function(*tensors), expected, dtype, room=room)
        out = poisoned((4, 3), dtype, device).T
        assert function(*tensors, out=out) is out
        assert_close(out, expected, dtype, room=room)


@pytest.mark.parametrize("dtype", [_dtype.float16, _dtype.bfloat16], ids=lambda dtype: dtype.name)
def test_half_types_are_rounded_once(device: str, dtype: tensorplay.DType) -> None:
    (a, x), (b, y), (c, z) = (operand(device, (200,), dtype, "contiguous", seed) for seed in range(3))
    x, y, z = (array.astype(np.float32) for array in (x, y, z))
    third = np.float32(1 / 3)
    for got, expected in [
        (tensorplay.addcmul(a, b, c, value=1 / 3), x + y * third * z),
        (tensorplay.add(a, b, alpha=1 / 3), x + y * third),
        (tensorplay.lerp(a, b, 1 / 3), x + (y - x) * third),
    ]:
        assert expected.dtype == np.float32
        np.testing.assert_array_equal(read(got), held(expected, dtype))


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda dtype: dtype.name)
def test_of_integers(device: str, dtype: tensorplay.DType) -> None:
    (a, x), (b, y), (c, z) = (operand(device, (50,), dtype, "contiguous", seed, scale=100) for seed in range(3))
    assert_close(tensorplay.square(a), x * x, dtype)
    assert_close(tensorplay.addcmul(a, b, c, value=3), x + 3 * y * z, dtype)
    assert_close(tensorplay.add(a, b, alpha=3), x + 3 * y, dtype)
    assert_close(tensorplay.clamp(a, 1, b), np.minimum(np.maximum(x, 1), y), dtype)
    assert_close(tensorplay.clamp(a, 1, 2.5), np.minimum(np.maximum(x, 1), 2.5), _dtype.float32)
    with pytest.raises(DTypeError, match=f"add: got alpha=0.5 for operands of dtype {dtype.name}"):
        a.add(b, alpha=0.5)
    with pytest.raises(DTypeError, match=f"addcdiv: got a division of {dtype.name} by {dtype.name}"):
        a.addcdiv(b, c)
    with pytest.raises(DTypeError, match=f"lerp: got {dtype.name}, expected one floating dtype"):
        a.lerp(b, 0.5)


@pytest.mark.parametrize("dtype", COMPLEX, ids=lambda dtype: dtype.name)
def test_of_complex_numbers(device: str, dtype: tensorplay.DType) -> None:
    (a, x), (b, y), (c, z) = (operand(device, (50,), dtype, "contiguous", seed) for seed in range(3))
    assert_close(tensorplay.square(a), x * x, dtype, room=10)
    assert_close(tensorplay.addcmul(a, b, c, value=2j), x + 2j * y * z, dtype, room=50)
    assert_close(tensorplay.sub(a, b, alpha=2j), x - 2j * y, dtype, room=10)
    assert_close(a.conj(), x.conj(), dtype)
    assert a.abs().conj().dtype is dtype.to_real()


def test_squares_of_bools_are_integers(device: str) -> None:
    x = place(np.array([True, False]), _dtype.bool, device)
    assert_close(x.square(), np.array([1, 0]), _dtype.int64)


def test_sums_of_bools_with_a_factor(device: str) -> None:
    x = place(np.array([True, False]), _dtype.bool, device)
    assert x.add(x, alpha=2).tolist() == [True, False]
    assert x.add(x, alpha=0).tolist() == [True, False]


@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
def test_numbers_for_nan_and_infinities(device: str, dtype: tensorplay.DType) -> None:
    x = place(np.array([np.nan, np.inf, -np.inf, 1.5]), dtype, device)
    limits = tensorplay.finfo(dtype)
    assert x.nan_to_num().tolist() == [0.0, limits.max, limits.min, 1.5]
    assert x.nan_to_num(2, 3, 4).tolist() == [2.0, 3.0, 4.0, 1.5]
    assert x.nan_to_num_(posinf=7).tolist() == [0.0, 7.0, limits.min, 1.5]
    assert place(np.array([1, 2]), _dtype.int8, device).nan_to_num(5).tolist() == [1, 2]


def test_in_place_forms_keep_shape_and_dtype(device: str) -> None:
    x = tensorplay.tensor([0.25, 0.5], device=device)
    address = x.data_ptr()
    y = tensorplay.ones(2, device=device)
    for call, expected in [
        (lambda: x.square_(), [0.0625, 0.25]),
        (lambda: x.lerp_(y, 0.5), [0.53125, 0.625]),
        (lambda: x.add_(y, alpha=2), [2.53125, 2.625]),
        (lambda: x.sub_(1, alpha=2), [0.53125, 0.625]),
        (lambda: x.addcmul_(y, y, value=2), [2.53125, 2.625]),
        (lambda: x.addcdiv_(y, y), [3.53125, 3.625]),
        (lambda: x.round_(decimals=1), [np.float32(3.5), np.float32(3.6)]),
        (lambda: x.clamp_(max=3.5), [3.5, 3.5]),
        (lambda: x.div_(2, rounding_mode="floor"), [1.0, 1.0]),
        (lambda: x.masked_fill_(y > 0, 4), [4.0, 4.0]),
    ]:
        assert call() is x
        assert x.tolist() == expected
    assert x.data_ptr() == address
    with pytest.raises(InvalidArgumentError, match=r"out of shape \(2,\), expected \(3, 2\)"):
        x.lerp_(tensorplay.ones(3, 2, device=device), 0.5)
    with pytest.raises(DTypeError, match="out of dtype int64"):
        tensorplay.ones(2, dtype=_dtype.int64, device=device).add_(y, alpha=2)


def test_closeness(device: str) -> None:
    nan, inf = float("nan"), float("inf")
    a = tensorplay.tensor([1.0, 1.0, nan, inf, inf, 0.0], device=device)
    b = tensorplay.tensor([1.0 + 1e-6, 1.1, nan, inf, -inf, 1e-9], device=device)
    assert a.isclose(b).tolist() == [True, False, False, True, False, True]
    assert a.isclose(b, equal_nan=True).tolist() == [True, False, True, True, False, True]
    assert a.isclose(b, rtol=0.2, atol=0).tolist() == [True, True, False, True, False, False]
    assert not tensorplay.allclose(a, b)
    assert tensorplay.allclose(a[:1], b[:1])
    whole = tensorplay.tensor([3, 4], device=device)
    assert whole.isclose(tensorplay.tensor([3, 5], device=device)).tolist() == [True, False]
    assert whole.to(_dtype.complex64).isclose(whole + 1j).tolist() == [False, False]
    with pytest.raises(InvalidArgumentError, match="isclose: got rtol=-1 and atol=0, expected 0 or more"):
        a.isclose(b, rtol=-1, atol=0)


def test_equality_of_tensors(device: str) -> None:
    x = tensorplay.tensor([1.0, 2.0], device=device)
    assert x.equal(x.clone())
    assert not x.equal(x + 1)
    assert not x.equal(x[:1])
    assert not (x * float("nan")).equal(x * float("nan"))


def test_what_is_refused(device: str) -> None:
    x = tensorplay.ones(2, device=device)
    with pytest.raises(InvalidArgumentError, match="div: got rounding_mode='up', expected None, 'trunc' or 'floor'"):
        x.div(x, rounding_mode="up")
    with pytest.raises(DTypeError, match="round: got decimals=1 for dtype int64, expected a floating dtype"):
        x.long().round(decimals=1)
    with pytest.raises(DTypeError, match="positive: got dtype bool"):
        +x.bool()
    with pytest.raises(InvalidArgumentError, match="clamp: got neither min nor max"):
        x.clamp()
    with pytest.raises(DTypeError, match="lerp: got float32 and float64, expected one floating dtype"):
        x.lerp(x.double(), 0.5)
    with pytest.raises(DTypeError, match="addcmul: got 1j as value, expected a number that float32 holds"):
        x.addcmul(x, x, value=1j)
