"""What is asked of a driver before it is started, against small libraries that stand in for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers import fresh
from helpers.compiled import shared_library

# Every start of the driver leaves the process's number in $STARTS.
CUDA = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int cuDriverGetVersion(int *version) { *version = VERSION; return STATUS; }
int cuInit(unsigned flags) {
  FILE *file = fopen(getenv("STARTS"), "a");
  fprintf(file, "%d\\n", (int)getpid());
  fclose(file);
  return flags;
}
int cuDeviceGetCount(int *count) { *count = 5; return 0; }
"""
NVML = """
#include <stdio.h>
int nvmlInit_v2(void) { return STATUS; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 3; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = (void *)(index + 1L); return 0; }
int nvmlDeviceGetUUID(void *device, char *text, unsigned room) {
  snprintf(text, room, "GPU-%ld0", (long)device);
  return 0;
}
int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *later) { *now = *later = MIG; return device ? 0 : 1; }
"""
# A folder in which `_select` finds every variant.
ALL_BUILT = """
from pathlib import Path
from tensorplay.cuda import _driver, _native, _select
_native.FOLDER = Path({folder!r})
for variant in _select.VARIANTS:
    (_native.FOLDER / f"libtensorplay_{{variant}}.so").touch()
import tensorplay.cuda as cuda
"""


class Machine:
    """A search path with libraries of ours, and the log of the driver's starts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "starts"

    def add(self, soname: str, source: str, **macros: int) -> None:
        shared_library(self.folder / soname, source, **macros)

    def run(self, code: str, **environment: str | None) -> str:
        return fresh.run(
            ALL_BUILT.format(folder=str(self.folder)) + code,
            **{
                "LD_LIBRARY_PATH": str(self.folder),
                "STARTS": str(self.log),
                "TENSORPLAY_CUDA_RUNTIME": None,
                "CUDA_VISIBLE_DEVICES": None,
                **environment,
            },
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_stub_library_is_told_from_a_driver(machine: Machine) -> None:
    machine.add("libcuda.so.1", CUDA, VERSION=0, STATUS=34)
    out = machine.run("print(cuda.is_available(), cuda.unavailable_reason())")
    assert out.startswith(f"False no NVIDIA driver: cuDriverGetVersion of {machine.folder}/libcuda.so.1 returns 34")


def test_library_without_the_function(machine: Machine) -> None:
    machine.add("libcuda.so.1", "int nothing;")
    assert "is no driver's library, it has no cuDriverGetVersion" in machine.run("print(cuda.unavailable_reason())")


def test_broken_library_is_told_with_the_loaders_text(machine: Machine) -> None:
    (machine.folder / "libcuda.so.1").write_text("not a library")
    out = machine.run("print(cuda.is_available(), cuda.unavailable_reason())")
    assert out.startswith("False no NVIDIA driver: libcuda.so.1 does not load (")
    assert str(machine.folder) in out
    assert "`ldconfig -p | grep libcuda.so.1`" in out


@pytest.mark.parametrize(
    ("control", "advice"), [("/", "`docker run --gpus all`"), ("/nowhere", "install NVIDIA's driver")]
)
def test_no_library_is_told_from_a_container_without_it(machine: Machine, control: str, advice: str) -> None:
    code = f"""
