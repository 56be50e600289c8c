"""Copies of one batch beside the computation of another, with two buffers and two streams.

    python docs/examples/double_buffer.py [--mib SIZE] [--batches N]

Batches lie in pinned memory. A stream of its own copies batch n + 1 to the device while the current stream computes
with batch n. The work per batch is chosen so that it takes about as long as its copy: then overlapping saves most.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from without_gpu import use_emulated_device_without_gpu

if TYPE_CHECKING:
    import tensorplay as tp


def compute(batch: tp.Tensor, rounds: int) -> tp.Tensor:
    """Some work: its time grows with the rounds, and what it gives still tells one batch from another."""
    result = batch
    for _ in range(rounds):
        result = result * -1.0 + 1.0
    return result.sum()


def one_after_the_other(batches: list[tp.Tensor], rounds: int) -> list[tp.Tensor]:
    """Everything on the current stream."""
    return [compute(batch.to("cuda", non_blocking=True), rounds) for batch in batches]


def overlapped(batches: list[tp.Tensor], rounds: int) -> list[tp.Tensor]:
    """Copies on a stream of their own, into two buffers in turn."""
    import tensorplay as tp

    computing, copying = tp.cuda.current_stream(), tp.cuda.Stream()
    buffers = [tp.empty_like(batches[0], device="cuda") for _ in range(2)]
    done = [computing.record_event(), computing.record_event()]  # the buffers exist, and nothing reads them
    results = []
    for n, batch in enumerate(batches):
        buffer = buffers[n % 2]
        with copying:
            copying.wait_event(done[n % 2])  # its last batch has been read
            buffer.copy_(batch, non_blocking=True)
            copied = copying.record_event()
        computing.wait_event(copied)
        results.append(compute(buffer, rounds))
        done[n % 2] = computing.record_event()
    # The buffers go back to the current stream, which has waited for every copy.
    return results


def milliseconds(run: Callable[[], object]) -> float:
    """The device's time for a run; the second one, whose memory is there."""
    import tensorplay as tp

    run()
    start, end = tp.cuda.Event(enable_timing=True), tp.cuda.Event(enable_timing=True)
    tp.cuda.synchronize()
    start.record()
    run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, help="size of a batch in MiB (default: 64, 2 on the emulated device)")
    parser.add_argument("--batches", type=int, default=24, help="number of batches (default: 24)")
    options = parser.parse_args()

    use_emulated_device_without_gpu()
    import tensorplay as tp

    emulated = os.environ.get("TENSORPLAY_CUDA_RUNTIME") == "emulated"
    mib = options.mib or (2 if emulated else 64)
    numel = mib * 2**20 // 4
    batches = [tp.full((numel,), float(n % 7), pin_memory=True) for n in range(options.batches)]
    there = batches[0].to("cuda")

    copy_one = milliseconds(lambda: there.copy_(batches[0], non_blocking=True))
    round_one = milliseconds(lambda: compute(there, 20)) / 20
    rounds = max(1, round(copy_one / round_one))

    copies = milliseconds(lambda: [there.copy_(batch, non_blocking=True) for batch in batches])
    computing = milliseconds(lambda: [compute(there, rounds) for _ in batches])
    both = milliseconds(lambda: one_after_the_other(batches, rounds))
    total = milliseconds(lambda: overlapped(batches, rounds))
    expected = [result.item() for result in one_after_the_other(batches, rounds)]
    if [result.item() for result in overlapped(batches, rounds)] != expected:
        raise SystemExit("the results of the overlapped run differ")

    print(f"{options.batches} batches of {mib} MiB, {rounds} rounds of work each")
    if emulated:
        print("Times are virtual, those of the emulated device.")
    print(f"copies alone        {copies:10.3f} ms")
    print(f"computing alone     {computing:10.3f} ms")
    print(f"one after the other {both:10.3f} ms")
    print(f"overlapped          {total:10.3f} ms, {total / max(copies, computing):.2f} x the larger of the two")


if __name__ == "__main__":
    main()
