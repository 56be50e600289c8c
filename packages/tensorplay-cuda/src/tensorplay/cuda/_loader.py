"""Where the dynamic loader finds a library."""

from __future__ import annotations

import ctypes
import os

_RTLD_DI_LINKMAP = 2


class _LinkMap(ctypes.Structure):
    _fields_ = (("address", ctypes.c_size_t), ("name", ctypes.c_char_p))


def path_of(library: ctypes.CDLL) -> str:
    """The file of a library that was opened, as the loader named it."""
    found = ctypes.POINTER(_LinkMap)()
    ctypes.CDLL(None).dlinfo(ctypes.c_void_p(library._handle), _RTLD_DI_LINKMAP, ctypes.byref(found))
    return os.fsdecode(found.contents.name)


def without(folder: str) -> str:
    """What to type so that the loader no longer looks in this folder first."""
    searched = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    if folder not in (entry.rstrip("/") for entry in searched):
        return "ldconfig -p | grep libcuda"
    rest = ":".join(entry for entry in searched if entry.rstrip("/") not in (folder, ""))
    return f"export LD_LIBRARY_PATH={rest}" if rest else "unset LD_LIBRARY_PATH"
