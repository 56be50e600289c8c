"""Places in containers."""

from __future__ import annotations

from .. import _shape
from ..errors import OutOfRangeError


def position(container: str, index: int, length: int) -> int:
    """An index from 0 to length - 1; negative ones count from the end.

    Raises
    ------
    OutOfRangeError
        An IndexError, for an index outside.
    """
    place = _shape.integer(container, index)
    if not -length <= place < length:
        raise OutOfRangeError(f"{container}: got index {place}, expected {-length} to {length - 1}")
    return place % length
