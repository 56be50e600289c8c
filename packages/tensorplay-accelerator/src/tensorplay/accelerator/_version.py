"""The version, and that core is there in the same one: the two are made for each other."""

try:
    from tensorplay._version import require_same
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "tensorplay.accelerator: tensorplay-core is not installed; type "
        "`python -m pip install tensorplay_core-*.whl tensorplay_accelerator-*.whl` in the folder of the wheels",
        name=error.name,
    ) from error

__version__ = "0.1.0"  # libtensorplay/tables.py copies it from core

require_same("tensorplay-accelerator", __version__)
