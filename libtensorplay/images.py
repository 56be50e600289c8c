"""Kernel images for the GPU: NVRTC makes PTX, ptxas makes cubins of it. No nvcc, no driver and no GPU are needed."""

from __future__ import annotations

import struct
import subprocess
import tempfile
import zlib
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import nvrtc
from toolkit import PTXAS, BuildError, folder_of

# The architecture of the PTX, and of the cubins that are made of it: NVRTC takes longer than ptxas, so it does not run
# for each cubin. A cubin also serves later minors of its major. Instructions for bfloat16 begin with 80, those by
# which a kernel waits for the ones before it with 90.
CUBINS = {75: (75,), 80: (80,), 90: (90, 100, 120)}
# This PTX is an image too, for what comes after.
PTX = 90
WORKERS = 2


def pack(image: bytes) -> bytes:
    """As image.c reads it: the unpacked size, 8 bytes little-endian, then a zlib stream."""
    return struct.pack("<Q", len(image)) + zlib.compress(image, 9)


def assemble(name: str, ptx: bytes, architecture: int) -> bytes:
    """The cubin of that PTX for an architecture."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / f"{name}.ptx", Path(folder) / f"{name}.cubin"
        source.write_bytes(ptx)
        command = [_ptxas(), f"--gpu-name=sm_{architecture}", source, "--output-file", target]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(f"{name} for sm_{architecture}: ptxas refuses it\n{done.stdout}{done.stderr}")
        return target.read_bytes()


def _ptxas() -> Path:
    return folder_of(PTXAS, "nvidia/cuda_nvcc/bin") / "ptxas"


def _build(job: tuple[Path, int, tuple[Path, ...], Path]) -> None:
    """The images that come of one compilation by NVRTC."""
    source, architecture, include, out = job
    ptx = nvrtc.compile_ptx(source, architecture, include)
    if architecture == PTX:
        # The driver reads text up to a NUL, and image.c hands it exactly these bytes.
        (out / f"{source.stem}.ptx.z").write_bytes(pack(ptx + b"\0"))
    for cubin in CUBINS[architecture]:
        (out / f"{source.stem}.sm_{cubin}.z").write_bytes(pack(assemble(source.stem, ptx, cubin)))


def build_images(kernels: Path, cuda: Path, out: Path) -> None:
    """Writes <family>.sm_<n>.z and <family>.ptx.z of every .cu file of `kernels` into the folder `out`."""
    nvrtc.library(), _ptxas()  # a missing one is said before anything is compiled
    out.mkdir(parents=True, exist_ok=True)
    # The longest first, so that both workers end at about the same time.
    sources = sorted(kernels.glob("*.cu"), key=lambda path: -path.stat().st_size)
    most_cubins = sorted(CUBINS, key=lambda architecture: -len(CUBINS[architecture]))
    jobs = [(source, architecture, (kernels, cuda), out) for architecture in most_cubins for source in sources]
    # Processes, since NVRTC holds one lock per process. Spawned, so that no lock is copied while it is held.
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        for _ in pool.map(_build, jobs):
            pass
