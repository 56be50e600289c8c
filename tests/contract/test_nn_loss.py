"""Losses on every device, against formulas in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.operands import FLOATING, Array, assert_close, operand, place, values

import tensorplay
from tensorplay import cuda, nn
from tensorplay.errors import DTypeError, InvalidArgumentError, OutOfRangeError
from tensorplay.nn import functional

each_dtype = pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)
each_reduction = pytest.mark.parametrize("reduction", ["mean", "sum", "none"])


def reduced(loss: Array, reduction: str, divisor: float | None = None) -> Array:
    if reduction == "none":
        return loss
    return np.asarray(loss.sum() / (divisor or loss.size) if reduction == "mean" else loss.sum())


def log_softmax(a: Array) -> Array:
    return np.asarray(a - np.log(np.exp(a).sum(axis=1, keepdims=True)))


@each_dtype
@each_reduction
def test_of_differences(device: str, dtype: tensorplay.DType, reduction: str) -> None:
    x, a = operand(device, (5, 6), dtype, "transposed", 1)
    y, b = operand(device, (5, 6), dtype, "contiguous", 2)
    assert_close(nn.MSELoss(reduction=reduction)(x, y), reduced((a - b) ** 2, reduction), dtype)
    assert_close(nn.L1Loss(reduction=reduction)(x, y), reduced(np.abs(a - b), reduction), dtype)


@each_dtype
@each_reduction
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(6, 5), (3, 5, 4)])
def test_of_classes(
    device: str, dtype: tensorplay.DType, reduction: str, smoothing: float, weighted: bool, shape: tuple[int, ...]
) -> None:
    x, a = operand(device, shape, dtype, "contiguous", 1)
    wanted = np.random.default_rng(2).integers(0, 5, (shape[0], *shape[2:]))
    wanted.flat[0] = -7
    counts = np.abs(values((5,), dtype, 3)) + 0.5 if weighted else np.ones(5)
    weight = place(counts, dtype, device) if weighted else None
    target = tensorplay.tensor(wanted, device=device)

    logs = log_softmax(a)
    kept = wanted >= 0
    safe = np.where(kept, wanted, 0)
    share = np.where(kept, counts[safe], 0.0)
    picked = -np.take_along_axis(logs, np.expand_dims(safe, 1), 1).squeeze(1) * share
    spread = counts.reshape(-1, *(1,) * (a.ndim - 2))
    everywhere = np.where(kept, -(logs * spread).sum(axis=1), 0.0)
    loss = (1 - smoothing) * picked + smoothing / 5 * everywhere

    layer = nn.CrossEntropyLoss(weight, ignore_index=-7, reduction=reduction, label_smoothing=smoothing)
    assert_close(layer(x, target), reduced(loss, reduction, share.sum()), dtype, room=2)
    if not smoothing:
        held = place(logs, dtype, device)
        logs = np.asarray(held.double().cpu().numpy())
        picked = -np.take_along_axis(logs, np.expand_dims(safe, 1), 1).squeeze(1) * share
        plain = nn.NLLLoss(weight, ignore_index=-7, reduction=reduction)
        assert_close(plain(held, target), reduced(picked, reduction, share.sum()), dtype)


@each_dtype
@each_reduction
def test_of_probabilities(device: str, dtype: tensorplay.DType, reduction: str) -> None:
    x, a = operand(device, (4, 5, 3), dtype, "contiguous", 1)
    wanted = np.abs(values((4, 5, 3), dtype, 2))
    target = place(wanted, dtype, device)
    loss = -(wanted * log_softmax(a)).sum(axis=1)
    assert_close(functional.cross_entropy(x, target, reduction=reduction), reduced(loss, reduction), dtype, room=8)
    smooth = wanted * 0.9 + 0.1 / 5
    loss = -(smooth * log_softmax(a)).sum(axis=1)
    got = functional.cross_entropy(x, target, reduction=reduction, label_smoothing=0.1)
    assert_close(got, reduced(loss, reduction), dtype, room=8)


def test_of_one_example_without_a_batch(device: str) -> None:
    x = tensorplay.tensor([0.0, 0.0], device=device)
    assert functional.cross_entropy(x, tensorplay.tensor(1, device=device)).item() == pytest.approx(math.log(2))


def test_where_nothing_counts_the_mean_is_nan(device: str) -> None:
    target = tensorplay.full((2,), -100, dtype=tensorplay.int64, device=device)
    x = tensorplay.ones(2, 3, device=device)
    assert math.isnan(functional.cross_entropy(x, target).item())
    assert functional.cross_entropy(x, target, reduction="sum").item() == 0


def test_an_ignored_class_counts_nothing_even_where_its_loss_is_infinite(device: str) -> None:
    x = tensorplay.tensor([[0.0, -math.inf], [0.0, 0.0]], device=device)
    target = tensorplay.tensor([1, 0], device=device)
    assert functional.nll_loss(x, target, ignore_index=1, reduction="sum").item() == 0


def test_a_class_that_there_is_not_is_told(device: str) -> None:
    x = tensorplay.ones(2, 3, device=device)
    with pytest.raises(OutOfRangeError, match="3"):
        functional.cross_entropy(x, tensorplay.tensor([0, 3], device=device)).item()
    if device == "cuda":
        cuda.synchronize()
    assert functional.cross_entropy(x, tensorplay.tensor([0, 2], device=device)).item() == pytest.approx(math.log(3))


def test_refusals(device: str) -> None:
    x, target = tensorplay.ones(2, 3, device=device), tensorplay.tensor([0, 1], device=device)
    with pytest.raises(InvalidArgumentError, match="mse_loss: got reduction 'max'"):
        functional.mse_loss(x, x, reduction="max")
    with pytest.raises(InvalidArgumentError, match="cross_entropy: got label_smoothing=2"):
        functional.cross_entropy(x, target, label_smoothing=2)
    with pytest.raises(DTypeError, match="nll_loss: got a target of dtype int32"):
        functional.nll_loss(x, target.int())
    with pytest.raises(InvalidArgumentError, match="nll_loss: got a target of shape"):
        functional.nll_loss(x, target[:1])
    with pytest.raises(InvalidArgumentError, match="cross_entropy: got a weight of shape"):
        functional.cross_entropy(x, target, x[:, 0])
    with pytest.raises(DTypeError, match="l1_loss: got dtype int64"):
        functional.l1_loss(target, target)
