"""What the tests with other libraries share."""

from __future__ import annotations

from typing import Any

import pytest

import tensorplay as tp


@pytest.fixture
def cuda() -> Any:
    """The module `tensorplay.cuda`, with a device."""
    if not tp.cuda.is_available():
        pytest.skip("a CUDA device is needed")
    return tp.cuda


@pytest.fixture
def control() -> Any:
    """Command of the emulated device: held streams show the order of work."""
    if not tp.cuda.is_available() or tp._plugins.get("cuda").describe()["variant"] != "emulated":
        pytest.skip("the emulated device is needed")
    from tensorplay.testing import emulated

    return emulated
