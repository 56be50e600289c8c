"""Snapshots and the history of memory."""

from __future__ import annotations

import ast
import os
import pickle
import time
from pathlib import Path
from typing import Any

import pytest
from helpers import fresh
from helpers.blocks import MiB, empty
from helpers.snapshots import block_of, check_segments, check_snapshot

import tensorplay as tp
from tensorplay import cuda
from tensorplay.cuda import memory
from tensorplay.testing import emulated as control

TESTS = Path(__file__).parents[1]


# ---- the state ----


def test_snapshot_adds_up_to_the_counters(gpu: None) -> None:
    held = [empty(nbytes) for nbytes in (1, 513, MiB, MiB + 1, 5 * MiB, 11 * MiB, 700)]
    del held[1::2]
    segments = cuda.memory_snapshot()
    check_segments(segments)
    assert {segment["segment_type"] for segment in segments} == {"small", "large"}
    for tensor in held:
        block = block_of(tensor)
        assert (block["state"], block["requested_size"]) == ("active_allocated", tensor.numel())


def test_snapshot_before_first_use_starts_nothing() -> None:
    fresh.run(
        """
        import tensorplay as tp
        from tensorplay import cuda
        assert cuda.memory_snapshot() == []
        assert cuda.memory._snapshot()["segments"] == []
        cuda.memory._record_memory_history(None)
        assert not cuda._library.native.is_started
        """
    )


def test_a_block_that_another_stream_uses_is_pending(emulated: None) -> None:
    stream = cuda.Stream()
    tensor = empty(3 * MiB)
    address = tensor.data_ptr()
    with control.hold(stream):
        with cuda.stream(stream):
            tensor.fill_(True)
        tensor.record_stream(stream)
        del tensor
        blocks = [block for segment in cuda.memory_snapshot() for block in segment["blocks"]]
        assert [b["state"] for b in blocks if b["address"] == address] == ["active_pending_free"]
        check_segments(cuda.memory_snapshot())
    stream.synchronize()
    cuda.empty_cache()
    check_segments(cuda.memory_snapshot())


def test_snapshot_names_streams_devices_and_pools(two_gpus: None) -> None:
    stream = cuda.Stream(1)
    with cuda.stream(stream):
        tensor = empty(2 * MiB, 1)
    (segment,) = [
        segment
        for segment in cuda.memory_snapshot()
        if any(block["address"] == tensor.data_ptr() for block in segment["blocks"])
    ]
    assert (segment["device"], segment["stream"]) == (1, stream.cuda_stream)
    assert segment["segment_pool_id"] == (0, 0)
    assert segment in cuda.memory_snapshot((0, 0))
    assert cuda.memory_snapshot((0, 10**9)) == []


def test_snapshot_has_the_settings_under_torchs_names(gpu: None) -> None:
    printed = fresh.run(
        """
        import tensorplay as tp
        assert tp.cuda.memory._snapshot()["allocator_settings"] == {}
        tp.ones(1, device="cuda")
        print(tp.cuda.memory._snapshot()["allocator_settings"])
        """,
        TENSORPLAY_CUDA_ALLOC_CONF="max_split_size_mb:64,roundup_power2_divisions:[256:2,>:4]",
    )
    settings = ast.literal_eval(printed)
    assert settings["PYTORCH_CUDA_ALLOC_CONF"] == "max_split_size_mb:64,roundup_power2_divisions:[256:2,>:4]"
    assert settings["max_split_size"] == 64 * MiB
    assert (settings["expandable_segments"], settings["pinned_max_cached_size"]) == (False, -1)
    divisions = settings["roundup_power2_divisions"]
    assert list(divisions) == [*(str(2**i) for i in range(17)), ">"]
    assert (divisions["256"], divisions[">"]) == (2, 4)


# ---- history ----


