"""What can be published: the wheels under their final tags, what they weigh, and how long they take to import."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import release
from installs import README, Environment, readme_command, write_wheel

MB = 1_000_000
MAX_INSTALLED_MB = 15
MAX_IMPORT_S = 0.1
EMULATED = {"TENSORPLAY_CUDA_RUNTIME": "emulated"}


@pytest.fixture(scope="session")
def published(dist: Path, wheel: tuple[Path, float], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that would be published, the wheel with C in full and under its manylinux tag."""
    folder = tmp_path_factory.mktemp("published")
    for path in [*dist.glob("*.tar.gz"), *dist.glob("*-none-any.whl")]:
        shutil.copy(path, folder)
    release.repair(wheel[0], folder)
    return folder


@pytest.fixture(scope="session")
def everything(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The three wheels, installed as README says."""
    folder = tmp_path_factory.mktemp("everything")
    (folder / "dist").mkdir()
    (folder / "dist" / "wheels").symlink_to(published)
    env = Environment(folder / "environment")
    env.shell(folder, readme_command("dist/wheels"))
    return env


def test_wheel_with_c_carries_the_manylinux_tag_of_glibc_2_34(published: Path) -> None:
    (found,) = published.glob("tensorplay_cuda-*.whl")
    assert found.name.endswith("-cp310-abi3-manylinux_2_34_x86_64.whl")


def wheel_that_needs(folder: Path, library: str, version: str | None = None) -> Path:
    """A wheel whose library calls a function of another library, in a version where one is given."""
    (folder / "outside.c").write_text("void outside(void) {}\n")
    (folder / "inside.c").write_text("void outside(void);\nvoid inside(void) { outside(); }\n")
    (folder / "versions").write_text(f"{version} {{ outside; }};\n")
    link = ["cc", "-shared", "-fPIC", "-nostdlib"]
    versions = ["-Wl,--version-script=versions"] if version else []
    subprocess.run([*link, *versions, f"-Wl,-soname,{library}", "-o", library, "outside.c"], cwd=folder, check=True)
    subprocess.run([*link, "-o", "inside.so", "inside.c", library], cwd=folder, check=True)
    files = {"inside.so": (folder / "inside.so").read_bytes()}
    return write_wheel(folder, "inside", "1.0", files, "cp310-abi3-linux_x86_64")


@pytest.mark.parametrize(
    ("library", "version", "named"),
    [
        ("libcuda.so.1", None, "libcuda.so.1"),
        ("libm.so.6", "GLIBC_2.99", "GLIBC_2.99"),
        ("libc.so.6", "GLIBC_PRIVATE", "GLIBC_PRIVATE"),
    ],
)
def test_a_library_that_needs_more_than_glibc_is_refused(
    tmp_path: Path, library: str, version: str | None, named: str
) -> None:
    wheel = wheel_that_needs(tmp_path, library, version)
    out = tmp_path / "out"
    words = f"inside-1.0-.*whl: inside.so needs {named}, expected nothing but glibc 2.34: open other libraries by name"
    with pytest.raises(release.ReleaseError, match=words):
        release.repair(wheel, out)
    assert not out.exists()


def test_auditwheel_refuses_a_newer_glibc_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "outside", lambda library: [])
    with pytest.raises(release.ReleaseError, match="auditwheel repair .*: status [12]; what it found stands above"):
        release.repair(wheel_that_needs(tmp_path, "libm.so.6", "GLIBC_2.99"), tmp_path / "out")


def test_a_library_that_needs_glibc_alone_gets_the_tag(tmp_path: Path) -> None:
    wheel = wheel_that_needs(tmp_path, "libm.so.6", "GLIBC_2.34")
    assert release.repair(wheel, tmp_path / "out").name == "inside-1.0-cp310-abi3-manylinux_2_34_x86_64.whl"


def test_descriptions_and_limited_api_pass_their_checkers(published: Path) -> None:
    assert len(list(published.iterdir())) == 6
    release.check(published)


def test_published_wheels_work(everything: Environment) -> None:
    code = "import tensorplay as tp; print((tp.ones(2, device='cuda') + 1).tolist(), tp.accelerator.is_available())"
    assert everything.evaluate(code, **EMULATED) == "[2.0, 2.0] True"


def sizes(env: Environment) -> dict[str, float]:
    """Megabytes of each distribution as it lies on the disk, compiled Python included."""
    code = """
import json, os
from importlib.metadata import distribution
names = ["core", "cuda", "accelerator"]
files = {name: distribution(f"tensorplay-{name}").files for name in names}
print(json.dumps({name: sum(os.path.getsize(f.locate()) for f in files[name]) for name in names}))
"""
    return {name: nbytes / MB for name, nbytes in json.loads(env.evaluate(code)).items()}


def test_installed_size_is_bounded_and_as_readme_says(everything: Environment) -> None:
    found = sizes(everything)
    assert sum(found.values()) <= MAX_INSTALLED_MB
    told = dict(re.findall(r"^\| `tensorplay-(\w+)` \|.* \| ([\d.]+) MB \|$", README.read_text(), re.M))
    assert told.keys() == found.keys()
    for name, size in found.items():
        assert float(told[name]) == pytest.approx(size, rel=0.15, abs=0.1), (name, size)


def test_import_takes_little_more_than_numpys(everything: Environment) -> None:
    """In seconds of the processor, the least of several: what else runs on a machine does not count."""
    code = """
import resource, subprocess, sys
def seconds(code):
    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime
    best = 1e9
    for _ in range(9):
        start = spent()
        subprocess.run([sys.executable, "-c", code], check=True)
        best = min(best, spent() - start)
    return best
print(seconds("import tensorplay, tensorplay.cuda, tensorplay.accelerator") - seconds("import numpy"))
"""
    assert float(everything.evaluate(code, OPENBLAS_NUM_THREADS="1")) <= MAX_IMPORT_S
