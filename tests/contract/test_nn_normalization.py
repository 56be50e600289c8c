"""Normalizations on every device, against formulas in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.operands import FLOATING, Array, assert_close, operand, place, read, values

import tensorplay
from tensorplay import nn
from tensorplay.errors import DTypeError, InvalidArgumentError
from tensorplay.nn import functional

each_dtype = pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)


def normal(x: Array, axes: tuple[int, ...], eps: float) -> Array:
    centred = x - x.mean(axis=axes, keepdims=True)
    return np.asarray(centred / np.sqrt((centred**2).mean(axis=axes, keepdims=True) + eps))


def channels(a: Array, ndim: int) -> Array:
    return a.reshape(-1, *(1,) * (ndim - 2))


@each_dtype
@pytest.mark.parametrize("shape", [(6,), (3, 6)])
def test_layer_norm(device: str, dtype: tensorplay.DType, shape: tuple[int, ...]) -> None:
    x, a = operand(device, (4, 3, 6), dtype, "transposed", 1)
    weight, w = operand(device, shape, dtype, "contiguous", 2)
    bias, b = operand(device, shape, dtype, "contiguous", 3)
    wanted = normal(a, tuple(range(3 - len(shape), 3)), 1e-3)
    assert_close(functional.layer_norm(x, shape, weight, bias, 1e-3), wanted * w + b, dtype, room=4)
    assert_close(functional.layer_norm(x, shape, eps=1e-3), wanted, dtype, room=4)


def test_layer_norm_layer(device: str) -> None:
    layer = nn.LayerNorm((2,), eps=0.0, device=device)
    assert layer.weight.tolist() == [1, 1]
    assert layer.bias.tolist() == [0, 0]
    layer.weight.fill_(3.0)
    assert layer(tensorplay.tensor([5.0, 9.0], device=device)).tolist() == pytest.approx([-3.0, 3.0])
    assert nn.LayerNorm(3, elementwise_affine=False).state_dict() == {}
    assert list(nn.LayerNorm(3, bias=False).state_dict()) == ["weight"]


@each_dtype
@pytest.mark.parametrize("shape", [(6,), (3, 6)])
def test_rms_norm(device: str, dtype: tensorplay.DType, shape: tuple[int, ...]) -> None:
    x, a = operand(device, (4, 3, 6), dtype, "stepped", 1)
    layer = nn.RMSNorm(shape, eps=1e-3, device=device, dtype=dtype)
    assert read(layer.weight).tolist() == np.ones(shape).tolist()
    w = values(shape, dtype, 2)
    layer.weight.copy_(place(w, dtype, device))
    wanted = a / np.sqrt((a**2).mean(axis=tuple(range(3 - len(shape), 3)), keepdims=True) + 1e-3)
    assert_close(layer(x), wanted * w, dtype)
    assert_close(nn.RMSNorm(shape, 1e-3, elementwise_affine=False)(x), wanted, dtype)


def test_rms_norm_of_large_half_numbers_and_of_zeros(device: str) -> None:
    x = tensorplay.tensor([[30000.0, -30000.0], [0.0, 0.0]], dtype=tensorplay.float16, device=device)
    assert functional.rms_norm(x, (2,)).tolist() == [[1.0, -1.0], [0.0, 0.0]]


@each_dtype
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm(device: str, dtype: tensorplay.DType, groups: int) -> None:
    x, a = operand(device, (2, 6, 5, 3), dtype, "transposed", 1)
    layer = nn.GroupNorm(groups, 6, eps=1e-3, device=device, dtype=dtype)
    wanted = normal(a.reshape(2, groups, -1), (2,), 1e-3).reshape(a.shape)
    assert_close(layer(x), wanted, dtype, room=4)
    w, b = values((6,), dtype, 2), values((6,), dtype, 3)
    layer.load_state_dict({"weight": place(w, dtype, "cpu"), "bias": place(b, dtype, "cpu")})
    assert_close(layer(x), wanted * channels(w, 4) + channels(b, 4), dtype, room=4)
    assert_close(nn.GroupNorm(groups, 6, 1e-3, affine=False)(x), wanted, dtype, room=4)


@each_dtype
@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5), (2, 3, 4, 5)])
def test_batch_norm_in_evaluation(device: str, dtype: tensorplay.DType, shape: tuple[int, ...]) -> None:
    x, a = operand(device, shape, dtype, "contiguous", 1)
    layer = (nn.BatchNorm2d if len(shape) == 4 else nn.BatchNorm1d)(3, eps=1e-3, device=device, dtype=dtype).eval()
    w, b, centre = (values((3,), dtype, seed) for seed in (2, 3, 4))
    spread = np.abs(values((3,), dtype, 5)) + 0.25
    named = {"weight": w, "bias": b, "running_mean": centre, "running_var": spread}
    layer.load_state_dict({name: place(array, dtype, "cpu") for name, array in named.items()})
    w, b, centre, spread = (channels(read(tensor), len(shape)) for tensor in list(layer.state_dict().values())[:4])
    wanted = (a - centre) / np.sqrt(spread + 1e-3) * w + b
    assert_close(layer(x), wanted, dtype, room=10)
    assert int(layer.num_batches_tracked) == 0


@each_dtype
def test_batch_norm_in_training(device: str, dtype: tensorplay.DType) -> None:
    x, a = operand(device, (4, 3, 5), dtype, "contiguous", 1)
    layer = nn.BatchNorm1d(3, eps=1e-3, momentum=0.25, device=device, dtype=dtype)
    assert_close(layer(x), normal(a, (0, 2), 1e-3), dtype, room=4)
    assert_close(layer.running_mean, 0.25 * a.mean(axis=(0, 2)), dtype)
    assert_close(layer.running_var, 0.75 + 0.25 * a.var(axis=(0, 2), ddof=1), dtype)
    assert int(layer.num_batches_tracked) == 1
    layer.reset_running_stats()
    assert layer.running_mean.tolist() == [0, 0, 0]
    assert int(layer.num_batches_tracked) == 0


def test_running_statistics_as_means_over_all_batches(device: str) -> None:
    layer = nn.BatchNorm1d(1, momentum=None, device=device)
    for low in (0.0, 4.0, 11.0):
        layer(tensorplay.tensor([[low], [low + 2.0]], device=device))
    assert layer.running_mean.tolist() == pytest.approx([6.0])
    assert layer.running_var.tolist() == pytest.approx([2.0])


def test_without_running_statistics_the_batch_counts_always(device: str) -> None:
    x, a = operand(device, (4, 3), tensorplay.float32, "contiguous", 1)
    layer = nn.BatchNorm1d(3, affine=False, track_running_stats=False, device=device).eval()
    assert layer.state_dict() == {}
    assert_close(layer(x), normal(a, (0,), 1e-5), tensorplay.float32, room=4)


def test_statistics_of_float32_beside_half_numbers(device: str) -> None:
    layer = nn.BatchNorm1d(2, device=device).eval()
    x = tensorplay.tensor([[1.5, -2.0]], dtype=tensorplay.bfloat16, device=device)
    assert layer(x).dtype is tensorplay.bfloat16
    assert layer(x).tolist() == x.tolist()


def test_files_without_the_number_of_batches_load() -> None:
    model = nn.Sequential(nn.BatchNorm2d(2), nn.ModuleDict({"inner": nn.BatchNorm1d(2)}))
    state = {name: tensor for name, tensor in model.state_dict().items() if "num_batches" not in name}
    assert len(state) == len(model.state_dict()) - 2
    assert model.load_state_dict(state) == ([], [])
    del state["1.inner.weight"]
    with pytest.raises(InvalidArgumentError, match="missing: 1.inner.weight"):
        model.load_state_dict(state)


def test_refusals(device: str) -> None:
    x = tensorplay.ones(2, 4, device=device)
    with pytest.raises(InvalidArgumentError, match="GroupNorm: got num_groups=3 for 4 channels"):
        nn.GroupNorm(3, 4)
    with pytest.raises(InvalidArgumentError, match="group_norm: got num_groups=3 for 4 channels"):
        functional.group_norm(x, 3)
    with pytest.raises(InvalidArgumentError, match="rms_norm: got normalized_shape"):
        functional.rms_norm(x, (2,))
    with pytest.raises(InvalidArgumentError, match="rms_norm: got weight of shape"):
        functional.rms_norm(x, (4,), x)
    with pytest.raises(DTypeError, match="rms_norm: got dtype int64"):
        functional.rms_norm(x.long(), (4,))
    with pytest.raises(InvalidArgumentError, match="BatchNorm2d: got shape"):
        nn.BatchNorm2d(4)(x)
    with pytest.raises(InvalidArgumentError, match="more than one element"):
        functional.batch_norm(x[:1], None, None, training=True)
    with pytest.raises(InvalidArgumentError, match="no running_mean"):
        functional.batch_norm(x, None, None)
    assert math.isnan(functional.layer_norm(x * math.inf, (4,)).tolist()[0][0])
