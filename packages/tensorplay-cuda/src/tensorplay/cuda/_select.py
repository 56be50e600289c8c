"""Which variant of libtensorplay serves this process, and why none does.

Nothing here starts anything: `choose` reads the environment afresh until `tensorplay.cuda._library` fixes
its answer.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from tensorplay.errors import BackendUnavailableError

from . import _driver

VARIABLE = "TENSORPLAY_CUDA_RUNTIME"
DEVICES_VARIABLE = "TENSORPLAY_EMULATED_DEVICES"
MAX_EMULATED_DEVICES = 8  # EMU_MAX_DEVICES
VARIANTS = ("cuda12", "cuda13", "emulated")

# The oldest driver that serves a variant, as CUDA counts; the newest variant first.
_DRIVERS = {"cuda13": 13000, "cuda12": 12000}


@dataclass(frozen=True)
class Choice:
    """A variant, or the sentence that says why there is none."""

    variant: str | None
    reason: str | None = None


def choose() -> Choice:
    """The variant that the environment, the installation and the driver give now."""
    setting = os.environ.get(VARIABLE, "")
    if setting == "none":
        return Choice(None, f"{VARIABLE} is none")
    if setting and setting not in VARIANTS:
        valid = ", ".join((*VARIANTS, "none"))
        return Choice(None, f"{VARIABLE}: got {setting!r}, expected one of {valid}, or leave it unset")
    try:
        from . import _native
    except BackendUnavailableError as error:
        return Choice(None, str(error))
    if setting and not _native.built(setting):
        have = ", ".join(variant for variant in VARIANTS if _native.built(variant)) or "none"
        return Choice(None, f"{VARIABLE} is {setting}, which was not built into this installation (built: {have})")
    if setting == "emulated":
        return Choice(setting)
    try:
        version = _driver.driver_version()
    except _driver.DriverError as error:
        return Choice(None, str(error))
    candidates = (setting,) if setting else tuple(_DRIVERS)
    served = [variant for variant in candidates if version >= _DRIVERS[variant]]
    for variant in served:
        if _native.built(variant):
            return Choice(variant)
    serves = f"the NVIDIA driver serves CUDA {version // 1000}.{version % 1000 // 10}"
    if not served:
        oldest = min(_DRIVERS[variant] for variant in candidates)
        return Choice(None, f"{serves}, expected {oldest // 1000}.0 or newer: install a newer driver")
    return Choice(None, f"{serves}, and this installation holds no variant for it (wanted: {', '.join(served)})")


def count(choice: Choice) -> tuple[int, str | None]:
    """Visible devices of a choice without starting it, and the reason where there are none."""
    if choice.variant is None:
        return 0, choice.reason
    if choice.variant == "emulated":
        return _emulated_count()
    found = _driver.device_count()
    setting = os.environ.get("CUDA_VISIBLE_DEVICES")
    if found:
        return found, None
    if setting is None:
        return 0, "the NVIDIA driver is there, but finds no GPU"
    return 0, f"the NVIDIA driver is there, but CUDA_VISIBLE_DEVICES={setting!r} leaves no GPU visible"


def _emulated_count() -> tuple[int, str | None]:
    """As the emulated device reads its variable when it starts."""
    setting = os.environ.get(DEVICES_VARIABLE, "1")
    if not setting.isascii() or not setting.isdigit() or int(setting) > MAX_EMULATED_DEVICES:
        return 0, f"{DEVICES_VARIABLE}: got {setting!r}, expected a number from 0 to {MAX_EMULATED_DEVICES}"
    return int(setting), None if int(setting) else f"{DEVICES_VARIABLE} is {setting}"
