"""A plugin of pytest: tests of the contract that would run on "cuda" run on `helpers.fake_backend` in its place."""

from __future__ import annotations

import pytest
from helpers import fake_backend

from tensorplay import _plugins

_plugins.register(fake_backend.backend)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Takes the tests of "cuda" and lets the others go."""
    moved, left = [], []
    for item in items:
        parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        (moved if parameters.get("device") == "cuda" else left).append(item)
    for item in moved:
        item.callspec.params["device"] = "fake"  # type: ignore[attr-defined]
    config.hook.pytest_deselected(items=left)
    items[:] = moved
