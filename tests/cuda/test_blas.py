"""Where cuBLASLt is looked for. That it serves is for a real GPU to show."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from tensorplay.cuda import _blas


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)


def pathfinder(monkeypatch: pytest.MonkeyPatch, path: str | None) -> None:
    def load(name: str) -> SimpleNamespace:
        if path is None:
            raise RuntimeError(f"{name} not found")
        return SimpleNamespace(abs_path=path)

    module = SimpleNamespace(load_nvidia_dynamic_lib=load)
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", module)  # type: ignore[arg-type]


@pytest.mark.parametrize("major", [12, 13])
def test_loader_is_asked_where_nothing_is_installed(nothing_installed: None, major: int) -> None:
    assert list(_blas.candidates(major)) == [f"libcublasLt.so.{major}"]


def test_pathfinders_library_must_be_of_the_same_major(
    nothing_installed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pathfinder(monkeypatch, "/opt/cuda/lib64/libcublasLt.so.12")
    assert list(_blas.candidates(12)) == ["/opt/cuda/lib64/libcublasLt.so.12", "libcublasLt.so.12"]
    assert list(_blas.candidates(13)) == ["libcublasLt.so.13"]


def test_pathfinder_that_finds_nothing_is_no_error(nothing_installed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    pathfinder(monkeypatch, None)
    assert list(_blas.candidates(13)) == ["libcublasLt.so.13"]


@pytest.mark.parametrize(
    ("major", "name", "path"),
    [
        (12, "nvidia-cublas-cu12", "nvidia/cublas/lib/libcublasLt.so.12"),
        (13, "nvidia-cublas", "nvidia/cu13/lib/libcublasLt.so.13"),
    ],
)
def test_wheel_comes_first(
    nothing_installed: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, major: int, name: str, path: str
) -> None:
    def installed(asked: str) -> SimpleNamespace:
        assert asked == name
        return SimpleNamespace(locate_file=lambda inside: tmp_path / inside)

    monkeypatch.setattr(metadata, "distribution", installed)
    assert next(_blas.candidates(major)) == str(tmp_path / path)


def test_doctor_names_the_file_only_when_it_is_there(
    nothing_installed: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    library = tmp_path / "libcublasLt.so.13"
    pathfinder(monkeypatch, str(library))
    assert "own kernel" in _blas.expected("cuda13")
    library.touch()
    assert _blas.expected("cuda13") == f"cuBLASLt from {library}"
    assert "own kernel" in _blas.expected("emulated")
    assert "own kernel" in _blas.expected(None)
