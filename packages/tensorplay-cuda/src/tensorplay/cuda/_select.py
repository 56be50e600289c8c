"""Which variant of libtensorplay serves this process, and why none does.

Nothing here starts anything: `choose` reads the environment afresh until `tensorplay.cuda._library` fixes
its answer.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from tensorplay import _wheels
from tensorplay._fault import Fault
from tensorplay.errors import BackendUnavailableError

from . import _driver

VARIABLE = "TENSORPLAY_CUDA_RUNTIME"
DEVICES_VARIABLE = "TENSORPLAY_EMULATED_DEVICES"
MAX_EMULATED_DEVICES = 8  # EMU_MAX_DEVICES
VARIANTS = ("cuda12", "cuda13", "emulated")

# The oldest driver that serves a variant, as CUDA counts and as NVIDIA numbers them; the newest variant first.
_DRIVERS = {"cuda13": (13000, "580"), "cuda12": (12000, "525")}

# Without it nothing can be loaded.
MODULE_MISSING = "module-missing"
# A variable of ours has a value that it does not take.
SETTING_UNKNOWN = "setting-unknown"
REINSTALL = _wheels.install_anew("tensorplay-cuda")


@dataclass(frozen=True)
class Choice:
    """A variant and why it was chosen, or the fault because of which there is none."""

    variant: str | None
    why: str = ""
    fault: Fault | None = None


def choose() -> Choice:
    """The variant that the environment, the installation and the driver give now."""
    setting = os.environ.get(VARIABLE, "")
    if setting == "none":
        return _none("switched-off", f"{VARIABLE} is none", f"type `unset {VARIABLE}` to use a GPU")
    if setting and setting not in VARIANTS:
        valid = ", ".join((*VARIANTS, "none"))
        problem = f"{VARIABLE}: got {setting!r}, expected one of {valid}, or that it is unset"
        return _none(SETTING_UNKNOWN, problem, f"type `unset {VARIABLE}`")
    if not setting:
        return _served(tuple(_DRIVERS))
    choice = built((setting,), f"{VARIABLE} is {setting}")
    if choice.variant in (None, "emulated"):
        return choice
    served = _served((setting,))
    return choice if served.variant else served


def built(variants: tuple[str, ...], why: str) -> Choice:
    """The first of these that this installation holds, whatever the driver serves; `why` says who asks."""
    try:
        from . import _native
    except BackendUnavailableError as error:
        lacks_cffi = getattr(error.__cause__, "name", None) == "_cffi_backend"
        return _none(MODULE_MISSING, str(error), f"type {'`python -m pip install cffi`' if lacks_cffi else REINSTALL}")
    for variant in variants:
        if _native.built(variant):
            return Choice(variant, why)
    have = ", ".join(variant for variant in VARIANTS if _native.built(variant)) or "none"
    problem = f"{why}, and {' or '.join(variants)} was not built into this installation (built: {have})"
    unset = f"type `unset {VARIABLE}`, or " if why.startswith(VARIABLE) else ""
    return _none("variant-missing", problem, f"{unset}install a wheel that holds it: {REINSTALL}")


def _served(candidates: tuple[str, ...]) -> Choice:
    """The first of the candidates that the driver serves and that was built."""
    try:
        version = _driver.driver_version()
    except _driver.DriverError as error:
        return Choice(None, fault=error.fault)
    serves = f"the NVIDIA driver serves CUDA {version // 1000}.{version % 1000 // 10}"
    served = tuple(variant for variant in candidates if version >= _DRIVERS[variant][0])
    if served:
        return built(served, serves)
    needed, release = min(_DRIVERS[variant] for variant in candidates)
    problem = f"{serves}, expected {needed // 1000}.0 or newer"
    unset = f"type `unset {VARIABLE}`, or " if os.environ.get(VARIABLE) else ""
    advice = f"{unset}type `nvidia-smi` to see the driver's version, and install {release} or newer"
    return _none("driver-old", problem, advice)


def _none(code: str, problem: str, advice: str) -> Choice:
    return Choice(None, fault=Fault(code, problem, advice))


def count(choice: Choice) -> tuple[int, Fault | None]:
    """Visible devices of a choice without starting it, and the fault where there are none."""
    if choice.variant is None:
        return 0, choice.fault
    if choice.variant == "emulated":
        return _emulated_count()
    found = _driver.device_count()
    setting = os.environ.get("CUDA_VISIBLE_DEVICES")
    if found:
        return found, None
    if setting is None:
        problem = "the NVIDIA driver is there, but finds no GPU"
        return 0, Fault("device-missing", problem, "type `nvidia-smi -L` and `ls -l /dev/nvidia*` to see it")
    problem = f"the NVIDIA driver is there, but CUDA_VISIBLE_DEVICES={setting!r} leaves no GPU visible"
    return 0, Fault("device-hidden", problem, "type `unset CUDA_VISIBLE_DEVICES`")


def _emulated_count() -> tuple[int, Fault | None]:
    """As the emulated device reads its variable when it starts."""
    setting = os.environ.get(DEVICES_VARIABLE, "1")
    advice = f"type `export {DEVICES_VARIABLE}=1`"
    if not setting.isascii() or not setting.isdigit() or int(setting) > MAX_EMULATED_DEVICES:
        problem = f"{DEVICES_VARIABLE}: got {setting!r}, expected a number from 0 to {MAX_EMULATED_DEVICES}"
        return 0, Fault(SETTING_UNKNOWN, problem, advice)
    if not int(setting):
        return 0, Fault("device-hidden", f"{DEVICES_VARIABLE} is {setting}", advice)
    return int(setting), None
