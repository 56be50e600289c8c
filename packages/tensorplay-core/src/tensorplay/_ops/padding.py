"""More elements before and behind those of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import _dispatch, _shape
from ..errors import DTypeError, InvalidArgumentError
from .joining import cat

if TYPE_CHECKING:
    from .._backend import Scalar
    from .._tensor import Tensor

_MODES = ("constant", "reflect", "replicate", "circular")


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: Scalar | None = None) -> Tensor:
    """A copy with elements added before and behind, or taken away where a number is negative.

    Parameters
    ----------
    pad : sequence of int
        How many: before and behind in the last dimension, then in the one before it, and so on.
    mode : str
        ``"constant"``: `value`; ``"reflect"``: the elements mirrored at the outermost one; ``"replicate"``: the
        outermost element; ``"circular"``: those of the other end.
    value : number, optional
        For ``"constant"``, 0 by default.
    """
    _dispatch.check_tensor("pad", input)
    counts = _shape.integers("pad", (pad,))
    if len(counts) % 2 or len(counts) > 2 * input.ndim:
        raise InvalidArgumentError(
            f"pad: got {len(counts)} numbers for shape {input.shape}, expected two for each dimension from the last on"
        )
    if not isinstance(mode, str) or mode not in _MODES:
        raise DTypeError(f"pad: got mode {mode!r}, expected {', '.join(map(repr, _MODES))}")
    if mode != "constant" and value not in (None, 0):
        raise InvalidArgumentError(f"pad: got value {value!r} for mode {mode!r}, expected it for 'constant' only")
    sides = [(input.ndim - 1 - place // 2, counts[place], counts[place + 1]) for place in range(0, len(counts), 2)]
    if mode == "constant":
        return _around(input, _cropped(input, sides), sides, 0 if value is None else value)
    # As in torch, what is taken away is still seen from the sides, but not from the other end.
    result = _cropped(input, sides) if mode == "circular" else input
    for dim, before, behind in sides:
        result = _continued(result, dim, max(0, before), max(0, behind), mode)
    result = result if mode == "circular" else _cropped(result, sides)
    return result.clone() if all(max(before, behind) <= 0 for _, before, behind in sides) else result


def _cropped(input: Tensor, sides: Sequence[tuple[int, int, int]]) -> Tensor:
    """A view without the elements that are taken away."""
    result = input
    for dim, before, behind in sides:
        size = result.shape[dim]
        start, stop = max(0, -before), size - max(0, -behind)
        if start > stop:
            raise InvalidArgumentError(
                f"pad: got {before} and {behind} in dimension {dim} of size {size}, expected 0 or more to stay"
            )
        result = result._backend.slice(result, dim, start, stop, 1)
    return result


def _around(input: Tensor, kept: Tensor, sides: Sequence[tuple[int, int, int]], value: object) -> Tensor:
    """One value around the elements."""
    plain = _dispatch.number(value)
    if plain is None:
        raise DTypeError(f"pad: got value {value!r}, expected a number")
    backend = input._backend
    sizes = list(input.shape)
    for dim, before, behind in sides:
        sizes[dim] += before + behind
    shape = _shape.check_sizes("pad", sizes, input.dtype.itemsize)
    result = backend.full(shape, plain, input.dtype, input.device)
    inner = result
    for dim, before, _ in sides:
        start = max(0, before)
        inner = backend.slice(inner, dim, start, start + kept.shape[dim], 1)
    backend.copy_(inner, kept)
    return result


def _continued(input: Tensor, dim: int, before: int, behind: int, mode: str) -> Tensor:
    """One dimension continued by its own elements."""
    if not before and not behind:
        return input
    backend, size = input._backend, input.shape[dim]
    most = {"reflect": size - 1, "circular": size, "replicate": max(before, behind) if size else 0}[mode]
    if max(before, behind) > most:
        raise InvalidArgumentError(
            f"pad: got {before} and {behind} in dimension {dim} of size {size}, expected at most {most} for {mode!r}"
        )
    if mode == "circular":
        front = backend.slice(input, dim, size - before, size, 1)
        back = backend.slice(input, dim, 0, behind, 1)
    elif mode == "reflect":
        front = backend.flip(backend.slice(input, dim, 1, 1 + before, 1), (dim,))
        back = backend.flip(backend.slice(input, dim, size - 1 - behind, size - 1, 1), (dim,))
    else:
        lead, trail = input.shape[:dim], input.shape[dim + 1 :]
        front = backend.expand(backend.slice(input, dim, 0, 1, 1), (*lead, before, *trail))
        back = backend.expand(backend.slice(input, dim, size - 1, size, 1), (*lead, behind, *trail))
    return cat([front, input, back], dim)
