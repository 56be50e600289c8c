"""What the order checker costs while it is off: host time of a call beside a library that is built without it.

    python tests/benchmarks/checker_cost.py --build 13.0 FOLDER     where the C compiler is ("emulated": that variant)
    python tests/benchmarks/checker_cost.py FOLDER                  where the device is

The two take turns, each time in a process of its own. Of each statement the best run counts: what disturbs only adds.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
AIM = 1.01
# Those of the host table that ask whether the checker is on, most often for what they do.
STATEMENTS = (
    "empty and drop", "a + b", "a.add_(b)", "a.sum()", "o.copy_(a)", "o.fill_(1.0)", "16 x 16 matmul", "a[places]",
    "Event().record()", "s.wait_stream(t)",
)  # fmt: skip
# Where every look at the checker ends: the two functions answer at compile time.
WITHOUT = {
    "return atomic_load_explicit(&tp__order_mode, memory_order_relaxed) != TP_ORDER_OFF;": "return false;",
    "return atomic_load_explicit(&tp__watchers, memory_order_relaxed) > 0;": "return false;",
}


def build(target: str, folder: Path) -> None:
    """Builds the library without the checker."""
    with tempfile.TemporaryDirectory() as scratch:
        sources = Path(scratch) / "libtensorplay"
        shutil.copytree(ROOT / "libtensorplay", sources)
        header = sources / "src" / "watch.h"
        text = header.read_text()
        for line, other in WITHOUT.items():
            if text.count(line) != 1:
                raise SystemExit(f"{header.name}: {text.count(line)} times {line!r}, expected 1")
            text = text.replace(line, other)
        header.write_text(text)
        command = [sys.executable, str(sources / "build.py"), "--cuda", target, "--kernels", "0", "--out", str(folder)]
        subprocess.run(command, check=True)


def measure(library: Path | None, number: int, repeats: int) -> dict[str, float]:
    """The best run of each statement in ns per call, with another library where one is given."""
    import host_cost

    import tensorplay

    if library is not None:
        from tensorplay.cuda import _native

        shipped = _native.library_of
        _native.library_of = lambda variant: library / shipped(variant).name
    named = host_cost.names(tensorplay)
    found = {}
    for name, statement, _ in host_cost.CASES:
        if name in STATEMENTS:
            once = host_cost.measure(statement, named, tensorplay.cuda.synchronize, number)
            found[name] = min(once() for _ in range(repeats))
    return found


def compare(library: Path, rounds: int, number: int, repeats: int) -> None:
    """Prints the table."""
    best: dict[str, dict[str, float]] = {"with": {}, "without": {}}
    for _ in range(rounds):
        for which, values in best.items():
            folder = [] if which == "with" else ["--library", str(library)]
            given = ["--measure", "--number", str(number), "--repeats", str(repeats), *folder]
            done = subprocess.run([sys.executable, __file__, *given], check=True, stdout=subprocess.PIPE, text=True)
            measured: dict[str, float] = json.loads(done.stdout)
            values |= {name: min(ns, values.get(name, ns)) for name, ns in measured.items()}
    print(f"Host cost with the order checker, which is off, and without; ns per call, best of {rounds} processes")
    for name in STATEMENTS:
        mine, other = best["with"][name], best["without"][name]
        print(f"{name:<24}{mine:>10,.0f}{other:>10,.0f}{mine / other:>8.3f}")
    ratio = sum(best["with"].values()) / sum(best["without"].values())
    print(f"{'all':<44}{ratio:>8.3f}  aim {AIM}{' !' if ratio > AIM else ''}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="with the library without the checker")
    parser.add_argument("--build", metavar="CUDA", help="builds that library into FOLDER")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--number", type=int, default=500, help="calls in one run (default: 500)")
    parser.add_argument("--repeats", type=int, default=40, help="runs in one process (default: 40)")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--library", type=Path, help=argparse.SUPPRESS)
    given: Any = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.library, given.number, given.repeats)))
    elif given.folder is None:
        parser.error("the folder is missing")
    elif given.build:
        build(given.build, given.folder.resolve())
    else:
        compare(given.folder.resolve(), given.rounds, given.number, given.repeats)


if __name__ == "__main__":
    main()
