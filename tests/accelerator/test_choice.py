"""Which backend is the accelerator, where several are there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from helpers import fresh
from helpers.fake_backend import FakeBackend

import tensorplay
from tensorplay import _plugins, accelerator
from tensorplay.errors import BackendUnavailableError


@pytest.fixture(autouse=True)
def _decided_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is installed or registered but the host's backend, and no variable is set."""
    monkeypatch.setattr(_plugins, "_backends", {"cpu": _plugins.get("cpu")})
    monkeypatch.setattr(_plugins, "places", dict(_plugins.places))
    monkeypatch.setattr(_plugins, "_installed", dict)
    monkeypatch.delenv(_plugins.VARIABLE, raising=False)
    _plugins.accelerator_type.cache_clear()
    yield
    _plugins.accelerator_type.cache_clear()


def install(monkeypatch: pytest.MonkeyPatch, *kinds: str, module: str = "helpers.nowhere") -> None:
    """Entry points of distributions that bring backends."""
    points = {kind: EntryPoint(kind, f"{module}:backend", "tensorplay.backends") for kind in kinds}
    monkeypatch.setattr(_plugins, "_installed", lambda: points)


class Other(FakeBackend):
    type = "other"


def test_of_installed_ones_the_first_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "zeta", "delta")
    assert str(accelerator.current_accelerator()) == "delta"


def test_one_that_the_program_registers_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "delta")
    _plugins.register(Other())
    _plugins.register(FakeBackend())
    assert str(accelerator.current_accelerator()) == "other"
    assert tensorplay.device(0) == tensorplay.device("other:0")
    assert tensorplay.ones(1, device="fake:1").device == tensorplay.device("fake:1")


def test_an_installed_one_that_was_loaded_is_not_one_that_the_program_registers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch, "delta", "fake", module="helpers.fake_backend")
    assert _plugins.get("fake").device_count() == 2
    assert str(accelerator.current_accelerator()) == "delta"


def test_the_variable_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "delta", "zeta")
    _plugins.register(FakeBackend())
    monkeypatch.setenv(_plugins.VARIABLE, "zeta")
    assert str(accelerator.current_accelerator()) == "zeta"


def test_the_variable_chooses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    _plugins.register(FakeBackend())
    monkeypatch.setenv(_plugins.VARIABLE, "none")
    assert accelerator.current_accelerator() is None
    assert tensorplay.ones(1, device="fake").device == tensorplay.device("fake:0")


def test_whoever_needs_an_accelerator_is_told_why_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, says in (("", " is installed: install tensorplay-cuda "), ("none", ": TENSORPLAY_ACCELERATOR is none")):
        monkeypatch.setenv(_plugins.VARIABLE, value)
        _plugins.accelerator_type.cache_clear()
        for call in (accelerator.synchronize, lambda: tensorplay.ones(1).pin_memory(), lambda: tensorplay.device(0)):
            with pytest.raises(RuntimeError, match=f"no accelerator{says}"):
                call()


def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    _plugins.register(FakeBackend())
    monkeypatch.setenv(_plugins.VARIABLE, "")
    assert str(accelerator.current_accelerator()) == "fake"


@pytest.mark.parametrize("name", ["cpu", "cuba", "Fake", "fake:0"])
def test_a_name_without_a_backend_is_one_error_and_quiet_questions(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    install(monkeypatch, "delta")
    _plugins.register(FakeBackend())
    monkeypatch.setenv(_plugins.VARIABLE, name)
    for call in (
        accelerator.current_accelerator,
        accelerator.current_device_index,
        accelerator.synchronize,
        accelerator.memory_allocated,
        accelerator.random.seed,
        accelerator.Graph,
        lambda: tensorplay.device(0),
    ):
        with pytest.raises(
            BackendUnavailableError, match=f"^TENSORPLAY_ACCELERATOR: got '{name}', expected one of fake, delta, none$"
        ):
            call()
    assert accelerator.is_available() is False
    assert accelerator.device_count() == 0


def test_a_broken_installation_keeps_questions_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "delta")
    assert str(accelerator.current_accelerator()) == "delta"
    assert accelerator.current_accelerator(check_available=True) is None
    assert accelerator.is_available() is False
    assert accelerator.device_count() == 0
    with pytest.raises(ModuleNotFoundError, match=r"helpers\.nowhere"):
        accelerator.synchronize()


def test_a_distribution_beside_the_others_is_chosen_by_the_variable(tmp_path: Path) -> None:
    """As installed: the entry point is all that the distribution says of itself."""
    metadata = tmp_path / "fake-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: fake\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[tensorplay.backends]\nfake = helpers.fake_backend:backend\n")
    tests = Path(__file__).parents[1]
    program = """
        import tensorplay
        from tensorplay import accelerator
        tensorplay.manual_seed(3)
        x = tensorplay.rand(3, device=accelerator.current_accelerator())
        tensorplay.manual_seed(3)
        print(x.device, accelerator.device_count(), x.tolist() == tensorplay.rand(3).tolist())
    """
    path = os.pathsep.join([str(tmp_path), str(tests), os.environ.get("PYTHONPATH", "")])
    assert fresh.run(program, PYTHONPATH=path, TENSORPLAY_ACCELERATOR="fake") == "fake:0 2 True\n"
