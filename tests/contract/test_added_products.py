"""A tensor plus a product, and products of particular shapes, on every device, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.operands import COMPLEX, FLOATING, INTEGERS, assert_close, held, layouts, operand, poisoned, seeds
from hypothesis import given
from hypothesis import strategies as st

import tensorplay
from tensorplay import _dtype
from tensorplay.errors import DTypeError, InvalidArgumentError

MULTIPLIED = [*FLOATING, *COMPLEX, *INTEGERS]
sizes = st.sampled_from([0, 1, 2, 5, 17])
# The product by NumPy, and the shapes of its factors.
FAMILY: dict[str, tuple[Any, Any]] = {
    "addmm": (np.matmul, lambda b, m, k, n: ((m, k), (k, n))),
    "addmv": (np.matmul, lambda b, m, k, n: ((m, k), (k,))),
    "addr": (np.outer, lambda b, m, k, n: ((m,), (n,))),
    "baddbmm": (np.matmul, lambda b, m, k, n: ((b, m, k), (b, k, n))),
    "addbmm": (lambda x, y: np.matmul(x, y).sum(0), lambda b, m, k, n: ((b, m, k), (b, k, n))),
}


def factor(dtype: tensorplay.DType, value: float) -> Any:
    """A number of the dtype's kind that is exact in it."""
    if dtype.category == _dtype.INT:
        return int(value)
    return complex(value, 0.5) if dtype.is_complex else value


@pytest.mark.parametrize("name", FAMILY)
@given(
    count=st.integers(0, 3),
    m=sizes,
    k=sizes,
    n=sizes,
    dtype=st.sampled_from(MULTIPLIED),
    layout=layouts,
    numbers=st.sampled_from([(1, 1), (0, 1), (0, -2), (2, 1), (-1, 0), (0.5, 1.5)]),
    seed=seeds,
    data=st.data(),
)
def test_family(
    device: str,
    name: str,
    count: int,
    m: int,
    k: int,
    n: int,
    dtype: tensorplay.DType,
    layout: str,
    numbers: tuple[float, float],
    seed: int,
    data: st.DataObject,
) -> None:
    product, shapes = FAMILY[name]
    left, right = shapes(count, m, k, n)
    a, x = operand(device, left, dtype, layout, seed, scale=1.0)
    b, y = operand(device, right, dtype, layout, seed + 1, scale=1.0)
    whole = product(x, y).shape
    shape = tuple(size if data.draw(st.booleans()) else 1 for size in whole)[data.draw(st.integers(0, len(whole))) :]
    beta, alpha = factor(dtype, numbers[0]), factor(dtype, numbers[1])
    input, z = operand(device, shape, dtype, layout, seed + 2)
    if numbers[0] == 0:
        beta, input = 0, poisoned(shape, dtype, device)
    expected = held(beta * z + alpha * product(x, y), dtype)
    got = getattr(tensorplay, name)(input, a, b, beta=beta, alpha=alpha)
    assert_close(got, expected, dtype, room=20)
    if shape == whole:
        target = input.clone()
        assert getattr(target, f"{name}_")(a, b, beta=beta, alpha=alpha) is target
        assert_close(target, expected, dtype, room=20)


@pytest.mark.parametrize("dtype", [tensorplay.float16, tensorplay.bfloat16], ids=lambda dtype: dtype.name)
def test_half_types_are_rounded_once(device: str, dtype: tensorplay.DType) -> None:
    """1 + tiny - 1, where a product rounded on its own would lose what is left of it."""
    tiny = float(2.0**-9 if dtype is tensorplay.bfloat16 else 2.0**-12)
    a = tensorplay.tensor([[1.0, tiny]], dtype=dtype, device=device)
    minus = tensorplay.tensor([-1.0], dtype=dtype, device=device)
    assert tensorplay.addmm(minus, a, tensorplay.ones(2, 1, dtype=dtype, device=device)).item() == tiny


def test_targets_that_share_memory(device: str) -> None:
    a, x = operand(device, (70, 70), tensorplay.float64, "contiguous", 1)
    expected = x @ x + 2 * x
    assert_close(tensorplay.addmm(a, a, a, beta=2), expected, tensorplay.float64, room=200)
    out = tensorplay.empty(70, 70, dtype=tensorplay.float64, device=device)
    assert tensorplay.addmm(a.T, a.T, a.T, beta=2, out=out.T) is not out
    assert_close(out, expected, tensorplay.float64, room=200)
    turned = a.clone()
    turned.T.addmm_(a.T, a.T, beta=2)
    assert_close(turned, expected, tensorplay.float64, room=200)
    assert_close(a.addmm_(a, a, beta=2), expected, tensorplay.float64, room=200)


