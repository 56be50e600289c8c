"""Builds the C library into the wheel, and pins tensorplay-core to this distribution's own version.

hatchling passes no config settings on, so TENSORPLAY_BUILD_CUDA and TENSORPLAY_KERNELS choose what is built.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

TAG = "cp310-abi3-linux_x86_64"
LIB = "src/tensorplay/cuda/_native/lib"


class ExactSiblings(MetadataHookInterface):
    """Writes the dependencies, so that the version stands in one file."""

    def update(self, metadata: dict[str, Any]) -> None:
        metadata["dependencies"] = [f"tensorplay-core=={metadata['version']}", "cffi>=2.0"]


class NativeBuild(BuildHookInterface):
    """A wheel gets what build.py makes, a source distribution gets build.py and the sources."""

    folder: tempfile.TemporaryDirectory[str] | None = None

    def sources(self) -> Path:
        """libtensorplay, inside an unpacked source distribution or beside packages/ in a checkout."""
        root = Path(self.root)
        for candidate in (root / "libtensorplay", root.parent.parent / "libtensorplay"):
            if (candidate / "build.py").is_file():
                return candidate
        raise FileNotFoundError(f"no libtensorplay/build.py in {root} or {root.parent.parent}")

    def recipe(self, *arguments: str, capture: bool = False) -> str:
        """Runs build.py with this Python; its errors go to the user, and stop the build."""
        command = [sys.executable, str(self.sources() / "build.py"), *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE if capture else None, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"tensorplay-cuda: {' '.join(command)} failed; the reason stands above")
        return done.stdout or ""

    def dependencies(self) -> list[str]:
        if self.target_name != "wheel":
            return []
        return self.recipe("--requirements", capture=True).splitlines()

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name == "sdist":
            build_data["force_include"][str(self.sources())] = "libtensorplay"
            return
        build_data["pure_python"] = False
        build_data["tag"] = TAG
        if version == "editable":
            # In place and ignored by git: an editable install imports from the checkout.
            self.recipe("--out", str(Path(self.root) / LIB))
            return
        # Elsewhere: builds of one checkout that run at the same time must not meet.
        self.folder = tempfile.TemporaryDirectory()
        self.recipe("--out", self.folder.name)
        build_data["force_include"][self.folder.name] = LIB.removeprefix("src/")

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self.folder is not None:
            self.folder.cleanup()
