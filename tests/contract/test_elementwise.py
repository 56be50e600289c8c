"""Elementwise operations on every device, against float64."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from helpers import formulas
from helpers.operands import (
    DTYPES,
    FLOATING,
    assert_close,
    broadcastable,
    dtypes,
    layouts,
    operand,
    place,
    read,
    seeds,
    shapes,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tensorplay
from tensorplay import _tables
from tensorplay.errors import DTypeError, InvalidArgumentError

# The device stays the same for all examples of a test.
pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
same_device = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def apply(op: str, *operands: Any, **options: Any) -> tensorplay.Tensor:
    """An operation of the tables by its public function."""
    if op == "gelu_tanh":
        return tensorplay.gelu(*operands, approximate="tanh", **options)
    function = getattr(tensorplay, op)
    result: tensorplay.Tensor = function(*operands, **options)
    return result


def unary_dtype(op: str, dtype: tensorplay.DType) -> tensorplay.DType | None:
    """Dtype of the result; None where it is refused."""
    rule = _tables.UNARY[op][1]
    if rule == "NUMERIC" and dtype is tensorplay.bool:
        return None
    if rule == "BOOL":
        return tensorplay.bool
    return tensorplay.float32 if rule == "FLOAT" and not dtype.is_floating_point else dtype


@pytest.mark.parametrize("op", _tables.UNARY)
@same_device
@given(shape=shapes, dtype=dtypes, layout=layouts, seed=seeds)
def test_unary(device: str, op: str, shape: tuple[int, ...], dtype: tensorplay.DType, layout: str, seed: int) -> None:
    x, array = operand(device, shape, dtype, layout, seed)
    result = unary_dtype(op, dtype)
    if result is None:
        with pytest.raises(DTypeError, match=f"{op}: got dtype bool"):
            apply(op, x)
        return
    expected = formulas.UNARY[op](array.astype(np.float64) if _tables.UNARY[op][1] == "FLOAT" else array)
    assert_close(apply(op, x), expected, result)


@pytest.mark.parametrize("op", [op for op, (_, rule) in _tables.UNARY.items() if rule != "BOOL"])
@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
def test_unary_of_special_numbers(device: str, op: str, dtype: tensorplay.DType) -> None:
    array = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 6e4, -6e4, 90.0, -90.0])
    array = array.astype(dtype.numpy).astype(np.float64)
    got = apply(op, place(array, dtype, device))
    if op in ("sin", "cos"):  # Large angles are the same angle only in the operand's own precision.
        array, got = array[:5], got[:5]
    assert_close(got, formulas.UNARY[op](array), dtype)


def common(op: str, a: tensorplay.Tensor, b: tensorplay.Tensor) -> tensorplay.DType:
    """torch's promotion for two tensors, written out once more."""
    order = [tensorplay.bool, tensorplay.int32, tensorplay.int64]
    if a.dtype.category != b.dtype.category and (a.ndim == 0) == (b.ndim == 0):
        return a.dtype if a.dtype.category > b.dtype.category else b.dtype
    if (a.ndim == 0) != (b.ndim == 0):
        strong, weak = (b, a) if a.ndim == 0 else (a, b)
        if strong.dtype.category >= weak.dtype.category:
            return strong.dtype
        return weak.dtype
    if a.dtype.is_floating_point:
        return a.dtype if a.dtype is b.dtype else tensorplay.float32
    return max(a.dtype, b.dtype, key=order.index)


def binary_dtype(op: str, dtype: tensorplay.DType) -> tuple[tensorplay.DType, tensorplay.DType] | None:
    """Dtype of the result, and dtype of the operands once promoted; None where it is refused."""
    rule = _tables.BINARY[op][1]
    if rule == "NUMERIC" and dtype is tensorplay.bool:
        return None
    if rule == "FLOAT" and not dtype.is_floating_point:
        dtype = tensorplay.float32
    return (tensorplay.bool if rule == "BOOL" else dtype), dtype


def expected_of(op: str, a: Any, b: Any, dtype: tensorplay.DType) -> Any:
    """The formula on operands as the promoted dtype holds them."""

    def held(array: Any) -> Any:
        exact = np.asarray(array).astype(dtype.numpy)
        return (
            exact.astype(np.float64)
            if dtype.is_floating_point
            else exact.astype(bool if dtype is tensorplay.bool else np.int64)
        )

    result = formulas.BINARY[op](held(a), held(b))
    return result.astype(np.int32) if dtype is tensorplay.int32 and result.dtype == np.int64 else result


