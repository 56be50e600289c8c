"""Commands and virtual environments, as a person at a shell would make them."""

from __future__ import annotations

import os
import subprocess
import venv
import zipfile
from pathlib import Path

import toolkit

README = Path(__file__).resolve().parents[2] / "README.md"

# What most tests build; the full build has its own test.
EMULATED_ONLY = {"TENSORPLAY_BUILD_CUDA": "emulated", "TENSORPLAY_KERNELS": "0"}
FULL = {"TENSORPLAY_BUILD_CUDA": toolkit.DEFAULT_BUILD, "TENSORPLAY_KERNELS": "1"}
LIB = "tensorplay/cuda/_native/lib"  # where a wheel has what build.py makes


def run(*command: str | Path, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a command outside the checkout; on failure the message is all that it printed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TENSORPLAY_", "PYTHONPATH"))}
    done = subprocess.run(
        [str(part) for part in command], env=kept | EMULATED_ONLY | environment, cwd="/", capture_output=True, text=True
    )
    if check and done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def write_wheel(
    folder: Path, name: str, version: str, files: dict[str, bytes] | None = None, tag: str = "py3-none-any"
) -> Path:
    """Writes a wheel that holds these files, or nothing."""
    info = f"{name}-{version}.dist-info"
    held = {
        **(files or {}),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: {str('-any' in tag).lower()}\nTag: {tag}\n",
    }
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for place, content in held.items():
            wheel.writestr(place, content)
        wheel.writestr(f"{info}/RECORD", "".join(f"{place},,\n" for place in (*held, f"{info}/RECORD")))
    return path


def readme_command(word: str) -> str:
    """The command of README that installs what has this word in it."""
    lines = README.read_text().splitlines()
    (found,) = [line for line in lines if line.startswith("python3 -m pip install ") and word in line]
    return found


class Environment:
    """A virtual environment."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=True)
        self.python = folder / "bin" / "python"

    def pip(self, *arguments: str | Path, **environment: str) -> None:
        """Runs pip."""
        run(self.python, "-m", "pip", *arguments, **environment)

    def shell(self, folder: Path, command: str) -> None:
        """Types a command in a folder, with the environment active."""
        run("sh", "-c", f"cd {folder} && {command}", PATH=f"{self.python.parent}:{os.environ['PATH']}")

    def evaluate(self, code: str, **environment: str) -> str:
        """What a program prints."""
        return run(self.python, "-c", code, **environment).stdout.strip()
