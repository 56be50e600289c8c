"""Settles which CUDA device an example runs on, before it imports tensorplay."""

from __future__ import annotations

import json
import os
import subprocess
import sys


def cuda_problem(runtime: str) -> str | None:
    """Why CUDA does not work with a `TENSORPLAY_CUDA_RUNTIME`; None when it does.

    A process settles its CUDA runtime once, so another process is asked.
    """
    answer = subprocess.run(
        [sys.executable, "-m", "tensorplay.doctor", "--json"],
        capture_output=True,
        text=True,
        env={**os.environ, "TENSORPLAY_CUDA_RUNTIME": runtime},
    )
    if answer.returncode:
        raise SystemExit(f"tensorplay.doctor failed:\n{answer.stderr}")
    reason: str | None = json.loads(answer.stdout)["backends"]["cuda"]["reason"]
    return reason


def use_emulated_device_without_gpu() -> None:
    """Chooses the emulated CUDA device, aloud, when no GPU works; tensorplay must not be imported yet.

    A runtime that the user chose is left alone.
    """
    if os.environ.get("TENSORPLAY_CUDA_RUNTIME"):
        return
    problem = cuda_problem("")
    if problem is None:
        return
    if (worse := cuda_problem("emulated")) is not None:
        raise SystemExit(f"no CUDA device, not even the emulated one: {worse}\n--device cpu runs on the host")
    print(f"No GPU: {problem}\nRunning on TensorPlay's emulated CUDA device instead.")
    os.environ["TENSORPLAY_CUDA_RUNTIME"] = "emulated"
