"""A limit for what the allocator reserves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from helpers import fresh
from helpers.blocks import MiB, empty

import tensorplay as tp
from tensorplay import cuda
from tensorplay.cuda import memory


@pytest.fixture
def unlimited(two_gpus: None) -> Iterator[None]:
    yield
    for index in (0, 1):
        memory.set_memory_limit(None, index)


def test_a_limit_is_of_one_device_and_is_removed_again(unlimited: None) -> None:
    assert memory.get_memory_limit() is None
    cuda.empty_cache()
    limit = cuda.memory_reserved() + 32 * MiB
    memory.set_memory_limit(limit)
    assert (memory.get_memory_limit(), memory.get_memory_limit("cuda:1")) == (limit, None)
    rejections = cuda.memory_stats()["num_oom_rejections"]
    with pytest.raises(tp.OutOfMemoryError) as caught:
        empty(64 * MiB)
    assert (caught.value.reason, caught.value.limit) == ("limit", limit)
    assert cuda.memory_stats()["num_oom_rejections"] == rejections + 1
    there = empty(64 * MiB, 1)
    cached = [empty(16 * MiB), empty(16 * MiB)]
    cached.clear()
    here = empty(32 * MiB)  # The cache made room.
    memory.set_memory_limit(None)
    more = empty(64 * MiB)
    assert memory.get_memory_limit() is None
    del there, here, more


@pytest.mark.parametrize(
    ("value", "kind"),
    [(-1, tp.errors.InvalidArgumentError), (2**63, tp.errors.InvalidArgumentError), (True, tp.errors.DTypeError),
     (1.5, tp.errors.DTypeError), ("1GiB", tp.errors.DTypeError), (int, tp.errors.DTypeError)],
)  # fmt: skip
def test_limits_that_are_none(gpu: None, value: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="set_memory_limit: got"):
        memory.set_memory_limit(value)
    with pytest.raises(tp.errors.InvalidArgumentError):
        memory.set_memory_limit(100, 99)
    assert memory.get_memory_limit() is None


def test_a_limit_may_be_set_before_first_use(emulated: None) -> None:
    printed = fresh.run("""
        import tensorplay as tp
        from tensorplay.cuda import memory
        assert memory.get_memory_limit() is None
        memory.set_memory_limit(2**22)
        print(memory.get_memory_limit(), tp._plugins.get("cuda").describe()["started"])
        try:
            tp.empty(2**21, device="cuda")
        except tp.OutOfMemoryError as error:
            print(error.reason, memory.get_memory_limit())
    """)
    assert printed == "4194304 False\nlimit 4194304\n"


def test_a_limit_is_not_lost_where_another_thread_starts_the_library(gpu: None) -> None:
    printed = fresh.run("""
        import threading
        from tensorplay import cuda

        class Waiting(dict):
            def __setitem__(self, index, limit):
                starting = threading.Thread(target=cuda.init)
                starting.start()
                starting.join(0.2)
                super().__setitem__(index, limit)

        cuda._limit._waiting = Waiting()
        cuda.memory.set_memory_limit(2**30)
        cuda.init()
        print(cuda.memory.get_memory_limit() == 2**30)
    """)
    assert printed == "True\n"
