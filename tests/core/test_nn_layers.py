"""Layers that hold tables and products, that drop elements, or change shapes."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

import tensorplay
from tensorplay import cuda, nn
from tensorplay.errors import DTypeError, InvalidArgumentError
from tensorplay.nn import functional

Array = npt.NDArray[np.float64]


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def on(device: str, array: Array, dtype: tensorplay.DType = tensorplay.float32) -> tensorplay.Tensor:
    return tensorplay.tensor(array.astype(np.float32), device=device).to(dtype)


def read(tensor: tensorplay.Tensor) -> Array:
    return tensor.float().cpu().numpy().astype(np.float64)


def test_linear(device: str) -> None:
    layer = nn.Linear(5, 3).to(device)
    x = numbers(2, 4, 5)
    expected = x @ read(layer.weight).T + read(layer.bias)
    np.testing.assert_allclose(read(layer(on(device, x))), expected, rtol=1e-5, atol=1e-6)
    without = nn.Linear(5, 3, bias=False)
    assert without.bias is None
    assert list(without.state_dict()) == ["weight"]


def test_embedding(device: str) -> None:
    layer = nn.Embedding(7, 4, padding_idx=-1).to(device)
    table = read(layer.weight)
    assert not table[6].any()
    assert table[:6].all()
    ids = [[0, 6], [3, 3]]
    np.testing.assert_array_equal(read(layer(tensorplay.tensor(ids, device=device))), table[ids])
    with pytest.raises(InvalidArgumentError, match="padding_idx 7"):
        nn.Embedding(7, 4, padding_idx=7)


def test_dropout_in_training_keeps_the_mean(device: str) -> None:
    tensorplay.manual_seed(1)
    layer = nn.Dropout(0.25)
    dropped = read(layer(tensorplay.ones(200, 100, device=device)))
    assert sorted(set(dropped.ravel().round(5))) == [0.0, round(1 / 0.75, 5)]
    # 20,000 draws: the share of zeros has a standard deviation of 0.003.
    assert abs((dropped == 0).mean() - 0.25) < 0.02


def test_dropout_in_evaluation_returns_its_input() -> None:
    x = tensorplay.ones(3)
    assert nn.Dropout(0.9).eval()(x) is x
    assert functional.dropout(x, 0.0) is x


def test_dropout_of_everything_gives_zeros_whatever_was_there() -> None:
    assert functional.dropout(tensorplay.tensor([1.0, -2.0, math.inf]), 1.0).tolist() == [0, 0, 0]


@pytest.mark.parametrize("p", [-0.1, 1.5, math.nan])
def test_dropout_refuses_what_is_no_probability(p: float) -> None:
    with pytest.raises(InvalidArgumentError, match="expected 0 to 1"):
        nn.Dropout(p)
    with pytest.raises(InvalidArgumentError, match="expected 0 to 1"):
        functional.dropout(tensorplay.ones(1), p)


def test_dropout_in_place_and_of_whole_channels(device: str) -> None:
    x = tensorplay.ones(40, 30, 5, device=device)
    assert nn.Dropout(0.5, inplace=True)(x) is x
    assert sorted(set(x.flatten().tolist())) == [0.0, 2.0]
    y = nn.Dropout2d(0.5)(tensorplay.ones(40, 30, 2, 3, device=device)).reshape(1200, 6)
    rows = y.tolist()
    assert all(len(set(row)) == 1 for row in rows)
    assert sorted({row[0] for row in rows}) == [0.0, 2.0]
    with pytest.raises(DTypeError, match="training=1"):
        functional.dropout(x, 0.5, 1)  # type: ignore[arg-type]


def test_flatten_and_unflatten() -> None:
    x = tensorplay.arange(24).reshape(2, 3, 4)
    assert nn.Flatten()(x).shape == (2, 12)
    assert nn.Flatten(0, 1)(x).shape == (6, 4)
    assert nn.Unflatten(1, (3, -1))(nn.Flatten()(x)).tolist() == x.tolist()
    assert nn.Unflatten(-1, [2, 2])(x).shape == (2, 3, 2, 2)


def test_identity_takes_any_arguments() -> None:
    x = tensorplay.ones(2)
    assert nn.Identity(54, unused=0.1)(x) is x


def test_operands_on_different_devices_are_refused() -> None:
    if not cuda.is_available():
        pytest.skip("needs a CUDA device")
    with pytest.raises(InvalidArgumentError, match="linear: operands on different devices, got cuda:0 and cpu"):
        nn.Linear(2, 2)(tensorplay.ones(1, 2, device="cuda:0"))
