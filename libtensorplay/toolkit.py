"""CUDA's headers, runtimes and kernel compiler: which wheels hold them, and where the files lie.

Only the standard library is used: the build hook asks this file what to install before anything is.
"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

DEFAULT_BUILD = "12.9,13.0,emulated"

# Toolkit version: the runtime wheel's version. Its siblings have patch numbers of their own.
RUNTIMES = {
    "12.4": "12.4.127",
    "12.6": "12.6.77",
    "12.8": "12.8.90",
    "12.9": "12.9.79",
    "13.0": "13.0.96",
    "13.1": "13.1.80",
    "13.2": "13.2.86",
    "13.3": "13.3.29",
    "13.4": "13.4.92",
    "13.5": "13.5.37",
}
HEADERS_OF_EMULATED = "13.0"
# Their wheels have no static runtime. All of 12.x is one ABI: that of 12.9 serves their headers.
WITHOUT_STATIC = ("12.4", "12.6", "12.8")
STATIC_OF_12 = "12.9"
STATIC = "libcudart_static.a"

# No runtime wheel holds crt/host_defines.h, which every cuda_runtime_api.h includes; this one serves 12.4 to 13.5.
CRT = "nvidia-cuda-crt==13.0.88"
# nv/target, which cuda_fp16.h includes when the host's compiler reads it.
CCCL = "nvidia-cuda-cccl==13.0.85"
# Their cubins load in drivers of CUDA 12 and 13, so both libraries share them. Of nvcc only ptxas is used.
NVRTC = "nvidia-cuda-nvrtc-cu12==12.9.86"
PTXAS = "nvidia-cuda-nvcc-cu12==12.9.86"
CFFI = "cffi>=2.0"


class BuildError(Exception):
    """The build cannot go on; the text names the missing piece and how to get it."""


@dataclass(frozen=True)
class Toolkit:
    """The headers and the runtime of one CUDA version.

    Attributes
    ----------
    version
        As in ``RUNTIMES``: ``"12.9"``.
    include
        Folders to search for headers, in this order.
    library
        The folder of the runtime.
    """

    version: str
    include: tuple[Path, ...]
    library: Path


def parse_targets(text: str) -> list[str]:
    """What ``TENSORPLAY_BUILD_CUDA`` asks for: toolkit versions, ``newest`` among them, and ``emulated``, in order."""
    newest = list(RUNTIMES)[-1]
    targets = [newest if part.strip() == "newest" else part.strip() for part in text.split(",") if part.strip()]
    known = [*RUNTIMES, "newest", "emulated"]
    if not targets:
        raise BuildError(f"TENSORPLAY_BUILD_CUDA names nothing to build, expected some of {', '.join(known)}")
    for target in targets:
        if target not in known:
            raise BuildError(f"TENSORPLAY_BUILD_CUDA: got {target!r}, expected some of {', '.join(known)}")
    majors = [target.partition(".")[0] for target in targets]
    if len(set(majors)) != len(majors):
        raise BuildError(
            f"TENSORPLAY_BUILD_CUDA: got {text!r}, expected one version of each major: two runtimes of one major "
            "are one distribution in two versions"
        )
    return targets


def headers_of_emulated(targets: list[str]) -> str:
    """The toolkit version whose headers the emulated variant is compiled with."""
    versions = [target for target in targets if target != "emulated"]
    return versions[-1] if versions else HEADERS_OF_EMULATED


def _runtime_name(version: str) -> str:
    return "nvidia-cuda-runtime-cu12" if version.startswith("12.") else "nvidia-cuda-runtime"


def _runtime(version: str) -> str:
    return f"{_runtime_name(version)}=={RUNTIMES[version]}"


def requirements(targets: list[str], kernels: bool) -> list[str]:
    """The build requirements of these targets, pinned."""
    versions = [target for target in targets if target != "emulated"] or [HEADERS_OF_EMULATED]
    needed = [CFFI, CRT] + [_runtime(version) for version in versions]
    if set(versions) & set(WITHOUT_STATIC):
        needed.append("pip")  # static_runtime calls it
    if "emulated" in targets:
        needed.append(CCCL)
    if kernels and targets != ["emulated"]:
        needed += [NVRTC, PTXAS]
    return needed


def folder_of(requirement: str, path: str) -> Path:
    """The folder `path` inside an installed wheel; says what to install when it is not there."""
    name = requirement.partition("==")[0]
    try:
        folder = Path(str(importlib.metadata.distribution(name).locate_file(path)))
    except importlib.metadata.PackageNotFoundError:
        raise BuildError(f"{name} is not installed: the build needs its {path} (pip install {requirement!r})") from None
    if not folder.is_dir():
        raise BuildError(f"{name} has no folder {path}: expected {folder} (pip install {requirement!r})")
    return folder


def find_toolkit(version: str) -> Toolkit:
    """The toolkit of this version, from the installed wheels."""
    root = folder_of(_runtime(version), "nvidia/cuda_runtime" if version.startswith("12.") else "nvidia/cu13")
    found = importlib.metadata.version(_runtime_name(version))
    if found != RUNTIMES[version]:
        raise BuildError(f"{_runtime_name(version)}: got {found}, expected {RUNTIMES[version]} for CUDA {version}")
    crt = folder_of(CRT, "nvidia/cu13/include")
    if not (crt / "crt" / "host_defines.h").is_file():
        raise BuildError(f"crt/host_defines.h is missing in {crt} (pip install {CRT!r})")
    return Toolkit(version, (root / "include", crt), root / "lib")


def static_runtime(kit: Toolkit, scratch: Path) -> Path:
    """The folder that holds the static runtime for a toolkit; `scratch` is for one that has to be fetched.

    Two versions of one distribution cannot be installed side by side, so the runtime that serves 12.4 to 12.8 is no
    requirement beside their headers.
    """
    if kit.version not in WITHOUT_STATIC:
        return kit.library
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(scratch)]
    done = subprocess.run([*command, _runtime(STATIC_OF_12)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(
            f"CUDA {kit.version} has no static runtime in its wheel, and pip does not fetch that of "
            f"{_runtime(STATIC_OF_12)}:\n{done.stdout}{done.stderr}"
        )
    return scratch / "nvidia" / "cuda_runtime" / "lib"


def licence(version: str) -> str:
    """NVIDIA's terms for the runtime that is linked into the library of this version."""
    wheel = importlib.metadata.distribution(_runtime_name(version))
    text = wheel.read_text("licenses/License.txt") or wheel.read_text("License.txt")
    if not text:
        raise BuildError(f"{_runtime(version)} holds no License.txt, which has to go with its static runtime")
    return text


def cccl_include() -> Path:
    """The folder that holds nv/target."""
    return folder_of(CCCL, "nvidia/cu13/include/cccl")
