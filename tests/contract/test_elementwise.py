"""Every elementwise operation with every dtype on every device, against NumPy in the dtype's widest kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import formulas
from helpers.operands import (
    ARRANGEMENTS,
    DTYPES,
    FLOATING,
    LAYOUTS,
    arranged,
    assert_close,
    held,
    operand,
    place,
    poisoned,
    promoted,
    read,
    special,
)

import tensorplay
from tensorplay import _dtype, _tables
from tensorplay.errors import DTypeError, InvalidArgumentError

pytestmark = pytest.mark.filterwarnings("ignore:.*(encountered|invalid value).*:RuntimeWarning")

#: Lowest and highest category of what an operation takes, as ops.def names it.
TAKES = {
    "ALL": (_dtype.BOOL, _dtype.COMPLEX),
    "REAL": (_dtype.BOOL, _dtype.FLOAT),
    "NUMBERS": (_dtype.INT, _dtype.COMPLEX),
    "REAL_NUMBERS": (_dtype.INT, _dtype.FLOAT),
    "BITS": (_dtype.BOOL, _dtype.INT),
    "INTEGERS": (_dtype.INT, _dtype.INT),
    "FLOATS": (_dtype.FLOAT, _dtype.FLOAT),
}
# Errors of the operands' rounding that these formulas multiply.
ROOM = {"pow": 64.0, "tan": 64.0, "gelu": 8.0, "gelu_tanh": 8.0}


def apply(op: str, *operands: Any, **options: Any) -> tensorplay.Tensor:
    """An operation of the tables by its public function."""
    if op == "gelu_tanh":
        return tensorplay.gelu(*operands, approximate="tanh", **options)
    if op == "div_trunc":
        return tensorplay.div(*operands, rounding_mode="trunc", **options)
    if op == "conj":  # conj itself gives real tensors back as they are
        op = "conj_physical"
    result: tensorplay.Tensor = getattr(tensorplay, op)(*operands, **options)
    return result


def dtypes_of(row: tuple[int, str, str], dtype: tensorplay.DType) -> tuple[tensorplay.DType, tensorplay.DType] | None:
    """Dtype of the result and dtype to compute in, of promoted operands; None where they are refused."""
    _, takes, rule = row
    lowest, highest = TAKES[takes]
    if not lowest <= dtype.category <= highest:
        return None
    if rule == "FLOAT" and dtype.category < _dtype.FLOAT:
        dtype = _dtype.float32
    if rule == "BOOL":
        return _dtype.bool, dtype
    return (dtype.to_real() if rule == "MAGNITUDE" else dtype), dtype


def check(op: str, operands: tuple[Any, ...], expected: Any, dtype: tensorplay.DType, device: str) -> None:
    """The result in new memory and in `out`, both full of other elements before."""
    shape, room = np.shape(expected), ROOM.get(op, 1.0)
    poisoned(shape, dtype, device)  # Its block serves next.
    assert_close(apply(op, *operands), expected, dtype, room=room)
    out = poisoned(shape[::-1], dtype, device).T
    assert apply(op, *operands, out=out) is out
    assert_close(out, expected, dtype, room=room)


@pytest.mark.parametrize("op", _tables.UNARY)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_unary(device: str, op: str, dtype: tensorplay.DType, own_seed: int) -> None:
    found = dtypes_of(_tables.UNARY[op], dtype)
    if found is None:
        with pytest.raises(DTypeError, match=f"{op}: got dtype {dtype.name}"):
            apply(op, tensorplay.ones(2, dtype=dtype, device=device))
        return
    result, computed = found
    cases = [operand(device, shape, dtype, layout, own_seed + i) for i, (shape, layout) in enumerate(ARRANGEMENTS)]
    cases += [arranged(special(dtype), dtype, device, layout) for layout in ("contiguous", "stepped")]
    for x, array in cases:
        check(op, (x,), formulas.unary(op)(held(array, computed)), result, device)


def common(op: str, a: Any, b: Any) -> tensorplay.DType:
    """torch's promotion: tensors without dimensions are weaker than others, and numbers weaker than these."""
    numbers = {bool: _dtype.bool, int: _dtype.int64, float: _dtype.float32, complex: _dtype.complex64}
    ranked = [
        (2 if operand.ndim else 1, operand.dtype)
        if isinstance(operand, tensorplay.Tensor)
        else (0, numbers[type(operand)])
        for operand in (a, b)
    ]
    (weak, low), (strong, high) = sorted(ranked, key=lambda pair: pair[0])
    if weak == strong:
        return promoted(low, high)
    if high.category >= low.category:
        return high
    return high.to_complex() if low.is_complex and high.is_floating_point else promoted(low, high)


