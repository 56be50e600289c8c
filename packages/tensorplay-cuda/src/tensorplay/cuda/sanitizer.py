"""The order checker: work of different streams on the same memory that no wait orders.

Every launch and copy says which storages it reads and writes. The checker knows which work comes before which, from
waits, events and what the program has waited for; so it finds what may go wrong, in runs in which nothing does. Whole
storages count: two streams that write halves of one tensor are reported. What other libraries do with memory, and what
the host does with pinned memory, is not seen.

``TENSORPLAY_CUDA_SANITIZER=1`` enables it when the library starts.
"""

from __future__ import annotations

import os
from typing import Literal

from tensorplay.errors import InvalidArgumentError, OrderError

from . import _origins, _reports
from ._check import check
from ._library import native

__all__ = ["disable", "enable", "is_enabled", "reports"]

VARIABLE = "TENSORPLAY_CUDA_SANITIZER"

_OFF, _ERROR, _COLLECT = 0, 1, 2  # TP_ORDER_OFF, TP_ORDER_ERROR, TP_ORDER_COLLECT
_MODES = {"error": _ERROR, "collect": _COLLECT}

_enabled = False


def enable(mode: Literal["error", "collect"] = "error") -> None:
    """Watches all work from here on (`tp_order_set_mode`). Tensors made before are told apart by their first element.

    Parameters
    ----------
    mode : {"error", "collect"}
        A `tensorplay.errors.OrderError` at the call that would queue the later work, which is then not queued; or
        reports that `reports` gives, while the program goes on.
    """
    global _enabled
    if not isinstance(mode, str) or mode not in _MODES:
        raise InvalidArgumentError(f"sanitizer.enable: got mode {mode!r}, expected one of {tuple(_MODES)}")
    check(native.tp_order_set_mode(_MODES[mode]))
    _origins.listen(__name__, True)
    _enabled = True


def disable() -> None:
    """Watches no more. What was collected can still be had."""
    global _enabled
    if _enabled:
        check(native.tp_order_set_mode(_OFF))
        _origins.listen(__name__, False)
    _enabled = False


def is_enabled() -> bool:
    """Whether work is watched."""
    return _enabled


def reports() -> list[OrderError]:
    """What mode ``"collect"`` has found since the last call, oldest first: each pair of places once, 256 at most."""
    return _reports.take() if native.is_started else []


def _enable_as_the_environment_says() -> None:
    setting = os.environ.get(VARIABLE, "0")
    if setting not in ("0", "1"):
        raise InvalidArgumentError(f"{VARIABLE}: got {setting!r}, expected 0 or 1")
    if setting == "1":
        enable()


native.at_start.append(_enable_as_the_environment_says)
