"""Where in the program memory was asked for."""

from __future__ import annotations

import threading

from helpers import fresh
from helpers.blocks import empty
from helpers.snapshots import block_of, check_snapshot

import tensorplay as tp
from tensorplay.cuda import memory


def test_frames_start_where_the_program_called(history: None) -> None:
    def make() -> tp.Tensor:
        return tp.ones(1000, device="cuda") * 2

    tensor = make()
    first, second, *_ = block_of(tensor)["frames"]
    line = make.__code__.co_firstlineno
    assert first == {"filename": __file__, "line": line + 1, "name": "make"}
    assert (second["filename"], second["name"]) == (__file__, "test_frames_start_where_the_program_called")
    trace = memory._snapshot()["device_traces"][0]
    asked = [entry for entry in trace if entry["action"] == "alloc" and entry["addr"] == tensor.data_ptr()]
    assert asked[-1]["frames"][0] == first


def test_a_block_without_a_stack_says_why(gpu: None) -> None:
    memory._record_memory_history(None)
    before = empty(600)
    memory._record_memory_history("state")
    during = empty(600)
    (reason,) = block_of(before)["frames"]
    assert "memory history was off" in reason["name"]
    memory._record_memory_history(None)
    assert block_of(during)["frames"][0]["name"] == "empty"
    after = empty(600)
    assert block_of(after)["frames"] == [reason]


def test_every_thread_has_its_own_stack(history: None) -> None:
    made: dict[str, tp.Tensor] = {}

    def work(name: str) -> None:
        for _ in range(200):
            made[name] = empty(600)

    threads = [threading.Thread(target=work, args=(str(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for tensor in made.values():
        frames = block_of(tensor)["frames"]
        assert [frame["name"] for frame in frames[:3]] == ["empty", "work", "run"]
    check_snapshot(memory._snapshot())


def test_an_interrupt_is_not_lost_while_stacks_are_kept(gpu: None) -> None:
    fresh.run(
        """
        import signal, threading
        import tensorplay as tp
        signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs the tests may ignore it
        tp.cuda.memory._record_memory_history()
        tp.empty(10, device="cuda")  # imports what is imported at first use
        main = threading.main_thread().ident
        for _ in range(50):
            timer = threading.Timer(0.002, signal.pthread_kill, (main, signal.SIGINT))
            held = []
            try:
                timer.start()
                while True:
                    held.append(tp.empty(10, device="cuda"))
            except KeyboardInterrupt:
                pass
            timer.join()
        """
    )


def test_more_stacks_than_there_is_room_for_share_a_reason(gpu: None) -> None:
    fresh.run(
        """
        import tensorplay as tp
        from tensorplay.cuda import _origins, memory
        _origins.ROOM = 10
        memory._record_memory_history()
        held = []
        for i in range(20):
            exec(compile("\\n" * i + "held.append(tp.empty(600, device='cuda'))", "made", "exec"))
        def lines():
            blocks = [b for s in memory.memory_snapshot() for b in s["blocks"] if b["state"] != "inactive"]
            return [b["frames"][0]["line"] or b["frames"][0]["name"] for b in blocks]
        assert lines()[:10] == list(range(1, 11))
        assert all("different stacks" in line for line in lines()[10:])
        # Stacks of blocks that are gone make room when recording starts anew.
        del held[:5]
        memory._record_memory_history()
        assert len(_origins._stacks) == len(_origins._numbers) == 6  # and of their segment
        del held[:]
        tp.cuda.empty_cache()
        memory._record_memory_history(None)
        assert not _origins._stacks and not _origins._numbers
        """
    )
