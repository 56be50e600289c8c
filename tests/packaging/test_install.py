"""Every way to install, every subset, and what stays after an uninstall."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from installs import Environment, readme_command, run, write_wheel

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
    env.shell(checkout, readme_command("./packages"))
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


def wheels(dist: Path, *names: str) -> list[Path]:
    """The wheels of some of the three distributions."""
    return [next(dist.glob(f"tensorplay_{name}-*.whl")) for name in names]


def installed(env: Environment) -> set[str]:
    """The distributions of an environment, without pip and what belongs to it."""
    listed = env.evaluate("import importlib.metadata as m; print(*(d.metadata['Name'] for d in m.distributions()))")
    return set(listed.lower().split()) - {"pip", "setuptools"}


def test_core_brings_numpy_and_ml_dtypes_only(dist: Path, env: Environment) -> None:
    """Installing a framework pulled gigabytes of CUDA libraries onto machines without a GPU."""
    env.pip("install", *wheels(dist, "core"))
    assert installed(env) == {"tensorplay-core", "numpy", "ml_dtypes"}
    assert env.evaluate("import tensorplay as tp; print((tp.ones(2) + 1).tolist())") == "[2.0, 2.0]"


def test_everything_brings_cffi_and_no_toolkit(dist: Path, env: Environment) -> None:
    env.pip("install", *wheels(dist, "core", "cuda", "accelerator"))
    ours = {"tensorplay-core", "tensorplay-cuda", "tensorplay-accelerator"}
    assert installed(env) == ours | {"numpy", "ml_dtypes", "cffi", "pycparser"}
    assert env.evaluate(WORKS, **EMULATED) == RESULT
    code = "import tensorplay as tp; print(tp.accelerator.is_available(), tp.ones(1).item())"
    assert env.evaluate(code, TENSORPLAY_CUDA_RUNTIME="none") == "False 1.0"


def test_core_and_cuda_work_without_accelerator(dist: Path, env: Environment) -> None:
    env.pip("install", *wheels(dist, "core", "cuda"))
    code = """
import tensorplay as tp
print((tp.ones(2, device="cuda") + 1).tolist(), hasattr(tp, "accelerator"))
try:
    tp.accelerator
except AttributeError as error:
    print(error)
"""
    first, second = env.evaluate(code, **EMULATED).splitlines()
    assert first == "[2.0, 2.0] False"
    assert "tensorplay-accelerator is not installed" in second


def test_siblings_come_from_the_files_that_are_named(dist: Path, env: Environment, tmp_path: Path) -> None:
    """An index may hold anything under these names: `tensorplay` belongs to another project there."""
    ours = ["tensorplay_core", "tensorplay_cuda", "tensorplay_accelerator"]
    for name in ["tensorplay", *ours]:
        write_wheel(tmp_path, name, "99.0")
    env.pip("install", "--find-links", tmp_path, *wheels(dist, "core", "cuda", "accelerator"))
    code = "import importlib.metadata as m; print(*{d.version for d in m.distributions() if 'tensorplay' in d.name})"
    assert env.evaluate(code) == wheels(dist, "core")[0].name.split("-")[1]


def test_uninstall_leaves_the_others(dist: Path, env: Environment) -> None:
    env.pip("install", *dist.glob("*.whl"))
    assert env.evaluate(WORKS, **EMULATED) == RESULT
    env.pip("uninstall", "-y", "tensorplay-accelerator")
    assert env.evaluate("import tensorplay as tp; print(tp.cuda.device_count())", **EMULATED) == "2"
    env.pip("uninstall", "-y", "tensorplay-cuda")
    assert env.evaluate("import tensorplay as tp; print(tp.ones(2).tolist())") == "[1.0, 1.0]"
    left = env.evaluate("import tensorplay; print([*tensorplay.__path__])")
    assert not list(Path(left.strip("[]'")).glob("cuda/**/*.so"))


def test_uninstall_of_cuda_leaves_the_facade(dist: Path, env: Environment) -> None:
    env.pip("install", *wheels(dist, "core", "cuda", "accelerator"))
    env.pip("uninstall", "-y", "tensorplay-cuda")
    code = "import tensorplay as tp; print(tp.accelerator.is_available(), tp.cuda.is_available(), tp.ones(1).item())"
    assert env.evaluate(code, **EMULATED) == "False False 1.0"


def type_what_it_says(env: Environment, dist: Path, advice: str) -> None:
    """Types what stands between backticks, in the folder of the wheels, in a shell of this environment."""
    (command,) = re.findall("`(.*?)`", advice)
    env.shell(dist, command)


def test_core_alone_says_what_to_type_for_a_device(dist: Path, env: Environment) -> None:
    env.pip("install", *wheels(dist, "core"))
    assert env.evaluate("from tensorplay import cuda; print(cuda.is_available(), cuda.device_count())") == "False 0"
    code = """
import tensorplay.cuda
try:
    tensorplay.cuda.Stream()
except Exception as error:
    print(error)
try:
    tensorplay.accelerator
except AttributeError as error:
    print(error)
"""
    for advice in env.evaluate(code).splitlines():
        type_what_it_says(env, dist, advice)
    assert env.evaluate(WORKS, **EMULATED) == RESULT


def test_accelerator_without_cuda_reports_none(dist: Path, env: Environment) -> None:
    env.pip("install", *dist.glob("tensorplay_core-*.whl"), *dist.glob("tensorplay_accelerator-*.whl"))
    code = "from tensorplay import accelerator as a; print(a.is_available(), a.device_count(), a.current_accelerator())"
    assert env.evaluate(code) == "False 0 None"


@pytest.mark.parametrize("name", ["cuda", "accelerator"])
def test_import_without_core_says_what_to_type(dist: Path, env: Environment, name: str) -> None:
    env.pip("install", "--no-deps", *wheels(dist, name))
    code = f"import tensorplay.{name} as part; print(part.device_count())"
    done = run(env.python, "-c", code, check=False, **EMULATED)
    assert done.returncode == 1
    type_what_it_says(env, dist, done.stderr.splitlines()[-1])
    assert env.evaluate(code, **EMULATED) == ("2" if name == "cuda" else "0")
