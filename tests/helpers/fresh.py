"""Running a piece of code in a fresh interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

LIMIT_S = 120


def run(code: str, **environment: str | None) -> str:
    """What the code prints.

    The interpreter turns warnings into errors and gets these variables on top of ours (None: removed). The
    code has to end with status 0 and write nothing to the error stream.
    """
    done = start(code, **environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def start(code: str, **environment: str | None) -> subprocess.CompletedProcess[str]:
    """As `run`, whatever becomes of it."""
    variables = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env={name: value for name, value in variables.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
