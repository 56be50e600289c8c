"""Where the dynamic loader finds a library."""

from __future__ import annotations

import ctypes
import os
import re
import shlex

_RTLD_DI_LINKMAP = 2


class _LinkMap(ctypes.Structure):
    _fields_ = (("address", ctypes.c_size_t), ("name", ctypes.c_char_p))


def path_of(library: ctypes.CDLL) -> str:
    """The file of a library that was opened, as the loader named it."""
    found = ctypes.POINTER(_LinkMap)()
    ctypes.CDLL(None).dlinfo(ctypes.c_void_p(library._handle), _RTLD_DI_LINKMAP, ctypes.byref(found))
    return os.fsdecode(found.contents.name)


def instead_of(path: str) -> str:
    """The advice for a file that the loader finds before the one that is meant."""
    name = os.path.basename(path)
    if path in re.split("[ :]", os.environ.get("LD_PRELOAD", "")):
        return f"type `unset LD_PRELOAD` so that another {name} is found"
    folder = os.path.dirname(path)
    searched = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    if folder not in (entry.rstrip("/") for entry in searched):
        return f"type `ldconfig -p | grep {name}` to see which others there are"
    rest = ":".join(entry for entry in searched if entry.rstrip("/") not in (folder, ""))
    typed = f"export LD_LIBRARY_PATH={shlex.quote(rest)}" if rest else "unset LD_LIBRARY_PATH"
    return f"type `{typed}` so that another {name} is found"
