"""The order in which the emulated device runs streams."""

from __future__ import annotations

import os
import zlib
from contextlib import AbstractContextManager, nullcontext


def own_order(test: str) -> AbstractContextManager[None]:
    """Each test has its own order of streams on the emulated device, the same in each run of it."""
    import tensorplay

    if tensorplay._plugins.get("cuda").describe()["variant"] != "emulated":
        return nullcontext()
    from tensorplay.testing import emulated

    return emulated.seed(zlib.crc32(test.encode()) + int(os.environ.get("TENSORPLAY_EMULATED_SEED", "0")))
