"""What the emulated device promises to programs, and how tests command it."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.fresh import run

import tensorplay as tp
from tensorplay import cuda
from tensorplay.testing import emulated as control

SEEDS = range(24)


@pytest.fixture(autouse=True)
def as_the_environment_says(emulated: None) -> None:
    """Each test starts with an idle device and no orders."""
    cuda.synchronize()
    control.reset()


def copied_by_another_stream(seed: int, *, wait: bool) -> bool:
    """Whether a stream that copies what another one writes sees it."""
    writer, reader = cuda.Stream(), cuda.Stream()
    source, target = tp.zeros(1000, device="cuda"), tp.zeros(1000, device="cuda")
    cuda.synchronize()
    with control.seed(seed):
        with cuda.stream(writer):
            source.fill_(1)
        if wait:
            reader.wait_stream(writer)
        with cuda.stream(reader):
            target.copy_(source)
        reader.synchronize()
    cuda.synchronize()
    return bool(target.sum().item() == 1000)


def test_a_forgotten_wait_fails_on_some_seeds_and_replays_exactly() -> None:
    copied_by_another_stream(0, wait=True)  # The first allocation asks for events that earlier tests have left.
    seen = [copied_by_another_stream(seed, wait=False) for seed in SEEDS]
    assert set(seen) == {True, False}
    assert seen == [copied_by_another_stream(seed, wait=False) for seed in SEEDS]


def test_a_seed_does_the_same_whichever_streams_a_program_is_given() -> None:
    copied_by_another_stream(0, wait=True)
    seen = set()
    for _ in range(32):  # As many streams as a pool has; a round takes 48, and one more to begin with each of them.
        seen.add(tuple(copied_by_another_stream(seed, wait=False) for seed in SEEDS))
        cuda.Stream()
    assert len(seen) == 1


def test_a_wait_is_honoured_on_every_seed() -> None:
    assert all(copied_by_another_stream(seed, wait=True) for seed in SEEDS)


def test_launching_runs_nothing_and_polling_ends() -> None:
    stream = cuda.Stream()
    x = tp.zeros(10, device="cuda")
    cuda.synchronize()
    with cuda.stream(stream):
        x.fill_(1)
        x.add_(1)
    assert control.queued(stream) == control.queued(0) == control.queued() == 2
    assert not stream.query()
    polls = 0
    while not stream.query():
        polls += 1
    assert 0 < polls < 10
    assert control.queued() == 0


def test_a_held_stream_waits_until_the_end_of_the_block() -> None:
    stream = cuda.Stream()
    x = tp.zeros(10, device="cuda")
    cuda.synchronize()
    with control.hold(stream), cuda.stream(stream):
        x.fill_(1)
        assert control.step(10) == 0
        assert not stream.query()
    assert control.step(10) == 1
    assert stream.query()


def test_waiting_for_a_held_stream_ends() -> None:
    stream = cuda.Stream()
    x = tp.zeros(10, device="cuda")
    cuda.synchronize()
    with control.hold(stream), cuda.stream(stream):
        x.fill_(1)
        stream.synchronize()
        assert stream.query()


def test_slow_copies_are_overtaken() -> None:
    copying, other = cuda.Stream(), cuda.Stream()
    source, target, x = (tp.ones(10, device="cuda") for _ in range(3))
    cuda.synchronize()
    before = control.queued()
    with control.copy_delay(10):
        with cuda.stream(copying):
            target.copy_(source)
        with cuda.stream(other):
            x.fill_(2)
    assert control.queued() == before + 2
    assert control.step(1000) >= 2
    assert control.queued() == 0


@pytest.mark.parametrize("error", ["cudaErrorMemoryAllocation", 2])
def test_the_nth_call_fails_once(error: str | int) -> None:
    cuda.empty_cache()
    x = tp.empty(2**20, device="cuda")
    with control.fail("cudaStreamSynchronize", nth=2, error="cudaErrorLaunchFailure"):
        cuda.current_stream().synchronize()
        with pytest.raises(tp.AcceleratorError, match="cudaErrorLaunchFailure"):
            cuda.current_stream().synchronize()
        cuda.current_stream().synchronize()
    with control.fail("cudaStreamSynchronize", error=error):
        pass
    cuda.current_stream().synchronize()
    assert x.numel() == 2**20


def test_orders_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match=r"cudaNothing.*cudaMalloc"), control.fail("cudaNothing"):
        pass
    with pytest.raises(ValueError, match="cudaErrorNothing"), control.fail("cudaMalloc", error="cudaErrorNothing"):
        pass
    with pytest.raises(ValueError, match="nth 0"), control.fail("cudaMalloc", nth=0):
        pass
    with pytest.raises(ValueError, match="0 bytes"), control.capacity(0):
        pass
    for value in (-1, 2**64):
        with pytest.raises(ValueError, match=f"seed: got {value}, expected 0 to"), control.seed(value):
            pass
    with pytest.raises(ValueError, match="-1 steps"), control.copy_delay(-1):
        pass
    with pytest.raises(IndexError, match="got 9"), control.capacity(1, device=9):
        pass


def test_capacity_bounds_a_device_and_comes_back() -> None:
    cuda.empty_cache()
    with control.capacity(control.used() + 2**20), pytest.raises(tp.OutOfMemoryError):
        tp.empty(2**24, device="cuda")
    assert tp.empty(2**24, device="cuda").numel() == 2**24
    cuda.empty_cache()


def test_calls_are_counted_for_each_device() -> None:
    x = tp.ones(10, device="cuda")
    with control.calls() as counted, control.calls(0) as here:
        x + x
        assert counted["cudaLaunchKernel"] == 1
        x + x
    x + x
    assert counted["cudaLaunchKernel"] == here["cudaLaunchKernel"] == 2
    assert counted["cudaStreamSynchronize"] == 0
    assert "cudaLaunchKernel" in repr(counted)


def test_fresh_memory_is_poisoned() -> None:
    cuda.empty_cache()
    assert np.isnan(tp.empty(2**22, device="cuda").cpu().numpy()).all()


def test_addresses_of_the_device_are_known() -> None:
    x = tp.ones(10, device="cuda")
    assert control.is_own_address(x.data_ptr())
    assert not control.is_own_address(id(x))


def test_virtual_time_is_the_same_in_every_run() -> None:
    def measure(numel: int, seed: int) -> float:
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        x, y = tp.ones(numel, device="cuda"), tp.ones(numel, device="cuda")
        cuda.synchronize()
        with control.seed(seed):
            start.record()
            x.copy_(y)
            end.record()
            end.synchronize()
        return start.elapsed_time(end)

    assert len({measure(2**20, seed) for seed in SEEDS}) == 1
    assert 0 < measure(10, 0) <= measure(2**20, 0)


@pytest.mark.parametrize("shape", [(7,), (3, 70), (5, 1000), (2, 3, 300)])
def test_threads_of_a_block_give_what_one_thread_gives(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x = tp.tensor(values, device="cuda")

    def compute() -> list[np.ndarray]:
        n = shape[-1]
        results = [
            x.sum(),
            x.mean(-1),
            x.amax(0),
            x.exp() * 2,
            x.softmax(-1),
            tp.nn.functional.layer_norm(x, (n,)),
            x.reshape(-1, n) @ x.reshape(-1, n).t(),
        ]
        return [result.cpu().numpy() for result in results]

    expected = compute()
    for seed in range(4):
        with control.seed(seed), control.fibres():
            for got, wanted in zip(compute(), expected, strict=True):
                np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5)
    assert control.fault_text() == ""


def test_another_variant_cannot_be_commanded() -> None:
    program = """
        from tensorplay.testing import emulated
        from tensorplay.errors import BackendUnavailableError
        for call in (emulated.reset, lambda: emulated.used(0)):
            try:
                call()
            except BackendUnavailableError as error:
                print(error)
    """
    said = run(program, TENSORPLAY_CUDA_RUNTIME="none").splitlines()
    assert len(said) == 2
    for line in said:
        assert "the emulated device is needed" in line
        assert "TENSORPLAY_CUDA_RUNTIME=emulated" in line
