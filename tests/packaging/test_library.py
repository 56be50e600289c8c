"""The compiled libraries: of the full wheel, or those that a tox environment of a toolkit has installed.

TENSORPLAY_BUILD_CUDA says, where it is set, what the installed tensorplay-cuda was built with.
"""

from __future__ import annotations

import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import build
import pytest
import release
import toolkit
from installs import LIB, run

CHOSEN = os.environ.get("TENSORPLAY_BUILD_CUDA")
TARGETS = toolkit.parse_targets(CHOSEN or toolkit.DEFAULT_BUILD)
HEADERS = {build.variant_of(target): target for target in TARGETS} | {"emulated": toolkit.headers_of_emulated(TARGETS)}

pytestmark = pytest.mark.parametrize("variant", HEADERS)


@pytest.fixture(scope="session")
def lib(request: pytest.FixtureRequest) -> Path:
    """The folder of the libraries."""
    if CHOSEN is None:
        unpacked: Path = request.getfixturevalue("unpacked")
        return unpacked / LIB
    spec = find_spec("tensorplay.cuda")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "_native" / "lib"


@pytest.fixture
def library(lib: Path, variant: str) -> Path:
    """One library."""
    return lib / f"libtensorplay_{variant}.so"


def test_library_exports_its_interface_only(library: Path) -> None:
    symbols = run("nm", "-D", "--defined-only", library).stdout.split("\n")
    names = {line.split()[-1] for line in symbols if line}
    assert "tp_tensor_empty" in names
    assert not {name for name in names if not re.fullmatch(r"tp_[a-z0-9]\w*", name)}


def test_library_needs_nothing_but_glibc_2_34(library: Path) -> None:
    assert release.GLIBC == (2, 34)
    assert release.outside(library) == []
    assert release.outside(library.parent / "_tensorplay.abi3.so") == []


def test_library_loads_without_any_of_cuda(library: Path) -> None:
    code = f"""
import ctypes
ctypes.CDLL("{library}")
print(*{{line.split("/")[-1].strip() for line in open("/proc/self/maps") if "/" in line}})
"""
    loaded = run(sys.executable, "-c", code).stdout.split()
    assert library.name in loaded
    assert not [name for name in loaded if re.match(r"lib(cuda|nv|cublas)", name)]


def test_library_tells_what_it_is(library: Path, variant: str) -> None:
    code = f"""
import ctypes
library = ctypes.CDLL("{library}")
library.tp_variant.restype = ctypes.c_char_p
print(library.tp_variant().decode(), library.tp_cuda_version(), library.tp_device_count() >= 0)
"""
    major, minor = map(int, HEADERS[variant].split("."))
    assert run(sys.executable, "-c", code).stdout.split() == [variant, str(1000 * major + 10 * minor), "True"]


def test_python_binds_the_library(lib: Path, library: Path, variant: str) -> None:
    """Through the compiled module, which asks for the version of the C interface that it was made for."""
    code = f"""
import sys
sys.path.insert(0, "{lib}")
from _tensorplay import ffi, lib
failure = lib.tp_table_bind(b"{library}")
print(ffi.string(failure if failure else lib.tp_variant()).decode())
"""
    assert run(sys.executable, "-c", code).stdout.split() == [variant]
