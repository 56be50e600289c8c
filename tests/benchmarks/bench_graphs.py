"""What graphs cost, beside torch and beside CUDA's own launch, in the same process.

    python tests/benchmarks/bench_graphs.py [--number CALLS]

Graphs are chains of small kernels, each of which needs the result of the one before. CUDA's launch is timed by a few
lines of C (`graph_driver.c`, compiled now with the host's compiler, `CC`): `cudaGraphLaunch` of the runtime that torch
has loaded or the system has, else `cuGraphLaunch` of the driver, which is what a runtime calls in the end. The table
says which; without a driver that column is empty.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import os
import re
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from bench_allocator import compile_shared
from common import Row, find_torch, medians, print_table
from host_cost import measure

import tensorplay

HERE = Path(__file__).resolve().parent
REPEATS = 31
NODES = [1, 10, 100, 1000]
STAGED = [(1, 0.35), (8, 0.3), (32, 0.2)]  # inputs, aim for ours / torch
INPUT_NUMEL = 4096
CHAIN = 100


def captured(lib: ModuleType, nodes: int) -> dict[str, Any]:
    """``g``, a graph of so many dependent kernels, and ``x``, the tensor that it changes."""
    x = lib.zeros(256, device="cuda")
    x.add_(1)
    lib.cuda.synchronize()
    g = lib.cuda.CUDAGraph()
    with lib.cuda.graph(g):
        for _ in range(nodes):
            x.add_(1)
    return {"g": g, "x": x}


def find_launch() -> tuple[str, Any]:
    """Name and function of the runtime, or of the driver; OSError where there is no driver."""
    driver = ctypes.CDLL("libcuda.so.1")
    maps = Path("/proc/self/maps").read_text()
    loaded = re.findall(r"(/\S*/libcudart\S*\.so\S*)", maps)
    for library in [*loaded, "libcudart.so.13", "libcudart.so.12"]:
        try:
            return "cudaGraphLaunch", ctypes.CDLL(library).cudaGraphLaunch
        except OSError:
            pass
    return "cuGraphLaunch", driver.cuGraphLaunch


class Driver:
    """Launches without Python."""

    def __init__(self, folder: Path) -> None:
        self.name, self._launch = find_launch()
        command = [os.environ.get("CC", "cc"), "-std=c11", str(HERE / "graph_driver.c")]
        self._time = compile_shared(command, folder, "graph_driver").time_launches
        self._time.restype = ctypes.c_double

    def launches(self, graph: Any, number: int) -> Callable[[], float]:
        """Of one graph of ours, on the current stream."""
        stream = ctypes.c_void_p(tensorplay.cuda.current_stream().cuda_stream)
        exec_handle = ctypes.c_void_p(graph.raw_cuda_graph_exec())

        def once() -> float:
            tensorplay.cuda.synchronize()
            value = float(self._time(self._launch, exec_handle, stream, ctypes.c_int64(number)))
            if value < 0:
                raise RuntimeError(f"{self.name} failed")
            return value

        once()
        return once


def find_driver(folder: Path) -> Driver | None:
    """CUDA without us, where there is a driver."""
    try:
        return Driver(folder)
    except OSError:
        return None


def replays(torch: ModuleType | None, driver: Driver | None, number: int) -> tuple[list[Row], list[Row]]:
    """Host cost of a replay: against CUDA's launch of the same graph, and against torch's replay."""
    bare, theirs = [], []
    for nodes in NODES:
        named = captured(tensorplay, nodes)
        mine = measure("g.replay()", named, tensorplay.cuda.synchronize, number)
        peer = None
        if torch is not None:
            peer = measure("g.replay()", captured(torch, nodes), torch.cuda.synchronize, number)
        launch = driver.launches(named["g"], number) if driver else None
        ours, limit, other = medians(mine, launch, peer, repeats=REPEATS)
        assert ours is not None
        bare.append(Row(f"replay, {nodes:,} nodes", ours, limit, 1.2))
        theirs.append(Row(f"replay, {nodes:,} nodes", ours, other, 1.0))
    return bare, theirs


def staged(lib: ModuleType, count: int, sets: int) -> dict[str, Any]:
    """What the statements name: a graph of ten kernels, static inputs, and sets of inputs in turn."""
    statics = [lib.zeros(INPUT_NUMEL, device="cuda") for _ in range(count)]
    inputs = [[lib.ones(INPUT_NUMEL, device="cuda") for _ in range(count)] for _ in range(sets)]
    return captured(lib, 10) | {"lib": lib, "statics": statics, "fresh": itertools.cycle(inputs)}


def stages(torch: ModuleType | None, number: int) -> list[Row]:
    """Host cost of copying inputs of 16 KiB to their places and a replay."""
    ours_text = "g.stage_and_launch(statics, next(fresh))"
    their_text = "lib._foreach_copy_(statics, next(fresh)); g.replay()"
    rows = []
    for sets, kind in ((2, "fresh"), (1, "same")):
        for count, aim in STAGED:
            mine = measure(ours_text, staged(tensorplay, count, sets), tensorplay.cuda.synchronize, number)
            peer = None
            if torch is not None:
                peer = measure(their_text, staged(torch, count, sets), torch.cuda.synchronize, number)
            ours, theirs = medians(mine, peer, repeats=REPEATS)
            assert ours is not None
            rows.append(Row(f"stage {count} {kind} input{'s' * (count > 1)} and replay", ours, theirs, aim))
    return rows


def device_time(lib: ModuleType, number: int) -> Callable[[], float]:
    """A function that gives us of the device for one kernel of a chain in a graph."""
    named = captured(lib, CHAIN)
    start, end = lib.cuda.Event(enable_timing=True), lib.cuda.Event(enable_timing=True)

    def once() -> float:
        named["g"].replay()
        start.record()
        for _ in range(number):
            named["g"].replay()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1000 / number / CHAIN

    once()
    return once


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    # Few: beyond some hundred launches that wait, CUDA makes the host wait too.
    parser.add_argument("--number", type=int, default=50, help="calls in one run (default: 50)")
    number = parser.parse_args().number
    torch = find_torch()
    tensorplay.empty(256, device="cuda")
    with ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory())
        for lib in (tensorplay, torch) if torch is not None else (tensorplay,):
            stack.enter_context(lib.cuda.stream(lib.cuda.Stream()))
        driver = find_driver(Path(name))
        bare, theirs = replays(torch, driver, number)
        show = partial(print_table, repeats=REPEATS)
        limit = driver.name if driver else "cudaGraphLaunch"
        show(f"Replays beside {limit} in C", "ns per call", bare, peer="in C")
        show("Replays", "ns per call", theirs)
        show("Inputs and a replay", "ns per call", stages(torch, number))
        mine = device_time(tensorplay, number)
        ours, other = medians(mine, device_time(torch, number) if torch is not None else None, repeats=REPEATS)
        assert ours is not None
        show("On the device", "us", [Row(f"a kernel of a chain of {CHAIN}", ours, other, 1.0)])


if __name__ == "__main__":
    main()