def test_history_played_from_an_empty_device_gives_the_live_blocks(gpu: None) -> None:
    fresh.run(
        """
        import random
        import tensorplay as tp
        from helpers.snapshots import check_snapshot, play
        from tensorplay import cuda
        cuda.memory._record_memory_history()
        chance, held = random.Random(1), []
        for step in range(2000):
            if held and chance.random() < 0.5:
                held.pop(chance.randrange(len(held)))
            else:
                nbytes = chance.choice([1, 700, 5000, 2**20, 3 * 2**20, 12 * 2**20])
                held.append(tp.empty(nbytes, dtype=tp.bool, device=f"cuda:{chance.randrange(cuda.device_count())}"))
            if step % 500 == 499:
                cuda.empty_cache()
        snapshot = cuda.memory._snapshot()
        check_snapshot(snapshot)
        for device, trace in enumerate(snapshot["device_traces"]):
            blocks, segments = play(trace)
            own = [segment for segment in snapshot["segments"] if segment["device"] == device]
            assert segments == {segment["address"]: segment["total_size"] for segment in own}
            live = [block for segment in own for block in segment["blocks"] if block["state"] != "inactive"]
            assert blocks == {block["address"]: block["requested_size"] for block in live}
            assert blocks
        """,
        PYTHONPATH=os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]),
    )


@pytest.mark.parametrize("context", ["all", "alloc", "state", None])
def test_context_says_which_stacks_are_kept(gpu: None, context: str | None) -> None:
    memory._record_memory_history(context=context)

    def make() -> tp.Tensor:
        return empty(600)

    made = make()
    address = made.data_ptr()
    del made
    trace = [entry for entry in memory._snapshot()["device_traces"][0] if entry.get("addr") == address]
    memory._record_memory_history(None)
    names = {entry["action"]: entry["frames"][0]["name"] for entry in trace}
    if context is None:
        assert all(name.startswith("(not recorded") for name in names.values())
        return
    assert names["alloc"] == "empty"
    # Where the frees' own stacks are not kept, they have that of the allocation.
    freed = "test_context_says_which_stacks_are_kept" if context == "all" else "empty"
    assert names["free_requested"] == names["free_completed"] == freed


def test_state_keeps_no_entries(gpu: None) -> None:
    memory._record_memory_history("state")
    kept = empty(600)
    snapshot = memory._snapshot()
    assert not any(snapshot["device_traces"])
    assert block_of(kept)["frames"][0]["name"] == "empty"
    memory._record_memory_history(None)


def test_history_is_a_ring_of_the_latest(gpu: None) -> None:
    memory._record_memory_history(max_entries=10)
    for nbytes in range(600, 700):
        empty(nbytes)
    trace = memory._snapshot()["device_traces"][0]
    memory._record_memory_history(None)
    assert len(trace) == 10
    assert [entry["action"] for entry in trace[-4:]] == ["alloc", "free_requested", "free_completed", "snapshot"]
    assert {entry["size"] for entry in trace[-4:-1]} == {699}
    assert not any(memory._snapshot()["device_traces"])


def test_a_refused_request_is_an_entry_with_the_free_bytes(history: None) -> None:
    with pytest.raises(tp.OutOfMemoryError):
        empty(2**50)
    (entry,) = [entry for entry in memory._snapshot()["device_traces"][0] if entry["action"] == "oom"]
    assert entry["size"] == 2**50
    assert 0 < entry["device_free"] <= cuda.mem_get_info()[1]  # other processes may hold some, and more a moment later
    assert "addr" not in entry
    assert entry["frames"][0]["name"] == "empty"


def test_a_deferred_free_completes_when_the_other_stream_is_done(history: None, emulated: None) -> None:
    stream = cuda.Stream()
    tensor = empty(3 * MiB)
    address = tensor.data_ptr()

    def seen() -> list[str]:
        return [e["action"] for e in memory._snapshot()["device_traces"][0] if e.get("addr") == address][1:]

    with control.hold(stream):
        with cuda.stream(stream):
            tensor.fill_(True)
        tensor.record_stream(stream)
        del tensor
        assert seen() == ["alloc", "free_requested"]
    stream.synchronize()
    cuda.empty_cache()
    assert seen() == ["alloc", "free_requested", "free_completed", "segment_free"]


