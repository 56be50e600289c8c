"""Nonlinearities on every device, against formulas in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers.formulas import UNARY
from helpers.operands import FLOATING, Array, assert_close, operand, place, values

import tensorplay
from tensorplay import nn
from tensorplay.errors import DTypeError, InvalidArgumentError
from tensorplay.nn import functional

ALPHA, SCALE = 1.6732632423543772, 1.0507009873554805


def hard(x: Array) -> Array:
    return np.clip(x + 3, 0, 6) / 6


def softplus(x: Array) -> Array:
    return np.asarray(np.logaddexp(x, 0))


#: The layer, its function, and its formula.
CASES: list[tuple[nn.Module, Callable[..., tensorplay.Tensor], Callable[[Array], Any]]] = [
    (nn.ReLU(), functional.relu, lambda x: np.maximum(x, 0)),
    (nn.ReLU6(), functional.relu6, lambda x: np.clip(x, 0, 6)),
    (nn.LeakyReLU(), functional.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x)),
    (nn.ELU(), functional.elu, lambda x: np.where(x > 0, x, np.expm1(x))),
    (nn.SELU(), functional.selu, lambda x: SCALE * np.where(x > 0, x, ALPHA * np.expm1(x))),
    (nn.CELU(), functional.celu, lambda x: np.where(x > 0, x, np.expm1(x))),
    (nn.SiLU(), functional.silu, UNARY["silu"]),
    (nn.GELU(), functional.gelu, UNARY["gelu"]),
    (nn.Mish(), functional.mish, lambda x: x * np.tanh(softplus(x))),
    (nn.Hardtanh(), functional.hardtanh, lambda x: np.clip(x, -1, 1)),
    (nn.Hardswish(), functional.hardswish, lambda x: x * hard(x)),
    (nn.Hardsigmoid(), functional.hardsigmoid, hard),
    (nn.Softplus(), functional.softplus, softplus),
    (nn.Softsign(), functional.softsign, lambda x: x / (1 + np.abs(x))),
    (nn.LogSigmoid(), functional.logsigmoid, lambda x: -softplus(-x)),
    (nn.Sigmoid(), functional.sigmoid, UNARY["sigmoid"]),
    (nn.Tanh(), functional.tanh, np.tanh),
]
NAMES = [repr(layer) for layer, _, _ in CASES]
IN_PLACE = [case[:2] for case in CASES if hasattr(case[0], "inplace")]


@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize(("layer", "function", "formula"), CASES, ids=NAMES)
def test_formula(device: str, dtype: tensorplay.DType, layer: nn.Module, function: Any, formula: Any) -> None:
    x, a = operand(device, (5, 67), dtype, "transposed", 1, scale=3.0)
    assert_close(function(x), formula(a), dtype)
    assert layer(x).tolist() == function(x).tolist()


@pytest.mark.parametrize(("layer", "function", "formula"), CASES, ids=NAMES)
def test_far_from_0(device: str, layer: nn.Module, function: Any, formula: Any) -> None:
    a = np.array([-1e30, -200.0, -90.0, 90.0, 200.0, 1e30, np.inf, np.nan])
    with np.errstate(all="ignore"):
        wanted = formula(a)
    assert_close(function(place(a, tensorplay.float32, device)), wanted, tensorplay.float32)


@pytest.mark.parametrize(("layer", "function"), IN_PLACE, ids=[repr(layer) for layer, _ in IN_PLACE])
def test_in_place(device: str, layer: nn.Module, function: Any) -> None:
    x, _ = operand(device, (4, 6), tensorplay.float16, "stepped", 1)
    wanted = function(x).tolist()
    layer = type(layer)(inplace=True)
    assert layer(x) is x
    assert x.tolist() == wanted
    with pytest.raises(DTypeError, match="inplace=1"):
        function(x, inplace=1)


def test_arguments_change_the_formula(device: str) -> None:
    x, a = operand(device, (3, 4), tensorplay.float32, "contiguous", 1, scale=3.0)
    for layer, wanted in (
        (nn.LeakyReLU(-1.5), np.where(a > 0, a, -1.5 * a)),
        (nn.ELU(0.5), np.where(a > 0, a, 0.5 * np.expm1(a))),
        (nn.CELU(2.0), np.where(a > 0, a, 2 * np.expm1(a / 2))),
        (nn.Hardtanh(-2, 0.5), np.clip(a, -2, 0.5)),
        (nn.Softplus(2.0), softplus(2 * a) / 2),
        (nn.Softplus(1.0, threshold=0.0), np.where(a > 0, a, softplus(a))),
    ):
        assert_close(layer(x), wanted, tensorplay.float32)


@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
def test_prelu(device: str, dtype: tensorplay.DType) -> None:
    x, a = operand(device, (2, 3, 4), dtype, "contiguous", 1)
    layer = nn.PReLU(3, device=device, dtype=dtype)
    assert layer.weight.tolist() == [0.25] * 3
    slopes = values((3,), dtype, 2)
    layer.weight.copy_(place(slopes, dtype, device))
    assert_close(layer(x), np.where(a > 0, a, a * slopes[:, None]), dtype)
    one = nn.PReLU(init=0.5, device=device, dtype=dtype)
    assert_close(one(x[0, 0]), np.where(a > 0, a, a * 0.5)[0, 0], dtype)
    with pytest.raises(InvalidArgumentError, match="one for each channel"):
        layer(x[:, :2])


@pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
def test_along_a_dimension(device: str, dtype: tensorplay.DType) -> None:
    x, a = operand(device, (3, 4, 6), dtype, "transposed", 1)
    powers = np.exp(a)
    shares = powers / powers.sum(1, keepdims=True)
    assert_close(nn.Softmax(1)(x), shares, dtype)
    assert_close(nn.LogSoftmax(1)(x), np.log(shares), dtype)
    assert_close(nn.Softmin(1)(-x), shares, dtype)
    assert_close(nn.GLU()(x), a[..., :3] / (1 + np.exp(-a[..., 3:])), dtype)
    with pytest.raises(InvalidArgumentError, match="glu: got size 3 in dimension 0"):
        functional.glu(x, 0)


def test_refusals(device: str) -> None:
    x = tensorplay.ones(3, dtype=tensorplay.int64, device=device)
    for function in (functional.elu, functional.hardswish, functional.leaky_relu, functional.relu6):
        with pytest.raises(DTypeError, match="got dtype int64, expected a floating dtype"):
            function(x)  # type: ignore[operator]
    with pytest.raises(InvalidArgumentError, match="rising"):
        functional.hardtanh(x.float(), 1.0, 0.0)
    with pytest.raises(InvalidArgumentError, match="nan"):
        functional.hardtanh(x.float(), math.nan, 0.0)
    with pytest.raises(InvalidArgumentError, match="alpha=0"):
        functional.celu(x.float(), 0.0)