def expected_of(op: str, a: Any, b: Any, dtype: tensorplay.DType) -> Any:
    """The formula on operands as the promoted dtype holds them."""
    return formulas.binary(op)(held(a, dtype), held(b, dtype))


def check_binary(op: str, operands: tuple[Any, Any], arrays: tuple[Any, Any], device: str) -> None:
    """Both orders are the caller's matter; `arrays` are the operands' elements."""
    dtype = common(op, *operands)
    found = dtypes_of(_tables.BINARY[op], dtype)
    if found is None:
        with pytest.raises(DTypeError, match=f"got dtype {dtype.name}"):
            apply(op, *operands)
        return
    result, computed = found
    check(op, operands, expected_of(op, *arrays, computed), result, device)


def part(shape: tuple[int, ...], which: int) -> tuple[int, ...]:
    """A shape that broadcasts to this one."""
    return [shape, shape[1:], tuple(1 if i % 2 else size for i, size in enumerate(shape)), ()][which % 4]


@pytest.mark.parametrize("op", _tables.BINARY)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_binary(device: str, op: str, dtype: tensorplay.DType, own_seed: int) -> None:
    random = np.random.default_rng(own_seed)
    for i, (shape, layout) in enumerate(ARRANGEMENTS):
        a, x = operand(device, shape, dtype, layout, own_seed + i)
        b, y = operand(device, part(shape, i), dtype, LAYOUTS[random.integers(4)], own_seed - i)
        check_binary(op, (a, b), (x, y), device)
        other = DTYPES[random.integers(len(DTYPES))]
        b, y = operand(device, part(shape, random.integers(4)), other, LAYOUTS[random.integers(4)], own_seed)
        check_binary(op, (b, a), (y, x), device)


@pytest.mark.parametrize("op", _tables.BINARY)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_binary_of_special_numbers(device: str, op: str, dtype: tensorplay.DType) -> None:
    numbers = special(dtype)
    if dtype.is_complex:  # What infinite parts give is not the same everywhere.
        numbers = numbers[np.isfinite(numbers) & (np.abs(numbers) < 1e9) & ((np.abs(numbers) > 1e-9) | (numbers == 0))]
        if op == "div":
            numbers = numbers[numbers != 0]
    a, b = place(numbers[:, None], dtype, device), place(numbers, dtype, device)
    check_binary(op, (a, b), (numbers[:, None], numbers), device)


@pytest.mark.parametrize("op", _tables.BINARY)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_binary_with_a_number(device: str, op: str, dtype: tensorplay.DType, own_seed: int) -> None:
    x, array = operand(device, (3, 4), dtype, "contiguous", own_seed)
    for number in (True, 3, -2, 0.5, 2.0, 1.5 - 2j):
        check_binary(op, (x, number), (array, number), device)
        check_binary(op, (number, x), (number, array), device)


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


def test_integers_beyond_int64_are_refused(device: str) -> None:
    x = tensorplay.ones(2, device=device)
    for value in (2**63, 2**70, -(2**63) - 1):
        with pytest.raises(InvalidArgumentError, match="add: got the integer"):
            x + value


def test_the_default_dtype_is_what_integers_become(device: str) -> None:
    x = tensorplay.arange(1, 4, device=device)
    tensorplay.set_default_dtype(tensorplay.float64)
    try:
        assert_close(x.sqrt(), np.sqrt([1.0, 2.0, 3.0]), _dtype.float64)
        assert_close(x / 3, np.array([1, 2, 3]) / 3, _dtype.float64)
        assert_close(x + 0.5, np.array([1.5, 2.5, 3.5]), _dtype.float64)
        assert (x + 1j).dtype is _dtype.complex128
        assert tensorplay.ones(1, device=device).dtype is _dtype.float64
    finally:
        tensorplay.set_default_dtype(tensorplay.float32)
    assert x.sqrt().dtype is _dtype.float32
