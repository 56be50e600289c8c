"""The report of `python -m tensorplay.doctor`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tensorplay import _plugins, doctor


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


def test_a_backend_whose_import_fails_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(kind: str) -> Any:
        raise ImportError("libfoo.so.1: cannot open shared object file")

    monkeypatch.setattr(_plugins, "find", broken)
    found = doctor.report()["backends"]["cuda"]
    assert found["available"] is False
    assert "libfoo.so.1" in found["reason"]


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

    monkeypatch.setattr(_plugins, "find", lambda kind: Backend())
    text = doctor.text(doctor.report())
    block = text[text.index("Devices of type 'cuda'") :]
    assert block.splitlines()[:6] == [
        "Devices of type 'cuda': available",
        "  devices: 2",
        "  variant: cuda13",
        "  names:",
        "    first",
        "    second",
    ]
    assert "driver" not in block


def test_command_line_prints_and_ends_well() -> None:
    command = [sys.executable, "-m", "tensorplay.doctor"]
    plain = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Distributions" in plain.stdout
    assert "Devices of type 'cpu': available" in plain.stdout
    assert plain.stderr == ""
    as_json = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(as_json.stdout)["backends"]["cpu"]["available"] is True
