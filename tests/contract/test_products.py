"""Products of matrices, and rows by index, on every device, against float64."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.formulas import UNARY
from helpers.operands import COMPLEX, FLOATING, INTEGERS, assert_close, dtypes, layouts, operand, read, seeds
from hypothesis import given
from hypothesis import strategies as st

import tensorplay
from tensorplay.errors import DTypeError, InvalidArgumentError, OutOfRangeError
from tensorplay.nn import functional

INDICES = [tensorplay.int32, tensorplay.int64]


sizes = st.sampled_from([0, 1, 2, 5, 17, 40])
multiplied = st.sampled_from([*FLOATING, *COMPLEX, *INTEGERS])


@st.composite
def factors(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes whose product exists."""
    m, k, n = draw(sizes), draw(sizes), draw(sizes)
    a, b = draw(st.sampled_from([((k,), (k,)), ((k,), (k, n)), ((m, k), (k,)), ((m, k), (k, n))]))
    batch = draw(st.lists(st.integers(0, 3), max_size=2))
    if len(a) == 2:
        a = (*(size if draw(st.booleans()) else 1 for size in batch), *a)
    if len(b) == 2:
        b = (*[size if draw(st.booleans()) else 1 for size in batch][draw(st.integers(0, len(batch))) :], *b)
    return a, b


@given(both=factors(), dtype=multiplied, layout_a=layouts, layout_b=layouts, seed=seeds)
def test_matmul(
    device: str,
    both: tuple[tuple[int, ...], tuple[int, ...]],
    dtype: tensorplay.DType,
    layout_a: str,
    layout_b: str,
    seed: int,
) -> None:
    a, x = operand(device, both[0], dtype, layout_a, seed, scale=1.0)
    b, y = operand(device, both[1], dtype, layout_b, seed + 1, scale=1.0)
    assert_close(a @ b, x @ y, dtype, room=10)


@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("shape", [(128, 96, 64), (72, 200, 136), (65, 129, 33), (1, 384, 384), (200, 1, 3)])
@pytest.mark.parametrize("layout_a", ["contiguous", "transposed"])
@pytest.mark.parametrize("layout_b", ["contiguous", "transposed"])
def test_matmul_of_whole_and_broken_tiles(
    device: str, dtype: tensorplay.DType, shape: tuple[int, int, int], layout_a: str, layout_b: str
) -> None:
    m, k, n = shape
    a, x = operand(device, (m, k), dtype, layout_a, 1, scale=1.0)
    b, y = operand(device, (k, n), dtype, layout_b, 2, scale=1.0)
    assert_close(a @ b, x @ y, dtype, room=10 * np.sqrt(k))


def test_matmul_into_out(device: str) -> None:
    a, x = operand(device, (3, 4), tensorplay.float32, "contiguous", 1)
    b, y = operand(device, (4, 3), tensorplay.float32, "contiguous", 2)
    out = tensorplay.empty(3, 3, device=device)
    assert tensorplay.matmul(a, b, out=out) is out
    assert_close(out, x @ y, tensorplay.float32, room=10)
    square, z = operand(device, (3, 3), tensorplay.float32, "contiguous", 3)
    tensorplay.matmul(square, square, out=square)
    assert_close(square, z @ z, tensorplay.float32, room=10)


def test_matmul_refuses(device: str) -> None:
    x = tensorplay.ones(2, 3, device=device)
    with pytest.raises(InvalidArgumentError, match=r"matmul: got shapes \(2, 3\) and \(2, 3\), .* not 3 and 2"):
        x @ x
    with pytest.raises(InvalidArgumentError, match="expected at least one dimension in each"):
        x @ x.sum()
    with pytest.raises(DTypeError, match="matmul: got float32 and float16, expected one dtype of numbers"):
        x @ x.T.half()
    with pytest.raises(DTypeError, match="matmul: got bool, expected one dtype of numbers"):
        x.bool() @ x.T.bool()
    with pytest.raises(DTypeError, match="matmul: got int, expected a tensor"):
        x @ 2


@given(
    lead=st.lists(st.integers(0, 3), max_size=3).map(tuple),
    k=sizes,
    n=sizes,
    dtype=multiplied,
    layout=layouts,
    has_bias=st.booleans(),
    seed=seeds,
)
def test_linear(
    device: str,
    lead: tuple[int, ...],
    k: int,
    n: int,
    dtype: tensorplay.DType,
    layout: str,
    has_bias: bool,
    seed: int,
) -> None:
    a, x = operand(device, (*lead, k), dtype, layout, seed, scale=1.0)
    weight, w = operand(device, (n, k), dtype, layout, seed + 1, scale=1.0)
    bias, b = operand(device, (n,), dtype, layout, seed + 2, scale=1.0)
    got = a._backend.linear(a, weight, bias if has_bias else None)
    assert_close(got, x @ w.T + (b if has_bias else 0), dtype, room=10)


def test_linear_refuses(device: str) -> None:
    x = tensorplay.ones(2, 3, device=device)
    linear = x._backend.linear
    with pytest.raises(InvalidArgumentError, match=r"linear: got an input of shape \(2, 3\), expected 4"):
        linear(x, tensorplay.ones(5, 4, device=device), None)
    with pytest.raises(InvalidArgumentError, match=r"linear: got a bias of shape \(3,\), expected \(2,\)"):
        linear(x, x, tensorplay.ones(3, device=device))
    with pytest.raises(DTypeError, match="linear: got float32 and float16"):
        linear(x, x.half(), None)


