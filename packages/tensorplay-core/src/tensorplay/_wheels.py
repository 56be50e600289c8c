"""What to type to install our distributions: their files, in one command. On an index the names are not ours."""

from __future__ import annotations

#: What every other distribution of ours needs, in its own version.
CORE = "tensorplay-core"


def install(*distributions: str) -> str:
    """The advice for distributions and core: what a command leaves out, pip would take from an index."""
    return _type("", CORE, *distributions)


def install_anew(*distributions: str) -> str:
    """The advice for distributions that are installed and spoilt."""
    return _type("--force-reinstall --no-deps ", *distributions)


def not_installed(distribution: str) -> str:
    """The sentence for a distribution that is missing."""
    return f"{distribution} is not installed; type {install(distribution)}"


def _type(options: str, *distributions: str) -> str:
    wheels = " ".join(f"{name.replace('-', '_')}-*.whl" for name in distributions)
    return f"`python -m pip install {options}{wheels}` in the folder of the wheels"
