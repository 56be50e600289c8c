"""The one full build: its time, its size, and what the wheel holds. Its libraries: test_library.py."""

from __future__ import annotations

import re
from pathlib import Path

import build
import toolkit
from installs import LIB

MB = 1_000_000
VARIANTS = [build.variant_of(target) for target in toolkit.parse_targets(toolkit.DEFAULT_BUILD)]


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
    expected |= {f"libtensorplay_{variant}.LICENSE.txt" for variant in VARIANTS if variant != "emulated"}
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


def test_nvidias_terms_go_with_its_runtimes(unpacked: Path) -> None:
    for text in (unpacked / LIB).glob("*.LICENSE.txt"):
        words = " ".join(text.read_text().split())
        assert "End User License Agreement" in words
        assert "libcudart_static.a" in words  # is listed among what may be redistributed
    notice = next(unpacked.glob("*.dist-info/licenses/NOTICE")).read_text()
    assert "NVIDIA" in notice
    assert "LICENSE.txt" in notice
