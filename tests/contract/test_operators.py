"""Python's operators on every device: both orders, in place, and what is left to Python."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from helpers.operands import DTYPES, assert_close, held, operand, poisoned, read

import tensorplay
from tensorplay import _dtype
from tensorplay.errors import DTypeError, InvalidArgumentError

OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow,
    "//": operator.floordiv, "%": operator.mod,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
IN_PLACE = {
    "+": operator.iadd, "-": operator.isub, "*": operator.imul, "/": operator.itruediv, "**": operator.ipow,
    "//": operator.ifloordiv, "%": operator.imod,
}  # fmt: skip
BITS = {"&": operator.and_, "|": operator.or_, "^": operator.xor}
BITS_IN_PLACE = {"&": operator.iand, "|": operator.ior, "^": operator.ixor}


@pytest.mark.parametrize("symbol", OPERATORS)
@pytest.mark.parametrize("other", [2, 0.5, np.float32(2), np.int64(2), np.array(2.0)], ids=repr)
def test_both_orders(device: str, symbol: str, other: Any) -> None:
    apply_ = OPERATORS[symbol]
    x, array = operand(device, (5,), tensorplay.float32, "contiguous", seed=1)
    x, array = abs(x), np.abs(array)
    np.testing.assert_allclose(read(apply_(x, other)), apply_(array, other), rtol=1e-5)
    np.testing.assert_allclose(read(apply_(other, x)), apply_(other, array), rtol=1e-5)


@pytest.mark.parametrize("symbol", BITS)
def test_bits_of_integers_and_bools(device: str, symbol: str) -> None:
    for dtype in (_dtype.bool, _dtype.uint8, _dtype.int64):
        a, x = operand(device, (9,), dtype, "contiguous", 1, scale=50)
        b, y = operand(device, (9,), dtype, "contiguous", 2, scale=50)
        assert_close(BITS[symbol](a, b), BITS[symbol](x, y), dtype)
        assert_close(BITS[symbol](a, True), BITS[symbol](x, True), dtype)
        assert_close(BITS[symbol](True, a), BITS[symbol](True, x), dtype)
        address = a.data_ptr()
        result = BITS_IN_PLACE[symbol](a, b)
        assert result is a
        assert a.data_ptr() == address
        assert_close(a, BITS[symbol](x, y), dtype)
    with pytest.raises(DTypeError, match="got dtype float32"):
        BITS[symbol](tensorplay.ones(2, device=device), True)


def test_shifts_and_inversion(device: str) -> None:
    x, array = operand(device, (9,), _dtype.int32, "contiguous", 1, scale=50)
    assert_close(x << 3, array << 3, _dtype.int32)
    assert_close(x >> 1, array >> 1, _dtype.int32)
    assert_close(1 << abs(x) % 8, 1 << np.abs(array) % 8, _dtype.int32)
    assert_close(~x, ~array, _dtype.int32)
    assert (~tensorplay.tensor([True, False], device=device)).tolist() == [False, True]
    x <<= 2
    x >>= 1
    assert_close(x, array * 4 >> 1, _dtype.int32)


@pytest.mark.parametrize("symbol", IN_PLACE)
def test_in_place_keeps_the_object_and_its_memory(device: str, symbol: str) -> None:
    x, array = operand(device, (5,), tensorplay.float16, "contiguous", seed=1)
    view, address = x[1:], x.data_ptr()
    result = IN_PLACE[symbol](x, 2)
    assert result is x
    assert x.data_ptr() == address
    assert_close(view, OPERATORS[symbol](array, 2)[1:], tensorplay.float16)


def test_in_place_result_of_a_higher_category_is_refused(device: str) -> None:
    x = tensorplay.ones(3, dtype=tensorplay.int64, device=device)
    with pytest.raises(DTypeError, match="add: got out of dtype int64"):
        x += 0.5
    with pytest.raises(InvalidArgumentError, match="mul: got out of shape"):
        x *= tensorplay.ones(2, 3, dtype=tensorplay.int64, device=device)
    assert x.tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_out_of_another_dtype(device: str, dtype: tensorplay.DType, own_seed: int) -> None:
    x, array = operand(device, (4, 5), dtype, "contiguous", own_seed)
    for target in DTYPES:
        out = poisoned((5, 4), target, device).T
        if dtype.category > target.category:
            with pytest.raises(DTypeError, match=f"add: got out of dtype {target.name}"):
                tensorplay.add(x, x, out=out)
            continue
        assert tensorplay.add(x, x, out=out) is out
        total = array | array if dtype is _dtype.bool else array + array
        # Doubling is exact; one rounding of the result to the target's dtype remains.
        assert_close(out, held(held(total, dtype), target), target)


def test_out_that_overlaps_an_operand(device: str) -> None:
    x = tensorplay.arange(6, dtype=tensorplay.float32, device=device)
    tensorplay.add(x[:-1], x[1:], out=x[1:])
    assert x.tolist() == [0, 1, 3, 5, 7, 9]


def test_foreign_operands_are_left_to_python(device: str) -> None:
    x = tensorplay.ones(2, device=device)
    assert (x == None) is False  # noqa: E711
    assert (x != "a") is True
    with pytest.raises(TypeError, match="unsupported operand"):
        x + "a"
    with pytest.raises(DTypeError, match=r"NumPy array of shape \(2,\)"):
        x + np.ones(2)
