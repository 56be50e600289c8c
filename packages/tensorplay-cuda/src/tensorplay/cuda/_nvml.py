"""What NVML, the driver's library for management, tells without a start of CUDA; it is never required."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TypeVar

SONAME = "libnvidia-ml.so.1"
_UUID_NBYTES = 96  # NVML_DEVICE_UUID_V2_BUFFER_SIZE
_VERSION_NBYTES = 80  # NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE

_T = TypeVar("_T")


def uuids() -> list[str] | None:
    """Identifiers of the machine's GPUs in NVML's order; None when NVML cannot say which CUDA will see."""
    return ask(_uuids)


def release() -> str | None:
    """The driver's own version, ``"580.95.05"``; None when NVML does not say."""
    return ask(_release)


def ask(question: Callable[[ctypes.CDLL], _T | None]) -> _T | None:
    """The answer of a function that gets NVML; None where NVML, or a function of it, is not there."""
    try:
        nvml = ctypes.CDLL(SONAME)
        if nvml.nvmlInit_v2():
            return None
    except (OSError, AttributeError):
        return None
    try:
        return question(nvml)
    except AttributeError:
        return None
    finally:
        nvml.nvmlShutdown()


def _release(nvml: ctypes.CDLL) -> str | None:
    text = ctypes.create_string_buffer(_VERSION_NBYTES)
    return None if nvml.nvmlSystemGetDriverVersion(text, ctypes.c_uint(_VERSION_NBYTES)) else text.value.decode()


def _uuids(nvml: ctypes.CDLL) -> list[str] | None:
    count = ctypes.c_uint(0)
    if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)):
        return None
    found = []
    for index in range(count.value):
        device = ctypes.c_void_p()
        text = ctypes.create_string_buffer(_UUID_NBYTES)
        if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)):
            return None
        if nvml.nvmlDeviceGetUUID(device, text, ctypes.c_uint(_UUID_NBYTES)):
            return None
        current, pending = ctypes.c_uint(0), ctypes.c_uint(0)
        status = nvml.nvmlDeviceGetMigMode(device, ctypes.byref(current), ctypes.byref(pending))
        if not status and current.value:
            return None  # CUDA counts the slices of such a GPU by rules of its own.
        found.append(text.value.decode())
    return found
