"""The facade, over a backend made for these tests and over whatever is installed."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import tensorplay
from tensorplay import accelerator
from tensorplay.accelerator import _current
from tensorplay.accelerator import device as facade
from tensorplay.errors import BackendUnavailableError, DTypeError, InvalidArgumentError


class Recorder:
    """Stands where a backend would: two devices of type "cuda", and a list of the calls."""

    type = "cuda"

    def __init__(self) -> None:
        self.calls: list[tuple[str, int | None]] = []
        self.available = True

    def is_available(self) -> bool:
        return self.available

    def device_count(self) -> int:
        return 2 if self.available else 0

    def current_device(self) -> int:
        return 1

    def set_device(self, index: int) -> None:
        self.calls.append(("set_device", index))

    def synchronize(self, index: int | None) -> None:
        self.calls.append(("synchronize", index))


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """The facade finds a Recorder."""
    backend = Recorder()
    for module in (_current, facade):
        monkeypatch.setattr(module, "accelerator_type", lambda: "cuda")
    monkeypatch.setattr(_current, "find", lambda kind: backend)
    return backend


@pytest.fixture
def nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The facade finds no accelerator."""
    for module in (_current, facade):
        monkeypatch.setattr(module, "accelerator_type", lambda: None)


def test_queries_forward(recorder: Recorder) -> None:
    found = accelerator.current_accelerator()
    assert found == tensorplay.device("cuda")
    assert found.index is None
    assert accelerator.is_available()
    assert accelerator.device_count() == 2
    assert accelerator.current_device_index() == 1
    assert accelerator.current_accelerator(check_available=True) == tensorplay.device("cuda")


def test_an_accelerator_that_does_not_work_is_named_unless_asked_to_check(recorder: Recorder) -> None:
    recorder.available = False
    assert accelerator.current_accelerator() == tensorplay.device("cuda")
    assert accelerator.current_accelerator(check_available=True) is None
    assert not accelerator.is_available()
    assert accelerator.device_count() == 0


@pytest.mark.parametrize(
    ("device", "index"),
    [(None, None), (1, 1), (np.int64(1), 1), (-1, -1), ("cuda", None), ("cuda:1", 1), (tensorplay.device("cuda:0"), 0)],
)
def test_device_arguments(recorder: Recorder, device: object, index: int | None) -> None:
    accelerator.synchronize(device)  # type: ignore[arg-type]
    accelerator.synchronize(device=device)  # type: ignore[arg-type]
    assert recorder.calls == [("synchronize", index)] * 2


@pytest.mark.parametrize("device", [1, "cuda:1", tensorplay.device("cuda", 1)])
def test_set_device_index(recorder: Recorder, device: object) -> None:
    accelerator.set_device_index(device)  # type: ignore[arg-type]
    accelerator.set_device_index(-1)
    assert recorder.calls == [("set_device", 1), ("set_device", -1)]


@pytest.mark.parametrize("device", [None, "cuda", tensorplay.device("cuda")])
def test_set_device_index_needs_an_index(recorder: Recorder, device: object) -> None:
    with pytest.raises(ValueError, match="expected a device with an index"):
        accelerator.set_device_index(device)  # type: ignore[arg-type]
    assert recorder.calls == []


@pytest.mark.parametrize("device", ["cpu", "gpu", "cuda:-1", "cuda:", "", " cuda", "CUDA:0", "cuda:01"])
def test_bad_devices_are_value_errors(recorder: Recorder, device: str) -> None:
    for call in (accelerator.synchronize, accelerator.set_device_index, accelerator.get_device_capability):
        with pytest.raises(ValueError, match="device"):
            call(device)
    assert recorder.calls == []


@pytest.mark.parametrize("device", [1.0, True, [0]])
def test_bad_types_are_type_errors(recorder: Recorder, device: object) -> None:
    with pytest.raises(DTypeError, match="synchronize"):
        accelerator.synchronize(device)  # type: ignore[arg-type]


def test_capability(recorder: Recorder) -> None:
    supported = accelerator.get_device_capability("cuda:1")["supported_dtypes"]
    assert {tensorplay.float32, tensorplay.float16, tensorplay.bool} <= supported
    with pytest.raises(InvalidArgumentError, match="device 2 asked for, 2 visible"):
        accelerator.get_device_capability(2)


def test_without_an_accelerator(nothing: None) -> None:
    assert accelerator.current_accelerator() is None
    assert accelerator.current_accelerator(check_available=True) is None
    assert not accelerator.is_available()
    assert accelerator.device_count() == 0
    for call in (
        accelerator.current_device_index,
        accelerator.synchronize,
        accelerator.get_device_capability,
        lambda: accelerator.set_device_index(0),
        lambda: accelerator.synchronize("cuda:0"),
    ):
        with pytest.raises(BackendUnavailableError, match="no accelerator"):
            call()


def test_agrees_with_the_installed_accelerator() -> None:
    cuda = pytest.importorskip("tensorplay.cuda")
    assert accelerator.is_available() == cuda.is_available()
    assert accelerator.device_count() == cuda.device_count()
    if cuda.is_available():
        assert accelerator.current_device_index() == cuda.current_device()
        last = cuda.device_count() - 1
        accelerator.set_device_index(last)
        assert cuda.current_device() == last
        accelerator.set_device_index("cuda:0")
        accelerator.synchronize(last)
        for call in (accelerator.set_device_index, accelerator.synchronize, accelerator.get_device_capability):
            with pytest.raises(InvalidArgumentError, match=f"device 99 asked for, {last + 1} visible"):
                call(99)
        assert cuda.current_device() == 0


def test_import_loads_no_backend() -> None:
    program = "import sys, tensorplay.accelerator; print('tensorplay.cuda._backend' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
