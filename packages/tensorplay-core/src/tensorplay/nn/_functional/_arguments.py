"""Arguments that several functions take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import _dispatch, _shape
from ...errors import InvalidArgumentError

if TYPE_CHECKING:
    from ..._tensor import Tensor


def sizes(operation: str, name: str, value: object, count: int, least: int = 1) -> _shape.Shape:
    """`count` integers: as many, or one for all.

    Raises
    ------
    DTypeError
        They are no integers.
    InvalidArgumentError
        They are more or fewer, or one is too small.
    """
    given = _shape.integers(operation, (value,))
    if len(given) == 1:
        given *= count
    if len(given) != count or min(given) < least:
        raise InvalidArgumentError(f"{operation}: got {name} {value!r}, expected {count} integers of {least} or more")
    return given


def choice(operation: str, name: str, value: object, options: tuple[str, ...]) -> str:
    """One of some words; raises InvalidArgumentError for any other."""
    if not isinstance(value, str) or value not in options:
        raise InvalidArgumentError(f"{operation}: got {name} {value!r}, expected {', '.join(map(repr, options))}")
    return value


def probability(operation: str, p: object) -> float:
    """A number from 0 to 1; raises InvalidArgumentError for any other."""
    p = _dispatch.real(operation, p)
    if not 0.0 <= p <= 1.0:
        raise InvalidArgumentError(f"{operation}: got p={p}, expected 0 to 1")
    return p


def check_spatial(operation: str, input: Tensor, count: int) -> None:
    """Refuses what has not `count` dimensions behind the channels, and perhaps a batch before them."""
    _dispatch.check_tensor(operation, input)
    if input.ndim not in (count + 1, count + 2):
        raise InvalidArgumentError(
            f"{operation}: got shape {input.shape}, expected {count + 1} dimensions, or {count + 2} with a batch"
        )