_driver.SONAME, _driver._CONTROL = "libno-such-driver.so.1", {control!r}
print(cuda.is_available(), cuda.unavailable_reason())
"""
    out = machine.run(code)
    assert out.startswith("False no NVIDIA driver: libno-such-driver.so.1 does not load (")
    assert advice in out


@pytest.mark.parametrize(
    ("searched", "typed"),
    [
        ("{folder}", "unset LD_LIBRARY_PATH"),
        ("/somewhere:{folder}/:/elsewhere", "export LD_LIBRARY_PATH=/somewhere:/elsewhere"),
        ("{folder}:/some where", "export LD_LIBRARY_PATH='/some where'"),
    ],
)
def test_stub_on_the_search_path_is_taken_off(machine: Machine, searched: str, typed: str) -> None:
    machine.add("libcuda.so.1", CUDA, VERSION=0, STATUS=34)
    code = "print(cuda.unavailable_reason())"
    printed = machine.run(code, LD_LIBRARY_PATH=searched.format(folder=machine.folder))
    assert f"; type `{typed}` so that another libcuda.so.1 is found" in printed


def test_stub_that_is_loaded_before_all_else_is_taken_off(machine: Machine) -> None:
    machine.add("libcuda.so.1", CUDA, VERSION=0, STATUS=34)
    printed = machine.run("print(cuda.unavailable_reason())", LD_PRELOAD=f"{machine.folder}/libcuda.so.1")
    assert "; type `unset LD_PRELOAD` so that another libcuda.so.1 is found" in printed


def test_old_driver(machine: Machine) -> None:
    machine.add("libcuda.so.1", CUDA, VERSION=11040, STATUS=0)
    assert "serves CUDA 11.4, expected 12.0 or newer" in machine.run("print(cuda.unavailable_reason())")


@pytest.mark.parametrize(("version", "variant"), [(12060, "cuda12"), (13000, "cuda13")])
def test_version_chooses_and_nvml_counts_without_a_start(machine: Machine, version: int, variant: str) -> None:
    machine.add("libcuda.so.1", CUDA, VERSION=version, STATUS=0)
    machine.add("libnvidia-ml.so.1", NVML, STATUS=0, MIG=0)
    out = machine.run("print(_select.choose().variant, cuda.device_count(), cuda.unavailable_reason())")
    assert out == f"{variant} 3 None\n"
    assert not machine.log.exists()


def test_visible_devices_is_read_afresh(machine: Machine) -> None:
    machine.add("libcuda.so.1", CUDA, VERSION=13000, STATUS=0)
    machine.add("libnvidia-ml.so.1", NVML, STATUS=0, MIG=0)
    code = """
import os
for setting in ("0,2", "GPU-2", "", "-1", "7"):
    os.environ["CUDA_VISIBLE_DEVICES"] = setting
    print(cuda.device_count(), cuda.unavailable_reason())
del os.environ["CUDA_VISIBLE_DEVICES"]
print(cuda.device_count())
"""
    hidden = (
        "the NVIDIA driver is there, but CUDA_VISIBLE_DEVICES={!r} leaves no GPU visible; "
        "type `unset CUDA_VISIBLE_DEVICES`"
    )
    assert machine.run(code).splitlines() == [
        "2 None",
        "1 None",
        f"0 {hidden.format('')}",
        f"0 {hidden.format('-1')}",
        f"0 {hidden.format('7')}",
        "3",
    ]
    assert not machine.log.exists()


@pytest.mark.parametrize("nvml", [None, {"STATUS": 1, "MIG": 0}, {"STATUS": 0, "MIG": 1}])
def test_a_child_counts_where_nvml_cannot(machine: Machine, nvml: dict[str, int] | None) -> None:
    machine.add("libcuda.so.1", CUDA, VERSION=13000, STATUS=0)
    if nvml is None:
        (machine.folder / "libnvidia-ml.so.1").write_text("not a library")
    else:
        machine.add("libnvidia-ml.so.1", NVML, **nvml)
    out = machine.run("import os; print(os.getpid(), cuda.device_count(), cuda.device_count())")
    process, *counts = out.split()
    assert counts == ["5", "5"]
    starts = machine.log.read_text().split()
    assert len(starts) == 1  # asked once, and elsewhere
    assert starts != [process]


DOCTOR = """
import json, tensorplay.doctor
found = tensorplay.doctor.report()
where = {row["name"]: row["path"] or row["problem"] for row in found["backends"]["cuda"]["libraries"]}
print(json.dumps([[fault["code"] for fault in found["faults"]], found["faults"], where]))
"""


@pytest.mark.parametrize(
    ("code", "version", "status", "gpus"),
    [
        ("driver-stub", 0, 34, None),
        ("driver-old", 11040, 0, None),
        ("device-hidden", 13000, 0, "-1"),
    ],
)
def test_the_doctor_says_what_is_wrong_where_and_what_to_type(
    machine: Machine, code: str, version: int, status: int, gpus: str | None
) -> None:
    machine.add("libcuda.so.1", CUDA, VERSION=version, STATUS=status)
    machine.add("libnvidia-ml.so.1", NVML, STATUS=0, MIG=0)
    codes, faults, where = json.loads(machine.run(DOCTOR, CUDA_VISIBLE_DEVICES=gpus))
    assert codes == [code]
    assert "`" in faults[0]["advice"]
    assert where["libcuda.so.1"] == f"{machine.folder}/libcuda.so.1"
    assert where["libnvidia-ml.so.1"] == f"{machine.folder}/libnvidia-ml.so.1"
    assert not machine.log.exists()


def test_the_doctor_shows_a_library_that_does_not_load(machine: Machine) -> None:
    (machine.folder / "libcuda.so.1").write_text("not a library")
    codes, _, where = json.loads(machine.run(DOCTOR))
    assert codes == ["driver-broken"]
    assert str(machine.folder) in where["libcuda.so.1"]


@pytest.mark.parametrize(("gpus", "shown"), [("0,9,1", "names 3 devices and shows 1: 9 is none"), ("0,2", None)])
def test_a_list_that_is_cut_short_is_a_fault(machine: Machine, gpus: str, shown: str | None) -> None:
    machine.add("libcuda.so.1", CUDA, VERSION=13000, STATUS=0)
    machine.add("libnvidia-ml.so.1", NVML, STATUS=0, MIG=0)
    code = """
