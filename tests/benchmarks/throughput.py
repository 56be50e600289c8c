"""Device throughput of large operands, beside torch in the same process.

    python tests/benchmarks/throughput.py [--mib SIZE] [--matmul N]

GB/s count each input read once and each output written once; times are the device's own, between two events
(on the emulated device they are virtual and say nothing).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from types import ModuleType
from typing import Any

from common import Row, find_torch, medians, print_table

import tensorplay

ROW = 4096  # elements
# (what, statement, operands that are read and written, aim for ours / torch)
CASES = [
    ("add f32", "lib.add(a, b, out=o)", 3, 0.98),
    ("mul by scalar", "a * 2.5", 2, 0.98),
    ("exp", "a.exp()", 2, 0.98),
    ("sum, all", "a.sum()", 1, 0.98),
    ("sum, rows of 4096", "rows.sum(-1)", 1, 0.98),
    ("sum, columns", "rows.sum(0)", 1, 0.98),
    ("softmax, rows of 4096", "rows.softmax(-1)", 2, 1.5),
    ("layer norm, rows of 4096", "functional.layer_norm(rows, (4096,), weight, bias)", 2, 1.25),
    ("broadcast add", "rows + weight", 2, 1.4),
    ("strided add", "a[::2] + b[::2]", 1.5, 1.0),
    ("transpose to contiguous", "rows.t().contiguous()", 2, 2.5),
    ("uniform", "o.uniform_(0, 1)", 1, 1.5),
    ("normal", "o.normal_(0, 1)", 1, 1.8),
    ("f32 to f16", "a.half()", 1.5, 0.98),
    ("add f64", "wide + wider", 3, 0.98),
    ("exp2", "a.exp2()", 2, 0.9),
    ("floor", "a.floor()", 2, 0.9),
    ("where", "lib.where(mask, a, b)", 3.25, 0.9),
    ("cumsum, all", "a.cumsum(0)", 2, 0.9),
    ("cumsum, rows of 4096", "rows.cumsum(-1)", 2, 0.9),
    ("argmax, all", "noise.argmax()", 1, 0.9),
    ("argmax, rows of 4096", "noise.view(-1, 4096).argmax(-1)", 1, 0.9),
    # A sixteenth of the elements, since a sort takes several times their memory.
    ("sort", "part.sort()", 4 / 16, 0.9),
    ("sort, rows of 4096", "part.view(-1, 4096).sort(-1)", 4 / 16, 0.9),
    ("gather, rows of 4096", "noise.view(-1, 4096).gather(-1, columns)", 4, 0.9),
    ("index_put", "o.index_put_((places,), part)", 4 / 16, 0.9),
    ("index_put, accumulate", "o.index_put_((places,), part, accumulate=True)", 5 / 16, 0.9),
]
MATMULS = [
    ("matmul bf16", "bfloat16", 1.0),
    ("matmul f16", "float16", 1.0),
    ("matmul f32", "float32", 1.0),
    ("matmul f64", "float64", 1.0),
]


def names(lib: ModuleType, numel: int) -> dict[str, Any]:
    """What the statements name."""
    a, noise = lib.ones(numel, device="cuda"), lib.rand(numel, device="cuda")
    return {
        "lib": lib,
        "functional": lib.nn.functional,
        "a": a,
        "b": lib.ones(numel, device="cuda"),
        "o": lib.ones(numel, device="cuda"),
        "rows": a.view(-1, ROW),
        "weight": lib.ones(ROW, device="cuda"),
        "bias": lib.ones(ROW, device="cuda"),
        "wide": lib.ones(numel // 2, dtype=lib.float64, device="cuda"),
        "wider": lib.ones(numel // 2, dtype=lib.float64, device="cuda"),
        "mask": noise > 0.5,
        "noise": noise,
        "part": noise[: numel // 16],
        "columns": lib.randint(0, ROW, (numel // ROW, ROW), device="cuda"),
        "places": lib.randperm(numel // 16, device="cuda"),
    }


def seconds(lib: ModuleType, statement: str, bound: dict[str, Any], loops: int) -> Callable[[], float]:
    """A function that gives the device's time for one run of a statement."""
    code = compile(statement, statement, "eval")
    eval(code, bound)
    start, end = lib.cuda.Event(enable_timing=True), lib.cuda.Event(enable_timing=True)

    def once() -> float:
        start.record()
        for _ in range(loops):
            eval(code, bound)
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3 / loops

    return once


def compare(
    statement: str, work: float, make: Callable[[ModuleType], dict[str, Any]], loops: int
) -> list[float | None]:
    """Billions of `work` per second: ours and torch's, each with the memory to itself."""
    found: list[float | None] = []
    for lib in (tensorplay, find_torch()):
        (time,) = medians(None if lib is None else seconds(lib, statement, make(lib), loops))
        found.append(None if time is None else work / time / 1e9)
        if lib is not None:
            lib.cuda.empty_cache()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=2048, help="size of an operand in MiB (default: 2048)")
    parser.add_argument("--matmul", type=int, default=8192, help="rows and columns of the matrices (default: 8192)")
    parser.add_argument("--loops", type=int, default=5, help="runs between two events (default: 5)")
    options = parser.parse_args()
    nbytes = options.mib * 2**20
    rows = []
    for name, statement, operands, aim in CASES:
        ours, theirs = compare(statement, operands * nbytes, lambda lib: names(lib, nbytes // 4), options.loops)
        assert ours is not None
        rows.append(Row(name, ours, theirs, aim))
    print_table(f"Throughput, operands of {options.mib} MiB", "GB/s", rows, more_is_better=True)
    rows = []
    n = options.matmul
    for name, dtype, aim in MATMULS:

        def make(lib: ModuleType, dtype: str = dtype) -> dict[str, Any]:
            return {"m": lib.ones((n, n), dtype=getattr(lib, dtype), device="cuda")}

        ours, theirs = compare("m @ m", 2 * n**3 / 1e3, make, options.loops)
        assert ours is not None
        rows.append(Row(name, ours, theirs, aim))
    print_table(f"Products, {n} x {n}", "TFLOP/s", rows, more_is_better=True)


if __name__ == "__main__":
    main()
