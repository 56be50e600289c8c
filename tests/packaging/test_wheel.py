"""The one full build: its time, its size, and what the wheel holds."""

from __future__ import annotations

import re
import resource
import sys
import time
import zipfile
from pathlib import Path

import pytest
from installs import Environment, run

MB = 1_000_000
FULL = {"TENSORPLAY_BUILD_CUDA": "12.9,13.0,emulated", "TENSORPLAY_KERNELS": "1"}
VARIANTS = {"cuda12": 12090, "cuda13": 13000, "emulated": 13000}
LIB = "tensorplay/cuda/_native/lib"
# What every glibc machine has. The driver is opened by name when it is first used.
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}


@pytest.fixture(scope="session")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """The full wheel, and the seconds that its build took once its requirements were installed."""
    env = Environment(tmp_path_factory.mktemp("build") / "environment")
    recipe = checkout / "libtensorplay" / "build.py"
    requirements = run(env.python, recipe, "--requirements", **FULL).stdout.split()
    env.pip("install", "build", "hatchling>=1.27", *requirements)
    out = tmp_path_factory.mktemp("full")
    start, used = time.monotonic(), _processor_seconds()
    source = checkout / "packages" / "tensorplay-cuda"
    run(env.python, "-m", "build", "--wheel", "--no-isolation", source, "--outdir", out, **FULL)
    # Two cores share the work. Where other programs have a part of them, the clock counts those too.
    seconds = min(time.monotonic() - start, (_processor_seconds() - used) / 2)
    return next(out.glob("*.whl")), seconds


def _processor_seconds() -> float:
    """What child processes that have ended used of the processors."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@pytest.fixture(scope="session")
def unpacked(wheel: tuple[Path, float], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The full wheel's files."""
    folder = tmp_path_factory.mktemp("unpacked")
    zipfile.ZipFile(wheel[0]).extractall(folder)
    return folder


def test_build_takes_at_most_90_seconds(wheel: tuple[Path, float]) -> None:
    assert wheel[1] <= 90


def test_wheel_is_at_most_8_megabytes(wheel: tuple[Path, float]) -> None:
    assert wheel[0].stat().st_size <= 8 * MB


def test_one_file_serves_every_python(wheel: tuple[Path, float]) -> None:
    assert wheel[0].name.endswith("-cp310-abi3-linux_x86_64.whl")


def test_wheel_holds_each_library_and_each_image(unpacked: Path, checkout: Path) -> None:
    families = [path.stem for path in sorted((checkout / "libtensorplay" / "kernels").glob("*.cu"))]
    targets = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120", "ptx"]
    expected = {"_tensorplay.abi3.so"} | {f"libtensorplay_{variant}.so" for variant in VARIANTS}
    expected |= {f"kernels/{family}.{target}.z" for family in families for target in targets}
    expected |= {f"kernels_emulated/{family}.sm_90.z" for family in families}
    expected |= {"include/tensorplay.h", "include/tensorplay_codes.h"}
    found = {str(path.relative_to(unpacked / LIB)) for path in (unpacked / LIB).glob("**/*") if path.is_file()}
    assert families
    assert found == expected


def test_wheel_ships_nothing_of_core(unpacked: Path) -> None:
    assert not (unpacked / "tensorplay" / "__init__.py").exists()
    assert {path.name for path in unpacked.glob("tensorplay/*")} <= {"cuda", "testing", "compiler"}


def test_wheel_has_the_page_beside_its_module(unpacked: Path) -> None:
    for name in ("memory_viz.py", "memory_viz.html"):
        assert (unpacked / "tensorplay" / "cuda" / name).is_file()


def test_wheel_pins_core_exactly(unpacked: Path) -> None:
    metadata = next(unpacked.glob("*.dist-info/METADATA")).read_text()
    version = re.search(r"^Version: (.*)$", metadata, re.M)
    assert version
    assert f"Requires-Dist: tensorplay-core=={version[1]}\n" in metadata


def test_entry_point_names_the_backend(unpacked: Path) -> None:
    text = next(unpacked.glob("*.dist-info/entry_points.txt")).read_text()
    assert text.split() == ["[tensorplay.backends]", "cuda", "=", "tensorplay.cuda._backend:backend"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_library_exports_its_interface_only(unpacked: Path, variant: str) -> None:
    library = unpacked / LIB / f"libtensorplay_{variant}.so"
    symbols = run("nm", "-D", "--defined-only", library).stdout.split("\n")
    names = {line.split()[-1] for line in symbols if line}
    assert "tp_tensor_empty" in names
    assert not {name for name in names if not re.fullmatch(r"tp_[a-z0-9]\w*", name)}


@pytest.mark.parametrize("variant", VARIANTS)
def test_library_needs_only_the_system(unpacked: Path, variant: str) -> None:
    dynamic = run("readelf", "-d", unpacked / LIB / f"libtensorplay_{variant}.so").stdout
    assert set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)) <= SYSTEM


@pytest.mark.parametrize("name", ["_tensorplay.abi3.so", *(f"libtensorplay_{variant}.so" for variant in VARIANTS)])
def test_library_runs_on_glibc_2_34(unpacked: Path, name: str) -> None:
    versions = run("objdump", "-T", unpacked / LIB / name).stdout
    needed = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_(\d+\.\d+)", versions)}
    assert max(needed) <= (2, 34)


@pytest.mark.parametrize(("variant", "version"), VARIANTS.items())
def test_library_tells_what_it_is(unpacked: Path, variant: str, version: int) -> None:
    code = f"""
import ctypes
library = ctypes.CDLL("{unpacked / LIB}/libtensorplay_{variant}.so")
library.tp_variant.restype = ctypes.c_char_p
print(library.tp_variant().decode(), library.tp_cuda_version(), library.tp_device_count() >= 0)
"""
    assert run(sys.executable, "-c", code).stdout.split() == [variant, str(version), "True"]
