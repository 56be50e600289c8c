"""The registry of compiler backends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tensorplay import compiler
from tensorplay.compiler import backends, registry
from tensorplay.errors import DTypeError, InvalidArgumentError


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a registry of its own."""
    monkeypatch.setattr(registry, "_registered", {})


def identity(function: Any, inputs: Any) -> Any:
    return function


def test_register_and_look_up() -> None:
    assert compiler.register_backend(identity) is identity
    assert compiler.lookup_backend("identity") is identity
    assert compiler.register_backend(identity, name="other") is identity
    assert {"identity", "other"} <= set(compiler.list_backends())
    assert compiler.lookup_backend(len) is len


def test_a_name_is_given_once() -> None:
    compiler.register_backend(identity)
    compiler.register_backend(identity)
    with pytest.raises(InvalidArgumentError, match="'identity' belongs to another"):
        compiler.register_backend(lambda function, inputs: function, name="identity")
    assert compiler.lookup_backend("identity") is identity


def test_what_is_not_there() -> None:
    compiler.register_backend(identity)
    with pytest.raises(InvalidArgumentError, match=r"got 'nothing', expected one of: .*identity"):
        compiler.lookup_backend("nothing")
    with pytest.raises(DTypeError, match="got int"):
        compiler.register_backend(3)  # type: ignore[type-var]


def test_a_shipped_module_is_imported_when_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shipped_here.py").write_text(
        "from tensorplay.compiler import register_backend\n"
        "@register_backend\n"
        "def shipped_here(function, inputs):\n"
        "    return 'compiled'\n"
    )
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(tmp_path)])
    assert "shipped_here" in compiler.list_backends()
    assert compiler.lookup_backend("shipped_here")(len, []) == "compiled"
