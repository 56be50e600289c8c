"""The functions that launch graphs, which the binding makes (libtensorplay/binding/launches.c).

They are there from the first time that one is asked for.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tensorplay import Tensor
from tensorplay._handle import Handle

from ._library import native

if TYPE_CHECKING:
    replay: Callable[..., int]
    """Takes a graph's pointer, and that of a stream if it is not the current one's turn: C's status."""
    stage_and_launch: Callable[[Any, Sequence[Tensor], Sequence[Tensor]], int | None]
    """Takes a graph's pointer, static inputs and inputs: C's status, None where an argument is not what C takes."""

_NAMES = ("replay", "stage_and_launch")
_held: list[Any] = []  # what the functions know by address


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    ffi = native.ffi
    types = [ffi.typeof(f"tp_{kind}_t *") for kind in ("graph", "stream", "tensor")]
    known = [Handle, Tensor, *types]
    _held.extend(known)
    address = native.tp_launch_functions(*(ffi.cast("void *", id(each)) for each in known))
    functions = ctypes.cast(int(ffi.cast("uintptr_t", address)), ctypes.py_object).value
    globals().update(zip(_NAMES, functions, strict=True))
    return globals()[name]
