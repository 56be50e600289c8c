"""``python -m tensorplay.doctor``: what is installed, which devices work, and why others do not."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from importlib import metadata
from typing import Any

from . import _dtype, _plugins

#: Distributions that the report looks for: our own, then those that they use.
OUR_DISTRIBUTIONS = ("tensorplay-core", "tensorplay-cuda", "tensorplay-accelerator")
OTHER_DISTRIBUTIONS = ("numpy", "ml_dtypes", "cffi", "cuda-pathfinder")


def report() -> dict[str, Any]:
    """Everything the doctor knows, as plain dictionaries, lists and texts.

    Returns
    -------
    dict
        ``python``, ``platform``, ``distributions`` (name to version, None when missing), ``environment``
        (the variables that change what runs), ``dtypes`` and ``backends`` (device type to a dictionary).
    """
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "distributions": {name: _version(name) for name in (*OUR_DISTRIBUTIONS, *OTHER_DISTRIBUTIONS)},
        "environment": {
            name: value
            for name, value in sorted(os.environ.items())
            if name.startswith("TENSORPLAY_") or name == "CUDA_VISIBLE_DEVICES"
        },
        "dtypes": list(_dtype.DTYPES),
        "backends": {kind: _backend(kind) for kind in _plugins.known_types()},
    }


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _backend(kind: str) -> dict[str, Any]:
    """What one backend says about itself. A backend that cannot even be imported is a finding, not an end."""
    try:
        backend = _plugins.find(kind)
    except Exception as error:
        return {"available": False, "reason": f"its import failed: {type(error).__name__}: {error}"}
    if backend is None:
        return {"available": False, "reason": _plugins.missing(kind)}
    return {
        "available": backend.is_available(),
        "reason": backend.unavailable_reason(),
        "devices": backend.device_count(),
        **backend.describe(),
    }


def text(found: dict[str, Any]) -> str:
    """The report for people."""
    lines = [f"Python {found['python']} on {found['platform']}", "", "Distributions"]
    lines += [f"  {name:<24}{version or 'not installed'}" for name, version in found["distributions"].items()]
    lines += ["", "Environment"]
    lines += [f"  {name}={value}" for name, value in found["environment"].items()] or ["  no variable is set"]
    lines += ["", f"Dtypes: {', '.join(found['dtypes'])}"]
    for kind, facts in found["backends"].items():
        lines += ["", f"Devices of type {kind!r}: {'available' if facts['available'] else 'not available'}"]
        lines += [
            f"  {name}:{_value(value)}" for name, value in facts.items() if name != "available" and value is not None
        ]
    return "\n".join(lines)


def _value(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "".join(f"\n    {element}" for element in value) or " none"
    return f" {value}"


def main(arguments: list[str] | None = None) -> int:
    """Prints the report and returns the exit code, which is always 0."""
    parser = argparse.ArgumentParser(prog="python -m tensorplay.doctor", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    found = report()
    print(json.dumps(found, indent=2) if options.json else text(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
