"""What the NVIDIA driver says of itself, without starting it.

Neither question calls cuInit in this process, so that a fork afterwards is harmless: the version of the
driver needs no start, and devices are counted by NVML, or by a short-lived child where NVML cannot say.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys

from ._visible import visible

_CHILD = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
count = ctypes.c_int(0)
status = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
print(0 if status else count.value)
"""
_CHILD_LIMIT_S = 60.0
_UUID_NBYTES = 96  # NVML_DEVICE_UUID_V2_BUFFER_SIZE


class DriverError(Exception):
    """No usable driver; the text is a sentence that says what was looked for and what was found."""


@functools.cache
def driver_version() -> int:
    """The newest CUDA that the driver serves, as CUDA counts: 13000 is 13.0.

    Raises
    ------
    DriverError
        There is no driver library, or it is a stub.
    """
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise DriverError(
            f"no NVIDIA driver: libcuda.so.1 does not load ({error}); "
            "TENSORPLAY_CUDA_RUNTIME=emulated runs an emulated device, for tests"
        ) from None
    version = ctypes.c_int(0)
    try:
        status = int(cuda.cuDriverGetVersion(ctypes.byref(version)))
    except AttributeError:
        raise DriverError("no NVIDIA driver: the libcuda.so.1 found has no cuDriverGetVersion") from None
    if status:
        raise DriverError(
            f"no NVIDIA driver: cuDriverGetVersion of the libcuda.so.1 found returns {status}, expected 0; "
            "a stub library of a toolkit does that when it is found before the driver's"
        )
    return version.value


def is_loaded() -> bool:
    """Whether anything in this process has loaded the driver's library; loads nothing."""
    try:
        ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return False
    return True


def device_count() -> int:
    """Visible devices, 0 where the driver finds none; read afresh with the variables of the environment."""
    setting = os.environ.get("CUDA_VISIBLE_DEVICES")
    if setting is not None and not setting.strip():
        return 0
    uuids = _nvml_uuids()
    count = None if uuids is None else visible(setting, uuids)
    return _count_in_child(setting, os.environ.get("CUDA_DEVICE_ORDER")) if count is None else count


def _nvml_uuids() -> list[str] | None:
    """Identifiers of the machine's GPUs in NVML's order; None when NVML cannot say which CUDA will see."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        if nvml.nvmlInit_v2():
            return None
    except (OSError, AttributeError):
        return None
    try:
        return _ask_uuids(nvml)
    except AttributeError:
        return None
    finally:
        nvml.nvmlShutdown()


def _ask_uuids(nvml: ctypes.CDLL) -> list[str] | None:
    count = ctypes.c_uint(0)
    if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)):
        return None
    uuids = []
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
        uuids.append(text.value.decode())
    return uuids


@functools.cache
def _count_in_child(visible_devices: str | None, order: str | None) -> int:
    """Asks CUDA itself in another process; kept for each setting of the two variables, which it inherits."""
    import subprocess  # takes milliseconds, and is seldom needed

    if not sys.executable:
        return 0
    try:
        done = subprocess.run(
            [sys.executable, "-S", "-c", _CHILD], capture_output=True, text=True, timeout=_CHILD_LIMIT_S, check=False
        )
        return int(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0
