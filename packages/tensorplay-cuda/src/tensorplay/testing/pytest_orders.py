"""Orders in pytest: a marker, and a fixture. A conftest.py at the root of the tests takes both in::

    pytest_plugins = ["tensorplay.testing.pytest_orders"]

It does not load itself into every run of pytest: that would import tensorplay where nobody asked for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from . import _orders

_MARKER = "orders(seeds=100): run the test once for each seed, on the emulated device, with one set of fixtures"


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marker known."""
    config.addinivalue_line("markers", _MARKER)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Any:
    """Runs a marked test under many orders."""
    marker = pyfuncitem.get_closest_marker("orders")
    if marker is not None:
        seeds = _seeds(*marker.args, **marker.kwargs)
        pyfuncitem.obj = partial(_explored, pyfuncitem.obj, seeds)
    return (yield)


@pytest.fixture
def explore_orders() -> Callable[..., None]:
    """`tensorplay.testing.explore_orders`, for a test that explores a part of itself."""
    return _orders.explore_orders


def _seeds(seeds: int = len(_orders.SEEDS)) -> range:
    return range(seeds)


def _explored(test: Callable[..., object], seeds: range, **fixtures: object) -> None:
    call = partial(test, **fixtures)
    call.__qualname__ = test.__qualname__  # type: ignore[attr-defined]
    _orders.explore_orders(call, seeds)
