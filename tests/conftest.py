"""What all tests share: devices, and nothing that stays behind."""

from __future__ import annotations

import gc
import os
import secrets
import sys
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from helpers.orders import end_work, own_order
from hypothesis import HealthCheck, settings

# The data of the tests: new in each run, that of a former run where its number is given. 0 is the gate's: what lands
# must not depend on chance. Set before pytest-xdist starts its workers, which inherit it.
SEED = os.environ.setdefault("TENSORPLAY_TEST_SEED", str(secrets.randbelow(2**31)))

# Shared machines stall now and then; a deadline would make tests fail by chance. `device` is the same in all examples.
settings.register_profile(
    "tensorplay",
    deadline=None,
    derandomize=SEED == "0",
    max_examples=60,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.load_profile("tensorplay")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Hypothesis draws by it as well."""
    if config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = SEED


def pytest_report_header() -> str:
    """What repeats this run's data."""
    return f"TENSORPLAY_TEST_SEED={SEED}"


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every kind of device: a test that takes it runs once on each."""
    name: str = request.param
    if name == "cuda":
        skip_without_devices(1)
    with own_order(request.node.nodeid):  # again, as this may be the first use of tensorplay.cuda
        yield name


def skip_without_devices(count: int) -> None:
    """Skips a test that needs so many CUDA devices, real or emulated."""
    from tensorplay import cuda

    if cuda.device_count() < count:
        pytest.skip(f"{count} CUDA devices are needed, {cuda.device_count()} visible")


@pytest.fixture
def two_devices() -> tuple[str, str]:
    """Two CUDA devices."""
    skip_without_devices(2)
    return "cuda:0", "cuda:1"


def live_memory() -> dict[int, int]:
    """Bytes that live tensors hold, by CUDA device; empty where tensorplay.cuda was not imported."""
    cuda: Any = sys.modules.get("tensorplay.cuda")
    if cuda is None:
        return {}
    return {index: cuda.memory_allocated(index) for index in range(cuda.device_count())}


def live_tensors() -> str:
    """The CUDA tensors that something still holds, and what holds each of them."""
    lines = []
    for found in gc.get_objects():
        if isinstance(found, sys.modules["tensorplay"].Tensor) and found.is_cuda:
            holders = ", ".join(str(type(holder)) for holder in gc.get_referrers(found) if holder is not lines)
            lines.append(f"{found.dtype} of shape {found.shape} on {found.device}, held by {holders}")
    return "\n".join(lines)


@pytest.fixture(autouse=True)
def _no_memory_stays(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test gives back the device memory that it took."""
    before, failed = live_memory(), request.session.testsfailed
    yield
    if request.session.testsfailed > failed:
        return  # The report of the failure holds the test's variables.
    after = live_memory()
    if any(after[index] > before.get(index, 0) for index in after):
        gc.collect()  # What a test holds in cycles is gone late, and not lost.
        after = live_memory()
    stayed = {index: nbytes for index, nbytes in after.items() if nbytes > before.get(index, 0)}
    assert stayed == {}, f"bytes that stay, by device: {stayed}; {live_tensors() or 'no tensor holds them'}"


@pytest.fixture(autouse=True)
def _own_order(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test runs on idle devices, in an order of its own on emulated ones: the same, whatever ran before."""
    with own_order(request.node.nodeid):
        yield
    end_work()


@pytest.fixture(autouse=True)
def _same_random_numbers() -> None:
    """Every test starts with the same random numbers, whatever ran before."""
    package: Any = sys.modules.get("tensorplay")
    if package is not None:
        package.manual_seed(0)


@pytest.fixture
def own_seed(request: pytest.FixtureRequest) -> int:
    """A seed for the test's data: of the test and of the run."""
    return zlib.crc32(request.node.nodeid.encode()) + int(SEED)
