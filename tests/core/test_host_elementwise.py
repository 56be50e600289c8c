"""The formulas of the host that have rules of their own: integers, signs of zero, and how exact they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorplay
from tensorplay import _dtype, _plugins
from tensorplay._host.elementwise import UNARY

HOST = _plugins.get("cpu")
nan, inf = float("nan"), float("inf")
INTEGERS = [dtype for dtype in _dtype.DTYPES.values() if dtype.category == _dtype.INT]


def binary(op: str, a: Any, b: Any, dtype: _dtype.DType) -> Any:
    """An operation on lists of numbers; texts, so that nan and -0 can be compared."""
    operands = [tensorplay.tensor(x, dtype=dtype) if isinstance(x, list) else x for x in (a, b)]
    return [str(value) for value in HOST.binary(op, *operands).tolist()]


def wrapped(value: int, dtype: _dtype.DType) -> int:
    """The integer that has the lowest bits of a longer one."""
    bits = 8 * dtype.itemsize
    value %= 2**bits
    return value - 2**bits if dtype.is_signed and value >= 2 ** (bits - 1) else value


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize(
    ("op", "values"),
    [
        ("floor_divide", [2, 0, 0, 3]),
        ("div_trunc", [2, 0, 0, 3]),
        ("remainder", [1, 0, 0, 0]),
        ("fmod", [1, 0, 0, 0]),
    ],
)
def test_integers_divided_by_zero_are_zero(op: str, values: list[int], dtype: _dtype.DType) -> None:
    assert binary(op, [7, 7, 0, 9], [3, 0, 0, 3], dtype) == list(map(str, values))
    assert binary(op, [7, 9], 0, dtype) == ["0", "0"]


@pytest.mark.parametrize(
    ("op", "values"),
    [
        ("floor_divide", [2, -3, -3, 2]),
        ("div_trunc", [2, -2, -2, 2]),
        ("remainder", [1, 2, -2, -1]),
        ("fmod", [1, -1, 1, -1]),
    ],
)
def test_quotients_of_negative_numbers(op: str, values: list[int]) -> None:
    operands = [7, -7, 7, -7], [3, 3, -3, -3]
    for dtype in (_dtype.int8, _dtype.int64, _dtype.bfloat16, _dtype.float64):
        assert [float(value) for value in binary(op, *operands, dtype)] == values


def test_the_lowest_integer_divided_by_minus_one_wraps() -> None:
    for dtype in INTEGERS:
        if dtype.is_signed:
            lowest = -(2 ** (8 * dtype.itemsize - 1))
            assert binary("floor_divide", [lowest], -1, dtype) == [str(lowest)]
            assert binary("div_trunc", [lowest], -1, dtype) == [str(lowest)]
            assert binary("remainder", [lowest], -1, dtype) == binary("fmod", [lowest], -1, dtype) == ["0"]


def test_divisions_of_fractions_keep_torchs_zeros_and_infinities() -> None:
    a, b = [5.0, -5.0, 0.0, -0.0, 1.0, -6.0, 6.0], [inf, inf, 3.0, 3.0, 0.0, 3.0, -3.0]
    assert binary("floor_divide", a, b, _dtype.float32) == ["0.0", "-1.0", "0.0", "-0.0", "inf", "-2.0", "-2.0"]
    assert binary("remainder", a, b, _dtype.float32) == ["5.0", "inf", "0.0", "-0.0", "nan", "-0.0", "0.0"]
    assert binary("div_trunc", a, b, _dtype.float32) == ["0.0", "-0.0", "0.0", "-0.0", "inf", "-2.0", "-2.0"]
    # 1 / 0.1 is 10, but 0.1 in float64 is a little more than a tenth.
    assert binary("floor_divide", [1.0], [0.1], _dtype.float64) == ["9.0"]


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda dtype: dtype.name)
def test_shifts_outside_the_width(dtype: _dtype.DType) -> None:
    last, far = 8 * dtype.itemsize - 1, 127
    shifted = [5, 10, wrapped(5 << last, dtype), 0]
    assert binary("bitwise_left_shift", [5, 5, 5, 5], [0, 1, last, far], dtype) == list(map(str, shifted))
    assert binary("bitwise_right_shift", [80, 80, 80], [0, 4, far], dtype) == ["80", "5", "0"]
    if dtype.is_signed:
        assert binary("bitwise_left_shift", [5, -5], [-1, -1], dtype) == ["0", "0"]
        assert binary("bitwise_right_shift", [5, -5, -5, -5], [-1, -1, 1, far], dtype) == ["0", "-1", "-3", "-1"]


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda dtype: dtype.name)
def test_powers_of_integers_wrap(dtype: _dtype.DType) -> None:
    assert binary("pow", [3, 0, 1], [41, 0, 41], dtype) == [str(wrapped(3**41, dtype)), "1", "1"]
    if dtype.is_signed:
        assert binary("pow", [0, 1, -1, -1, 2], [-1, -3, -3, -2, -1], dtype) == ["0", "1", "-1", "1", "0"]


@pytest.mark.parametrize(
    ("exponent", "expected"),
    [
        (3.0, ["-8.0", "-1.0", "-0.0", "-inf"]),
        (2.0, ["4.0", "1.0", "0.0", "inf"]),
        (-1.0, ["-0.5", "-1.0", "-inf", "-0.0"]),
        (0.0, ["1.0", "1.0", "1.0", "1.0"]),
        (2.5, ["nan", "nan", "0.0", "inf"]),
        (inf, ["inf", "1.0", "0.0", "inf"]),
        (-inf, ["0.0", "1.0", "inf", "0.0"]),
        (nan, ["nan", "nan", "nan", "nan"]),
    ],
)
def test_powers_of_negative_bases(exponent: float, expected: list[str]) -> None:
    bases = [-2.0, -1.0, -0.0, -inf]
    assert binary("pow", bases, exponent, _dtype.float32) == expected
    assert binary("pow", bases, [exponent] * 4, _dtype.float64) == expected
    assert binary("pow", [*bases, 2.0], [exponent] * 4 + [2.0], _dtype.float32) == [*expected, "4.0"]


def test_powers_of_one_half_are_no_roots() -> None:
    for dtype in (_dtype.float16, _dtype.float32, _dtype.float64):
        assert binary("pow", [-0.0, -inf, 4.0, -1.0], 0.5, dtype) == ["0.0", "inf", "2.0", "nan"]
        assert binary("pow", [-inf], 0.5, dtype) == ["inf"]


def test_numbers_count_as_elements_of_integers() -> None:
    assert binary("floor_divide", [1, 200], 300, _dtype.uint8) == ["0", "4"]  # 300 is 44.
    assert binary("lt", [1, 200], 300, _dtype.uint8) == ["True", "False"]
    assert binary("sub", 300, [1, 200], _dtype.uint8) == ["43", "100"]


def test_half_types_keep_the_digits_of_a_number() -> None:
    assert binary("mul", [1000.0], 1.0001, _dtype.bfloat16) == ["1000.0"]
    # The product in float32 is rounded once; 0.1 as bfloat16 would give 100.1.
    assert binary("mul", [1000.0], 0.1, _dtype.bfloat16) == ["100.0"]
    assert binary("eq", [0.1], 0.1, _dtype.bfloat16) == ["True"]


def test_nan_in_extremes() -> None:
    a, b = [nan, 1.0, nan, 2.0], [1.0, nan, nan, 1.0]
    assert binary("maximum", a, b, _dtype.float16) == binary("maximum", b, a, _dtype.float16) == ["nan"] * 3 + ["2.0"]
    assert binary("fmax", a, b, _dtype.bfloat16) == ["1.0", "1.0", "nan", "2.0"]
    assert binary("fmin", a, b, _dtype.float32) == ["1.0", "1.0", "nan", "1.0"]


@pytest.mark.parametrize(
    ("op", "values"),
    [
        ("round", ["2.0", "-2.0", "0.0", "-0.0", "2.0", "nan"]),
        ("trunc", ["2.0", "-2.0", "0.0", "-0.0", "1.0", "nan"]),
        ("sign", ["1", "-1", "1", "-1", "1", "0"]),
        ("signbit", ["False", "True", "False", "True", "False", "False"]),
        ("isnan", ["False"] * 5 + ["True"]),
    ],
)
def test_roundings_and_signs(op: str, values: list[str]) -> None:
    x = tensorplay.tensor([2.5, -2.5, 0.5, -0.5, 1.5, nan])
    found = HOST.unary(op, x).tolist()
    assert [str(int(value) if op == "sign" else value) for value in found] == values
    whole = tensorplay.tensor([3, -3], dtype=tensorplay.int8)
    assert HOST.unary("round", whole).tolist() == [3, -3]


EXACT: dict[str, Callable[[float], float]] = {
    "exp2": lambda x: 2.0**x, "expm1": math.expm1, "log1p": math.log1p, "log2": math.log2, "log10": math.log10,
    "exp": math.exp, "log": math.log, "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan,
    "sinh": math.sinh, "cosh": math.cosh, "tanh": math.tanh, "asinh": math.asinh, "atanh": math.atanh,
    "acosh": math.acosh, "erf": math.erf, "erfc": math.erfc, "sin": math.sin, "cos": math.cos,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)), "silu": lambda x: x / (1 + math.exp(-x)),
    "gelu": lambda x: x * math.erfc(-x / math.sqrt(2)) / 2, "rsqrt": lambda x: 1 / math.sqrt(x),
}  # fmt: skip


@pytest.mark.parametrize("op", EXACT)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_are_exact_to_a_few_last_places(op: str, dtype: Any, own_seed: int) -> None:
    generator = np.random.default_rng(own_seed)
    x = np.concatenate([generator.uniform(0.001, 0.999, 200), generator.uniform(1e-8, 1e-3, 100)]).astype(dtype)
    if op == "acosh":
        x += 1
    elif op not in ("log", "log2", "log10", "asin", "acos", "atanh", "rsqrt"):
        x = np.concatenate([-x, x, x * dtype(9)])
    expected = np.array([EXACT[op](value) for value in x.tolist()])
    found = UNARY[op](x)
    assert found.dtype == dtype
    # The two factors of the tail, and what C finds, are rounded as well.
    places = 6 if op in ("erfc", "gelu") else 4
    np.testing.assert_allclose(found, expected, rtol=places * float(np.finfo(dtype).eps), atol=0)


def test_tails_do_not_cancel() -> None:
    x = np.array([-5.0, -7.0, -10.0], np.float32)
    np.testing.assert_allclose(UNARY["gelu"](x), [EXACT["gelu"](v) for v in x.tolist()], rtol=1e-6)
    assert (UNARY["gelu_tanh"](x) < 0).all()
    assert UNARY["erfc"](np.array([10.0])).item() == pytest.approx(math.erfc(10.0), rel=1e-14)


def test_a_result_is_never_its_operand() -> None:
    for dtype in _dtype.DTYPES.values():
        x = tensorplay.ones(2, dtype=dtype)
        for op, takes in (("conj", "NUMBERS"), ("floor", "REAL_NUMBERS"), ("abs", "ALL")):
            if takes == "ALL" or (dtype.category >= _dtype.INT and not (op == "floor" and dtype.is_complex)):
                assert HOST.unary(op, x).data_ptr() != x.data_ptr()
