"""What the doctor tells of CUDA, on devices that work and on devices that do not."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers import fresh

from tensorplay import cuda
from tensorplay._fault import Fault
from tensorplay.cuda import _blas, _diagnosis, _native, _probe, _select


def test_each_device_is_shown_with_what_it_is(gpu: None) -> None:
    facts, faults = _diagnosis.diagnose()
    assert faults == []
    assert [row["index"] for row in facts["found"]] == list(range(cuda.device_count()))
    for row in facts["found"]:
        found = cuda.get_device_properties(row["index"])
        assert row["name"] == found.name
        assert row["capability"] == f"{found.major}.{found.minor}"
        assert row["total_bytes"] == found.total_memory
        assert 0 < row["free_bytes"] <= row["total_bytes"]
        assert row["works"] is True
    assert facts["kernels"] == ", ".join(cuda.get_arch_list())


def test_each_library_is_shown_with_its_place(gpu: None) -> None:
    variant = cuda._library.native.choice().variant
    rows = {row["name"]: row for row in _diagnosis.diagnose()[0]["libraries"]}
    assert rows[f"libtensorplay_{variant}.so"] == {
        "name": f"libtensorplay_{variant}.so",
        "path": str(_native.library_of(str(variant))),
        "problem": None,
    }
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        assert rows[name]["path"] or "cannot open shared object file" in rows[name]["problem"]


def test_nothing_is_started_in_this_process(gpu: None) -> None:
    printed = fresh.run("""
        import tensorplay as tp
        from tensorplay import doctor
        found = doctor.report()["backends"]["cuda"]
        print(found["started"], tp.cuda.is_initialized(), found["found"][0]["works"], found["why"] is not None)
    """)
    assert printed == "False False True True\n"


def test_every_place_of_cublas_is_shown_until_one_loads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "libcublasLt.so.13"
    broken.write_text("not a library")
    monkeypatch.setattr(_blas, "candidates", lambda major: iter([str(broken), "libc.so.6", "never asked for"]))
    first, second = [row for row in _probe.libraries("cuda13") if row["name"] == "libcublasLt.so.13"]
    assert first["path"] == str(broken)
    assert "libcublasLt.so.13" in str(first["problem"])
    assert second["problem"] is None
    assert str(second["path"]).endswith("/libc.so.6")
    assert not [row for row in _probe.libraries("emulated") if "cublas" in str(row["name"])]


def test_a_device_without_room_is_a_fault() -> None:
    code = """
        import tensorplay.doctor
        found = tensorplay.doctor.report()
        print([row["works"] for row in found["backends"]["cuda"]["found"]])
        for fault in found["faults"]:
            print(fault["code"], fault["problem"], fault["advice"])
    """
    small = {"TENSORPLAY_EMULATED_MEMORY": "1KiB", "TENSORPLAY_EMULATED_DEVICES": "1"}
    works, fault = fresh.run(code, TENSORPLAY_CUDA_RUNTIME="emulated", **small).splitlines()
    assert works == "[False]"
    assert fault.startswith("device-fails cuda:0 does not work: OutOfMemoryError: allocate: cuda:0 has no room")
    assert "`env | grep _EMULATED_`" in fault


@pytest.mark.parametrize(
    ("error", "typed"),
    [
        ("cudaErrorMemoryAllocation", "`nvidia-smi`"),
        ("cudaErrorDevicesUnavailable", "-d COMPUTE`"),
        ("cudaErrorSystemNotReady", "nvidia-fabricmanager`"),
        ("cudaErrorSystemDriverMismatch", "`sudo reboot`"),
        ("cudaErrorCompatNotSupportedOnDevice", "`echo $LD_LIBRARY_PATH`"),
        ("cudaErrorUnknown", "dmesg"),
    ],
)
def test_a_device_that_fails_is_a_fault_with_what_helps(
    emulated: None, monkeypatch: pytest.MonkeyPatch, error: str, typed: str
) -> None:
    from tensorplay.testing import emulated as control

    monkeypatch.setattr(_probe, "native", SimpleNamespace(choice=lambda: _select.Choice("cuda13")))
    cuda.empty_cache()
    with control.fail("cudaLaunchKernel", error=error):
        row, fault = _probe.device(0)
    assert row["works"] is False
    assert fault is not None
    assert fault.code == "device-fails"
    assert typed in fault.advice
    assert _probe.device(0)[1] is None


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import os; os._exit(3)", "exit status 3, without a word"),
        ("raise ImportError('libfoo.so')", "exit status 1, ImportError: libfoo.so"),
        ("print('no JSON')", "Expecting value"),
        ("import time; time.sleep(60)", "timed out after 0.5 seconds"),
    ],
)
def test_a_process_that_fails_is_a_fault(gpu: None, monkeypatch: pytest.MonkeyPatch, program: str, words: str) -> None:
    monkeypatch.setattr(_diagnosis, "_COMMAND", ("-c", program))
    if "sleep" in program:
        monkeypatch.setattr(_diagnosis, "LIMIT_S", 0.5)
    facts, (fault,) = _diagnosis.diagnose()
    assert facts == {}
    assert fault.code == "probe-failed"
    assert words in fault.problem
    assert re.search("`python -X faulthandler .*`", fault.advice)


def test_what_others_print_at_start_is_no_fault(gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    program = "print('hello'); print('{\"found\": [], \"faults\": []}')"
    monkeypatch.setattr(_diagnosis, "_COMMAND", ("-c", program))
    assert _diagnosis.diagnose() == ({"found": []}, [])


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TENSORPLAY_CUDA_ALLOC_CONF", "rubbish:3"),
        ("TENSORPLAY_CUDA_SANITIZER", "maybe"),
        ("TENSORPLAY_EMULATED_MEMORY", "lots"),
        ("TENSORPLAY_EMULATED_SEED", "x"),
        ("TENSORPLAY_LAUNCH_BLOCKING", "yes"),
    ],
)
def test_a_value_that_no_device_starts_with_is_one_fault_that_names_the_variable(variable: str, value: str) -> None:
    code = """
        import tensorplay.doctor
        found = tensorplay.doctor.report()
        for fault in found["faults"]:
            print(fault["code"], fault["advice"])
    """
    two = {"TENSORPLAY_CUDA_RUNTIME": "emulated", "TENSORPLAY_EMULATED_DEVICES": "2", variable: value}
    assert fresh.run(code, **two) == f"setting-unknown type `unset {variable}`, or set a value that it takes\n"


def test_a_damaged_kernel_image_is_a_fault_of_the_installation(tmp_path: Path) -> None:
    for image in _native.kernels_of("emulated").iterdir():
        (tmp_path / image.name).write_bytes(b"")
    code = f"""
        from tensorplay.cuda import _probe
        from tensorplay.cuda._library import native
        native.tp_kernels_set_path(b"{tmp_path}")
        fault = _probe.device(0)[1]
        print(fault.code, fault.advice)
    """
    printed = fresh.run(code, TENSORPLAY_CUDA_RUNTIME="emulated")
    assert printed.startswith("files-damaged type `python -m pip install --force-reinstall")


def test_without_cffi_that_is_what_to_install() -> None:
    code = """
        import sys
        sys.modules["_cffi_backend"] = None
        from tensorplay import cuda
        print(cuda.unavailable_reason())
    """
    assert fresh.run(code, TENSORPLAY_CUDA_RUNTIME="emulated").endswith("; type `python -m pip install cffi`\n")


def test_without_the_compiled_module_nothing_is_asked() -> None:
    code = """
        import sys
        sys.modules["tensorplay.cuda._native.lib._tensorplay"] = None
        import tensorplay.doctor
        found = tensorplay.doctor.report()
        print([fault["code"] for fault in found["faults"]], found["faults"][0]["advice"])
    """
    printed = fresh.run(code, TENSORPLAY_CUDA_RUNTIME="emulated")
    assert printed.startswith("['module-missing'] type `python -m pip install --force-reinstall")


def test_a_fault_is_one_sentence() -> None:
    assert str(Fault("cold", "too cold", "type `warm`")) == "too cold; type `warm`"