@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize(
    ("lead", "k", "n"), [((), 5, 3), ((7,), 40, 65), ((2, 3), 17, 8), ((2, 0), 4, 3), ((3,), 0, 2), ((3,), 2, 0)]
)
@pytest.mark.parametrize("layout", ["contiguous", "transposed"])
def test_linear_gelu(
    device: str,
    dtype: tensorplay.DType,
    approximate: str,
    has_bias: bool,
    lead: tuple[int, ...],
    k: int,
    n: int,
    layout: str,
) -> None:
    a, x = operand(device, (*lead, k), dtype, layout, 1, scale=1.0)
    weight, w = operand(device, (n, k), dtype, layout, 2, scale=1.0)
    bias, b = operand(device, (n,), dtype, layout, 3, scale=1.0)
    got = functional.linear_gelu(a, weight, bias if has_bias else None, approximate)
    formula = UNARY["gelu" if approximate == "none" else "gelu_tanh"]
    assert_close(got, formula(x @ w.T + (b if has_bias else 0)), dtype, room=10)
    two = functional.gelu(functional.linear(a, weight, bias if has_bias else None), approximate)
    assert_close(got, read(two), dtype, room=10)


def test_linear_gelu_refuses(device: str) -> None:
    x = tensorplay.ones(2, 3, device=device)
    with pytest.raises(DTypeError, match="linear_gelu: got approximate='erf', expected 'none' or 'tanh'"):
        functional.linear_gelu(x, x, approximate="erf")
    for approximate in ("none", "tanh"):
        with pytest.raises(DTypeError, match="linear_gelu: got int64, expected one floating dtype"):
            functional.linear_gelu(x.long(), x.long(), None, approximate)
        with pytest.raises(InvalidArgumentError, match=r"linear_gelu: got a bias of shape \(3,\), expected \(2,\)"):
            functional.linear_gelu(x, x, x[0], approximate)


@pytest.mark.parametrize("index_dtype", INDICES, ids=lambda dtype: dtype.name)
@given(dtype=dtypes, layout=layouts, seed=seeds, data=st.data())
def test_index_select(
    device: str, index_dtype: tensorplay.DType, dtype: tensorplay.DType, layout: str, seed: int, data: st.DataObject
) -> None:
    x, array = operand(device, (4, 3, 5), dtype, layout, seed)
    dim = data.draw(st.integers(-3, 2))
    rows = data.draw(st.lists(st.integers(0, array.shape[dim] - 1), max_size=6))
    index = tensorplay.tensor(np.array(rows, np.int64), dtype=index_dtype, device=device)
    assert_close(x.index_select(dim, index), array.take(rows, dim), dtype)


@given(dtype=dtypes, index_dtype=st.sampled_from(INDICES), shape=st.lists(st.integers(0, 3), max_size=3), seed=seeds)
def test_embedding(
    device: str, dtype: tensorplay.DType, index_dtype: tensorplay.DType, shape: list[int], seed: int
) -> None:
    weight, w = operand(device, (7, 3), dtype, "contiguous", seed)
    rows = np.random.default_rng(seed).integers(0, 7, shape)
    index = tensorplay.tensor(rows, dtype=index_dtype, device=device)
    assert_close(weight._backend.embedding(weight, index), w[rows], dtype)


@pytest.mark.parametrize("bad", [7, -1, 2**31 - 1])
def test_indices_outside_are_found_at_the_latest_when_waiting(device: str, bad: int) -> None:
    weight = tensorplay.ones(7, 3, device=device)
    index = tensorplay.tensor([0, bad], device=device)
    with pytest.raises(OutOfRangeError, match=f"embedding: .*{bad}"):
        weight._backend.embedding(weight, index).tolist()
    with pytest.raises(OutOfRangeError, match=f"index_select: .*{bad}"):
        weight.index_select(0, index).tolist()
    # The device serves on.
    assert weight.sum().item() == 21


def test_rows_refuse(device: str) -> None:
    x = tensorplay.ones(2, 3, device=device)
    with pytest.raises(DTypeError, match="index_select: got an index of dtype float32, expected int32 or int64"):
        x.index_select(0, x[0])
    with pytest.raises(InvalidArgumentError, match=r"index_select: got an index of shape \(1, 1\)"):
        x.index_select(0, tensorplay.zeros(1, 1, dtype=tensorplay.int64, device=device))
    with pytest.raises(InvalidArgumentError, match=r"embedding: got a weight of shape \(3,\)"):
        x._backend.embedding(x[0], tensorplay.zeros(1, dtype=tensorplay.int64, device=device))


def test_cat_and_stack(device: str) -> None:
    a, x = operand(device, (2, 3), tensorplay.float32, "transposed", 1)
    b, y = operand(device, (1, 3), tensorplay.float16, "contiguous", 2)
    assert_close(tensorplay.cat([a, b]), np.concatenate([x, y]), tensorplay.float32)
    assert_close(tensorplay.cat([a, a], -1), np.concatenate([x, x], -1), tensorplay.float32)
    assert_close(tensorplay.stack([a, a], 1), np.stack([x, x], 1), tensorplay.float32)
    with pytest.raises(InvalidArgumentError, match="cat: got shapes"):
        tensorplay.cat([a, b], 1)
    with pytest.raises(InvalidArgumentError, match="stack: got shapes"):
        tensorplay.stack([a, b])
    with pytest.raises(InvalidArgumentError, match="cat: got no tensors"):
        tensorplay.cat([])