def test_family_refuses(device: str) -> None:
    x, y = tensorplay.ones(2, 3, device=device), tensorplay.ones(3, 2, device=device)
    with pytest.raises(InvalidArgumentError, match=r"addmm: got an input of shape \(3,\), expected one that expands"):
        tensorplay.addmm(x[0], x, y[:, :1].expand(3, 1))
    with pytest.raises(InvalidArgumentError, match="addmm: got shapes .*, expected 2, 2 dimensions"):
        tensorplay.addmm(x, x, y[0])
    with pytest.raises(InvalidArgumentError, match="addmm: got shapes .* expected equal inner sizes"):
        tensorplay.addmm(x, x, x)
    with pytest.raises(InvalidArgumentError, match="baddbmm: got shapes .* expected as many matrices"):
        tensorplay.baddbmm(x, x[None], y.expand(2, 3, 2))
    with pytest.raises(InvalidArgumentError, match="addbmm: got shapes .* expected equal inner sizes, not 3 and 2"):
        tensorplay.addbmm(x, x[None], x[None])
    with pytest.raises(DTypeError, match="addmm: got float64 and float32, expected one dtype of numbers"):
        tensorplay.addmm(x[0, :2].double(), x, y)
    with pytest.raises(DTypeError, match="addmm: got float32 and int64, expected one dtype of numbers"):
        tensorplay.addmm(x[0, :2], x.long(), y.long())
    with pytest.raises(InvalidArgumentError, match=r"addmm: got an input of shape \(1, 2, 2\), expected"):
        tensorplay.addmm(x[None, :, :2].long(), x.long(), y.long())
    with pytest.raises(DTypeError, match="addmm: got the factor 1.5, expected a number that int64 holds exactly"):
        tensorplay.addmm(x.long(), x.long(), y.long(), alpha=1.5)
    with pytest.raises(DTypeError, match="addmm: got the factor 9007199254740993, expected"):
        tensorplay.addmm(x.long(), x.long(), y.long(), alpha=2**53 + 1)
    with pytest.raises(DTypeError, match="addmm: got the factor 1j, expected a number that float32 holds"):
        tensorplay.addmm(x[0, :2], x, y, beta=1j)


@pytest.mark.parametrize("dtype", MULTIPLIED, ids=lambda dtype: dtype.name)
def test_products_of_particular_shapes(device: str, dtype: tensorplay.DType) -> None:
    a, x = operand(device, (3, 4), dtype, "transposed", 1, scale=1.0)
    b, y = operand(device, (4, 5), dtype, "stepped", 2, scale=1.0)
    v, z = operand(device, (4,), dtype, "stepped", 3, scale=1.0)
    for got, expected in [
        (a.mm(b), x @ y),
        (a.mv(v), x @ z),
        (v.dot(a[0]), z @ x[0]),
        (v.vdot(a[0]), np.vdot(z, x[0])),
        (a.expand(2, 3, 4).bmm(b.expand(2, 4, 5)), np.stack([x @ y] * 2)),
        (v.outer(a[0]), np.outer(z, x[0])),
        (a.kron(b), np.kron(x, y)),
        (v.kron(a), np.kron(z, x)),
        (a.kron(v[0]), x * z[0]),
    ]:
        assert_close(got, held(expected, dtype), dtype, room=10)


def test_products_of_particular_shapes_refuse(device: str) -> None:
    x, v = tensorplay.ones(2, 3, device=device), tensorplay.ones(3, device=device)
    for name, arguments, words in [
        ("mm", (x, v), r"got shapes \(2, 3\), \(3,\), expected 2, 2 dimensions"),
        ("mv", (x, x), "expected 2, 1 dimensions"),
        ("dot", (x, v), "expected 1, 1 dimensions"),
        ("vdot", (v, x), "expected 1, 1 dimensions"),
        ("outer", (v, x), "expected 1, 1 dimensions"),
        ("bmm", (x, x), "expected 3, 3 dimensions"),
        ("bmm", (x[None], x.T.expand(2, 3, 2)), "expected as many matrices in each"),
    ]:
        with pytest.raises(InvalidArgumentError, match=f"{name}: .*{words}"):
            getattr(tensorplay, name)(*arguments)
    with pytest.raises(DTypeError, match="dot: got int, expected a tensor"):
        tensorplay.dot(v, 1)


def test_precision_of_float32() -> None:
    assert tensorplay.get_float32_matmul_precision() == "highest"
    try:
        for precision in ("high", "medium", "highest"):
            tensorplay.set_float32_matmul_precision(precision)
            assert tensorplay.get_float32_matmul_precision() == precision
    finally:
        tensorplay.set_float32_matmul_precision("highest")
    with pytest.raises(
        InvalidArgumentError, match="set_float32_matmul_precision: got 'low', expected one of 'highest'"
    ):
        tensorplay.set_float32_matmul_precision("low")
    assert tensorplay.get_float32_matmul_precision() == "highest"
