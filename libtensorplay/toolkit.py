"""CUDA's headers, runtimes and kernel compiler: which wheels hold them, and where the files lie.

Only the standard library is used: the build hook asks this file what to install before anything is.
"""

from __future__ import annotations

import importlib.metadata
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
    link
        What the linker is told: the static runtime where the wheel has one.
    """

    version: str
    include: tuple[Path, ...]
    library: Path
    link: tuple[str, ...]

    @property
    def major(self) -> str:
        return self.version.partition(".")[0]


def parse_targets(text: str) -> list[str]:
    """What ``TENSORPLAY_BUILD_CUDA`` asks for: toolkit versions and ``emulated``, in order."""
    targets = [part.strip() for part in text.split(",") if part.strip()]
    known = [*RUNTIMES, "emulated"]
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


def requirements(targets: list[str], kernels: bool) -> list[str]:
    """The build requirements of these targets, pinned."""
    versions = [target for target in targets if target != "emulated"] or [HEADERS_OF_EMULATED]
    needed = [CFFI, CRT] + [f"{_runtime_name(version)}=={RUNTIMES[version]}" for version in versions]
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
    requirement = f"{_runtime_name(version)}=={RUNTIMES[version]}"
    root = folder_of(requirement, "nvidia/cuda_runtime" if version.startswith("12.") else "nvidia/cu13")
    found = importlib.metadata.version(_runtime_name(version))
    if found != RUNTIMES[version]:
        raise BuildError(f"{_runtime_name(version)}: got {found}, expected {RUNTIMES[version]} for CUDA {version}")
    crt = folder_of(CRT, "nvidia/cu13/include")
    if not (crt / "crt" / "host_defines.h").is_file():
        raise BuildError(f"crt/host_defines.h is missing in {crt} (pip install {CRT!r})")
    library = root / "lib"
    if (library / "libcudart_static.a").is_file():
        link: tuple[str, ...] = ("-l:libcudart_static.a", "-ldl", "-lpthread", "-lrt")
    else:
        # 12.4 to 12.8 come without the static library, and no wheel has an unversioned libcudart.so.
        link = ("-l:libcudart.so.12", "-Wl,-rpath,$ORIGIN/../../../../nvidia/cuda_runtime/lib")
    return Toolkit(version, (root / "include", crt), library, link)


def cccl_include() -> Path:
    """The folder that holds nv/target."""
    return folder_of(CCCL, "nvidia/cu13/include/cccl")
