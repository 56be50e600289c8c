"""Seeds."""

from __future__ import annotations

from typing import Any

import pytest
from helpers import fresh

import tensorplay as tp
from tensorplay import cuda
from tensorplay.errors import DTypeError, InvalidArgumentError


def draw(device: int = 0) -> list[Any]:
    found: list[Any] = tp.rand(8, device=f"cuda:{device}").tolist()
    return found


def test_seed_repeats_the_numbers(gpu: None) -> None:
    cuda.manual_seed(7)
    assert cuda.initial_seed() == 7
    first, second = draw(), draw()
    assert first != second
    cuda.manual_seed(7)
    assert [draw(), draw()] == [first, second]


def test_manual_seed_is_for_the_current_device(two_gpus: None) -> None:
    cuda.manual_seed_all(1)
    with cuda.device(1):
        cuda.manual_seed(2)
        assert cuda.initial_seed() == 2
    assert cuda.initial_seed() == 1


def test_all_devices_are_seeded_alike(two_gpus: None) -> None:
    cuda.manual_seed_all(11)
    assert draw(0) == draw(1)


def test_seed_by_chance_is_told(gpu: None) -> None:
    chosen = cuda.seed()
    assert cuda.initial_seed() == chosen
    assert cuda.seed() != chosen
    assert cuda.seed_all() == cuda.initial_seed()


@pytest.mark.parametrize(("seed", "kept"), [(0, 0), (2**64 - 1, 2**64 - 1), (-1, 2**64 - 1), (-(2**63), 2**63)])
def test_seeds_of_64_bits(gpu: None, seed: int, kept: int) -> None:
    cuda.manual_seed(seed)
    assert cuda.initial_seed() == kept


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_seed_out_of_range_is_refused(gpu: None, seed: int) -> None:
    cuda.manual_seed(3)
    with pytest.raises(InvalidArgumentError, match=str(seed)):
        cuda.manual_seed(seed)
    assert cuda.initial_seed() == 3


@pytest.mark.parametrize("seed", [None, 1.5, "x", (1,)])
def test_seed_of_another_type_is_refused(gpu: None, seed: Any) -> None:
    with pytest.raises(DTypeError, match="manual_seed: got .*, expected an integer"):
        cuda.manual_seed(seed)


def test_seeding_everything_repeats_the_numbers_of_host_and_device(gpu: None) -> None:
    """What `tensorplay.manual_seed` says: the generators of the host and of all devices."""

    def numbers() -> list[Any]:
        return [tp.rand(5).tolist(), *(draw(index) for index in range(cuda.device_count()))]

    tp.manual_seed(9)
    first = numbers()
    assert numbers() != first
    tp.manual_seed(9)
    assert numbers() == first
    assert tp.initial_seed() == cuda.initial_seed() == 9


def test_seed_before_first_use_waits(gpu: None) -> None:
    code = """
        import tensorplay as tp
        from tensorplay import cuda
        from tensorplay.cuda._library import native
        cuda.manual_seed_all(123)
        assert not native.is_started
        print(cuda.initial_seed(), tp.rand(4, device="cuda").tolist())
    """
    cuda.manual_seed(123)
    assert fresh.run(code) == f"123 {tp.rand(4, device='cuda').tolist()}\n"
