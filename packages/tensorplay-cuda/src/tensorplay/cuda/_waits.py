"""Sync debug mode: finding the calls that make the program wait for a device."""

from __future__ import annotations

import atexit
from typing import Any

from tensorplay.errors import DTypeError, InvalidArgumentError

from ._check import check
from ._library import native, text_of
from ._origins import warn_program

_SILENT, _TOLD, _REFUSED = 0, 1, 2  # TP_WAIT_SILENT, TP_WAIT_TOLD, TP_WAIT_REFUSED
_MODES = {"default": _SILENT, "warn": _TOLD, "error": _REFUSED}

_mode = 0


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """What happens when a call makes the program wait for a device: a hunt for waits that cost overlap.

    Waits are `synchronize` of everything, reading values (``item()``, ``tolist()``, ``cpu()``, shapes that depend on
    values), copies between a device and pageable memory, `empty_cache` and `empty_host_cache` with memory to give back,
    and allocations that find the memory short, of a device or pinned. For all threads of the process.

    Parameters
    ----------
    debug_mode : int or str
        0 or ``"default"``: nothing. 1 or ``"warn"``: a UserWarning at the program's own line. 2 or ``"error"``: the
        call raises StateError instead of waiting.
    """
    global _mode
    if isinstance(debug_mode, bool) or not isinstance(debug_mode, (int, str)):
        raise DTypeError(f"set_sync_debug_mode: got {debug_mode!r}, expected an integer or a text")
    mode = _MODES.get(debug_mode, -1) if isinstance(debug_mode, str) else debug_mode
    if mode not in _MODES.values():
        raise InvalidArgumentError(
            f"set_sync_debug_mode: got {debug_mode!r}, expected 0, 1, 2, 'default', 'warn' or 'error'"
        )
    _mode = mode
    if native.is_started:
        _apply()


def get_sync_debug_mode() -> int:
    """The mode as a number: 0 (default), 1 (warn) or 2 (error)."""
    return int(native.tp_wait_debug_mode()) if native.is_started else _mode


def _apply() -> None:
    if _mode == _TOLD:
        native.ffi.def_extern(name="wait_hook", error=0)(_warn)
        native.tp_wait_set_hook(native.wait_hook)
    check(native.tp_wait_set_debug_mode(_mode))


def _warn(operation: Any) -> int:
    """C's hook: 1 when a filter has made an error of the warning."""
    try:
        warn_program(f"{text_of(operation)}: waits for the device")
    except UserWarning:
        return 1
    return 0


@atexit.register
def _stop() -> None:
    """No call may ask an interpreter that ends."""
    if _mode and native.is_started:
        native.tp_wait_set_debug_mode(_SILENT)


native.at_start.append(_apply)
