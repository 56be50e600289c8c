"""What memory costs, in ns, beside torch and CuPy in the same process.

    python tests/benchmarks/bench_allocator.py [--number PAIRS]

The rows of C are timed by a driver (`allocator_driver.c`, compiled now with the host's compiler, `CC`) that calls
`tp_memory_alloc` and `tp_memory_free` of the library that `tensorplay.cuda` has loaded, and torch's `raw_alloc` and
`raw_delete` where torch's headers compile (`CXX`); what cannot be measured is said above the table. On the emulated
device set ``TENSORPLAY_EMULATED_MEMORY=16GiB``.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import site
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import host_cost
from common import Row, find_cupy, find_torch, medians, print_table

import tensorplay
from tensorplay.cuda import _native

HERE = Path(__file__).resolve().parent
KIB, MIB = 1024, 1024 * 1024
THREADS = 16
LIVE = 10_000

# Rows of Python: (what, statement, aim for ours / torch).
PYTHON = [
    ("Python: empty and drop", "lib.empty(256, device='cuda')", 0.5),
    ("Python: pinned 1 KiB and drop", "lib.empty(256, pin_memory=True)", 0.8),
    ("Python: memory_allocated()", "cuda.memory_allocated()", 0.01),
    ("Python: memory_stats()", "cuda.memory_stats()", 0.3),
]
CUPY = {
    "Python: empty and drop": "lib.empty(256, 'f')",
    "Python: pinned 1 KiB and drop": "lib.cuda.alloc_pinned_memory(1024)",
    "Python: memory_allocated()": "lib.get_default_memory_pool().used_bytes()",
}


@dataclass
class Allocator:
    """Addresses of the functions that the driver calls, and the stream that it hands to the first."""

    allocate: int
    release: int
    stream: int = 0


def compile_shared(command: list[str], folder: Path, name: str) -> ctypes.CDLL:
    """A shared library made by the compiler; subprocess.CalledProcessError has what it says."""
    target = folder / f"{name}.so"
    subprocess.run([*command, "-O2", "-fPIC", "-shared", "-o", str(target)], check=True)
    return ctypes.CDLL(str(target))


def address_of(library: ctypes.CDLL, name: str) -> int:
    """Of one function."""
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert address is not None
    return address


def our_allocator() -> Allocator:
    """That of the library that is loaded."""
    variant = tensorplay._plugins.get("cuda").describe()["variant"]
    library = ctypes.CDLL(str(_native.FOLDER / f"libtensorplay_{variant}.so"))
    library.tp_stream_default.restype = ctypes.c_void_p
    stream = library.tp_stream_default(0)
    return Allocator(address_of(library, "tp_memory_alloc"), address_of(library, "tp_memory_free"), stream)


def torch_allocator(torch: ModuleType, folder: Path) -> Allocator:
    """torch's, through its C++ headers and those of CUDA: of an installed toolkit, or of NVIDIA's wheels."""
    root = Path(torch.__file__).parent
    toolkits = [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))]
    toolkits += [wheel for place in site.getsitepackages() for wheel in sorted(Path(place, "nvidia").glob("cu*"))]
    includes = [root / "include", *(toolkit / "include" for toolkit in toolkits)]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
    command = [os.environ.get("CXX", "g++"), "-std=c++20", abi, str(HERE / "allocator_torch.cpp")]
    command += [f"-I{path}" for path in includes]
    command += [f"-L{root / 'lib'}", f"-Wl,-rpath,{root / 'lib'}", "-lc10_cuda", "-lc10"]
    library = compile_shared(command, folder, "torch_allocator")
    return Allocator(address_of(library, "torch_allocate"), address_of(library, "torch_release"))


class Driver:
    """The functions of allocator_driver.c, each made ready for an allocator; their results are ns per pair."""

    def __init__(self, folder: Path, number: int) -> None:
        command = [os.environ.get("CC", "cc"), "-std=c11", "-pthread", str(HERE / "allocator_driver.c")]
        self._library = compile_shared(command, folder, "driver")
        self._number = number

    def pairs(self, allocator: Allocator) -> Callable[[], float]:
        """Allocate and free 1 KiB."""
        return self._ready("time_pairs", allocator, ctypes.c_size_t(KIB), ctypes.c_int64(self._number))

    def threads(self, allocator: Allocator) -> Callable[[], float]:
        """The same from many threads, wall time over all their pairs."""
        count = ctypes.c_int64(max(self._number // THREADS, 100))
        return self._ready("time_threads", allocator, ctypes.c_size_t(KIB), count, ctypes.c_int32(THREADS))

    def replacement(self, allocator: Allocator) -> Callable[[], float]:
        """A random block among many makes place for another of another size."""
        sizes = (ctypes.c_size_t(512), ctypes.c_size_t(MIB))
        return self._ready("time_replacement", allocator, *sizes, ctypes.c_int64(LIVE), ctypes.c_int64(self._number))

    def _ready(self, name: str, allocator: Allocator, *arguments: object) -> Callable[[], float]:
        function = getattr(self._library, name)
        function.restype = ctypes.c_double
        fixed = [ctypes.c_void_p(value) for value in (allocator.allocate, allocator.release, allocator.stream)]

        def once() -> float:
            value = float(function(*fixed, *arguments))
            if value < 0:
                raise MemoryError(f"{name}: an allocation failed")
            return value

        once()
        return once


def rows_of_c(driver: Driver, ours: Allocator, peer: Allocator | None) -> list[Row]:
    """The allocator itself."""
    works = [
        ("C: allocate + free 1 KiB", driver.pairs, 0.2),
        (f"C: the same, {THREADS} threads", driver.threads, 0.05),
        (f"C: replace one of {LIVE:,} live", driver.replacement, 0.25),
    ]
    rows = []
    for name, work, aim in works:
        mine, theirs = medians(work(ours), work(peer) if peer else None)
        assert mine is not None
        rows.append(Row(name, mine, theirs, aim))
    return rows


def rows_of_python(torch: ModuleType | None, number: int) -> list[Row]:
    """What a program calls."""
    cupy = find_cupy()
    rows = []
    for name, statement, aim in PYTHON:
        peer = other = None
        if torch is not None:
            peer = host_cost.measure(statement, host_cost.names(torch), torch.cuda.synchronize, number)
        if cupy is not None and name in CUPY:
            named = host_cost.names_in_cupy(cupy)
            other = host_cost.measure(CUPY[name], named, cupy.cuda.Device().synchronize, number)
        mine = host_cost.measure(statement, host_cost.names(tensorplay), tensorplay.cuda.synchronize, number)
        ours, theirs, cupys = medians(mine, peer, other)
        assert ours is not None
        rows.append(Row(name, ours, theirs, aim, cupys))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=100_000, help="pairs in one run (default: 100000)")
    number = parser.parse_args().number
    torch = find_torch()
    tensorplay.empty(256, device="cuda")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peer = None
        if torch is not None:
            torch.empty(256, device="cuda")
            try:
                peer = torch_allocator(torch, folder)
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"torch's allocator in C++ is not measured: {error}\n{getattr(error, 'stderr', '')}")
        rows = rows_of_c(Driver(folder, number), our_allocator(), peer)
    rows += rows_of_python(torch, max(number // 100, 100))
    print_table("Memory", "ns per pair or call", rows)


if __name__ == "__main__":
    main()
