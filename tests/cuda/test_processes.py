"""What other processes hold of a device, against small libraries that stand in for the driver's."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import fresh
from helpers.compiled import shared_library

CUDA = """
#include <stdio.h>
int cuDeviceGet(int *device, int index) { *device = index + 7; return STATUS; }
int cuDeviceGetPCIBusId(char *text, int room, int device) { snprintf(text, room, "bus %d", device); return 0; }
"""
NVML = """
#include <string.h>
#include <unistd.h>
struct process { unsigned pid; unsigned long long used; unsigned instance, compute; };
int nvmlInit_v2(void) { return STATUS; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device) {
  *device = &nvmlShutdown;
  return strcmp(bus, "bus 8");
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *out) {
  if (*count < 4) return 7;
  *count = 4;
  out[0] = (struct process){11, 500, 0, 0};
  out[1] = (struct process){12, ~0ull, 0, 0};
  out[2] = (struct process){13, 900, 0, 0};
  out[3] = (struct process){getpid(), 9000, 0, 0};
  return REFUSED;
}
"""
ASK = "from tensorplay.cuda import _processes; print(_processes.others({index}))"


def answer(folder: Path, index: int = 1, cuda: int = 0, nvml: int | None = 0, refused: int = 0) -> str:
    """What is printed where the calls of the two libraries return these; None: there is no NVML."""
    for soname, source, status in (("libcuda.so.1", CUDA, cuda), ("libnvidia-ml.so.1", NVML, nvml)):
        if status is not None:
            shared_library(folder / soname, source, STATUS=status, REFUSED=refused)
    return fresh.run(ASK.format(index=index), LD_LIBRARY_PATH=str(folder)).strip()


def test_other_processes_by_size(tmp_path: Path) -> None:
    assert answer(tmp_path) == "{13: 900, 11: 500}"  # neither ours, nor the one of which nothing is known


@pytest.mark.parametrize("broken", [{"cuda": 3}, {"nvml": 9}, {"refused": 4}, {"index": 0}], ids=str)
def test_nobody_tells(tmp_path: Path, broken: dict[str, int]) -> None:
    assert answer(tmp_path, **broken) == "{}"


def test_no_nvml(tmp_path: Path) -> None:
    assert answer(tmp_path, nvml=None) == "{}"
