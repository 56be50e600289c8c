"""Loads every library and starts every device, and prints what came of it: a program for a process of its own."""

from __future__ import annotations

import ctypes
import json
import os
from dataclasses import asdict
from typing import Any

import tensorplay
from tensorplay import _environment
from tensorplay._fault import Fault
from tensorplay.errors import BackendUnavailableError, TensorPlayError

from . import _blas, _driver, _loader, _native, _nvml, _select, memory
from ._library import native
from .device import device_count, get_arch_list, get_device_properties

# By the name of CUDA's error.
_ADVICE = {
    "OutOfMemoryError": "type `nvidia-smi` to see which processes hold its memory",
    "cudaErrorDevicesUnavailable": "type `nvidia-smi -q -d COMPUTE` to see whether one process may have it for itself",
    "cudaErrorSystemNotReady": "type `sudo systemctl restart nvidia-fabricmanager`",
    "cudaErrorSystemDriverMismatch": "type `sudo reboot`: the driver's libraries and its part in the kernel differ",
    "cudaErrorCompatNotSupportedOnDevice": "type `echo $LD_LIBRARY_PATH`, and take cuda-compat's folder off it",
}
_DEFAULT_ADVICE = "type `nvidia-smi` and `sudo dmesg | grep -i nvrm` to see what the driver says"
_EMULATED_ADVICE = "type `env | grep _EMULATED_` to see what the emulated device was told"


def libraries(variant: str | None) -> list[dict[str, str | None]]:
    """Each library that is looked for: where it is, or why it is not."""
    rows: list[dict[str, str | None]] = []
    for built in _select.VARIANTS:
        path = str(_native.library_of(built))
        rows.append(_row(f"libtensorplay_{built}.so", path, None if _native.built(built) else "not built"))
    rows += [_opened(_driver.SONAME, _driver.SONAME), _opened(_nvml.SONAME, _nvml.SONAME)]
    major = _blas.major_of(variant)
    for path in [] if major is None else _blas.candidates(major):
        rows.append(_opened(f"libcublasLt.so.{major}", path))
        if rows[-1]["problem"] is None:
            break
    return rows


def _opened(name: str, path: str) -> dict[str, str | None]:
    try:
        return _row(name, _loader.path_of(ctypes.CDLL(path)), None)
    except OSError as error:
        return _row(name, path if os.path.sep in path else None, str(error))


def _row(name: str, path: str | None, problem: str | None) -> dict[str, str | None]:
    return {"name": name, "path": path, "problem": problem}


def driver() -> str | None:
    """The driver's version, and the newest CUDA that it serves."""
    try:
        version = _driver.driver_version()
    except _driver.DriverError:
        return None
    return f"{_nvml.release() or 'of unknown version'}, serves CUDA {version // 1000}.{version % 1000 // 10}"


def device(index: int) -> tuple[dict[str, Any], Fault | None]:
    """What a device is, and the fault when it does not work."""
    row: dict[str, Any] = {"index": index}
    try:
        found = get_device_properties(index)
        row |= {"name": found.name, "capability": f"{found.major}.{found.minor}", "total_bytes": found.total_memory}
        where = tensorplay.device("cuda", index)
        if tensorplay.ones(1000, device=where).sum().item() != 1000:
            raise TensorPlayError("the sum of 1000 ones is another number")
        row["free_bytes"] = memory.mem_get_info(index)[0]
    except TensorPlayError as error:
        problem = f"cuda:{index} does not work: {type(error).__name__}: {str(error).splitlines()[0]}"
        return {**row, "works": False}, _fault(problem, error)
    return {**row, "works": True}, None


def _fault(problem: str, error: TensorPlayError) -> Fault:
    for name in _environment.settings():
        if name in _environment.OURS and name in problem:
            return Fault(_select.SETTING_UNKNOWN, problem, f"type `unset {name}`, or set a value that it takes")
    if isinstance(error, BackendUnavailableError) and "cudaError" not in problem:  # it is ours, then
        return Fault("files-damaged", problem, f"type {_select.REINSTALL}")
    return Fault("device-fails", problem, _advice(problem))


def _advice(problem: str) -> str:
    if native.choice().variant == "emulated":
        return _EMULATED_ADVICE
    return next((advice for name, advice in _ADVICE.items() if name in problem), _DEFAULT_ADVICE)


def main() -> None:
    """Prints one JSON object: the facts, and ``faults``."""
    variant = native.choice().variant
    found = []
    for index in range(device_count()):
        row, fault = device(index)
        found.append((row, fault))
        if fault is not None and fault.code == _select.SETTING_UNKNOWN:
            break  # the others would fail for the same reason
    serves = native.is_started and bool(native.tp_blas_is_loaded())
    facts = {
        "driver": driver(),
        "CUDA of the library": native.tp_cuda_version() if native.is_started else None,
        "matrix products": "cuBLASLt" if serves else "TensorPlay's own kernel",
        "kernels": ", ".join(get_arch_list()) or None,
        "found": [row for row, _ in found],
        "libraries": libraries(variant),
        "faults": [asdict(fault) for _, fault in found if fault is not None],
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
