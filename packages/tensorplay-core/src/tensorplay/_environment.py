"""Variables of the environment that change what runs."""

from __future__ import annotations

import os
from difflib import get_close_matches

from ._fault import Fault

#: Ours, whichever distribution reads them.
OURS = (
    "TENSORPLAY_ACCELERATOR",
    "TENSORPLAY_CUDA_ALLOC_CONF",
    "TENSORPLAY_CUDA_RUNTIME",
    "TENSORPLAY_CUDA_SANITIZER",
    "TENSORPLAY_EMULATED_DEVICES",
    "TENSORPLAY_EMULATED_FIBRES",
    "TENSORPLAY_EMULATED_MEMORY",
    "TENSORPLAY_EMULATED_PEERS",
    "TENSORPLAY_EMULATED_SEED",
    "TENSORPLAY_LAUNCH_BLOCKING",
    "TENSORPLAY_NO_CUDA_MEMORY_CACHING",
)
OTHERS = (
    "CUDA_DEVICE_ORDER",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "NVIDIA_VISIBLE_DEVICES",
    "PYTHONPATH",
)


def settings() -> dict[str, str]:
    """Those that are set, and whatever else has our prefix."""
    found = sorted(os.environ.items())
    return {name: value for name, value in found if name.startswith("TENSORPLAY_") or name in OTHERS}


def faults() -> list[Fault]:
    """Names that nothing reads and that are close to one that is read."""
    meant = {name: get_close_matches(name, OURS, 1, 0.85) for name in settings() if name not in (*OURS, *OTHERS)}
    return [
        Fault("variable-unknown", f"{name} is set, and nothing reads it", f"type `unset {name}`, or set {close[0]}")
        for name, close in meant.items()
        if close
    ]
