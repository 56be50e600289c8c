"""The report of `python -m tensorplay.doctor`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tensorplay
from tensorplay import _environment, _installation, _plugins, _wheels, doctor
from tensorplay._fault import Fault


def test_report_has_the_host_and_names_what_is_missing() -> None:
    found = doctor.report()
    assert found["backends"]["cpu"]["available"] is True
    assert set(found["distributions"]) >= {"tensorplay-core", "tensorplay-cuda", "numpy"}
    assert "float16" in found["dtypes"]
    cuda = found["backends"]["cuda"]
    # Whoever has no device is told why.
    assert cuda["available"] == (cuda["reason"] is None)


def test_environment_shows_what_changes_the_outcome() -> None:
    # In another process: the variables are read once in each.
    changed = {**os.environ, "TENSORPLAY_CUDA_RUNTIME": "none", "CUDA_VISIBLE_DEVICES": "1", "HOME_ADDRESS": "secret"}
    command = [sys.executable, "-m", "tensorplay.doctor"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=changed).stdout
    assert "  TENSORPLAY_CUDA_RUNTIME=none\n" in shown
    assert "  CUDA_VISIBLE_DEVICES=1\n" in shown
    assert "Devices of type 'cuda': not available" in shown
    assert "HOME_ADDRESS" not in shown


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_reader_that_left_early_is_no_error(options: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "tensorplay.doctor", *options]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("encoding", "value", "shown"),
    [
        ("latin-1", "/opt/€", r"/opt/\u20ac"),
        ("ascii", "/opt/é", r"/opt/\xe9"),
        ("utf-8", "/opt/\udcff", r"'/opt/\udcff'"),
        ("utf-8", "/opt\r", r"'/opt\r'"),
    ],
)
def test_what_the_output_cannot_show_is_escaped(encoding: str, value: str, shown: str) -> None:
    changed = {**os.environ, "PYTHONUTF8": "1", "PYTHONIOENCODING": encoding, "CUDA_PATH": value}
    command = [sys.executable, "-m", "tensorplay.doctor"]
    found = subprocess.run(command, capture_output=True, check=True, env=changed).stdout
    assert f"  CUDA_PATH={shown}\n".encode("ascii") in found


def test_a_backend_whose_import_fails_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(kind: str) -> Any:
        raise ImportError("libfoo.so.1: cannot open shared object file")

    monkeypatch.setattr(_plugins, "find", broken)
    report = doctor.report()
    found = report["backends"]["cuda"]
    assert found["available"] is False
    assert "libfoo.so.1" in found["reason"]
    fault = next(fault for fault in report["faults"] if "'cuda'" in fault["problem"])
    assert fault["code"] == "import-failed"
    assert fault["advice"] == f"type `python -m pip check`, then {_wheels.install_anew('tensorplay-cuda')}"


def test_the_accelerator_is_named_and_a_choice_that_is_none_is_a_fault() -> None:
    command = [sys.executable, "-m", "tensorplay.doctor", "--json"]
    for value in ("none", "cuba"):
        changed = {**os.environ, "TENSORPLAY_ACCELERATOR": value}
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=changed).stdout)
        assert found["accelerator"] is None
        assert "Accelerator: none\n" in doctor.text(found)
        faults = [fault for fault in found["faults"] if "TENSORPLAY_ACCELERATOR" in fault["problem"]]
        assert [fault["code"] for fault in faults] == ["setting-unknown"] * (value == "cuba")
    assert faults[0]["problem"].startswith("TENSORPLAY_ACCELERATOR: got 'cuba', expected one of ")
    assert faults[0]["advice"] == "type `unset TENSORPLAY_ACCELERATOR`, or set one of these"
    assert doctor.report()["accelerator"] == _plugins.accelerator_type()


def test_a_missing_distribution_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_plugins, "find", lambda kind: None)
    assert "tensorplay-cuda" in doctor.report()["backends"]["cuda"]["reason"]


def test_facts_of_a_backend_are_shown_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    class Backend:
        def is_available(self) -> bool:
            return True

        def unavailable_reason(self) -> None:
            return None

        def device_count(self) -> int:
            return 2

        def describe(self) -> dict[str, Any]:
            return {"variant": "cuda13", "names": ["first", "second"], "driver": None}

        def diagnose(self) -> tuple[dict[str, Any], list[Fault]]:
            return {"found": [{"index": 0, "name": "one", "problem": None}]}, [Fault("cold", "too cold", "type `warm`")]

    monkeypatch.setattr(_plugins, "find", lambda kind: Backend())
    text = doctor.text(doctor.report())
    block = text[text.index("Devices of type 'cuda'") :]
    assert block.splitlines() == [
        "Devices of type 'cuda': available",
        "  devices: 2",
        "  variant: cuda13",
        "  names:",
        "    first",
        "    second",
        "  found:",
        "    index: 0, name: one",
        "",
        "Faults",
        *2 * ["  cold: too cold", "    type `warm`"],  # the host is asked too
    ]


def install(folder: Path, name: str, version: str) -> None:
    """As an installer would note it."""
    notes = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    notes.mkdir()
    (notes / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_another_package_over_ours_is_a_fault(tmp_path: Path) -> None:
    ours = Path(str(tensorplay.__file__)).parent
    shutil.copytree(ours, tmp_path / "tensorplay", ignore=shutil.ignore_patterns("cuda", "accelerator", "__pycache__"))
    (tmp_path / "tensorplay" / "__init__.py").write_text('__version__ = "9.9"\n')
    install(tmp_path, "tensorplay", "9.9")
    shadowed = os.environ | {"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-m", "tensorplay.doctor"]
    for arguments in ([], ["--json"]):
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, env=shadowed)
        assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (fault,) = [fault for fault in found["faults"] if fault["code"] == "foreign-package"]
    assert fault["problem"].endswith(f"{tmp_path}/tensorplay/__init__.py is not tensorplay-core's")
    assert "tensorplay 9.9" in fault["problem"]
    assert "`python -m pip uninstall -y tensorplay`" in fault["advice"]
    assert found["backends"] == {}  # they are those of another package, if any


def test_another_package_below_ours_is_a_fault_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "tensorplay", "9.9")
    monkeypatch.syspath_prepend(str(tmp_path))
    codes = {fault.code: fault.problem for fault in _installation.faults()}
    assert codes["foreign-package"].endswith("is tensorplay-core's")


def test_siblings_of_different_versions_are_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, version in zip(_installation.OURS, ("7.1", "7.2", "7.1"), strict=True):
        install(tmp_path, name, version)
    monkeypatch.syspath_prepend(str(tmp_path))
    (fault,) = _installation.faults()
    assert fault.code == "versions-differ"
    assert fault.problem.startswith("tensorplay-core 7.1, tensorplay-cuda 7.2, tensorplay-accelerator 7.1: expected")
    assert fault.advice == f"type {_wheels.install_anew(*_installation.OURS)}"


def test_siblings_of_one_version_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _installation.OURS:
        install(tmp_path, name, "7.1")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert _installation.faults() == []


def test_a_misspelled_variable_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TENSORPLAY_CUDA_ALOC_CONF", "TENSORPLAY_CUDA_RUNTIME", "TENSORPLAY_OF_ANOTHER_PROGRAM"):
        monkeypatch.setenv(name, "none")
    (fault,) = _environment.faults()
    assert fault.code == "variable-unknown"
    assert fault.problem.startswith("TENSORPLAY_CUDA_ALOC_CONF is set")
    assert fault.advice == "type `unset TENSORPLAY_CUDA_ALOC_CONF`, or set TENSORPLAY_CUDA_ALLOC_CONF"


def test_command_line_prints_and_ends_well() -> None:
    command = [sys.executable, "-m", "tensorplay.doctor"]
    plain = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Distributions" in plain.stdout
    assert "Devices of type 'cpu': available" in plain.stdout
    assert plain.stderr == ""
    as_json = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(as_json.stdout)["backends"]["cpu"]["available"] is True
