"""One tensor to several views of it.

A dimension may be negative, counted from the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from .. import _dispatch, _shape
from ..errors import InvalidArgumentError

if TYPE_CHECKING:
    from .._tensor import Tensor


_MOST = 2**31


def split(input: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of `split_size` along a dimension, the last one smaller where it must be; or pieces of the given sizes."""
    dim = _shape.sized_dim("split", _shape.integer("split", dim), input.ndim)
    size = input.shape[dim]
    if isinstance(split_size, int):
        if split_size <= 0 and (size or split_size):
            raise InvalidArgumentError(f"split: got split_size {split_size}, expected 1 or more")
        starts = list(range(0, size, split_size)) if size else [0]
        return _pieces(input, dim, starts)
    sizes = _shape.integers("split", (split_size,))
    if sum(sizes) != size or any(piece < 0 for piece in sizes):
        raise InvalidArgumentError(
            f"split: got sizes {list(sizes)}, expected sizes of 0 or more and their sum to be {size}"
        )
    return _pieces(input, dim, list(accumulate(sizes, initial=0))[:-1])


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` pieces of equal size along a dimension, the last one smaller where it must be."""
    chunks = _count("chunk", chunks)
    dim = _shape.sized_dim("chunk", _shape.integer("chunk", dim), input.ndim)
    size = input.shape[dim]
    if not size:
        return _pieces(input, dim, [0] * chunks)
    return split(input, -(-size // chunks), dim)


def tensor_split(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """So many pieces along a dimension, sizes differing by at most 1; or the pieces between the given indices."""
    dim = _shape.sized_dim("tensor_split", _shape.integer("tensor_split", dim), input.ndim)
    size = input.shape[dim]
    if _dispatch.is_tensor(indices_or_sections):
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int):
        sections = _count("tensor_split", indices_or_sections)
        least, longer = divmod(size, sections)
        return _pieces(input, dim, [place * least + min(place, longer) for place in range(sections)])
    stops = _shape.integers("tensor_split", (indices_or_sections,))
    starts = [slice(stop, None).indices(size)[0] for stop in stops]
    return tuple(
        input._backend.slice(input, dim, start, max(start, stop), 1)
        for start, stop in zip([0, *starts], [*starts, size], strict=True)
    )


def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """A tensor for each index of a dimension, which is dropped."""
    dim = _shape.sized_dim("unbind", _shape.integer("unbind", dim), input.ndim)
    return tuple(input._backend.select(input, dim, place) for place in range(input.shape[dim]))


def _count(operation: str, number: object) -> int:
    """How many pieces there shall be: as many as a tuple can hold."""
    count = _shape.integer(operation, number)
    if not 1 <= count < _MOST:
        raise InvalidArgumentError(f"{operation}: got {count} pieces, expected 1 or more, and fewer than 2**31")
    return count


def _pieces(input: Tensor, dim: int, starts: Sequence[int]) -> tuple[Tensor, ...]:
    """From each start to the next one; the starts rise, and the first is 0."""
    stops = (*starts[1:], input.shape[dim])
    return tuple(input._backend.slice(input, dim, start, stop, 1) for start, stop in zip(starts, stops, strict=True))