from tensorplay.cuda import _diagnosis
_diagnosis._COMMAND = ("-c", "print('{\\"faults\\": []}')")
for fault in _diagnosis.diagnose()[1]:
    print(fault.code, fault)
"""
    printed = machine.run(code, CUDA_VISIBLE_DEVICES=gpus)
    if shown is None:
        assert printed == ""
    else:
        assert printed.startswith("device-hidden ")
        assert shown in printed
        assert "`export CUDA_VISIBLE_DEVICES=0`" in printed


def test_a_driver_without_a_gpu(machine: Machine) -> None:
    machine.add("libcuda.so.1", CUDA.replace("*count = 5", "*count = 0"), VERSION=13000, STATUS=0)
    machine.add("libnvidia-ml.so.1", NVML.replace("*count = 3", "*count = 0"), STATUS=0, MIG=0)
    out = machine.run("print(cuda.unavailable_reason())")
    assert out.startswith("the NVIDIA driver is there, but finds no GPU; type `nvidia-smi -L`")
    codes, _, _ = json.loads(machine.run(DOCTOR))
    assert codes == ["device-missing"]


REFUSED = """
import os
import tensorplay as tp
assert cuda.is_available() is False and tp.ones(3).sum().item() == 3
reason = cuda.unavailable_reason()
for call in (lambda: tp.ones(3, device="cuda"), lambda: tp.ones(3).cuda(), cuda.Stream, cuda.mem_get_info):
    try:
        call()
    except tp.errors.BackendUnavailableError as error:
        assert str(error).endswith(reason), error
    else:
        raise AssertionError
assert not cuda.is_initialized() and "/libtensorplay_" not in Path("/proc/self/maps").read_text()
_native.FOLDER = Path(_native.__file__).parent / "lib"
os.environ["TENSORPLAY_CUDA_RUNTIME"] = "emulated"
assert cuda.is_available() and tp.ones(3, device="cuda").sum().item() == 3
print(reason)
"""


@pytest.mark.parametrize(
    ("driver", "gpus", "words"),
    [
        (None, None, "libcuda.so.1 does not load"),
        ((0, 34), None, "cuDriverGetVersion"),
        ((11040, 0), None, "serves CUDA 11.4"),
        ((13000, 0), "-1", "CUDA_VISIBLE_DEVICES='-1'"),
    ],
    ids=["broken", "stub", "old", "hidden"],
)
def test_a_device_call_raises_the_cause_and_leaves_nothing_behind(
    machine: Machine, driver: tuple[int, int] | None, gpus: str | None, words: str
) -> None:
    """A package for one CUDA major asked for another's library when it was imported, and named a file and no cause."""
    for soname in ("libcudart.so.12", "libcudart.so.13", "libcublasLt.so.12", "libcublasLt.so.13", "libcuda.so.1"):
        (machine.folder / soname).write_text("not a library")
    if driver is not None:
        machine.add("libcuda.so.1", CUDA, VERSION=driver[0], STATUS=driver[1])
        machine.add("libnvidia-ml.so.1", NVML, STATUS=0, MIG=0)
    assert words in machine.run(REFUSED, CUDA_VISIBLE_DEVICES=gpus)
    assert not machine.log.exists()


def test_release_of_the_driver(machine: Machine) -> None:
    version = """
#include <stdio.h>
int nvmlSystemGetDriverVersion(char *text, unsigned room) { snprintf(text, room, "580.95.05"); return 0; }
"""
    machine.add("libcuda.so.1", CUDA, VERSION=13000, STATUS=0)
    machine.add("libnvidia-ml.so.1", NVML + version, STATUS=0, MIG=0)
    assert machine.run("from tensorplay.cuda import _probe; print(_probe.driver())") == "580.95.05, serves CUDA 13.0\n"
    machine.add("libnvidia-ml.so.1", NVML, STATUS=0, MIG=0)
    assert machine.run("from tensorplay.cuda import _probe; print(_probe.driver())").startswith("of unknown version")
