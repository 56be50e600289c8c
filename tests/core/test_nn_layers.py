"""Layers and their functions against plain formulas in float64."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

import tensorplay
from tensorplay import cuda, nn
from tensorplay.errors import DTypeError, InvalidArgumentError
from tensorplay.nn import functional, init

Array = npt.NDArray[np.float64]


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def on(device: str, array: Array, dtype: tensorplay.DType = tensorplay.float32) -> tensorplay.Tensor:
    return tensorplay.tensor(array.astype(np.float32), device=device).to(dtype)


def read(tensor: tensorplay.Tensor) -> Array:
    return tensor.float().cpu().numpy().astype(np.float64)


def softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


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


@pytest.mark.parametrize("shape", [(6,), (3, 6)])
def test_layer_norm(device: str, shape: tuple[int, ...]) -> None:
    layer = nn.LayerNorm(shape, eps=1e-3).to(device)
    scale, shift = numbers(*shape, seed=1), numbers(*shape, seed=2)
    layer.load_state_dict({"weight": on("cpu", scale), "bias": on("cpu", shift)})
    x = numbers(2, 3, 6)
    axes = tuple(range(3 - len(shape), 3))
    centred = x - x.mean(axis=axes, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(axis=axes, keepdims=True) + 1e-3) * scale + shift
    np.testing.assert_allclose(read(layer(on(device, x))), expected, rtol=1e-4, atol=1e-5)


def test_layer_norm_without_parameters() -> None:
    assert nn.LayerNorm(3, elementwise_affine=False).state_dict() == {}
    assert list(nn.LayerNorm(3, bias=False).state_dict()) == ["weight"]
    assert nn.LayerNorm(3).weight.tolist() == [1, 1, 1]
    assert nn.LayerNorm(3).bias.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("layer", "formula"),
    [
        (nn.GELU(), lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2)))),
        (nn.GELU("tanh"), lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
        (nn.ReLU(), lambda x: max(x, 0.0)),
        (nn.Tanh(), math.tanh),
        (nn.Sigmoid(), lambda x: 1 / (1 + math.exp(-x))),
        (nn.Identity(1, unused=2), lambda x: x),
    ],
    ids=lambda value: repr(value) if isinstance(value, nn.Module) else "",
)
def test_elementwise_layers(device: str, layer: nn.Module, formula: object) -> None:
    x = numbers(3, 4)
    expected = np.vectorize(formula)(x)
    np.testing.assert_allclose(read(layer(on(device, x))), expected, rtol=1e-5, atol=1e-6)


def test_softmax_layer(device: str) -> None:
    x = numbers(3, 4)
    np.testing.assert_allclose(read(nn.Softmax(dim=-1)(on(device, x))), softmax(x), rtol=1e-5)


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


def attend(query: Array, key: Array, value: Array, mask: npt.NDArray[np.bool_] | None = None) -> Array:
    scores = query @ np.swapaxes(key, -1, -2) / math.sqrt(query.shape[-1])
    if mask is None:
        return softmax(scores) @ value
    powers = np.where(mask, np.exp(scores), 0.0)
    total = powers.sum(axis=-1, keepdims=True)
    return np.divide(powers, total, out=np.zeros_like(powers), where=total > 0) @ value


@pytest.mark.parametrize("dtype", [tensorplay.float32, tensorplay.float16])
def test_attention(device: str, dtype: tensorplay.DType) -> None:
    query, key, value = numbers(2, 3, 4, 8), numbers(2, 3, 5, 8, seed=1), numbers(2, 3, 5, 6, seed=2)
    result = functional.scaled_dot_product_attention(*(on(device, x, dtype) for x in (query, key, value)))
    assert result.dtype is dtype
    tolerance = 1e-5 if dtype is tensorplay.float32 else 5e-3
    np.testing.assert_allclose(read(result), attend(query, key, value), rtol=tolerance, atol=tolerance)


def test_attention_with_masks(device: str) -> None:
    query, key, value = numbers(2, 4, 8), numbers(2, 5, 8, seed=1), numbers(2, 5, 6, seed=2)
    mask = numbers(4, 5, seed=3) > 0
    mask[2] = False  # a query that may look at nothing
    expected = attend(query, key, value, mask)
    operands = [on(device, x) for x in (query, key, value)]
    allowed = tensorplay.tensor(mask, device=device)
    added = on(device, np.where(mask, 0.0, -np.inf))
    for attn_mask in (allowed, added):
        result = functional.scaled_dot_product_attention(*operands, attn_mask=attn_mask)
        np.testing.assert_allclose(read(result), expected, rtol=1e-5, atol=1e-6)
    causal = functional.scaled_dot_product_attention(*operands, is_causal=True)
    np.testing.assert_allclose(read(causal), attend(query, key, value, np.tri(4, 5, dtype=bool)), rtol=1e-5, atol=1e-6)


def test_attention_scale_and_dropout() -> None:
    query, key, value = (on("cpu", numbers(2, 3, seed=seed)) for seed in range(3))
    same = functional.scaled_dot_product_attention(query, key, value, scale=0.0)
    np.testing.assert_allclose(read(same), np.tile(read(value).mean(axis=0), (2, 1)), rtol=1e-5)
    nothing = functional.scaled_dot_product_attention(query, key, value, dropout_p=1.0)
    assert nothing.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_attention_refusals() -> None:
    x = tensorplay.ones(2, 3)
    mask = tensorplay.ones(2, 2, dtype=tensorplay.bool)
    with pytest.raises(InvalidArgumentError, match="only one of them"):
        functional.scaled_dot_product_attention(x, x, x, attn_mask=mask, is_causal=True)
    with pytest.raises(DTypeError, match="expected bool or the query's"):
        functional.scaled_dot_product_attention(x, x, x, attn_mask=mask.half())
    with pytest.raises(InvalidArgumentError, match="at least 2 dimensions"):
        functional.scaled_dot_product_attention(x[0], x, x)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, math.inf])
def test_normalize(device: str, p: float) -> None:
    x = numbers(4, 3)
    expected = x / np.linalg.norm(x, ord=p, axis=1, keepdims=True)
    np.testing.assert_allclose(read(functional.normalize(on(device, x), p)), expected, rtol=1e-5)


def test_normalize_of_half_numbers_that_overflow_when_squared(device: str) -> None:
    x = on(device, np.array([[3000.0, 4000.0], [0.0, 0.0]]), tensorplay.float16)
    result = functional.normalize(x)
    assert result.dtype is tensorplay.float16
    np.testing.assert_allclose(read(result), [[0.6, 0.8], [0.0, 0.0]], rtol=1e-3)


def test_normalize_refusals() -> None:
    with pytest.raises(DTypeError, match="floating"):
        functional.normalize(tensorplay.ones(2, 2, dtype=tensorplay.int64))
    with pytest.raises(InvalidArgumentError, match="p=0"):
        functional.normalize(tensorplay.ones(2, 2), p=0.0)


def test_containers() -> None:
    relu = nn.ReLU()
    model = nn.Sequential(relu, nn.Tanh(), relu)
    assert len(model) == 3
    assert model[-1] is relu
    assert [type(module).__name__ for module in model[:2]] == ["ReLU", "Tanh"]
    assert model(tensorplay.tensor([-1.0])).tolist() == [0.0]
    assert len(model.append(nn.GELU())) == 4
    assert list(nn.Sequential({"a": relu}).state_dict()) == []
    with pytest.raises(IndexError, match="got index 4"):
        model[4]

    layers = nn.ModuleList(nn.Linear(1, 1) for _ in range(2))
    layers.append(nn.Linear(1, 1, bias=False))
    layers[0] = nn.Identity()
    assert list(layers.state_dict()) == ["1.weight", "1.bias", "2.weight"]
    assert len(layers[1:]) == 2

    named = nn.ModuleDict({"one": nn.Linear(1, 1, bias=False), "two": relu})
    assert list(named) == named.keys() == ["one", "two"]
    assert named["two"] is relu
    assert "three" not in named
    assert "training" not in named
    assert [name for name, _ in named.items()] == ["one", "two"]
    assert named.values()[1] is relu
    del named["one"]
    assert len(named) == 1
    with pytest.raises(KeyError):
        named["one"]
    with pytest.raises(KeyError):
        del named["training"]


def moments(tensor: tensorplay.Tensor) -> tuple[float, float]:
    values = read(tensor)
    return float(values.mean()), float(values.std())


def test_default_distributions_of_layers() -> None:
    tensorplay.manual_seed(0)
    layer = nn.Linear(100, 200)
    assert np.abs(read(layer.weight)).max() <= 0.1
    assert np.abs(read(layer.bias)).max() <= 0.1
    mean, deviation = moments(layer.weight)
    assert abs(mean) < 0.003
    assert abs(deviation - 0.1 / math.sqrt(3)) < 0.002
    mean, deviation = moments(nn.Embedding(200, 100).weight)
    assert abs(mean) < 0.03
    assert abs(deviation - 1) < 0.03


def test_init_functions() -> None:
    tensorplay.manual_seed(0)
    weight = tensorplay.empty(300, 100)
    assert init.fans(weight) == (100, 300)
    expected = {
        init.xavier_uniform_: math.sqrt(2 / 400),
        init.xavier_normal_: math.sqrt(2 / 400),
        init.kaiming_uniform_: math.sqrt(2 / 100),
        init.kaiming_normal_: math.sqrt(2 / 100),
    }
    for fill, deviation in expected.items():
        assert fill(weight) is weight  # type: ignore[operator]
        mean, found = moments(weight)
        assert abs(mean) < deviation * 0.05
        assert abs(found / deviation - 1) < 0.05
    _, found = moments(init.kaiming_normal_(weight, mode="fan_out", nonlinearity="linear"))
    assert abs(found / math.sqrt(1 / 300) - 1) < 0.05
    with pytest.raises(InvalidArgumentError, match="fan_between"):
        init.kaiming_normal_(weight, mode="fan_between")
    with pytest.raises(InvalidArgumentError, match="swish"):
        init.calculate_gain("swish")
    with pytest.raises(InvalidArgumentError, match="at least 2 dimensions"):
        init.xavier_normal_(tensorplay.empty(3))


def test_skip_init_draws_nothing() -> None:
    tensorplay.manual_seed(5)
    nn.utils.skip_init(nn.Linear, 3, 3)
    after_skip = nn.Linear(3, 3).weight.tolist()
    tensorplay.manual_seed(5)
    assert nn.Linear(3, 3).weight.tolist() == after_skip


def test_operands_on_different_devices_are_refused() -> None:
    if not cuda.is_available():
        pytest.skip("needs a CUDA device")
    with pytest.raises(InvalidArgumentError, match="linear: operands on different devices, got cuda:0 and cpu"):
        nn.Linear(2, 2)(tensorplay.ones(1, 2, device="cuda:0"))
