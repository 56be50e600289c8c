"""The version of all three distributions; libtensorplay/tables.py copies it to the other two."""

from . import _wheels

__version__ = "0.1.0"


def require_same(distribution: str, version: str) -> None:
    """Refuses a sibling of another version. Each calls this before it takes anything else from core.

    Parameters
    ----------
    distribution : str
        The sibling, as pip knows it.
    version : str
        Its version.

    Raises
    ------
    ImportError
        The versions differ; the text names both and what to type.
    """
    if version != __version__:
        raise ImportError(
            f"{distribution} {version} beside tensorplay-core {__version__}: got two versions, expected one; type "
            f"{_wheels.install(distribution)}"
        )
