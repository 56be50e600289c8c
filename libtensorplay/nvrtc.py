"""CUDA's kernel compiler, NVRTC, through ctypes: sources in, PTX out."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path

from toolkit import NVRTC, BuildError, folder_of


@lru_cache
def library() -> ctypes.CDLL:
    """NVRTC, from the installed wheel."""
    folder = folder_of(NVRTC, "nvidia/cuda_nvrtc/lib")
    try:
        # Loaded first: some versions of NVRTC cannot find this one by themselves.
        ctypes.CDLL(str(folder / "libnvrtc-builtins.so.12.9"), ctypes.RTLD_GLOBAL)
        return ctypes.CDLL(str(folder / "libnvrtc.so.12"))
    except OSError as error:
        raise BuildError(f"NVRTC does not load: {error} (pip install {NVRTC!r})") from error


def _read(program: ctypes.c_void_p, what: str) -> bytes:
    """nvrtcGet<what>, which comes as a size call and a data call; without the NUL that ends the text."""
    nbytes = ctypes.c_size_t()
    if getattr(library(), f"nvrtcGet{what}Size")(program, ctypes.byref(nbytes)):
        raise BuildError(f"NVRTC: nvrtcGet{what}Size failed")
    buffer = ctypes.create_string_buffer(nbytes.value)
    if getattr(library(), f"nvrtcGet{what}")(program, buffer):
        raise BuildError(f"NVRTC: nvrtcGet{what} failed")
    return buffer.value


def compile_ptx(source: Path, architecture: int, include: tuple[Path, ...]) -> bytes:
    """The PTX of one .cu file, for that architecture and later ones."""
    program = ctypes.c_void_p()
    if library().nvrtcCreateProgram(ctypes.byref(program), source.read_bytes(), source.name.encode(), 0, None, None):
        raise BuildError(f"{source.name}: nvrtcCreateProgram failed")
    options = [
        f"--gpu-architecture=compute_{architecture}",
        "--std=c++17",
        "--fmad=true",
        "--device-as-default-execution-space",  # or generic lambdas are host code, which it refuses
        *(f"--include-path={folder}" for folder in include),
    ]
    array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = library().nvrtcCompileProgram(program, len(options), array)
    log = _read(program, "ProgramLog").rstrip().decode(errors="replace")
    if failed:
        raise BuildError(f"{source.name} for {options[0]}: NVRTC refuses it\n{log}")
    ptx = _read(program, "PTX")
    library().nvrtcDestroyProgram(ctypes.byref(program))
    return ptx
