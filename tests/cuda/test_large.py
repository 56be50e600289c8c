"""Places past 2**31 elements, once for each family of kernels: only on a GPU with room for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tensorplay
from tensorplay import cuda

#: The index of the last element is past what 32 bits hold, signed; twice the elements are past it unsigned.
NUMEL = 2**31 + 4096
FAR = NUMEL - 1
ROOM = 24 * 2**30


@pytest.fixture(autouse=True)
def _room(gpu: None) -> Iterator[None]:
    """A real device with enough free memory, which is given back."""
    if tensorplay._plugins.get("cuda").describe()["variant"] == "emulated":
        pytest.skip("the emulated device takes too long")
    cuda.empty_cache()
    free, _ = cuda.mem_get_info()
    if free < ROOM:
        pytest.skip(f"{ROOM >> 30} GiB of device memory are needed, {free >> 30} are free")
    yield
    cuda.synchronize()
    cuda.empty_cache()


def zeros(*shape: int, dtype: tensorplay.DType = tensorplay.uint8) -> tensorplay.Tensor:
    return tensorplay.zeros(shape, dtype=dtype, device="cuda")


def test_fill_and_copy() -> None:
    x = zeros(NUMEL)
    assert x[FAR].item() == 0
    x.fill_(7)
    assert x[0].item() == x[FAR].item() == 7
    x[FAR] = 9
    y = x.clone()
    assert (y[FAR].item(), y[FAR - 1].item()) == (9, 7)
    assert x.to(tensorplay.int16)[FAR].item() == 9


def test_copies_that_turn() -> None:
    x = zeros(2**16 + 1, 2**15)
    x[-1, -2] = 5
    y = x.t().contiguous()
    assert y[-2, -1].item() == 5
    assert y.sum().item() == 5


@pytest.mark.parametrize("unsigned", [False, True])
def test_elementwise(unsigned: bool) -> None:
    numel = 2 * NUMEL if unsigned else NUMEL
    x = zeros(numel, dtype=tensorplay.int8)
    x[-1], x[-2] = 3, -2
    y = x * x + 1
    assert y[-2:].tolist() == [5, 10]
    assert (y[0].item(), y[numel // 2].item()) == (1, 1)
    assert x.bitwise_not()[-1].item() == ~3
    assert tensorplay.where(x > 0, x, y)[-2:].tolist() == [5, 3]


def test_elementwise_of_hot_dtypes() -> None:
    x = zeros(NUMEL, dtype=tensorplay.float16)
    x[-1], x[2**31] = 3.0, 2.0
    x.add_(1)
    y = x * x
    assert [y[place].item() for place in (0, 2**31, FAR)] == [1, 9, 16]
    assert y.exp_()[FAR - 1].item() == tensorplay.tensor(1.0, dtype=tensorplay.float16).exp().item()


def test_products() -> None:
    x = zeros(2**16 + 1, 2**15, dtype=tensorplay.float16)
    x[-1, -1] = 2.0
    assert (x[-2:, :] @ x[-2:, :].t()).tolist() == [[0.0, 0.0], [0.0, 4.0]]
    assert (x @ x[-1:].t())[-1].item() == 4


def test_elementwise_on_places() -> None:
    x = zeros(2**15, 2**16 + 2)
    x[-1, -1] = 4
    y = x[:, ::2] + x[:, 1::2]
    assert y[-1, -1].item() == 4
    assert (x + x[-1])[-1, -1].item() == 8


def test_reductions() -> None:
    x = zeros(NUMEL, dtype=tensorplay.int8)
    x[-1], x[-3] = 5, -4
    assert x.sum().item() == 1
    assert x.amax().item() == 5
    assert x.amin().item() == -4
    assert x.any().item() is True
    rows = x.view(-1, 4096)
    assert rows.sum(1)[-1].item() == 1
    assert rows.sum(0)[-1].item() == 5


def test_places_of_extremes() -> None:
    x = zeros(NUMEL, dtype=tensorplay.int8)
    x[-2], x[-5] = 5, -4
    assert x.argmax().item() == FAR - 1
    assert x.argmin().item() == FAR - 4
    assert x.view(4096, -1).argmax(1)[-1].item() == NUMEL // 4096 - 2


def test_running_totals() -> None:
    x = tensorplay.ones(NUMEL, dtype=tensorplay.int8, device="cuda")
    total = x.cumsum(0)
    assert total[-1].item() == NUMEL
    assert total[2**31].item() == 2**31 + 1


def test_sorting() -> None:
    # Places are int64: eight bytes for each element, twice, beside the keys.
    if cuda.mem_get_info()[0] < 4 * ROOM:
        pytest.skip("96 GiB of device memory are needed")
    x = tensorplay.ones(NUMEL, dtype=tensorplay.uint8, device="cuda")
    x[-1], x[-2] = 0, 9
    places = tensorplay.argsort(x)
    assert places[0].item() == FAR
    assert places[-1].item() == FAR - 1
    assert places[2**31].item() == 2**31 - 1


def test_gather_and_scatter() -> None:
    x = zeros(NUMEL)
    index = tensorplay.tensor([FAR, 0, 2**31], device="cuda")
    values = tensorplay.tensor([3, 4, 5], dtype=tensorplay.uint8, device="cuda")
    x.scatter_(0, index, values)
    assert [x[place].item() for place in (FAR, 0, 2**31)] == [3, 4, 5]
    assert x.gather(0, index).tolist() == [3, 4, 5]
    assert x[index].tolist() == [3, 4, 5]
    x.index_put_((index,), values, accumulate=True)
    assert x.index_select(0, index).tolist() == [6, 8, 10]
    assert x.sum().item() == 24


def test_masks() -> None:
    x = zeros(NUMEL)
    x[-1], x[5] = 3, 4
    assert x[x > 0].tolist() == [4, 3]
    assert tensorplay.nonzero(x).tolist() == [[5], [FAR]]


def test_random() -> None:
    x = tensorplay.empty(NUMEL, dtype=tensorplay.float16, device="cuda").fill_(-1)
    x.uniform_(0, 1)
    tail = x[-4096:]
    assert tail.amin().item() >= 0
    assert 0.4 < tail.float().mean().item() < 0.6
    # Far elements are not the near ones again.
    assert not tensorplay.equal(tail, x[:4096])
    assert not tensorplay.equal(tail, x[2**31 - 4096 : 2**31])


def test_softmax() -> None:
    x = tensorplay.zeros(2**19 + 1, 4096, dtype=tensorplay.float16, device="cuda")
    x[-1, -1] = 10.0
    y = x.softmax(-1)
    assert y[-1, -1].item() > 0.8
    assert abs(y[-2, 0].item() - 1 / 4096) < 1e-5
