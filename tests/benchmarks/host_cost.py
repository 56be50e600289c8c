"""Host time to enqueue one call, in ns, beside torch and CuPy in the same process.

    python tests/benchmarks/host_cost.py [--number CALLS] [--only PART ...]

Each statement runs for torch too, with names bound to the one library or the other. CuPy has statements of its own.
"""

from __future__ import annotations

import argparse
import timeit
from collections.abc import Callable
from types import ModuleType
from typing import Any

from common import Row, find_cupy, find_torch, medians, print_table

import tensorplay

# (what, statement, aim for ours / torch)
CASES = [
    ("empty and drop", "lib.empty(256, device='cuda')", 0.45),
    ("zeros", "lib.zeros(256, device='cuda')", 0.35),
    ("a + b", "a + b", 0.6),
    ("a * 2.5", "a * 2.5", 0.6),
    ("a.add_(b)", "a.add_(b)", 0.7),
    ("broadcast", "matrix + row", 0.65),
    ("a.sum()", "a.sum()", 0.65),
    ("16 x 16 matmul", "matrix @ matrix", 0.6),
    ("16 x 16 linear", "functional.linear(matrix, matrix, row)", 0.8),
    ("o.copy_(a)", "o.copy_(a)", 0.7),
    ("o.fill_(1.0)", "o.fill_(1.0)", 0.3),
    ("d + d, float64", "d + d", 0.9),
    ("a.exp2()", "a.exp2()", 0.9),
    ("where", "lib.where(mask, a, b)", 0.9),
    ("a.argmax()", "a.argmax()", 0.9),
    ("a.cumsum(0)", "a.cumsum(0)", 0.9),
    ("a.sort()", "a.sort()", 0.9),
    ("a.gather(0, places)", "a.gather(0, places)", 0.9),
    ("a[places]", "a[places]", 0.9),
    ("o[places] = b", "o[places] = b", 0.9),
    ("add at places", "o.index_put_((places,), b, accumulate=True)", 0.9),
    ("a.view(16, 16)", "a.view(16, 16)", 0.8),
    ("a[3:9]", "a[3:9]", 0.8),
    ("matrix.t()", "matrix.t()", 0.8),
    ("DLPack out and in", "lib.from_dlpack(a)", 0.8),
    ("with stream(s)", "with cuda.stream(s): pass", 0.1),
    ("with s", "with s: pass", 1.0),
    ("current_stream()", "cuda.current_stream()", 0.1),
    ("Event().record()", "cuda.Event().record()", 0.15),
    ("s.wait_stream(t)", "s.wait_stream(t)", 0.4),
    ("memory_allocated()", "cuda.memory_allocated()", 0.01),
    ("memory_stats()", "cuda.memory_stats()", 0.3),
]

# The same work in CuPy, where it has it.
CUPY = {
    "empty and drop": "lib.empty(256, 'f')",
    "zeros": "lib.zeros(256, 'f')",
    "a + b": "a + b",
    "a * 2.5": "a * 2.5",
    "a.add_(b)": "lib.add(a, b, out=a)",
    "broadcast": "matrix + row",
    "a.sum()": "a.sum()",
    "16 x 16 matmul": "matrix @ matrix",
    "o.copy_(a)": "o[...] = a",
    "o.fill_(1.0)": "o.fill(1.0)",
    "d + d, float64": "d + d",
    "a.exp2()": "lib.exp2(a)",
    "where": "lib.where(mask, a, b)",
    "a.argmax()": "a.argmax()",
    "a.cumsum(0)": "a.cumsum(0)",
    "a.sort()": "lib.sort(a)",
    "a.gather(0, places)": "lib.take_along_axis(a, places, 0)",
    "a[places]": "a[places]",
    "o[places] = b": "o[places] = b",
    "add at places": "lib.add.at(o, places, b)",
    "a.view(16, 16)": "a.reshape(16, 16)",
    "a[3:9]": "a[3:9]",
    "matrix.t()": "matrix.T",
    "DLPack out and in": "lib.from_dlpack(a)",
    "with stream(s)": "with s: pass",
    "current_stream()": "lib.cuda.get_current_stream()",
    "Event().record()": "lib.cuda.Event().record()",
    "s.wait_stream(t)": "s.wait_event(t.record())",
    "memory_allocated()": "lib.get_default_memory_pool().used_bytes()",
}


def names_in_cupy(cupy: Any) -> dict[str, Any]:
    """What CuPy's statements name."""
    matrix, a = cupy.ones((16, 16), "f"), cupy.ones(256, "f")
    return {
        "lib": cupy,
        "a": a,
        "b": cupy.ones(256, "f"),
        "o": cupy.ones(256, "f"),
        "matrix": matrix,
        "row": matrix[0],
        "d": cupy.ones(256, "d"),
        "mask": a > 0,
        "places": cupy.arange(256),
        "s": cupy.cuda.Stream(non_blocking=True),
        "t": cupy.cuda.Stream(non_blocking=True),
    }


def names(lib: ModuleType) -> dict[str, Any]:
    """What the statements name."""
    matrix = lib.ones((16, 16), device="cuda")
    return {
        "lib": lib,
        "cuda": lib.cuda,
        "functional": lib.nn.functional,
        "a": lib.ones(256, device="cuda"),
        "b": lib.ones(256, device="cuda"),
        "o": lib.ones(256, device="cuda"),
        "matrix": matrix,
        "row": matrix[0],
        "d": lib.ones(256, dtype=lib.float64, device="cuda"),
        "mask": lib.ones(256, device="cuda") > 0,
        "places": lib.arange(256, device="cuda"),
        "s": lib.cuda.Stream(),
        "t": lib.cuda.Stream(),
    }


def measure(
    statement: str, named: dict[str, Any], synchronize: Callable[[], object], number: int
) -> Callable[[], float]:
    """A function that times `number` runs; the device is idle before each and its work is not waited for."""
    timer = timeit.Timer(statement, globals=named)
    timer.timeit(number)

    def once() -> float:
        synchronize()
        return timer.timeit(number) / number * 1e9

    return once


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=1000, help="calls in one run (default: 1000)")
    parser.add_argument("--only", nargs="+", metavar="PART", help="the rows that have one of these in their name")
    arguments = parser.parse_args()
    number = arguments.number
    torch, cupy = find_torch(), find_cupy()
    rows = []
    for name, statement, aim in CASES:
        if arguments.only and not any(part in name for part in arguments.only):
            continue
        peer = other = None
        if torch is not None:
            peer = measure(statement, names(torch), torch.cuda.synchronize, number)
        if cupy is not None and name in CUPY:
            other = measure(CUPY[name], names_in_cupy(cupy), cupy.cuda.Device().synchronize, number)
        mine = measure(statement, names(tensorplay), tensorplay.cuda.synchronize, number)
        ours, theirs, cupys = medians(mine, peer, other)
        assert ours is not None
        rows.append(Row(name, ours, theirs, aim, cupys))
    print_table("Host cost", "ns per call", rows)


if __name__ == "__main__":
    main()
