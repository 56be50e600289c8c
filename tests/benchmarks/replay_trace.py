"""How much memory is reserved for what is allocated: traces replayed on our allocator and on torch's.

    python tests/benchmarks/replay_trace.py [TRACE.txt ...] [--keep FOLDER]

Without a file the programs of traces.py are recorded first. Each trace runs in a process of its own with each
allocator, with segments of fixed size and with growing ones; figures are peak reserved / peak allocated bytes, and the
time of the whole replay, most of which the driver takes. On the emulated device set
``TENSORPLAY_EMULATED_MEMORY=16GiB`` and give small traces: it fills memory with a pattern.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import traces
from common import find_torch

GIB = 1024**3
LIBRARIES = ["tensorplay", "torch"]
SETTINGS = {"fixed": "expandable_segments:False", "growing": "expandable_segments:True"}
AIM = 1.05  # with growing segments, for traces whose peak exceeds 2 GiB


def replay(library: str, file: Path) -> dict[str, int]:
    """Peaks in bytes and the time in ns, in this process."""
    cuda: Any
    if library == "torch":
        import torch

        cuda = torch.cuda
        torch.empty(1, device="cuda")
    else:
        import tensorplay

        cuda = tensorplay.cuda
    streams: list[Any] = [cuda.default_stream()]
    live: dict[int, int] = {}
    with file.open() as lines:
        steps = list(traces.read(lines))
    start = time.perf_counter_ns()
    for step in steps:
        if step.nbytes:
            while step.stream >= len(streams):
                streams.append(cuda.Stream())
            live[step.id] = cuda.memory.caching_allocator_alloc(step.nbytes, None, streams[step.stream])
        else:
            cuda.memory.caching_allocator_delete(live.pop(step.id))
    duration = time.perf_counter_ns() - start
    stats = cuda.memory_stats()
    return {name: stats[f"{name}_bytes.all.peak"] for name in ("allocated", "reserved")} | {"duration": duration}


def replay_apart(library: str, setting: str, file: Path) -> dict[str, int]:
    """The same in a process of its own."""
    variable = "PYTORCH_CUDA_ALLOC_CONF" if library == "torch" else "TENSORPLAY_CUDA_ALLOC_CONF"
    done = subprocess.run(
        [sys.executable, __file__, "--replay", library, str(file)],
        env={**os.environ, variable: SETTINGS[setting]},
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def print_row(file: Path, setting: str, libraries: list[str]) -> None:
    peaks = {library: replay_apart(library, setting, file) for library in libraries}
    ratios = {library: found["reserved"] / found["allocated"] for library, found in peaks.items()}
    ours, theirs = ratios["tensorplay"], ratios.get("torch")
    peak = peaks["tensorplay"]["allocated"]
    aim = min(AIM if setting == "growing" and peak > 2 * GIB else 9.0, theirs or 9.0)
    cells = [f"{ratios[name]:>8.3f}" if name in ratios else f"{'-':>8}" for name in LIBRARIES]
    cells += [f"{peaks[name]['duration'] / 1e6:>11.1f}" if name in peaks else f"{'-':>11}" for name in LIBRARIES]
    missed = " !" if ours > aim + 5e-4 else ""
    print(f"{file.stem:<16}{setting:<10}{peak / GIB:>12.2f}{''.join(cells)}{missed}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--keep", type=Path, help="folder for the traces that are recorded")
    parser.add_argument("--replay", choices=LIBRARIES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.replay:
        print(json.dumps(replay(options.replay, options.files[0])))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        files: list[Path] = options.files
        for name in [] if files else traces.PROGRAMS:
            (folder / f"{name}.txt").write_text("".join(traces.write(traces.record(name))))
            files.append(folder / f"{name}.txt")
        libraries = LIBRARIES if find_torch() else LIBRARIES[:1]
        columns = f"{'peak, GiB':>12}{'ours':>8}{'torch':>8}{'ours, ms':>11}{'torch, ms':>11}"
        print(f"{'reserved / allocated, peaks':<26}{columns}")
        for file in files:
            for setting in SETTINGS:
                print_row(file, setting, libraries)


if __name__ == "__main__":
    main()