@pytest.mark.parametrize("op", _tables.BINARY)
@same_device
@given(both=broadcastable(), dtype_a=dtypes, dtype_b=dtypes, layout_a=layouts, layout_b=layouts, seed=seeds)
def test_binary(
    device: str,
    op: str,
    both: list[tuple[int, ...]],
    dtype_a: tensorplay.DType,
    dtype_b: tensorplay.DType,
    layout_a: str,
    layout_b: str,
    seed: int,
) -> None:
    a, x = operand(device, both[0], dtype_a, layout_a, seed)
    b, y = operand(device, both[1], dtype_b, layout_b, seed + 1)
    rule = binary_dtype(op, common(op, a, b))
    if rule is None:
        with pytest.raises(DTypeError, match=f"{op}: got dtype bool"):
            apply(op, a, b)
        return
    result, computed = rule
    room = 64.0 if op == "pow" else 1.0
    assert_close(apply(op, a, b), expected_of(op, x, y, computed), result, room=room)


@pytest.mark.parametrize("op", _tables.BINARY)
@pytest.mark.parametrize("scalar", [True, 3, -2, 0.5, 2.0], ids=repr)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("is_reversed", [False, True])
def test_binary_with_a_number(device: str, op: str, scalar: Any, dtype: tensorplay.DType, is_reversed: bool) -> None:
    x, array = operand(device, (3, 4), dtype, "contiguous", seed=5)
    default = {bool: tensorplay.bool, int: tensorplay.int64, float: tensorplay.float32}[type(scalar)]
    rule = binary_dtype(op, dtype if dtype.category >= default.category else default)
    operands, arrays = ((scalar, x), (scalar, array)) if is_reversed else ((x, scalar), (array, scalar))
    if rule is None:
        with pytest.raises(DTypeError, match=f"{op}: got dtype bool"):
            apply(op, *operands)
        return
    result, computed = rule
    assert_close(apply(op, *operands), expected_of(op, *arrays, computed), result, room=64.0)


@pytest.mark.parametrize("op", ["eq", "ne", "lt", "le", "gt", "ge", "maximum", "logical_and"])
@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("step", [1, 2])
def test_a_number_that_the_dtype_rounds(device: str, op: str, dtype: tensorplay.DType, step: int) -> None:
    """In a comparison the number counts as an element, so that 0.1 is found again in every dtype."""
    x = tensorplay.tensor([0.1, 0.0, 0.0999, 0.0, 1e-9], dtype=dtype, device=device)[::step]
    for number in (0.1, 1e-9, 1e6, 16777217):
        rounded = tensorplay.full(x.shape, number, dtype=dtype, device=device)
        assert read(apply(op, x, number)).tolist() == read(apply(op, x, rounded)).tolist()
        assert read(apply(op, number, x)).tolist() == read(apply(op, rounded, x)).tolist()
    assert (x[0] == 0.1).item()


OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@pytest.mark.parametrize("symbol", OPERATORS)
@pytest.mark.parametrize("other", [2, 0.5, np.float32(2), np.int64(2), np.array(2.0)], ids=repr)
def test_operators_in_both_orders(device: str, symbol: str, other: Any) -> None:
    apply_ = OPERATORS[symbol]
    x, array = operand(device, (5,), tensorplay.float32, "contiguous", seed=1)
    x, array = abs(x), np.abs(array)
    np.testing.assert_allclose(read(apply_(x, other)), apply_(array, other), rtol=1e-5)
    np.testing.assert_allclose(read(apply_(other, x)), apply_(other, array), rtol=1e-5)


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "**"])
def test_in_place_operators_keep_the_object_and_its_memory(device: str, symbol: str) -> None:
    in_place = {"+": operator.iadd, "-": operator.isub, "*": operator.imul, "/": operator.itruediv, "**": operator.ipow}
    x, array = operand(device, (5,), tensorplay.float16, "contiguous", seed=1)
    view, address = x[1:], x.data_ptr()
    result = in_place[symbol](x, 2)
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


@same_device
@given(shape=shapes, dtype=dtypes, target=dtypes, seed=seeds)
def test_out(device: str, shape: tuple[int, ...], dtype: tensorplay.DType, target: tensorplay.DType, seed: int) -> None:
    x, array = operand(device, shape, dtype, "contiguous", seed)
    out = tensorplay.zeros(shape, dtype=target, device=device)
    if dtype.category > target.category:
        with pytest.raises(DTypeError, match=f"add: got out of dtype {target.name}"):
            tensorplay.add(x, x, out=out)
        return
    assert tensorplay.add(x, x, out=out) is out
    expected = expected_of("add", array, array, dtype)
    precision = max((dtype, target), key=lambda d: {"bfloat16": 2, "float16": 1}.get(d.name, 0))
    if target.is_floating_point and precision.is_floating_point:
        np.testing.assert_allclose(read(out), expected, rtol=1.6e-2, atol=1.6e-2)
    else:
        np.testing.assert_array_equal(read(out), expected.astype(target.numpy))


