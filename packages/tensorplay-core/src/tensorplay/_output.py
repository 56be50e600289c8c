"""What the package's programs print."""

from __future__ import annotations

import os
import sys


def say(text: str) -> None:
    """Prints a text. What the output's encoding lacks is escaped; a reader that has left is no error."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except BrokenPipeError:
        # Python flushes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
