"""Where in the program something was done: stacks of Python, kept under numbers that C hands about.

C asks a hook (`tp_origin_set_hook`, of libtensorplay/binding/origins.c) which runs no bytecode; here its tables are
kept and read. A stack is kept once, however often it comes, and there is room for `ROOM` different ones: those beyond
it share the number `NO_ROOM`. Stacks that nothing refers to any more stay until `keep` is called.
"""

from __future__ import annotations

import atexit
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import tensorplay

from ._library import native

ROOM = 65536  # stacks of some hundred bytes each
NO_FRAME, NO_ROOM = -1, -2

_numbers: dict[bytes, int] = {}
_stacks: dict[int, tuple[Any, ...]] = {}
_listeners: set[str] = set()

_OWN = tuple(f"{Path(folder)}/" for folder in tensorplay.__path__)
_REASONS = {
    0: "(not recorded: made while memory history was off, or kept no stacks)",
    NO_FRAME: "(made by a thread that runs no Python)",
    NO_ROOM: f"(not recorded: more than {ROOM} different stacks)",
}
_FORGOTTEN = "(forgotten: memory history was started anew since)"


def program_frame() -> FrameType | None:
    """The innermost frame of the calling thread outside of this package; None in a thread that runs no Python."""
    frame: FrameType | None = sys._getframe().f_back
    while frame and frame.f_back and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return frame


def warn_program(text: str) -> None:
    """A UserWarning at the program's own line; shown once for each line, as filters have it."""
    frame = program_frame()
    if frame is None:  # a thread that runs no Python
        warnings.warn_explicit(text, UserWarning, "<no Python>", 0)
    else:
        place = frame.f_code.co_filename, frame.f_lineno
        registry = frame.f_globals.setdefault("__warningregistry__", {})
        module = frame.f_globals.get("__name__", "<string>")  # as `warn` has it; with None nothing is shown
        warnings.warn_explicit(text, UserWarning, *place, module, registry)


def listen(name: str, on: bool) -> None:
    """Says whether somebody of that name wants origins; C asks for none while nobody does."""
    _set_hook(on or bool(_listeners - {name}))  # first: where no device can be used nobody listens
    (_listeners.add if on else _listeners.discard)(name)


def are_recorded() -> bool:
    """Whether somebody listens."""
    return bool(_listeners)


def keep(name: str, used: Iterable[int]) -> None:
    """Forgets all stacks but these, unless others than the one of that name may hold some."""
    if _listeners - {name}:
        return
    wanted = set(used)
    # Copies: other threads may add stacks meanwhile.
    for key, number in _numbers.copy().items():
        if number not in wanted:
            del _numbers[key]
    for number in _stacks.copy():
        if number not in wanted:
            del _stacks[number]


class Frames:
    """Origins as lists of frames, each list and each frame made once: what holds many stays small, pickled too."""

    def __init__(self) -> None:
        self._lists: dict[int, list[dict[str, Any]]] = {}
        self._frames: dict[tuple[str, str, int], dict[str, Any]] = {}

    def __getitem__(self, origin: int) -> list[dict[str, Any]]:
        """Frames, innermost first, from the first one outside of this package on; or one that says why not."""
        found = self._lists.get(origin)
        if found is None:
            found = self._lists[origin] = self._read(origin)
        return found

    def _read(self, origin: int) -> list[dict[str, Any]]:
        stack = _stacks.get(origin)
        if stack is None:
            return [{"filename": "", "line": 0, "name": _REASONS.get(origin, _FORGOTTEN)}]
        places = list(zip(stack[::2], stack[1::2], strict=True))
        theirs = [place for place in places if not place[0].co_filename.startswith(_OWN)]
        return [self._frame(*place) for place in theirs or places]

    def _frame(self, code: CodeType, line: int) -> dict[str, Any]:
        key = code.co_filename, code.co_name, line
        return self._frames.setdefault(key, dict(zip(("filename", "name", "line"), key, strict=True)))


def _set_hook(on: bool) -> None:
    hook = native.NULL
    if on:
        tables = (native.ffi.cast("void *", id(table)) for table in (_numbers, _stacks))
        hook = native.tp_origin_tables(*tables, ROOM)
    native.tp_origin_set_hook(hook)


@atexit.register
def _stop() -> None:
    """Nothing may ask an interpreter that ends."""
    if _listeners:
        _listeners.clear()
        _set_hook(False)
