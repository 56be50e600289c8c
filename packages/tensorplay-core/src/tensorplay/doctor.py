"""``python -m tensorplay.doctor``: what is installed, which devices work, why others do not, and what to type then."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from dataclasses import asdict
from typing import Any

from . import _environment, _installation
from ._fault import Fault
from ._output import say


def report() -> dict[str, Any]:
    """Everything the doctor knows, as plain dictionaries, lists and texts.

    Starts no device in this process.

    Returns
    -------
    dict
        ``python``, ``platform``, ``package`` (the folder), ``distributions`` (name to version, None when missing),
        ``environment`` (the variables that change what runs), ``dtypes``, ``backends`` (device type to a
        dictionary), ``accelerator`` (the device type of the one that serves as it, None without one) and ``faults``
        (dictionaries with ``code``, ``problem`` and ``advice``).
    """
    faults = _installation.faults() + _environment.faults()
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "package": os.path.dirname(__file__),
        "distributions": {name: _installation.version(name) for name in (*_installation.OURS, *_installation.OTHERS)},
        "environment": _environment.settings(),
        "dtypes": [],
        "backends": {},
        "accelerator": None,
    }
    if _installation.is_ours():
        from . import _dtype

        found["dtypes"] = list(_dtype.DTYPES)
        kinds, found["accelerator"], more = _kinds()
        faults += more
        for kind in kinds:
            found["backends"][kind], more = _backend(kind)
            faults += more
    return {**found, "faults": [asdict(fault) for fault in faults]}


def _backend(kind: str) -> tuple[dict[str, Any], list[Fault]]:
    """What one backend says about itself. A backend that cannot even be imported is a finding, not an end."""
    from . import _plugins, _wheels

    try:
        backend = _plugins.find(kind)
    except Exception as error:
        problem = f"the import of the backend for {kind!r} failed: {type(error).__name__}: {error}"
        known = _plugins.DISTRIBUTIONS.get(kind)
        again = _wheels.install_anew(known) if known else "install what brings it anew"
        advice = f"type `python -m pip check`, then {again}"
        return {"available": False, "reason": problem}, [Fault("import-failed", problem, advice)]
    if backend is None:
        return {"available": False, "reason": _plugins.missing(kind)}, []
    facts, faults = backend.diagnose()
    return {
        "available": backend.is_available(),
        "reason": backend.unavailable_reason(),
        "devices": backend.device_count(),
        **backend.describe(),
        **facts,
    }, faults


def _kinds() -> tuple[list[str], str | None, list[Fault]]:
    """The types of devices, and that of the accelerator, None without one."""
    from . import _plugins, errors

    try:
        kinds = _plugins.known_types()
    except errors.BackendUnavailableError as error:
        return ["cpu"], None, [Fault("backends-collide", str(error), "type `python -m pip uninstall` and its name")]
    try:
        return kinds, _plugins.accelerator_type(), []
    except errors.BackendUnavailableError as error:
        advice = f"type `unset {_plugins.VARIABLE}`, or set one of these"
        return kinds, None, [Fault("setting-unknown", str(error), advice)]


def text(found: dict[str, Any]) -> str:
    """The report for people."""
    lines = [f"Python {found['python']} on {found['platform']}", f"Package in {found['package']}", "", "Distributions"]
    lines += [f"  {name:<24}{version or 'not installed'}" for name, version in found["distributions"].items()]
    lines += ["", "Environment"]
    settings = found["environment"].items()
    lines += [f"  {name}={value if value.isprintable() else repr(value)}" for name, value in settings]
    lines += [] if settings else ["  no variable is set"]
    lines += ["", f"Dtypes: {', '.join(found['dtypes'])}"]
    lines += ["", f"Accelerator: {found['accelerator'] or 'none'}"]
    for kind, facts in found["backends"].items():
        lines += ["", f"Devices of type {kind!r}: {'available' if facts['available'] else 'not available'}"]
        lines += [
            f"  {name}:{_value(value)}" for name, value in facts.items() if name != "available" and value is not None
        ]
    lines += ["", "Faults" if found["faults"] else "No faults"]
    for fault in found["faults"]:
        lines += [f"  {fault['code']}: {fault['problem']}", f"    {fault['advice']}"]
    return "\n".join(lines)


def _value(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "".join(f"\n    {_row(element)}" for element in value) or " none"
    return f" {value}"


def _row(element: object) -> str:
    if isinstance(element, dict):
        return ", ".join(f"{name}: {value}" for name, value in element.items() if value is not None)
    return str(element)


def main(arguments: list[str] | None = None) -> int:
    """Prints the report and returns the exit code, which is always 0."""
    parser = argparse.ArgumentParser(prog="python -m tensorplay.doctor", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    found = report()
    say(json.dumps(found, indent=2) if options.json else text(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
