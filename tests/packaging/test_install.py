"""Every way to install, every subset, and what stays after an uninstall."""

from __future__ import annotations

from pathlib import Path

import pytest
from installs import Environment

WORKS = """
import tensorplay as tp
import tensorplay.accelerator
x = tp.arange(4, dtype=tp.float32, device="cuda")
print((x + x).cpu().tolist(), tp.accelerator.device_count(), tp.cuda.device_count())
"""
EMULATED = {"TENSORPLAY_CUDA_RUNTIME": "emulated", "TENSORPLAY_EMULATED_DEVICES": "2"}
RESULT = "[0.0, 2.0, 4.0, 6.0] 2 2"


def paths(checkout: Path) -> list[str]:
    """The three distributions of a checkout."""
    return [str(checkout / "packages" / f"tensorplay-{name}") for name in ("core", "cuda", "accelerator")]


def test_install_from_folders(checkout: Path, env: Environment) -> None:
    env.pip("install", *paths(checkout))
    assert env.evaluate(WORKS, **EMULATED) == RESULT


def test_install_editable(checkout: Path, env: Environment) -> None:
    env.pip("install", *(part for path in paths(checkout) for part in ("-e", path)))
    assert env.evaluate(WORKS, **EMULATED) == RESULT
    origin = env.evaluate("import tensorplay.cuda; print(tensorplay.cuda.__file__)")
    assert origin.startswith(str(checkout))


def test_install_editable_core_beside_wheels(checkout: Path, dist: Path, env: Environment) -> None:
    env.pip("install", "-e", paths(checkout)[0], *dist.glob("tensorplay_cuda-*.whl"), *dist.glob("*accelerator-*.whl"))
    assert env.evaluate(WORKS, **EMULATED) == RESULT


def test_install_from_source_distributions(dist: Path, env: Environment) -> None:
    env.pip("install", *dist.glob("*.tar.gz"))
    assert env.evaluate(WORKS, **EMULATED) == RESULT


def test_uninstall_leaves_the_others(dist: Path, env: Environment) -> None:
    env.pip("install", *dist.glob("*.whl"))
    assert env.evaluate(WORKS, **EMULATED) == RESULT
    env.pip("uninstall", "-y", "tensorplay-accelerator")
    assert env.evaluate("import tensorplay as tp; print(tp.cuda.device_count())", **EMULATED) == "2"
    env.pip("uninstall", "-y", "tensorplay-cuda")
    assert env.evaluate("import tensorplay as tp; print(tp.ones(2).tolist())") == "[1.0, 1.0]"
    left = env.evaluate("import tensorplay; print([*tensorplay.__path__])")
    assert not list(Path(left.strip("[]'")).glob("cuda/**/*.so"))


def test_core_alone_has_a_placeholder(dist: Path, env: Environment) -> None:
    env.pip("install", *dist.glob("tensorplay_core-*.whl"))
    assert env.evaluate("from tensorplay import cuda; print(cuda.is_available(), cuda.device_count())") == "False 0"
    code = """
import tensorplay.cuda
try:
    tensorplay.cuda.Stream()
except Exception as error:
    print(error)
"""
    assert "tensorplay-cuda" in env.evaluate(code)


def test_accelerator_without_cuda_reports_none(dist: Path, env: Environment) -> None:
    env.pip("install", *dist.glob("tensorplay_core-*.whl"), *dist.glob("tensorplay_accelerator-*.whl"))
    code = "from tensorplay import accelerator as a; print(a.is_available(), a.device_count(), a.current_accelerator())"
    assert env.evaluate(code) == "False 0 None"


@pytest.mark.parametrize("name", ["cuda", "accelerator"])
def test_import_without_core_fails(dist: Path, env: Environment, name: str) -> None:
    env.pip("install", "--no-deps", *dist.glob(f"tensorplay_{name}-*.whl"))
    code = f"""
try:
    import tensorplay.{name}
except ImportError as error:
    print("refused:", error)
"""
    assert "tensorplay" in env.evaluate(code).removeprefix("refused:")
