"""The end of a process: its own exit code, and nothing said."""

from __future__ import annotations

import pytest
from helpers import fresh

ALIVE = """
    import atexit, sys, threading, time
    import tensorplay as tp
    from tensorplay import cuda
    kept = tp.ones(1000, device="cuda") + 1
    stream, event, timed = cuda.Stream(), cuda.Event(), cuda.Event(enable_timing=True)
    with cuda.stream(stream):
        event.record()
        timed.record()
        other = kept * 2
    kept.record_stream(stream)
    class Node: pass
    node = Node()
    node.self, node.tensor, node.event = node, tp.zeros(5, device="cuda"), cuda.Event()
    node.event.record()
    tp.cuda.kept_by_the_module = tp.zeros(3, device="cuda")
"""
ENDS = {
    "normal": ("", 0),
    "sys_exit": ("sys.exit(3)", 3),
    "atexit": ("atexit.register(lambda: (kept + other).sum().item())", 0),
    "daemon": (
        """
    def work():
        held = tp.ones(10, device="cuda")
        while True:
            held = held + 1
    for _ in range(3):
        threading.Thread(target=work, daemon=True).start()
    time.sleep(0.1)
    """,
        0,
    ),
    "history": (
        """
    def work():
        held = tp.ones(10, device="cuda")
        while True:
            held = held + 1
    cuda.memory._record_memory_history()
    for _ in range(3):
        threading.Thread(target=work, daemon=True).start()
    time.sleep(0.1)
    """,
        0,
    ),
    "exit_in_a_thread": ("thread = threading.Thread(target=sys.exit); thread.start(); thread.join()", 0),
    "context_left_open": ("cuda.stream(stream).__enter__()", 0),
}


@pytest.mark.parametrize("end", ENDS)
def test_exit_is_silent(gpu: None, end: str) -> None:
    code, status = ENDS[end]
    for _ in range(3):
        done = fresh.start(ALIVE + "    " + code.strip())
        assert (done.returncode, done.stderr) == (status, "")


def test_an_uncaught_error_is_all_that_is_said(gpu: None) -> None:
    done = fresh.start(ALIVE + "    raise KeyError('mine')")
    assert done.returncode == 1
    assert done.stderr.strip().endswith("KeyError: 'mine'")
    assert done.stderr.count("Traceback") == 1
    assert "Exception ignored" not in done.stderr
