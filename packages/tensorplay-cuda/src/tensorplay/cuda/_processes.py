"""What other processes hold of a device, as NVML tells where it is there.

In a container NVML shows the processes of the container only, or numbers of the host; memory of a process that it may
not look into is left out.
"""

from __future__ import annotations

import ctypes
import os

from . import _driver, _nvml

_BUS_ID_NBYTES = 32
_MOST = 64
_UNKNOWN = 2**64 - 1  # NVML_VALUE_NOT_AVAILABLE


class _Process(ctypes.Structure):
    """nvmlProcessInfo_t since version 2 of the call."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


def others(index: int) -> dict[int, int]:
    """Bytes of other processes by their number, the largest first; empty where nobody tells.

    Parameters
    ----------
    index : int
        A device of this process, which has started the driver.
    """
    try:
        cuda = ctypes.CDLL(_driver.SONAME)
        device, bus_id = ctypes.c_int(0), ctypes.create_string_buffer(_BUS_ID_NBYTES)
        if cuda.cuDeviceGet(ctypes.byref(device), index) or cuda.cuDeviceGetPCIBusId(bus_id, _BUS_ID_NBYTES, device):
            return {}
    except (OSError, AttributeError):
        return {}
    found = _nvml.ask(lambda nvml: _held(nvml, bus_id)) or {}
    found.pop(os.getpid(), None)
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _held(nvml: ctypes.CDLL, bus_id: ctypes.Array[ctypes.c_char]) -> dict[int, int]:
    device, count, list_of = ctypes.c_void_p(), ctypes.c_uint(_MOST), (_Process * _MOST)()
    if nvml.nvmlDeviceGetHandleByPciBusId_v2(bus_id, ctypes.byref(device)):
        return {}
    if nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(count), list_of):
        return {}
    return {process.pid: process.used for process in list_of[: count.value] if process.used != _UNKNOWN}
