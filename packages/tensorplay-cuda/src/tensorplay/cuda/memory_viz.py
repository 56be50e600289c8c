"""A memory snapshot as one page: ``python -m tensorplay.cuda.memory_viz snapshot.pickle -o out.html``.

The page shows memory over time, the segments, and the call sites that hold memory. It is one file without references
to a network, for any browser. Snapshots are those of ``memory._dump_snapshot``, here or in torch.
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
from os import PathLike
from pathlib import Path
from typing import Any

from tensorplay._output import say
from tensorplay.errors import InvalidArgumentError

from ._picture import picture

_TEMPLATE = Path(__file__).with_suffix(".html")
_PLACE = "/* data */"


class _PlainUnpickler(pickle.Unpickler):
    """Reads plain objects and runs nothing: a snapshot may come from anywhere."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"got {module}.{name}, expected plain objects")


def load(path: str | PathLike[str]) -> dict[str, Any]:
    """Reads a snapshot; a pickle with anything but plain objects is refused.

    Parameters
    ----------
    path : str or path

    Raises
    ------
    InvalidArgumentError
        It is no snapshot.
    """
    try:
        with open(path, "rb") as file:
            found = _PlainUnpickler(file).load()
    except (pickle.UnpicklingError, EOFError, ValueError, KeyError, IndexError, AttributeError) as error:
        raise InvalidArgumentError(f"memory_viz: {path} is no snapshot of memory ({error})") from None
    if not isinstance(found, dict) or "segments" not in found:
        raise InvalidArgumentError(
            f"memory_viz: {path} is no snapshot of memory: expected a dictionary with 'segments'"
        )
    return found


def page(snapshot: dict[str, Any], title: str = "memory") -> str:
    """The page as HTML.

    Parameters
    ----------
    snapshot : dict
        As `tensorplay.cuda.memory._snapshot` gives it.
    title : str
        What to write above it.
    """
    text = json.dumps({"title": title, **picture(snapshot)}, separators=(",", ":"))
    # Inside a script element "<" could end it or begin a comment: JSON's own escape keeps it from being read so.
    return _TEMPLATE.read_text().replace(_PLACE, text.replace("<", "\\u003c"), 1)


def main(arguments: list[str] | None = None) -> int:
    """The command line; 0, or 1 with a sentence on the error stream."""
    parser = argparse.ArgumentParser(
        prog="python -m tensorplay.cuda.memory_viz", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("snapshot", type=Path, help="a file of memory._dump_snapshot, ours or torch's")
    parser.add_argument("-o", "--out", type=Path, help="the page; default: the snapshot's name with .html")
    parsed = parser.parse_args(arguments)
    out = parsed.out or parsed.snapshot.with_suffix(".html")
    try:
        out.write_text(page(load(parsed.snapshot), parsed.snapshot.name))
    except (OSError, InvalidArgumentError) as error:
        print(error, file=sys.stderr)
        return 1
    say(str(out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
