"""Loads the C library: the only module that does.

`ffi` and `lib` are the cffi module that serves every variant of libtensorplay. Its functions go through a
table that `bind` fills, once in a process: calling one before that ends the process, which is why the rest
of `tensorplay.cuda` reaches them through `tensorplay.cuda._library.native`.
"""

from __future__ import annotations

from pathlib import Path

from tensorplay.errors import BackendUnavailableError

FOLDER = Path(__file__).parent / "lib"

try:
    from .lib._tensorplay import ffi, lib
except ImportError as error:
    raise BackendUnavailableError(
        f"the compiled module of tensorplay.cuda is missing or does not load ({error}); expected it in {FOLDER}"
    ) from error

__all__ = ["FOLDER", "architectures", "bind", "built", "ffi", "kernels_of", "lib", "library_of"]


def built(variant: str) -> bool:
    """Whether this installation holds the variant."""
    return library_of(variant).is_file()


def bind(variant: str) -> None:
    """Fills the table from a variant and tells it where its kernel images lie.

    Parameters
    ----------
    variant : str
        ``"cuda12"``, ``"cuda13"`` or ``"emulated"``.

    Raises
    ------
    BackendUnavailableError
        The loader's text: a missing file, an undefined symbol, or a table that is filled already.
    """
    failure = lib.tp_table_bind(str(library_of(variant)).encode())
    if failure:
        raise BackendUnavailableError(f"tensorplay.cuda: libtensorplay does not load: {ffi.string(failure).decode()}")
    images = kernels_of(variant)
    if lib.tp_kernels_set_path(str(images).encode()):
        raise BackendUnavailableError(f"tensorplay.cuda: the path of the kernel images is too long: {images}")


def architectures(variant: str) -> list[str]:
    """What the kernel images of a variant were compiled for: ``["sm_80", ...]``."""
    return sorted({path.suffixes[0][1:] for path in kernels_of(variant).glob("*.sm_*.z")})


def kernels_of(variant: str) -> Path:
    """The folder of a variant's kernel images."""
    return FOLDER / ("kernels_emulated" if variant == "emulated" else "kernels")


def library_of(variant: str) -> Path:
    """The file of a variant, built or not."""
    return FOLDER / f"libtensorplay_{variant}.so"
