"""Which variant serves, and the sentence when none does. No device is needed for any of this."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers import fresh

from tensorplay._fault import Fault
from tensorplay.cuda import _driver, _native, _select


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation that holds all variants, as far as `_select` looks."""
    monkeypatch.setattr(_native, "FOLDER", tmp_path)
    monkeypatch.delenv(_select.VARIABLE, raising=False)
    for variant in _select.VARIANTS:
        (tmp_path / f"libtensorplay_{variant}.so").touch()
    return tmp_path


NO_DRIVER = Fault("driver-missing", "no driver here", "install `it`")


def serve(monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    monkeypatch.setattr(_driver, "driver_version", lambda: version)


def chosen() -> str | None:
    """The variant; where there is one, there is no fault."""
    choice = _select.choose()
    assert choice.fault is None
    return choice.variant


def refused(code: str) -> str:
    """The fault's problem, when it has this code; it says what to type."""
    fault = _select.choose().fault
    assert fault is not None
    assert fault.code == code
    assert re.search("`.+`", fault.advice)
    return fault.problem


def no_driver() -> int:
    raise _driver.DriverError(NO_DRIVER)


@pytest.mark.parametrize(
    ("version", "variant"), [(12000, "cuda12"), (12090, "cuda12"), (13000, "cuda13"), (14010, "cuda13")]
)
def test_newest_variant_that_the_driver_serves(
    built: Path, monkeypatch: pytest.MonkeyPatch, version: int, variant: str
) -> None:
    serve(monkeypatch, version)
    assert chosen() == variant
    assert _select.choose().why.startswith(f"the NVIDIA driver serves CUDA {version // 1000}.")


def test_older_variant_where_the_newest_is_not_built(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (built / "libtensorplay_cuda13.so").unlink()
    serve(monkeypatch, 13000)
    assert chosen() == "cuda12"


def test_no_driver_is_never_the_emulated_device(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_driver, "driver_version", no_driver)
    assert _select.choose() == _select.Choice(None, fault=NO_DRIVER)


def test_old_driver_is_told_with_both_versions(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, 11080)
    reason = refused("driver-old")
    assert "serves CUDA 11.8" in reason
    assert "12.0 or newer" in reason


def test_named_variant_needs_its_own_driver(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, 12080)
    monkeypatch.setenv(_select.VARIABLE, "cuda13")
    assert "13.0 or newer" in refused("driver-old")
    fault = _select.choose().fault
    assert fault is not None
    assert fault.advice.startswith("type `unset TENSORPLAY_CUDA_RUNTIME`, or type `nvidia-smi` to see ")


def test_named_variant_says_who_named_it(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, 13000)
    monkeypatch.setenv(_select.VARIABLE, "cuda12")
    assert _select.choose() == _select.Choice("cuda12", "TENSORPLAY_CUDA_RUNTIME is cuda12")


def test_emulated_needs_no_driver(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_driver, "driver_version", no_driver)
    monkeypatch.setenv(_select.VARIABLE, "emulated")
    assert _select.choose() == _select.Choice("emulated", "TENSORPLAY_CUDA_RUNTIME is emulated")


def test_none_is_none(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, 13000)
    monkeypatch.setenv(_select.VARIABLE, "none")
    assert refused("switched-off") == "TENSORPLAY_CUDA_RUNTIME is none"


def test_who_names_a_variant_that_is_missing_is_told_to_unset_what_named_it(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (built / "libtensorplay_cuda13.so").unlink()
    monkeypatch.setenv(_select.VARIABLE, "cuda13")
    for choice, says in (
        (_select.choose(), True),
        (_select.built(("cuda13",), "--variant is cuda13"), False),
    ):
        assert choice.fault is not None
        assert ("`unset TENSORPLAY_CUDA_RUNTIME`" in choice.fault.advice) is says


@pytest.mark.parametrize("setting", ["cuda11", "EMULATED", "emulated ", "0"])
def test_unknown_value_lists_the_valid_ones(built: Path, monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setenv(_select.VARIABLE, setting)
    reason = refused("setting-unknown")
    for word in (repr(setting), "cuda12", "cuda13", "emulated", "none"):
        assert word in reason


def test_missing_variant_is_told_with_those_built(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (built / "libtensorplay_cuda13.so").unlink()
    monkeypatch.setenv(_select.VARIABLE, "cuda13")
    assert refused("variant-missing") == (
        "TENSORPLAY_CUDA_RUNTIME is cuda13, and cuda13 was not built into this installation (built: cuda12, emulated)"
    )


def test_no_variant_that_the_driver_serves_was_built(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variant in ("cuda12", "cuda13"):
        (built / f"libtensorplay_{variant}.so").unlink()
    serve(monkeypatch, 13000)
    problem = refused("variant-missing")
    assert problem.startswith("the NVIDIA driver serves CUDA 13.0, and cuda13 or cuda12 was not built into")
    assert problem.endswith("(built: emulated)")
    fault = _select.choose().fault
    assert fault is not None
    assert "unset" not in fault.advice  # nothing is set


@pytest.mark.parametrize(("setting", "expected"), [(None, 1), ("0", 0), ("1", 1), ("8", 8), ("02", 2)])
def test_emulated_count(monkeypatch: pytest.MonkeyPatch, setting: str | None, expected: int) -> None:
    if setting is None:
        monkeypatch.delenv(_select.DEVICES_VARIABLE, raising=False)
    else:
        monkeypatch.setenv(_select.DEVICES_VARIABLE, setting)
    count, fault = _select.count(_select.Choice("emulated"))
    assert count == expected
    assert (fault is None) == (expected > 0)


@pytest.mark.parametrize("setting", ["", "two", "-1", "9", "1.0", " 1", "²"])
def test_emulated_count_refuses(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setenv(_select.DEVICES_VARIABLE, setting)
    count, fault = _select.count(_select.Choice("emulated"))
    assert count == 0
    assert fault is not None
    assert fault.code == "setting-unknown"
    assert repr(setting) in fault.problem


@pytest.mark.parametrize("setting", ["0", "2", "8"])
def test_count_before_start_is_the_librarys(setting: str) -> None:
    code = """
        from tensorplay.cuda import _select
        from tensorplay.cuda._native import bind, lib
        before = _select.count(_select.choose())[0]
        bind("emulated")
        print(before, lib.tp_device_count())
    """
    out = fresh.run(code, TENSORPLAY_CUDA_RUNTIME="emulated", TENSORPLAY_EMULATED_DEVICES=setting)
    assert out == f"{setting} {setting}\n"


def test_variable_is_read_until_the_start_and_then_warns() -> None:
    code = """
        import os, warnings
        import tensorplay.cuda as cuda
        print(cuda.is_available(), cuda.unavailable_reason())
        os.environ["TENSORPLAY_CUDA_RUNTIME"] = "emulated"
        print(cuda.device_count())
        cuda.current_stream()
        os.environ["TENSORPLAY_CUDA_RUNTIME"] = "cuda12"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            print(cuda.device_count(), cuda.device_count(), cuda.unavailable_reason())
            os.environ["TENSORPLAY_CUDA_RUNTIME"] = "emulated"
            cuda.device_count()
        print([str(one.message) for one in caught])
    """
    out = fresh.run(code, TENSORPLAY_CUDA_RUNTIME="none", TENSORPLAY_EMULATED_DEVICES="2")
    assert out.splitlines() == [
        "False TENSORPLAY_CUDA_RUNTIME is none; type `unset TENSORPLAY_CUDA_RUNTIME` to use a GPU",
        "2",
        "2 2 None",
        "[\"TENSORPLAY_CUDA_RUNTIME became 'cuda12' after emulated had been started: no effect\"]",
    ]


def test_what_was_set_for_a_device_that_is_hidden_since_does_not_matter() -> None:
    code = """
        import os
        import tensorplay as tp
        from tensorplay import cuda
        cuda.manual_seed_all(7)
        for index in range(2):
            cuda.memory.set_memory_limit(2**30, index)
        os.environ["TENSORPLAY_EMULATED_DEVICES"] = "1"
        print(tp.ones(2, device="cuda").tolist(), cuda.initial_seed(), cuda.memory.get_memory_limit())
    """
    out = fresh.run(code, TENSORPLAY_CUDA_RUNTIME="emulated", TENSORPLAY_EMULATED_DEVICES="2")
    assert out == f"[1.0, 1.0] 7 {2**30}\n"


@pytest.mark.parametrize("setting", ["none", "sometimes"])
def test_a_device_call_raises_the_reason(setting: str) -> None:
    code = """
        import tensorplay
        reason = tensorplay.cuda.unavailable_reason()
        for call in (tensorplay.cuda.current_stream, tensorplay.cuda.Stream, tensorplay.cuda.Event,
                     tensorplay.cuda.mem_get_info, lambda: tensorplay.empty(3, device="cuda"),
                     tensorplay.ones(3).cuda, lambda: tensorplay.ones(3).to("cuda:0"), tensorplay.nn.Linear(2, 2).cuda,
                     tensorplay.cuda.memory._record_memory_history, tensorplay.cuda.sanitizer.enable):
            try:
                call()
            except tensorplay.errors.BackendUnavailableError as error:
                assert str(error).endswith(reason), error
            else:
                raise AssertionError(call)
        tensorplay.zeros(3)
        assert not tensorplay.cuda.is_available() and tensorplay.cuda.device_count() == 0
    """
    fresh.run(code, TENSORPLAY_CUDA_RUNTIME=setting)