def test_out_that_overlaps_an_operand(device: str) -> None:
    x = tensorplay.arange(6, dtype=tensorplay.float32, device=device)
    tensorplay.add(x[:-1], x[1:], out=x[1:])
    assert x.tolist() == [0, 1, 3, 5, 7, 9]


@same_device
@given(three=broadcastable(3), dtype_a=dtypes, dtype_b=dtypes, layout=layouts, seed=seeds)
def test_where(
    device: str,
    three: list[tuple[int, ...]],
    dtype_a: tensorplay.DType,
    dtype_b: tensorplay.DType,
    layout: str,
    seed: int,
) -> None:
    condition, mask = operand(device, three[0], tensorplay.bool, layout, seed)
    a, x = operand(device, three[1], dtype_a, layout, seed + 1)
    b, y = operand(device, three[2], dtype_b, layout, seed + 2)
    dtype = common("where", a, b)
    expected = np.where(mask, x.astype(dtype.numpy), y.astype(dtype.numpy))
    assert_close(
        tensorplay.where(condition, a, b),
        expected.astype(np.float64 if dtype.is_floating_point else dtype.numpy),
        dtype,
    )


def test_where_with_numbers(device: str) -> None:
    mask = tensorplay.tensor([True, False], device=device)
    x = tensorplay.tensor([1.0, 2.0], dtype=tensorplay.float16, device=device)
    assert tensorplay.where(mask, x, 0.5).dtype is tensorplay.float16
    assert tensorplay.where(mask, x, 0.5).tolist() == [1.0, 0.5]
    assert tensorplay.where(mask, 1, 2).tolist() == [1, 2]


def test_masked_fill_and_clamp(device: str) -> None:
    x = tensorplay.tensor([-2.0, 0.5, 7.0], device=device)
    assert x.masked_fill(x < 0, -float("inf")).tolist() == [-float("inf"), 0.5, 7.0]
    assert x.clamp(-1, 1).tolist() == [-1.0, 0.5, 1.0]
    assert x.clamp(min=0).tolist() == [0.0, 0.5, 7.0]
    assert x.masked_fill_(x > 1, 1).tolist() == [-2.0, 0.5, 1.0]
    with pytest.raises(DTypeError, match="masked_fill: got a value of dtype float32 for a tensor of int64"):
        tensorplay.arange(3, device=device).masked_fill(x < 0, 0.5)


def test_integers_wrap(device: str) -> None:
    top = tensorplay.full((2,), 2**31 - 1, dtype=tensorplay.int32, device=device)
    assert (top + 1).tolist() == [-(2**31)] * 2
    assert (-tensorplay.full((1,), -(2**63), dtype=tensorplay.int64, device=device)).tolist() == [-(2**63)]


@given(value=st.one_of(st.integers(2**63, 2**70), st.integers(-(2**70), -(2**63) - 1)))
@same_device
def test_integers_beyond_int64_are_refused(device: str, value: int) -> None:
    x = tensorplay.ones(2, device=device)
    with pytest.raises(InvalidArgumentError, match="add: got the integer"):
        x + value


def test_logic_of_bools(device: str) -> None:
    a = tensorplay.tensor([True, True, False, False], device=device)
    b = tensorplay.tensor([True, False, True, False], device=device)
    assert (a & b).tolist() == [True, False, False, False]
    assert (a | b).tolist() == [True, True, True, False]
    assert (a ^ b).tolist() == [False, True, True, False]
    assert (~a).tolist() == [False, False, True, True]
    with pytest.raises(DTypeError, match="&: got dtype int64 and"):
        tensorplay.arange(3, device=device) & 1


def test_operators_leave_foreign_operands_to_python(device: str) -> None:
    x = tensorplay.ones(2, device=device)
    assert (x == None) is False  # noqa: E711
    assert (x != "a") is True
    with pytest.raises(TypeError, match="unsupported operand"):
        x + "a"
    with pytest.raises(DTypeError, match=r"NumPy array of shape \(2,\)"):
        x + np.ones(2)
