"""Figures of pinned memory, and streams that stand still."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorplay as tp
from tensorplay import cuda
from tensorplay.testing import emulated as control

MiB = 2**20


def figure(name: str) -> int:
    """One of `host_memory_stats`."""
    return cuda.host_memory_stats()[name]


def active() -> int:
    """Bytes of pinned memory that tensors or copies use."""
    return figure("active_bytes.current")


def filled(value: int, numel: int = 5000, **options: Any) -> tp.Tensor:
    """Elements of one value, int32."""
    return tp.full((numel,), value, dtype=tp.int32, **options)


@contextmanager
def held_stream() -> Iterator[cuda.Stream]:
    """A stream, current inside, that stands still until somebody waits for it; the outer one waits afterwards."""
    stream = cuda.Stream()
    stream.wait_stream(cuda.current_stream())
    with cuda.stream(stream), control.hold(stream):
        yield stream
    cuda.current_stream().wait_stream(stream)
