"""Reductions, softmax and layer_norm on every device, against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.operands import (
    ARRANGEMENTS,
    DTYPES,
    FLOATING,
    INTEGERS,
    arranged,
    assert_close,
    floating,
    held,
    layouts,
    operand,
    place,
    poisoned,
    read,
    seeds,
    special,
)
from hypothesis import given
from hypothesis import strategies as st

import tensorplay
from tensorplay import _dtype
from tensorplay.errors import DTypeError, InvalidArgumentError, OutOfRangeError

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

shapes = st.lists(st.sampled_from([0, 1, 2, 3, 5, 33]), max_size=4).map(tuple)
OPS = ["sum", "mean", "prod", "amax", "amin", "any", "all"]
FORMULAS = {"prod": lambda x, **rest: np.prod(x, dtype=np.int64 if x.dtype == bool else None, **rest)}


def dtype_of(op: str, dtype: tensorplay.DType) -> tensorplay.DType | None:
    """Dtype of the result; None where the operand is refused."""
    if op in ("any", "all"):
        return dtype if dtype is _dtype.uint8 else _dtype.bool
    if op in ("sum", "prod"):
        return dtype if dtype.category >= _dtype.FLOAT else _dtype.int64
    if op == "mean" and dtype.category < _dtype.FLOAT:
        return None
    return None if op in ("amax", "amin") and dtype.is_complex else dtype


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_reduce(device: str, op: str, dtype: tensorplay.DType, own_seed: int) -> None:
    random = np.random.default_rng(own_seed)
    result, function = dtype_of(op, dtype), getattr(tensorplay, op)
    if result is None:
        with pytest.raises(DTypeError, match=f"{op}: got dtype {dtype.name}"):
            function(tensorplay.ones(2, dtype=dtype, device=device))
        return
    for i, (shape, layout) in enumerate(ARRANGEMENTS):
        x, array = operand(device, shape, dtype, layout, own_seed + i)
        if op == "prod" and dtype.category >= _dtype.FLOAT:
            # Near 1, so that no order of the factors leaves what the dtype holds.
            x, array = arranged(held(1 + array / 64, dtype), dtype, device, layout)
        dims = tuple(int(dim) for dim in range(len(shape)) if random.random() < 0.5)
        axes, keepdim = dims or tuple(range(len(shape))), bool(random.integers(2))
        poisoned(tuple(1 if d in axes else n for d, n in enumerate(shape)), result, device)
        if op in ("amax", "amin") and any(shape[axis] == 0 for axis in axes):
            with pytest.raises(OutOfRangeError, match=f"{op} of nothing has no value"):
                function(x, dims or None, keepdim)
            continue
        formula = FORMULAS.get(op, getattr(np, op))
        expected = formula(array, axis=axes, keepdims=keepdim)
        room = max(1.0, float(np.abs(array).sum())) if array.size else 1.0
        if op == "prod":
            got = x if axes else x.prod()
            for dim in sorted(axes, reverse=True):
                got = got.prod(dim, keepdim=keepdim)
            assert_close(got, expected, result, room=room)
            continue
        assert_close(function(x, dims or None, keepdim), expected, result, room=room)
        out = poisoned(np.shape(expected)[::-1], result, device).T
        assert function(x, dims or None, keepdim, out=out) is out
        assert_close(out, expected, result, room=room)


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_places_of_extremes(device: str, op: str, dtype: tensorplay.DType, own_seed: int) -> None:
    function, formula = getattr(tensorplay, op), getattr(np, op)
    if dtype.is_complex:
        with pytest.raises(DTypeError, match=f"{op}: got dtype {dtype.name}"):
            function(tensorplay.ones(2, dtype=dtype, device=device))
        return
    cases = [operand(device, shape, dtype, layout, own_seed) for shape, layout in ARRANGEMENTS if shape]
    cases += [arranged(np.resize(special(dtype), (3, 25)), dtype, device, "transposed")]
    for x, array in cases:
        for dim in range(-1, x.ndim):
            if x.shape[dim] == 0:
                with pytest.raises(OutOfRangeError, match=f"{op} of nothing has no value"):
                    function(x, dim)
            else:
                assert_close(function(x, dim), formula(array, axis=dim), _dtype.int64)
                assert_close(function(x, dim, keepdim=True), formula(array, axis=dim, keepdims=True), _dtype.int64)
        if array.size:
            assert_close(function(x), formula(array), _dtype.int64)


@pytest.mark.parametrize("op", ["sum", "mean", "amax", "amin", "any", "all"])
@pytest.mark.parametrize("dtype", [*FLOATING, *INTEGERS], ids=lambda dtype: dtype.name)
def test_reductions_of_special_numbers(device: str, op: str, dtype: tensorplay.DType) -> None:
    numbers = special(dtype)
    if op in ("sum", "mean"):  # What only overflows on the way depends on the order.
        numbers = numbers[~(np.isfinite(numbers) & (np.abs(numbers) > 1e9))]
    result = dtype_of(op, dtype)
    if result is None:
        return
    pairs = np.stack(np.broadcast_arrays(numbers[:, None], numbers), -1)
    x, array = arranged(pairs, dtype, device, "stepped")
    assert_close(getattr(tensorplay, op)(x, -1), getattr(np, op)(array, axis=-1), result, room=1e5)


@pytest.mark.parametrize("shape", [(1_000_003,), (3, 70_001), (70_001, 3)])
@pytest.mark.parametrize("dim", [None, 0])
def test_long_sums_stay_exact(device: str, shape: tuple[int, ...], dim: int | None) -> None:
    array = np.random.default_rng(0).random(shape, np.float32)
    x = tensorplay.tensor(array, device=device)
    np.testing.assert_allclose(read(x.sum(dim)), array.sum(dim, np.float64), rtol=1e-6)
    halves = x.half()
    total = halves.sum(dim, dtype=tensorplay.float32)
    np.testing.assert_allclose(read(total), read(halves).sum(dim), rtol=1e-6)


@pytest.mark.parametrize("op", ["sum", "mean", "amax", "amin"])
def test_nan_wins(device: str, op: str) -> None:
    x = tensorplay.tensor([[1.0, float("nan"), 3.0], [1.0, 2.0, 3.0]], device=device)
    got = read(getattr(x, op)(1))
    assert np.isnan(got[0])
    assert np.isfinite(got[1])


def test_of_nothing(device: str) -> None:
    x = tensorplay.zeros(2, 0, device=device)
    assert x.sum(1).tolist() == [0, 0]
    assert np.isnan(x.mean(1).tolist()).all()
    assert x.any().item() is False
    assert x.all().item() is True
    assert x.amax(0).shape == (0,)


def test_dtype_of_the_result(device: str) -> None:
    x = tensorplay.tensor([1, 2, 4], device=device)
    assert_close(x.mean(dtype=tensorplay.float32), 7 / 3, tensorplay.float32)
    assert_close(x.half().sum(dtype=tensorplay.float32), 7.0, tensorplay.float32)
    big = tensorplay.full((3,), 6e4, dtype=tensorplay.float16, device=device)
    assert big.sum().item() == float("inf")
    assert_close(big.sum(dtype=tensorplay.float32), 3 * read(big)[0], tensorplay.float32)
    with pytest.raises(DTypeError, match="mean: got dtype int64"):
        x.float().mean(dtype=tensorplay.int64)


def test_bad_dimensions(device: str) -> None:
    x = tensorplay.ones(2, 3, device=device)
    with pytest.raises(OutOfRangeError, match="sum: got dimension 2, expected -2 to 1"):
        x.sum(2)
    with pytest.raises(InvalidArgumentError, match=r"amax: got dimensions \(0, -2\), expected each of them once"):
        x.amax((0, -2))
    with pytest.raises(DTypeError, match="sum: got .* expected integers"):
        x.sum(0.5)  # type: ignore[arg-type]


def softmax(x: Any, dim: int) -> Any:
    powers = np.exp(x - x.max(axis=dim, keepdims=True)) if x.size else x
    return powers / powers.sum(axis=dim, keepdims=True)


@given(shape=shapes.filter(len), dtype=floating, layout=layouts, seed=seeds, data=st.data())
def test_softmax(
    device: str, shape: tuple[int, ...], dtype: tensorplay.DType, layout: str, seed: int, data: st.DataObject
) -> None:
    x, array = operand(device, shape, dtype, layout, seed, scale=5.0)
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    expected = softmax(array, dim)
    assert_close(x.softmax(dim), expected, dtype)
    assert_close(x.log_softmax(dim), np.log(expected), dtype, room=10)


@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
def test_softmax_of_special_rows(device: str, dtype: tensorplay.DType) -> None:
    inf = np.inf
    array = np.array([[0.0, -inf, 0.0], [-inf, -inf, -inf], [np.nan, 0.0, 0.0], [6e4, 0.0, -6e4]])
    expected = np.array([[0.5, 0.0, 0.5], [np.nan] * 3, [np.nan] * 3, [1.0, 0.0, 0.0]])
    assert_close(place(array, dtype, device).softmax(1), expected, dtype)


@pytest.mark.parametrize("width", [1, 7, 1024, 1025, 5000])
def test_softmax_of_wide_rows(device: str, width: int) -> None:
    x, array = operand(device, (3, width), tensorplay.float32, "contiguous", seed=1, scale=3.0)
    assert_close(x.softmax(-1), softmax(array, -1), tensorplay.float32)
    np.testing.assert_allclose(read(x.softmax(-1)).sum(-1), 1.0, rtol=1e-6)


def test_softmax_refuses(device: str) -> None:
    x = tensorplay.arange(3, device=device)
    with pytest.raises(DTypeError, match="softmax: got int64, expected one floating dtype"):
        x.softmax(0)
    with pytest.raises(OutOfRangeError, match="log_softmax: got dimension 1"):
        x.float().log_softmax(1)
    assert_close(x.softmax(0, tensorplay.float32), softmax(np.arange(3.0), 0), tensorplay.float32)


@given(
    lead=st.lists(st.integers(0, 4), max_size=2).map(tuple),
    tail=st.lists(st.sampled_from([1, 2, 7, 40]), min_size=1, max_size=2).map(tuple),
    dtype=floating,
    layout=layouts,
    has_weight=st.booleans(),
    has_bias=st.booleans(),
    seed=seeds,
)
def test_layer_norm(
    device: str,
    lead: tuple[int, ...],
    tail: tuple[int, ...],
    dtype: tensorplay.DType,
    layout: str,
    has_weight: bool,
    has_bias: bool,
    seed: int,
) -> None:
    x, array = operand(device, lead + tail, dtype, layout, seed)
    weight, w = operand(device, tail, dtype, layout, seed + 1)
    bias, b = operand(device, tail, dtype, layout, seed + 2)
    axes = tuple(range(len(lead), len(lead) + len(tail)))
    eps = 1e-2
    expected = (array - array.mean(axes, keepdims=True)) / np.sqrt(array.var(axes, keepdims=True) + eps)
    expected = expected * w if has_weight else expected
    expected = expected + b if has_bias else expected
    got = x._backend.layer_norm(x, tail, weight if has_weight else None, bias if has_bias else None, eps)
    assert_close(got, expected, dtype, room=4)


def test_layer_norm_of_numbers_far_from_zero(device: str) -> None:
    array = 1e4 + np.random.default_rng(0).random((3, 500))
    x = tensorplay.tensor(array, dtype=tensorplay.float32, device=device)
    exact = read(x)
    expected = (exact - exact.mean(1, keepdims=True)) / exact.std(1, keepdims=True)
    np.testing.assert_allclose(read(x._backend.layer_norm(x, (500,), None, None, 0.0)), expected, atol=1e-2)


def test_layer_norm_refuses(device: str) -> None:
    x = tensorplay.ones(2, 3, device=device)
    norm = x._backend.layer_norm
    with pytest.raises(InvalidArgumentError, match=r"layer_norm: got normalized_shape \(2,\)"):
        norm(x, (2,), None, None, 1e-5)
    with pytest.raises(InvalidArgumentError, match=r"layer_norm: got weight of shape \(2,\), expected \(3,\)"):
        norm(x, (3,), tensorplay.ones(2, device=device), None, 1e-5)
    with pytest.raises(DTypeError, match="layer_norm: got float32 and float16"):
        norm(x, (3,), None, tensorplay.ones(3, dtype=tensorplay.float16, device=device), 1e-5)
