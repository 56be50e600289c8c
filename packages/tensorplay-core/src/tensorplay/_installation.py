"""Which distributions of TensorPlay are installed, and what is wrong with them together."""

from __future__ import annotations

import sys
from importlib import metadata

from . import _wheels
from ._fault import Fault

#: Our own distributions, then those that they use.
OURS = (_wheels.CORE, "tensorplay-cuda", "tensorplay-accelerator")
OTHERS = ("numpy", "ml_dtypes", "cffi", "cuda-pathfinder")
#: Another project, whose package has the name of ours.
FOREIGN = "tensorplay"


def version(distribution: str) -> str | None:
    """Of a distribution that is installed, else None."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def is_ours() -> bool:
    """Whether the package that was imported is tensorplay-core's: it imports its parts, another one does not."""
    return hasattr(sys.modules["tensorplay"], "_placeholder")


def faults() -> list[Fault]:
    """What is wrong with the distributions."""
    return [fault for fault in (_foreign(), _mixed()) if fault is not None]


def _foreign() -> Fault | None:
    other = version(FOREIGN)
    if other is None and is_ours():
        return None
    file = sys.modules["tensorplay"].__file__
    whose = "tensorplay-core's" if is_ours() else "not tensorplay-core's"
    named = f"the distribution {FOREIGN} {other} is another project, and writes into the same folder; " if other else ""
    anew = _wheels.install_anew(*(name for name in OURS if name == _wheels.CORE or version(name)))
    return Fault(
        "foreign-package",
        f"{named}{file} is {whose}",
        f"type `python -m pip uninstall -y {FOREIGN}`, then {anew}",
    )


def _mixed() -> Fault | None:
    found = {name: known for name in OURS if (known := version(name)) is not None}
    if len(set(found.values())) < 2:
        return None
    listed = ", ".join(f"{name} {known}" for name, known in found.items())
    return Fault(
        "versions-differ",
        f"{listed}: expected one version of all",
        f"type {_wheels.install_anew(*found)}",
    )
