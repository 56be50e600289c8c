"""Where the facade is tested: without an accelerator, over `helpers.fake_backend`, over what is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest
from helpers import fake_backend

import tensorplay
from tensorplay import _plugins, accelerator
from tensorplay.errors import BackendUnavailableError


@dataclass(frozen=True)
class Place:
    """An accelerator: its device type, None without one, and how many devices are visible."""

    type: str | None
    count: int

    @property
    def last(self) -> int:
        """Index of the last device; 0 without one."""
        return max(self.count - 1, 0)

    def needs(self) -> AbstractContextManager[Any]:
        """The context of one call that needs an accelerator."""
        if self.type is None:
            return pytest.raises(BackendUnavailableError, match="no accelerator")
        return nullcontext()

    def spellings(self, index: int) -> list[Any]:
        """All that names a device by its index; a type that is none where there is no accelerator."""
        kind = self.type or "cuda"
        return [f"{kind}:{index}", tensorplay.device(kind, index)]

    def new_stream(self, index: int = 0) -> Any:
        """A stream that is no default stream: the facade makes none."""
        if self.type == "fake":
            return fake_backend.Stream(index)
        return import_module(f"tensorplay.{self.type}").Stream(index)


@contextmanager
def at(name: str) -> Iterator[Place]:
    """One of the places; what a test makes current there is put back."""
    with pytest.MonkeyPatch.context() as patch:
        if name == "installed":
            patch.delenv(_plugins.VARIABLE, raising=False)
        else:
            patch.setenv(_plugins.VARIABLE, name)
        if name == "fake":
            patch.setattr(_plugins, "_backends", dict(_plugins._backends))
            patch.setattr(_plugins, "places", dict(_plugins.places))
            _plugins.register(fake_backend.backend)
        _plugins.accelerator_type.cache_clear()
        try:
            if name == "installed" and not accelerator.is_available():
                pytest.skip("no accelerator is installed, or no device of it is visible")
            found = accelerator.current_accelerator()
            place = Place(found.type if found else None, accelerator.device_count())
            streams = [accelerator.current_stream(index) for index in range(place.count)]
            yield place
            for stream in reversed(streams):
                accelerator.set_stream(stream)
        finally:
            _plugins.accelerator_type.cache_clear()


@pytest.fixture(params=["none", "fake", "installed"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Each of the three."""
    with at(request.param) as found:
        yield found


@pytest.fixture
def nothing() -> Iterator[None]:
    """The place without an accelerator."""
    with at("none"):
        yield


@pytest.fixture(params=["fake", "installed"])
def here(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Those that have one."""
    with at(request.param) as found:
        yield found


@pytest.fixture
def two(here: Place) -> Place:
    """Those that have two devices."""
    if here.count < 2:
        pytest.skip(f"two devices are needed, {here.count} visible")
    return here
