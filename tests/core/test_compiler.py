"""Compiling: `compile`, and the registry of backends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tensorplay as tp
from tensorplay import compiler, nn
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


def test_what_ships_a_backend_is_named_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "__path__", [])
    monkeypatch.setattr(compiler.registry, "_registered", {})
    with pytest.raises(InvalidArgumentError, match="there is none: tensorplay-cuda is not installed; type `python"):
        compiler.compile(len)


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


def tracing(log: list[Any]) -> Any:
    """A backend that notes what it is given."""

    def backend(function: Any, inputs: Any, **options: Any) -> Any:
        log.append((function, inputs, options))
        return lambda *args, **kwargs: ("compiled", function(*args, **kwargs))

    return backend


def test_the_backend_gets_the_first_calls_tensors() -> None:
    log: list[Any] = []

    def function(x: tp.Tensor, n: int, *, y: tp.Tensor) -> tp.Tensor:
        return x + n + y

    compiled = tp.compile(function, backend=tracing(log), options={"depth": 3})
    assert log == []
    assert compiled.compiled is None
    x, y = tp.ones(1), tp.zeros(1)
    for _ in range(2):
        kind, result = compiled(x, 2, y=y)
        assert (kind, result.tolist()) == ("compiled", [3])
    ((given, inputs, options),) = log
    assert given is function
    assert inputs[0] is x
    assert inputs[1] is y
    assert options == {"depth": 3}
    assert compiled.compiled is not None


def test_compile_is_a_decorator() -> None:
    log: list[Any] = []

    @tp.compile(backend=tracing(log), fullgraph=True)
    def double(x: int) -> int:
        """Twice."""
        return 2 * x

    assert double(4) == ("compiled", 8)
    assert log[0][2] == {"fullgraph": True}
    assert (double.__name__, double.__doc__) == ("double", "Twice.")
    assert "double" in repr(double)


def test_a_compiled_method_knows_its_object() -> None:
    class Counter:
        def __init__(self) -> None:
            self.count = 0

        @tp.compile(backend=tracing([]))
        def add(self, n: int) -> int:
            self.count += n
            return self.count

    counter = Counter()
    assert counter.add(2) == ("compiled", 2)
    assert counter.add(3) == ("compiled", 5)
    assert Counter.add(counter, 1) == ("compiled", 6)


def test_a_compiled_module_has_the_modules_attributes() -> None:
    model = nn.Linear(2, 3)
    compiled = tp.compile(model, backend=tracing([]))
    assert compiled.in_features == 2
    assert [name for name, _ in compiled.named_parameters()] == ["weight", "bias"]
    assert compiled.eval() is model
    assert compiled(tp.ones(1, 2))[1].shape == (1, 3)
    with pytest.raises(AttributeError, match="no_such"):
        compiled.no_such  # noqa: B018


def test_compile_refuses_early() -> None:
    nothing: Any
    for nothing in ("nothing", ["nothing"]):
        with pytest.raises(InvalidArgumentError, match=r"got \[?'nothing'"):
            tp.compile(len, backend=nothing)
    with pytest.raises(DTypeError, match="compile: got 3, expected a callable"):
        tp.compile(3, backend=tracing([]))  # type: ignore[arg-type]
    assert tp.compile(len, backend="identity_of_nobody", disable=True) is len


def test_compiling_needs_no_device() -> None:
    if "cudagraphs" not in compiler.list_backends():
        pytest.skip("tensorplay-cuda is not installed")
    from tensorplay.compiler.backends.cudagraphs import cudagraphs

    compiled = tp.compile(lambda x: x + 1, backend=cudagraphs)
    assert [compiled(tp.ones(1)).item() for _ in range(2)] == [2, 2]
