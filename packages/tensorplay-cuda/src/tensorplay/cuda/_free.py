"""What the driver has free, also for a process that has not started the device."""

from __future__ import annotations

import sys

from ._check import check
from ._library import native

_LIMIT_S = 60


def info(index: int) -> tuple[int, int]:
    """Free and total bytes of a device; the device is started where no other process can be asked."""
    is_started = native.is_started and native.tp_device_is_started(index)
    return (None if is_started else _asked(index)) or _told(index)


def _told(index: int) -> tuple[int, int]:
    free, total = native.ffi.new("size_t *"), native.ffi.new("size_t *")
    check(native.tp_memory_get_info(index, free, total))
    return int(free[0]), int(total[0])


def _asked(index: int) -> tuple[int, int] | None:
    """As a process of its own sees it, which the driver answers in a context only; None when that fails."""
    import subprocess  # takes milliseconds, and is seldom needed

    if not sys.executable:
        return None
    command = [sys.executable, "-c", f"from {__name__} import _told; print(*_told({index}))"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=True)
        free, total = done.stdout.split()
        return int(free), int(total)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
