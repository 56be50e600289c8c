"""Siblings of different versions: pip refuses them together, and each import of them ends in one sentence."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest
from installs import Environment, run

OTHERS = {"older": "0.0.9", "newer": "99.0.0"}


@pytest.fixture(scope="module", params=OTHERS)
def other(request: pytest.FixtureRequest, checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheels of core and accelerator in another version."""
    folder = tmp_path_factory.mktemp("other")
    shutil.copytree(checkout, folder, dirs_exist_ok=True)
    version = folder / "packages" / "tensorplay-core" / "src" / "tensorplay" / "_version.py"
    line = f'__version__ = "{OTHERS[request.param]}"'
    version.write_text(re.sub("^__version__ = .*", line, version.read_text(), flags=re.M))
    run(sys.executable, folder / "libtensorplay" / "tables.py")
    for name in ("core", "accelerator"):
        command = ("build", "--wheel", "--outdir", folder / "dist")
        run(sys.executable, "-m", *command, folder / "packages" / f"tensorplay-{name}")
    return folder / "dist"


def find(folder: Path, name: str) -> Path:
    return next(folder.glob(f"tensorplay_{name}-*.whl"))


def spoken(path: Path) -> str:
    """A wheel's distribution and version, as a text names them."""
    name, version = path.name.split("-")[:2]
    return f"{name.replace('_', '-')} {version}"


def refusal(env: Environment, code: str) -> str:
    """The last line of a program that an ImportError ends."""
    done = run(env.python, "-c", code, check=False, TENSORPLAY_CUDA_RUNTIME="emulated")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: "), done.stderr
    return last


@pytest.fixture(scope="module")
def mixed(dist: Path, other: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Cuda beside a core of another version, as someone has it who upgraded, or went back, in part."""
    env = Environment(tmp_path_factory.mktemp("mixed") / "environment")
    env.pip("install", find(dist, "core"), find(dist, "cuda"))
    env.pip("install", "--no-deps", find(other, "core"))
    return env


@pytest.mark.parametrize(
    "code",
    [
        "import tensorplay.cuda",
        "import tensorplay; tensorplay.cuda",
        "import tensorplay as tp; tp.ones(1, device='cuda')",
    ],
)
def test_core_of_another_version_beside_cuda(dist: Path, other: Path, mixed: Environment, code: str) -> None:
    text = refusal(mixed, code)
    assert spoken(find(dist, "cuda")) in text
    assert spoken(find(other, "core")) in text
    assert "; type `python -m pip install tensorplay_core-*.whl tensorplay_cuda-*.whl`" in text


def test_host_tensors_work_beside_a_cuda_that_does_not_fit(mixed: Environment) -> None:
    assert mixed.evaluate("import tensorplay; print(tensorplay.ones(1).item())") == "1.0"


def test_doctor_tells_of_a_version_that_does_not_fit(dist: Path, other: Path, mixed: Environment) -> None:
    report = run(mixed.python, "-m", "tensorplay.doctor").stdout
    assert f"{spoken(find(dist, 'cuda'))} beside {spoken(find(other, 'core'))}" in report


def test_accelerator_of_another_version_beside_core(dist: Path, other: Path, env: Environment) -> None:
    env.pip("install", find(dist, "core"), "--no-deps", find(other, "accelerator"), "numpy", "ml_dtypes")
    text = refusal(env, "import tensorplay.accelerator")
    assert f"{spoken(find(other, 'accelerator'))} beside {spoken(find(dist, 'core'))}" in text
    env.pip("install", find(other, "core"))
    assert env.evaluate("import tensorplay.accelerator as a; print(a.device_count())") == "0"


def test_pip_refuses_versions_that_do_not_fit(dist: Path, other: Path, env: Environment) -> None:
    files = (find(dist, "core"), find(other, "accelerator"))
    done = run(env.python, "-m", "pip", "install", *files, check=False)
    assert done.returncode == 1
    assert "tensorplay-core==" in done.stdout + done.stderr
