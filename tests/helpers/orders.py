"""What a test finds on CUDA devices: nothing that runs, and an order of streams that is its own."""

from __future__ import annotations

import os
import sys
import zlib
from contextlib import AbstractContextManager, nullcontext
from typing import Any


def own_order(test: str) -> AbstractContextManager[None]:
    """Each test has its own order of streams on the emulated device, the same in each run of it."""
    cuda: Any = sys.modules.get("tensorplay.cuda")
    if cuda is None or cuda._library.native.choice().variant != "emulated":
        return nullcontext()
    from tensorplay.testing import emulated

    return emulated.seed(zlib.crc32(test.encode()) + int(os.environ.get("TENSORPLAY_EMULATED_SEED", "0")))


def end_work() -> None:
    """Waits for all devices; device 0 and default streams are current."""
    cuda: Any = sys.modules.get("tensorplay.cuda")
    if cuda is None or not cuda.is_initialized():
        return
    for index in range(cuda.device_count()):
        cuda.synchronize(index)
        cuda.set_stream(cuda.default_stream(index))
    cuda.set_device(0)
