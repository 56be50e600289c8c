"""The end of a process: its own exit code, and nothing said. TENSORPLAY_EXITS says how often each end is tried."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from helpers import fresh
from helpers.compiled import shared_library

from tensorplay.cuda import _native

EXITS = int(os.environ.get("TENSORPLAY_EXITS", "3"))
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
    "stream_left_open": ("stream.__enter__()", 0),
    "pinned": (
        """
    host = tp.ones(1000).pin_memory()
    tp.cuda.pinned_by_the_module = host[1:].numpy()
    with cuda.stream(stream):
        host.copy_(other, non_blocking=True)
    node.pinned = tp.ones(5, pin_memory=True)
    del host
    """,
        0,
    ),
    "sync_debug_error": ("cuda.set_sync_debug_mode('error')", 0),
    "sync_debug_warn": (
        """
    import warnings
    warnings.simplefilter("ignore")
    cuda.set_sync_debug_mode("warn")
    def work():
        while True:
            kept.cpu()
    threading.Thread(target=work, daemon=True).start()
    time.sleep(0.05)
    """,
        0,
    ),
    "checker": (
        """
    cuda.sanitizer.enable()
    with cuda.stream(stream):
        torn = tp.ones(100, device="cuda")
        timed.record()
    cuda.current_stream().wait_event(timed)
    node.torn = torn + 1
    """,
        0,
    ),
    "checker_with_reports": (
        """
    cuda.sanitizer.enable(mode="collect")
    with cuda.stream(stream):
        kept.add_(1)
    kept.add_(1)
    """,
        0,
    ),
    "graph": (
        """
    graph, external = cuda.CUDAGraph(), cuda.Event(external=True)
    with cuda.graph(graph):
        made = kept + 1
        external.record()
    graph.replay()
    """,
        0,
    ),
    "capture_left_open": ("graph = cuda.CUDAGraph(); graph.capture_begin(stream=cuda.Stream()); kept.add_(1)", 0),
    "working_threads": (
        """
    def work():
        held = tp.ones(10, device="cuda")
        for _ in range(200):
            with cuda.stream(cuda.Stream()):
                held = held + 1
                cuda.Event().record()
    for _ in range(3):
        threading.Thread(target=work).start()
    """,
        0,
    ),
}

HELD = ("event", "external", "graph", "host", "kept", "other", "shared", "stream", "timed")
ORDERS = """
    host = tp.ones(1000).pin_memory()
    shared, external, graph = cuda.Event(interprocess=True), cuda.Event(external=True), cuda.CUDAGraph()
    shared.record(stream)
    with cuda.graph(graph):
        kept.add_(1)
        external.record()
    graph.replay()
    host.copy_(other, non_blocking=True)
    with cuda.stream(stream):
        event.record()
        timed.record()
    held = [{held}]
    del kept, stream, event, timed, other, node, host, shared, external, graph
    {act}
"""
ACTS = {
    "first_dropped_first": "while held: del held[0]",
    "last_dropped_first": "while held: del held[-1]",
    "left_to_the_end": "pass",
    "left_in_a_cycle": "held.append(held); del held",
    "left_to_a_thread": "threading.Thread(target=lambda held: time.sleep(0.05), args=(held,)).start(); del held",
}


@pytest.mark.parametrize("end", ENDS)
def test_exit_is_silent(gpu: None, end: str) -> None:
    code, status = ENDS[end]
    for _ in range(EXITS):
        done = fresh.start(ALIVE + "    " + code.strip())
        assert (done.returncode, done.stderr) == (status, "")


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("seed", range(EXITS))
def test_the_order_of_destruction_does_not_matter(gpu: None, act: str, seed: int) -> None:
    names = sorted(HELD)
    random.Random(seed).shuffle(names)
    done = fresh.start(ALIVE + ORDERS.format(held=", ".join(names), act=ACTS[act]))
    assert (done.returncode, done.stderr) == (0, "")


def test_an_uncaught_error_is_all_that_is_said(gpu: None) -> None:
    done = fresh.start(ALIVE + "    raise KeyError('mine')")
    assert done.returncode == 1
    assert done.stderr.strip().endswith("KeyError: 'mine'")
    assert done.stderr.count("Traceback") == 1
    assert "Exception ignored" not in done.stderr


# Counts the calls of CUDA when Python has ended, and again as the last of what a process does.
WATCHER = """
#include <stdint.h>
#include <stdio.h>
const char *(*name_of)(int32_t index);
int64_t (*count_of)(const char *name, int32_t device);
static int64_t at_the_end_of_python;
static int64_t total(void) {
  int64_t sum = 0;
  for (int32_t i = 0; name_of(i); i++) sum += count_of(name_of(i), -1);
  return sum;
}
void note_the_end_of_python(void) { at_the_end_of_python = total(); }
__attribute__((destructor)) static void report(void) {
  dprintf(1, "%d %d\\n", at_the_end_of_python > 0, (int)(total() - at_the_end_of_python));
}
"""
WATCH = """
    import ctypes
    watcher = ctypes.CDLL({watcher!r})  # before the library, so its destructor is the last
"""
COUNT = """
    library = ctypes.CDLL({library!r})
    for ours, theirs in (("name_of", "tp_emulated_function_name"), ("count_of", "tp_emulated_call_count")):
        pointer = ctypes.cast(getattr(library, theirs), ctypes.c_void_p)
        ctypes.c_void_p.in_dll(watcher, ours).value = pointer.value
    assert ctypes.pythonapi.Py_AtExit(watcher.note_the_end_of_python) == 0
"""


def test_nothing_is_called_when_python_has_ended(emulated: None, tmp_path: Path) -> None:
    """The driver may have gone by then: neither destructors nor the ends of threads call it."""
    watcher = shared_library(tmp_path / "watcher.so", WATCHER)
    pinned, captured, left_open = (f"    {ENDS[end][0].strip()}\n" for end in ("pinned", "graph", "capture_left_open"))
    alive = pinned + captured + "    node.graph = graph\n" + left_open
    library = _native.library_of("emulated")
    code = WATCH.format(watcher=str(watcher)) + ALIVE + alive + COUNT.format(library=str(library))
    for end in ("", "    sys.exit(0)"):
        assert fresh.run(code + end) == "1 0\n"