@pytest.mark.parametrize(
    "arguments",
    [
        *({"enabled": True}, {"context": "some"}, {"stacks": "cpp"}, {"skip_actions": "oom"}),
        *({"compile_context": True}, {"global_record_annotations": True}),
        *({"max_entries": value} for value in (0, -1, 2**63, 1.5, None, True)),
    ],
)
def test_wrong_arguments_change_nothing(history: None, arguments: dict[str, Any]) -> None:
    held = empty(600)
    with pytest.raises((ValueError, TypeError), match=f"got .*{next(iter(arguments.values()))}"):
        memory._record_memory_history(**arguments)
    assert held.data_ptr() in [entry.get("addr") for entry in memory._snapshot()["device_traces"][0]]


def test_actions_may_be_left_out(history: None) -> None:
    with pytest.raises(
        tp.errors.InvalidArgumentError, match="skip_actions='frees', expected one of .*'free_requested'"
    ):
        memory._record_memory_history(skip_actions=["alloc", "frees"])
    with pytest.raises(ValueError, match="device 99 asked for"):
        memory._record_memory_history(device=99)
    memory._record_memory_history(device=0, clear_history=True, skip_actions=["free_requested", "segment_alloc"])
    held = empty(3_000_000)
    address = held.data_ptr()
    del held
    cuda.empty_cache()
    trace = memory._snapshot()["device_traces"][0]
    assert [entry["action"] for entry in trace if entry.get("addr") == address] == [
        "alloc",
        "free_completed",
        "segment_free",
    ]


def test_snapshots_of_one_device(two_gpus: None) -> None:
    memory._record_memory_history()
    held = [tp.empty(1000, device=f"cuda:{index}") for index in range(2)]
    taken = memory._snapshot("cuda:1")
    memory._record_memory_history(None)
    assert {segment["device"] for segment in taken["segments"]} == {1}
    assert taken["device_traces"][0] == []
    assert held[1].data_ptr() in [entry["addr"] for entry in taken["device_traces"][1]]
    assert cuda.memory_snapshot(include_traces=False) == cuda.memory_snapshot()
    with pytest.raises(
        tp.errors.InvalidArgumentError, match="_snapshot: got augment_with_fx_traces=True, expected False"
    ):
        memory._dump_snapshot("unused", augment_with_fx_traces=True)


def test_history_of_a_forked_child_is_refused(gpu: None) -> None:
    fresh.run(
        """
        import os
        import tensorplay as tp
        from tensorplay.cuda import memory
        memory._record_memory_history()
        held = tp.ones(10, device="cuda")
        child = os.fork()
        if child == 0:
            del held
            for call in (memory._record_memory_history, memory._snapshot):
                try:
                    call()
                except tp.AcceleratorError as error:
                    assert "fork" in str(error)
                else:
                    os._exit(1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert memory._snapshot()["segments"]
        """
    )


def test_dump_is_a_pickle_of_plain_objects(history: None, tmp_path: Path) -> None:
    held = [tp.ones(1000, device="cuda") * 2 for _ in range(5)]
    path = tmp_path / "snapshot.pickle"
    memory._dump_snapshot(path)
    taken = pickle.loads(path.read_bytes())
    check_snapshot(taken)
    assert len(held) == 5
    assert taken["segments"] == cuda.memory_snapshot()


def test_state_is_read_in_no_time_however_long_the_history(gpu: None, tmp_path: Path) -> None:
    def fastest() -> float:
        def once() -> float:
            start = time.thread_time()  # of the processor, whatever else the machine does
            cuda.memory_snapshot()
            return time.thread_time() - start

        return min(once() for _ in range(20))

    off = fastest()
    memory._record_memory_history()
    for _ in range(34_000):
        empty(600)
    on = fastest()
    memory._dump_snapshot(tmp_path / "snapshot.pickle")
    entries = len(memory._snapshot()["device_traces"][0])
    memory._record_memory_history(None)
    assert entries == 100_000
    assert on < 3 * off + 1e-3
    assert (tmp_path / "snapshot.pickle").stat().st_size < 20 * MiB
