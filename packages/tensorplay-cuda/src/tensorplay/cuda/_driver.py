"""What the NVIDIA driver says of itself, without starting it.

Neither question calls cuInit in this process, so that a fork afterwards is harmless: the version of the
driver needs no start, and devices are counted by NVML, or by a short-lived child where NVML cannot say.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys

from tensorplay._fault import Fault

from . import _loader, _nvml
from ._visible import visible

SONAME = "libcuda.so.1"

_CHILD = f"""
import ctypes
cuda = ctypes.CDLL({SONAME!r})
count = ctypes.c_int(0)
status = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
print(0 if status else count.value)
"""
_CHILD_LIMIT_S = 60.0

# Made by the driver's part in the kernel, which containers share with their host.
_CONTROL = "/dev/nvidiactl"


class DriverError(Exception):
    """No usable driver."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


@functools.cache
def driver_version() -> int:
    """The newest CUDA that the driver serves, as CUDA counts: 13000 is 13.0.

    Raises
    ------
    DriverError
        There is no driver library, or it is a stub.
    """
    try:
        cuda = ctypes.CDLL(SONAME)
    except OSError as error:
        raise DriverError(_not_loaded(str(error))) from None
    path = _loader.path_of(cuda)
    other = _loader.instead_of(path)
    version = ctypes.c_int(0)
    try:
        status = int(cuda.cuDriverGetVersion(ctypes.byref(version)))
    except AttributeError:
        problem = f"no NVIDIA driver: {path} is no driver's library, it has no cuDriverGetVersion"
        raise DriverError(Fault("driver-broken", problem, other)) from None
    if status:
        problem = (
            f"no NVIDIA driver: cuDriverGetVersion of {path} returns {status}, expected 0; "
            "a stub library of a toolkit does that when it is found before the driver's"
        )
        raise DriverError(Fault("driver-stub", problem, other))
    return version.value


def _not_loaded(text: str) -> Fault:
    problem = f"no NVIDIA driver: {SONAME} does not load ({text})"
    if not text.startswith(f"{SONAME}: cannot open shared object file: No such file"):
        return Fault("driver-broken", problem, f"type `ldconfig -p | grep {SONAME}` to see which others there are")
    if os.path.exists(_CONTROL):
        advice = f"{_CONTROL} is there: start the container with the driver's libraries, `docker run --gpus all`"
    else:
        advice = "install NVIDIA's driver, or type `export TENSORPLAY_CUDA_RUNTIME=emulated` for tests"
    return Fault("driver-missing", problem, advice)


def is_loaded() -> bool:
    """Whether anything in this process has loaded the driver's library; loads nothing."""
    try:
        ctypes.CDLL(SONAME, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return False
    return True


def device_count() -> int:
    """Visible devices, 0 where the driver finds none; read afresh with the variables of the environment."""
    setting = os.environ.get("CUDA_VISIBLE_DEVICES")
    if setting is not None and not setting.strip():
        return 0
    uuids = _nvml.uuids()
    count = None if uuids is None else visible(setting, uuids)
    return _count_in_child(setting, os.environ.get("CUDA_DEVICE_ORDER")) if count is None else count


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
