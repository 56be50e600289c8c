"""Copies between the host's memory and a device, and loading a file, beside torch in the same process.

    python tests/benchmarks/transfers.py [--mib SIZE]

GB/s by the host's clock, until the device is done. The file is in the system's cache when it is loaded; torch loads it
with the library safetensors, where that is installed.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from common import Row, find_torch, medians, print_table

import tensorplay

TENSORS = 16  # of a file


def seconds(lib: ModuleType, run: Callable[[], Any]) -> Callable[[], float]:
    """A function that gives the time of one run, the device's work included."""

    def once() -> float:
        lib.cuda.synchronize()
        start = time.perf_counter()
        run()
        lib.cuda.synchronize()
        return time.perf_counter() - start

    once()
    return once


def row(name: str, nbytes: int, ours: Callable[[], Any], theirs: Callable[[], Any] | None, aim: float) -> Row:
    """One copy, ours beside torch's, in turns."""
    torch = find_torch()
    peer = None if torch is None or theirs is None else seconds(torch, theirs)
    found = medians(seconds(tensorplay, ours), peer)
    rates = [None if value is None else nbytes / value / 1e9 for value in found]
    assert rates[0] is not None
    return Row(name, rates[0], rates[1], aim)


def torch_loader(path: Path) -> Callable[[], Any] | None:
    """What loads the file with torch."""
    try:
        from safetensors.torch import load_file
    except ImportError:
        return None
    return lambda: load_file(path, device="cuda")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=1024, help="size of the array (default: 1024)")
    options = parser.parse_args()
    nbytes = options.mib * 2**20
    array = np.full(nbytes // 4, 1.0, np.float32)
    host, device = tensorplay.from_numpy(array), tensorplay.empty(array.size, device="cuda")
    torch = find_torch()
    pinned = host.pin_memory()
    to_device = from_device = from_pinned = to_pinned = None
    if torch is not None:
        there = torch.empty(array.size, device="cuda")
        here = torch.from_numpy(array)
        fast = here.pin_memory()
        to_device, from_device = lambda: there.copy_(here), there.cpu
        from_pinned, to_pinned = lambda: there.copy_(fast, True), lambda: fast.copy_(there, True)
    rows = [
        row("pageable to device", nbytes, lambda: device.copy_(host), to_device, 1.5),
        row("device to pageable", nbytes, device.cpu, from_device, 1.0),
        row("pinned to device", nbytes, lambda: device.copy_(pinned, non_blocking=True), from_pinned, 0.95),
        row("device to pinned", nbytes, lambda: pinned.copy_(device, non_blocking=True), to_pinned, 0.95),
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.safetensors"
        part = host[: 2 * host.numel() // TENSORS]
        tensorplay.save({str(number): part for number in range(TENSORS)}, path)
        nbytes = path.stat().st_size
        rows.append(row("load a file", nbytes, lambda: tensorplay.load(path, device="cuda"), torch_loader(path), 1.5))
    print_table(f"Transfers, {options.mib} MiB, file of {2 * options.mib} MiB", "GB/s", rows, more_is_better=True)


if __name__ == "__main__":
    main()
