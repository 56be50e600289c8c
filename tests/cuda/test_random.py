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


@pytest.mark.smoke
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


def test_a_seed_of_the_device_outlasts_an_earlier_one_of_everything(gpu: None) -> None:
    """Core seeds a backend when it comes, with what was asked for before; that is earlier than this seed."""
    code = """
        import tensorplay as tp
        from tensorplay import cuda
        tp.manual_seed(1)
        {}
        assert not cuda.is_initialized()
        first = tp.rand(4, device="cuda").tolist()
        print(cuda.initial_seed(), first)
    """
    cuda.manual_seed(7)
    numbers = tp.rand(4, device="cuda").tolist()
    for call in ("cuda.manual_seed(7)", "cuda.set_rng_state(tp.tensor([7], dtype=tp.int64).view(tp.uint8))"):
        assert fresh.run(code.format(call)) == f"7 {numbers}\n"
    tp.manual_seed(1)
    assert fresh.run(code.format("")) == f"1 {tp.rand(4, device='cuda').tolist()}\n"


def test_states_before_first_use_wait(gpu: None) -> None:
    code = """
        import tensorplay as tp
        from tensorplay import cuda
        unseeded = cuda.get_rng_state().view(tp.int64).tolist()
        state = tp.tensor([5, 8], dtype=tp.int64).view(tp.uint8)
        with tp.random.fork_rng():
            cuda.set_rng_state_all([state] * cuda.device_count())
            inside = cuda.get_rng_state("cuda:0").view(tp.int64).tolist()
        outside = cuda.get_rng_state().view(tp.int64).tolist()
        cuda.set_rng_state(state)
        assert not cuda.is_initialized()
        numbers = tp.rand(4, device="cuda").tolist()
        print(unseeded, inside, outside, numbers, cuda.get_rng_state().view(tp.int64).tolist())
    """
    cuda.set_rng_state(tp.tensor([5, 8], dtype=tp.int64).view(tp.uint8))
    default = [67280421310721, 0]
    expected = f"{default} [5, 8] {default} {tp.rand(4, device='cuda').tolist()} [5, 12]\n"
    assert fresh.run(code) == expected


def test_a_generator_that_nobody_seeded_is_the_same_before_and_after_the_start(gpu: None) -> None:
    code = """
        import tensorplay as tp
        from tensorplay import cuda
        before = cuda.get_rng_state().tolist()
        cuda.synchronize(), tp.ones(1, device="cuda")
        assert cuda.is_initialized()
        print(cuda.get_rng_state().tolist() == before)
    """
    assert fresh.run(code) == "True\n"


def test_states_cover_one_device_or_all(two_gpus: None) -> None:
    host = tp.get_rng_state().tolist()
    states = cuda.get_rng_state_all()
    assert [state.shape for state in states] == [(16,)] * cuda.device_count()
    first = [draw(0), draw(1)]
    cuda.set_rng_state_all(states)
    assert [draw(0), draw(1)] == first
    cuda.set_rng_state(states[1], device="cuda:1")
    assert [draw(0) != first[0], draw(1)] == [True, first[1]]
    assert cuda.get_rng_state(1).tolist() != states[1].tolist()
    assert tp.get_rng_state().tolist() == host
    with pytest.raises(InvalidArgumentError, match="set_rng_state_all: got 1 states, expected one for each of"):
        cuda.set_rng_state_all(states[:1])


@pytest.mark.parametrize("name", ["get_rng_state", "initial_seed"])
def test_states_need_a_device(name: str) -> None:
    code = f"""
        from tensorplay import cuda
        from tensorplay.errors import BackendUnavailableError
        assert cuda.get_rng_state_all() == []
        cuda.manual_seed(3)
        cuda.manual_seed_all(3)
        try:
            cuda.{name}()
        except BackendUnavailableError as error:
            print(str(error) == f"get_rng_state: {{cuda.unavailable_reason()}}")
    """
    assert fresh.run(code, TENSORPLAY_CUDA_RUNTIME="none") == "True\n"


def test_a_state_of_a_device_that_is_not_there_is_refused(gpu: None) -> None:
    state = cuda.get_rng_state()
    for call in (cuda.get_rng_state, lambda device: cuda.set_rng_state(state, device)):
        with pytest.raises(InvalidArgumentError, match="device 99 asked for"):
            call(99)


def test_a_fork_of_devices_named_by_the_module(two_gpus: None) -> None:
    assert cuda.random.fork_rng is tp.random.fork_rng
    before = [state.tolist() for state in cuda.get_rng_state_all()]
    with cuda.random.fork_rng(["cuda:1"]):
        draw(0), draw(1)
    after = [state.tolist() for state in cuda.get_rng_state_all()]
    assert [after[0] == before[0], after[1] == before[1]] == [False, True]


def test_forks_without_a_device_put_the_host_back_and_refuse_devices() -> None:
    code = """
        import tensorplay as tp
        from tensorplay.errors import BackendUnavailableError
        for devices in (None, ["cpu"], []):
            before = tp.get_rng_state().tolist()
            with tp.random.fork_rng(devices):
                tp.rand(2)
            assert tp.get_rng_state().tolist() == before
        for devices in (["cuda:0"], [0]):
            try:
                with tp.random.fork_rng(devices):
                    raise AssertionError
            except BackendUnavailableError as error:
                print(str(error).partition(";")[0])
    """
    expected = "get_rng_state: TENSORPLAY_CUDA_RUNTIME is none\n" * 2
    assert fresh.run(code, TENSORPLAY_CUDA_RUNTIME="none", TENSORPLAY_ACCELERATOR=None) == expected


def test_forks_start_nothing() -> None:
    code = """
        import sys
        import tensorplay as tp
        for devices in (["cpu"], []):
            with tp.random.fork_rng(devices):
                tp.rand(2)
        assert "tensorplay.cuda._backend" not in sys.modules
        with tp.random.fork_rng():
            tp.rand(2)
        print(tp.cuda.is_initialized())
    """
    assert fresh.run(code) == "False\n"
