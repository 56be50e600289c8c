"""The allocator against a simple model: what is live, on which stream, and who still waits for it."""

from __future__ import annotations

import gc
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from helpers.snapshots import check_segments
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import tensorplay as tp
from tensorplay import cuda
from tensorplay.cuda import memory
from tensorplay.testing import emulated as control

KiB, MiB = 2**10, 2**20
FAMILIES = ("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "requested_bytes")
FIGURES = ("current", "peak", "allocated", "freed")

SIZES = st.one_of(
    st.integers(1, 4 * KiB),
    st.integers(4 * KiB, MiB + KiB),
    st.integers(MiB, 10 * MiB),
    st.integers(10 * MiB, 60 * MiB),
)
WHICH = st.integers(0, 99)  # of the live tensors, which Hypothesis must not hold


@dataclass(frozen=True)
class Settings:
    """A text and what it means for the size of blocks."""

    text: str
    divisions: int = 0
    max_split_size: int = 2**63

    def rounded(self, nbytes: int) -> int:
        step = 512
        if self.divisions and nbytes > 512 * self.divisions:
            step = 2 ** (nbytes.bit_length() - 1) // self.divisions
        return -(-nbytes // step) * step


SETTINGS = [
    Settings(""),
    Settings("max_split_size_mb:20", max_split_size=20 * MiB),
    Settings("max_split_size_mb:30,max_non_split_rounding_mb:40", max_split_size=30 * MiB),
    Settings("roundup_power2_divisions:4", divisions=4),
    Settings("expandable_segments:True"),
    Settings("expandable_segments:True,roundup_power2_divisions:[65536:4,>:1],max_split_size_mb:25", 4, 25 * MiB),
    Settings("garbage_collection_threshold:0.02,release_lock_on_cudamalloc:True"),
    Settings("large_segment_size_mb:40,garbage_collection_threshold:0.05"),
]


@dataclass
class Live:
    tensor: tp.Tensor
    stream: int
    nbytes: int
    settings: Settings
    recorded: set[int]


class Allocator(RuleBasedStateMachine):
    """Steps on device 0, after each of which a snapshot, the counters and the model agree."""

    def __init__(self) -> None:
        super().__init__()
        gc.collect()
        cuda.empty_cache()
        self.streams = [cuda.default_stream(0), cuda.Stream(0), cuda.Stream(0)]
        self.mark = tp.zeros(1, device="cuda:0")
        cuda.synchronize(0)
        self.base = cuda.memory_stats(0)
        self.pools: list[memory.MemPool | None] = [None, memory.MemPool()]
        self.live: list[Live] = []
        self.held: dict[int, ExitStack] = {}
        self.waiting: list[tuple[int, cuda.Event]] = []  # address of a dropped block, and behind a use of it
        self.settings = SETTINGS[0]

    @initialize(found=st.sampled_from(SETTINGS))
    def start(self, found: Settings) -> None:
        self.change_settings(found)

    @rule(found=st.sampled_from(SETTINGS))
    def change(self, found: Settings) -> None:
        self.change_settings(found)

    def change_settings(self, found: Settings) -> None:
        memory.set_allocator_settings(found.text)
        self.settings = found

    @rule(limit=st.sampled_from([None, 40 * MiB, 120 * MiB]))
    def limit(self, limit: int | None) -> None:
        memory.set_memory_limit(limit, 0)

    @rule(nbytes=SIZES, stream=st.integers(0, 2), pool=st.sampled_from([0, 0, 0, 1]))
    def allocate(self, nbytes: int, stream: int, pool: int) -> None:
        with ExitStack() as stack:
            stack.enter_context(cuda.stream(self.streams[stream]))
            private = self.pools[pool]
            if private is not None:
                stack.enter_context(memory.use_mem_pool(private))
            try:
                tensor = tp.empty(nbytes, dtype=tp.bool, device="cuda:0")
            except tp.OutOfMemoryError:
                return
        self.live.append(Live(tensor, stream, nbytes, self.settings, set()))

    @precondition(lambda self: self.live)
    @rule(which=WHICH, stream=st.integers(0, 2))
    def record(self, which: int, stream: int) -> None:
        one = self.live[which % len(self.live)]
        one.tensor.record_stream(self.streams[stream])
        if stream != one.stream:
            one.recorded.add(stream)

    @precondition(lambda self: self.live)
    @rule(which=WHICH)
    def drop(self, which: int) -> None:
        one = self.live.pop(which % len(self.live))
        self.waiting += [(one.tensor.data_ptr(), self.streams[stream].record_event()) for stream in one.recorded]

    @rule(stream=st.integers(0, 2))
    def hold(self, stream: int) -> None:
        """The stream has work that does not begin before somebody waits for it."""
        if stream in self.held:
            return
        self.held[stream] = ExitStack()
        self.held[stream].enter_context(control.hold(self.streams[stream]))
        with cuda.stream(self.streams[stream]):
            self.mark.fill_(1)

    @rule(stream=st.integers(0, 2))
    def let_go(self, stream: int) -> None:
        if stream in self.held:
            self.held.pop(stream).close()

    @rule()
    def empty_cache(self) -> None:
        cuda.empty_cache()
        assert not [segment for segment in cuda.memory_snapshot() if _is_idle(segment)]

    @invariant()
    def live_blocks_have_their_sizes(self) -> None:
        blocks = _blocks()
        for one in self.live:
            block = blocks[one.tensor.data_ptr()]
            assert block["state"] == "active_allocated"
            assert block["requested_size"] == one.nbytes
            assert block["address"] % 512 == block["size"] % 512 == 0
            rounded = one.settings.rounded(one.nbytes)
            if rounded <= MiB:
                assert block["size"] == rounded
            else:
                assert block["size"] >= rounded
                assert block["size"] <= rounded + MiB or rounded >= one.settings.max_split_size

    @invariant()
    def nobody_gets_a_block_that_is_waited_for(self) -> None:
        """Until its uses have passed, which says nothing of what the stream does by now."""
        self.waiting = [(address, passed) for address, passed in self.waiting if not passed.query()]
        blocks = _blocks()
        for address, _ in self.waiting:
            assert blocks[address]["state"] == "active_pending_free"

    @invariant()
    def counters_are_those_of_the_model(self) -> None:
        stats = cuda.memory_stats(0)
        check_segments(cuda.memory_snapshot())
        assert stats["allocation.all.current"] == self.base["allocation.all.current"] + len(self.live)
        requested = sum(one.nbytes for one in self.live)
        assert stats["requested_bytes.all.current"] == self.base["requested_bytes.all.current"] + requested
        assert stats["allocated_bytes.all.current"] <= stats["active_bytes.all.current"]
        assert stats["active_bytes.all.current"] <= stats["reserved_bytes.all.current"]
        oversize = sum(block["size"] >= one.settings.max_split_size for one, block in self._found())
        assert stats["oversize_allocations.current"] == self.base["oversize_allocations.current"] + oversize
        for family in FAMILIES:
            for pool in ("all", "large_pool", "small_pool"):
                current, peak, up, down = (stats[f"{family}.{pool}.{figure}"] for figure in FIGURES)
                assert 0 <= current <= peak
                base = [self.base[f"{family}.{pool}.{figure}"] for figure in FIGURES]
                assert current - base[0] == (up - base[2]) - (down - base[3])

    def _found(self) -> list[tuple[Live, dict[str, Any]]]:
        blocks = _blocks()
        return [(one, blocks[one.tensor.data_ptr()]) for one in self.live]

    def teardown(self) -> None:
        for stack in self.held.values():
            stack.close()
        self.live.clear()
        self.pools.clear()
        memory.set_memory_limit(None, 0)
        memory.set_allocator_settings("")
        cuda.synchronize(0)
        gc.collect()
        cuda.empty_cache()
        stats = cuda.memory_stats(0)
        for family in set(FAMILIES) - {"inactive_split"}:  # Pieces beside the mark may belong to several streams now.
            name = f"{family}.all.current"
            assert stats[name] == self.base[name], name
        super().teardown()


def _blocks() -> dict[int, dict[str, Any]]:
    return {block["address"]: block for segment in cuda.memory_snapshot() for block in segment["blocks"]}


def _is_idle(segment: dict[str, Any]) -> bool:
    return segment["active_size"] == 0 and segment["segment_pool_id"] == (0, 0) and not segment["is_expandable"]


@pytest.mark.usefixtures("emulated")
class TestAllocator(Allocator.TestCase):  # type: ignore[misc]
    """Hypothesis runs the machine."""

    settings = settings(max_examples=60, stateful_step_count=50, suppress_health_check=list(HealthCheck))
