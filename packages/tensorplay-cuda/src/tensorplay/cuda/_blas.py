"""Finding cuBLASLt, which is optional: without it the library's own kernel multiplies matrices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module, metadata
from pathlib import Path

from ._library import native

# Where the wheels that tensorplay-cuda[cu12] and [cu13] ask for put it.
_WHEELS = {
    12: ("nvidia-cublas-cu12", "nvidia/cublas/lib"),
    13: ("nvidia-cublas", "nvidia/cu13/lib"),
}
_MAJORS = {"cuda12": 12, "cuda13": 13}


def load() -> None:
    """Opens the first cuBLASLt of the variant's CUDA major that loads (`tp_blas_load`); none is no error."""
    major = major_of(native.choice().variant)
    if major is not None:
        for path in candidates(major):
            if not native.tp_blas_load(path.encode()):
                return


def major_of(variant: str | None) -> int | None:
    """CUDA's major version whose cuBLASLt a variant can use; None where it uses none."""
    return _MAJORS.get(variant or "")


def expected(variant: str | None) -> str:
    """What will multiply matrices once the library has started, for the doctor."""
    major = major_of(variant)
    found = [] if major is None else [path for path in candidates(major) if Path(path).is_file()]
    return f"cuBLASLt from {found[0]}" if found else "TensorPlay's own kernel, unless the loader finds cuBLASLt"


def candidates(major: int) -> Iterator[str]:
    """Paths to try, best first; the last one leaves the search to the loader."""
    soname = f"libcublasLt.so.{major}"
    distribution, folder = _WHEELS[major]
    with suppress(metadata.PackageNotFoundError):
        yield str(metadata.distribution(distribution).locate_file(f"{folder}/{soname}"))
    found = _ask_pathfinder()
    if found is not None and found.endswith(soname):
        yield found
    yield soname


def _ask_pathfinder() -> str | None:
    """What cuda-pathfinder finds in conda, CUDA_PATH and system folders; it is optional too."""
    try:
        pathfinder = import_module("cuda.pathfinder")
        path: str | None = pathfinder.load_nvidia_dynamic_lib("cublasLt").abs_path
    except (ImportError, RuntimeError, OSError):
        return None
    return path
