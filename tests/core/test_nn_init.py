"""How parameters begin."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

import tensorplay
from tensorplay import nn
from tensorplay.errors import InvalidArgumentError
from tensorplay.nn import init

Array = npt.NDArray[np.float64]


def read(tensor: tensorplay.Tensor) -> Array:
    return tensor.double().cpu().numpy()


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


def test_default_distributions_of_convolutions() -> None:
    layer = nn.Conv2d(8, 40, 5, groups=2)
    bound = 1 / math.sqrt(4 * 25)
    assert np.abs(read(layer.weight)).max() <= bound
    assert np.abs(read(layer.bias)).max() <= bound
    assert abs(moments(layer.weight)[1] - bound / math.sqrt(3)) < 0.003


def test_default_distribution_of_bilinear() -> None:
    layer = nn.Bilinear(100, 5, 50)
    assert np.abs(read(layer.weight)).max() <= 0.1
    assert np.abs(read(layer.bias)).max() <= 0.1
    assert abs(moments(layer.weight)[1] - 0.1 / math.sqrt(3)) < 0.002


@pytest.mark.parametrize("dtype", [tensorplay.float32, tensorplay.float64, tensorplay.bfloat16])
@pytest.mark.parametrize(
    ("mean", "std", "a", "b"), [(0.0, 1.0, -2.0, 2.0), (0.5, 2.0, -1.0, 1.5), (0.0, 1.0, 1.0, 9.0)]
)
def test_trunc_normal(device: str, dtype: tensorplay.DType, mean: float, std: float, a: float, b: float) -> None:
    weight = tensorplay.empty(200, 500, dtype=dtype, device=device)
    assert init.trunc_normal_(weight, mean, std, a, b) is weight
    x = read(weight)
    assert a <= x.min() <= x.max() <= b
    low, high = (math.erf((limit - mean) / std / math.sqrt(2)) for limit in (a, b))
    for at in np.linspace(a, b, 9)[1:-1]:
        share = (math.erf((at - mean) / std / math.sqrt(2)) - low) / (high - low)
        # 100,000 draws: a standard deviation of at most 0.0016; bfloat16 moves elements over the limit.
        assert abs((x < at).mean() - share) < 0.01


def test_the_inverse_of_the_error_function() -> None:
    x = np.linspace(-4.5, 4.5, 1001)
    y = np.vectorize(math.erf)(x)
    # Near 1, where y has few digits of 1 - y left, these bound what can be told of x.
    found = read(init._inverse_erf(tensorplay.tensor(y)))
    np.testing.assert_allclose(found, x, rtol=1e-13, atol=1e-15 * np.exp(x * x).max())
    inner = np.abs(x) < 2
    np.testing.assert_allclose(found[inner], x[inner], rtol=1e-13)
    assert np.isfinite(read(init._inverse_erf(tensorplay.tensor([-1.0, 1.0], dtype=tensorplay.float64)))).all()


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 3), (2, 4, 3, 3), (4, 4)], ids=str)
def test_orthogonal(device: str, shape: tuple[int, ...]) -> None:
    weight = init.orthogonal_(tensorplay.empty(shape, dtype=tensorplay.float64, device=device), gain=2.0)
    matrix = read(weight).reshape(shape[0], -1)
    square = matrix @ matrix.T if shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(square, 4 * np.eye(len(square)), atol=1e-13)
    assert init.orthogonal_(tensorplay.empty(2, 0)).shape == (2, 0)


def test_orthogonal_matrices_point_everywhere() -> None:
    # The factor that QR gives has its first element below 0 always.
    firsts = [init.orthogonal_(tensorplay.empty(2, 2))[0, 0].item() for _ in range(40)]
    assert min(firsts) < 0 < max(firsts)


def test_eye_and_dirac(device: str) -> None:
    matrix = tensorplay.ones(2, 3, device=device)
    assert init.eye_(matrix) is matrix
    assert matrix.tolist() == [[1, 0, 0], [0, 1, 0]]
    x = tensorplay.rand(1, 4, 5, 7, device=device)
    layer = nn.Conv2d(4, 4, (3, 5), padding="same", bias=False, device=device)
    init.dirac_(layer.weight)
    assert layer(x).tolist() == x.tolist()
    grouped = nn.Conv2d(4, 6, 1, groups=2, bias=False, device=device)
    init.dirac_(grouped.weight, groups=2)
    zeros = [[0.0] * 7] * 5
    assert grouped(x)[0].tolist() == [*x[0, :2].tolist(), zeros, *x[0, 2:].tolist(), zeros]


def test_sparse(device: str) -> None:
    weight = init.sparse_(tensorplay.empty(10, 50, device=device), 0.31, std=2.0)
    zeros = read(weight) == 0
    assert zeros.sum(axis=0).tolist() == [4] * 50
    assert len({tuple(column) for column in zeros.T.tolist()}) > 10


def test_skipped_functions_leave_everything_as_it_is() -> None:
    weight = tensorplay.full((3, 3, 3), 7.0)
    with init.skipped():
        for fill in (init.trunc_normal_, init.dirac_, init.orthogonal_, init.uniform_, init.normal_, init.zeros_):
            assert fill(weight) is weight
        assert init.eye_(weight[0]).tolist() == init.sparse_(weight[0], 0.5).tolist() == [[7.0] * 3] * 3
    assert weight.sum().item() == 27 * 7


def test_refusals() -> None:
    matrix = tensorplay.empty(3, 4)
    for call, words in (
        (lambda: init.trunc_normal_(matrix, std=0.0), "std=0"),
        (lambda: init.trunc_normal_(matrix, a=2.0, b=2.0), "a < b"),
        (lambda: init.eye_(matrix[0]), "two dimensions"),
        (lambda: init.dirac_(matrix), "3 dimensions"),
        (lambda: init.dirac_(tensorplay.empty(3, 4, 1), groups=2), "divisor"),
        (lambda: init.orthogonal_(matrix[0]), "at least 2 dimensions"),
        (lambda: init.sparse_(matrix, 1.5), "sparsity=1.5"),
        (lambda: init.calculate_gain(["relu"]), r"got \['relu'\], expected one of conv1d"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidArgumentError, match=words):
            call()
