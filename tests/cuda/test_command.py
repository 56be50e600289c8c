"""``python -m tensorplay.cuda``, and the version that it makes a C program ask for."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import fresh
from helpers.compiled import shared_library

from tensorplay.cuda import __main__ as command
from tensorplay.cuda import _native, _select
from tensorplay.cuda._library import native


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation that holds the emulated device and one CUDA library, on a machine that serves neither."""
    monkeypatch.setattr(_native, "FOLDER", tmp_path)
    monkeypatch.setenv(_select.VARIABLE, "none")
    for variant in ("emulated", "cuda13"):
        (tmp_path / f"libtensorplay_{variant}.so").touch()
    return tmp_path


def test_places_are_printed_a_line_each(
    built: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(_select.VARIABLE, "emulated")
    assert command.main(["--kernels", "--library", "--include"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed == [str(built / name) for name in ("include", "libtensorplay_emulated.so", "kernels_emulated")]


def test_a_machine_that_nothing_serves_has_a_header_and_a_reason(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--include"]) == 0
    assert capsys.readouterr().out == f"{built}/include\n"
    assert command.main(["--include", "--library"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("tensorplay.cuda: TENSORPLAY_CUDA_RUNTIME is none; type `unset")


def test_a_variant_can_be_named_whatever_the_machine(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--library", "--kernels", "--variant", "cuda13"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{built}/libtensorplay_cuda13.so", f"{built}/kernels"]
    assert command.main(["--library", "--variant", "cuda12"]) == 1
    refusal = capsys.readouterr().err
    assert "--variant is cuda12, and cuda12 was not built" in refusal
    assert "(built: cuda13, emulated)" in refusal


@pytest.mark.parametrize("arguments", [[], ["--variant", "emulated"], ["--variant", "cuda11", "--library"]])
def test_what_asks_for_nothing_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert "expected" in capsys.readouterr().err or "cuda11" in arguments


def test_a_library_of_another_version_is_refused_and_nothing_stays_loaded(gpu: None, tmp_path: Path) -> None:
    for variant in _select.VARIANTS:
        shared_library(tmp_path / f"libtensorplay_{variant}.so", "int tp_abi_version(void) { return 71; }\n")
    printed = fresh.run(f"""
        from pathlib import Path
        import tensorplay as tp
        from tensorplay.cuda import _native
        ours, _native.FOLDER = _native.FOLDER, Path({str(tmp_path)!r})
        try:
            tp.ones(2, device="cuda")
        except tp.errors.BackendUnavailableError as error:
            print(error)
        print(tp.cuda.is_initialized())
        _native.FOLDER = ours
        print(tp.ones(2, device="cuda").tolist())
    """)
    refusal, *rest = printed.splitlines()
    assert refusal.startswith(f"tensorplay.cuda: libtensorplay does not load: {tmp_path}/libtensorplay_")
    ours = native.tp_abi_version()
    assert refusal.endswith(f" has version 71 of the C ABI, expected {ours}: they were not built together")
    assert rest == ["False", "[1.0, 1.0]"]


def test_a_library_without_a_function_is_refused_by_its_name(gpu: None, tmp_path: Path) -> None:
    source = f"int tp_abi_version(void) {{ return {native.tp_abi_version()}; }}\n"
    for variant in _select.VARIANTS:
        shared_library(tmp_path / f"libtensorplay_{variant}.so", source)
    printed = fresh.run(f"""
        from pathlib import Path
        import tensorplay as tp
        from tensorplay.cuda import _native
        _native.FOLDER = Path({str(tmp_path)!r})
        try:
            tp.ones(2, device="cuda")
        except tp.errors.BackendUnavailableError as error:
            print(error)
    """)
    assert ": no tp_variant" in printed
