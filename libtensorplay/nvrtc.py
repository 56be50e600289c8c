"""Kernel images for the GPU, by NVRTC through ctypes: no nvcc, no driver and no GPU are needed."""

from __future__ import annotations

import ctypes
import struct
import zlib
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path

from toolkit import NVRTC, BuildError, folder_of

# Each cubin also serves later minors of its major; the PTX serves what comes after.
CUBINS = (75, 80, 90, 100, 120)
PTX = 75
WORKERS = 2


def pack(image: bytes) -> bytes:
    """As image.c reads it: the unpacked size, 8 bytes little-endian, then a zlib stream."""
    return struct.pack("<Q", len(image)) + zlib.compress(image, 9)


@lru_cache
def _library() -> ctypes.CDLL:
    folder = folder_of(NVRTC, "nvidia/cuda_nvrtc/lib")
    try:
        # Loaded first: some versions of NVRTC cannot find this one by themselves.
        ctypes.CDLL(str(folder / "libnvrtc-builtins.so.12.9"), ctypes.RTLD_GLOBAL)
        return ctypes.CDLL(str(folder / "libnvrtc.so.12"))
    except OSError as error:
        raise BuildError(f"NVRTC does not load: {error} (pip install {NVRTC!r})") from error


def _read(program: ctypes.c_void_p, what: str) -> bytes:
    """nvrtcGet<what>, which comes as a size call and a data call."""
    library, nbytes = _library(), ctypes.c_size_t()
    if getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(nbytes)):
        raise BuildError(f"NVRTC: nvrtcGet{what}Size failed")
    buffer = ctypes.create_string_buffer(nbytes.value)
    if getattr(library, f"nvrtcGet{what}")(program, buffer):
        raise BuildError(f"NVRTC: nvrtcGet{what} failed")
    return buffer.raw


def compile_image(source: Path, architecture: int, ptx: bool, include: tuple[Path, ...]) -> bytes:
    """One image of one .cu file: a cubin, or PTX text."""
    library, program = _library(), ctypes.c_void_p()
    if library.nvrtcCreateProgram(ctypes.byref(program), source.read_bytes(), source.name.encode(), 0, None, None):
        raise BuildError(f"{source.name}: nvrtcCreateProgram failed")
    options = [
        f"--gpu-architecture={'compute' if ptx else 'sm'}_{architecture}",
        "--std=c++17",
        "--fmad=true",
        *(f"--include-path={folder}" for folder in include),
    ]
    array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = library.nvrtcCompileProgram(program, len(options), array)
    log = _read(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
    if failed:
        raise BuildError(f"{source.name} for {options[0]}: NVRTC refuses it\n{log}")
    # NVRTC counts the closing NUL of PTX, and image.c hands exactly the bytes to the driver, which reads text
    # up to a NUL: so it stays.
    image = _read(program, "PTX" if ptx else "CUBIN")
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return image


def _compile_to_file(job: tuple[Path, int, bool, tuple[Path, ...], Path]) -> None:
    source, architecture, ptx, include, target = job
    target.write_bytes(pack(compile_image(source, architecture, ptx, include)))


def build_images(kernels: Path, cuda: Path, out: Path) -> None:
    """Writes <family>.sm_<n>.z and <family>.ptx.z of every .cu file of `kernels` into the folder `out`."""
    out.mkdir(parents=True, exist_ok=True)
    targets = [(architecture, False, f"sm_{architecture}") for architecture in CUBINS] + [(PTX, True, "ptx")]
    # The longest files first, so that both workers end at about the same time.
    sources = sorted(kernels.glob("*.cu"), key=lambda path: -path.stat().st_size)
    jobs = [
        (source, architecture, ptx, (kernels, cuda), out / f"{source.stem}.{name}.z")
        for source in sources
        for architecture, ptx, name in targets
    ]
    # Processes, since NVRTC holds one lock per process. Spawned, so that no lock is copied while it is held.
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        for _ in pool.map(_compile_to_file, jobs):
            pass
