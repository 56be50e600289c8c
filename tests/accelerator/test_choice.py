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
    for value, says in (("", ": tensorplay-cuda is not installed; "), ("none", ": TENSORPLAY_ACCELERATOR is none")):
        monkeypatch.setenv(_plugins.VARIABLE, value)
        _plugins.accelerator_type.cache_clear()
        for call in (accelerator.synchronize, lambda: tensorplay.ones(1).pin_memory(), lambda: tensorplay.device(0)):
            with pytest.raises(RuntimeError, match=f"no accelerator{says}"):
                call()


def test_a_backend_that_pins_nothing_says_so_by_its_type() -> None:
    _plugins.register(FakeBackend())
    with pytest.raises(BackendUnavailableError, match="pin_memory: the backend of type 'fake' pins no memory"):
        tensorplay.ones(1).pin_memory()


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
        accelerator.random.get_rng_state_all,
        lambda: accelerator.random.set_rng_state_all([]),
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


@pytest.mark.parametrize(
    ("module", "says"),
    [
        ("raise ValueError('two\\nlines')", "ValueError: two\nlines"),
        ("syntax error", "SyntaxError: "),
        ("", "AttributeError: module 'broken' has no attribute 'backend'"),
        ("backend = None", "got None, expected a backend of type 'fake'"),
        ("from tensorplay._plugins import get; backend = get('cpu')", "expected a backend of type 'fake'"),
    ],
)
def test_a_backend_that_cannot_be_loaded_is_one_error_and_quiet_questions(
    tmp_path: Path, module: str, says: str
) -> None:
    bring(tmp_path, "broken", "broken:backend")
    (tmp_path / "broken.py").write_text(module)
    program = """
        import tensorplay
        from tensorplay import accelerator
        print(accelerator.is_available(), accelerator.device_count(), accelerator.current_accelerator(True))
        for call in (accelerator.synchronize, lambda: tensorplay.ones(1, device="fake")):
            try:
                call()
            except ImportError as error:
                print(error)
    """
    printed = run_beside(tmp_path, program)
    assert printed.startswith("False 0 None\nbroken:backend")
    assert printed.count(says) == 2


def bring(folder: Path, name: str, value: str) -> None:
    """A distribution with a backend for "fake", as an installer would note it: the entry point is all that it says."""
    notes = folder / f"{name}-1.0.dist-info"
    notes.mkdir()
    (notes / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (notes / "entry_points.txt").write_text(f"[tensorplay.backends]\nfake = {value}\n")


def run_beside(folder: Path, program: str) -> str:
    """What a program prints in an installation that has these distributions too, the accelerator being "fake"."""
    path = os.pathsep.join([str(folder), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return fresh.run(program, PYTHONPATH=path, TENSORPLAY_ACCELERATOR="fake")


def test_a_distribution_beside_the_others_is_chosen_by_the_variable(tmp_path: Path) -> None:
    bring(tmp_path, "fake", "helpers.fake_backend:backend")
    program = """
        import tensorplay
        from tensorplay import accelerator
        tensorplay.manual_seed(3)
        x = tensorplay.rand(3, device=accelerator.current_accelerator())
        tensorplay.manual_seed(3)
        print(x.device, accelerator.device_count(), x.tolist() == tensorplay.rand(3).tolist())
    """
    assert run_beside(tmp_path, program) == "fake:0 2 True\n"


def test_two_distributions_for_one_type_are_one_error_and_leave_the_host(tmp_path: Path) -> None:
    bring(tmp_path, "first", "helpers.fake_backend:backend")
    bring(tmp_path, "second", "helpers.nowhere:backend")
    program = """
        import tensorplay
        from tensorplay import accelerator
        print(tensorplay.ones(2).sum().item(), accelerator.is_available())
        for call in (accelerator.current_accelerator, lambda: tensorplay.ones(2, device="fake")):
            try:
                call()
            except tensorplay.errors.BackendUnavailableError as error:
                print(error)
        from tensorplay import doctor
        found = doctor.report()
        print(list(found["backends"]), [fault["code"] for fault in found["faults"] if "both" in fault["problem"]])
    """
    says = "backends: first and second both bring type 'fake': uninstall one of them\n"
    assert run_beside(tmp_path, program) == "2.0 False\n" + says * 2 + "['cpu'] ['backends-collide']\n"


def test_one_backend_that_two_distributions_name_is_one(tmp_path: Path) -> None:
    for name in ("first", "second"):
        bring(tmp_path, name, "helpers.fake_backend:backend")
    program = "from tensorplay import accelerator; print(accelerator.device_count())"
    assert run_beside(tmp_path, program) == "2\n"
