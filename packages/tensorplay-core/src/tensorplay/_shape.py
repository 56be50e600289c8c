"""Shapes, strides and dimensions, counted in elements. Pure arithmetic: no tensors here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from typing import Any

from .errors import DTypeError, InvalidArgumentError, OutOfRangeError, SizeOverflowError

Shape = tuple[int, ...]

MAX_NDIM = 16  # TP_MAX_NDIM of tensorplay.h
_LIMIT = 2**63


def integers(operation: str, arguments: Sequence[Any]) -> Shape:
    """Integers that were given one by one, ``(2, 3)``, or as one sequence, ``((2, 3),)``.

    Raises
    ------
    DTypeError
        One of them is no integer.
    """
    for argument in arguments:
        if type(argument) is not int:
            break
    else:
        return tuple(arguments)
    if len(arguments) == 1 and not hasattr(arguments[0], "__index__"):
        arguments = arguments[0]
    try:
        return tuple(map(index, arguments))
    except TypeError:
        raise DTypeError(f"{operation}: got {arguments!r}, expected integers") from None


def integer(operation: str, argument: Any) -> int:
    """One integer.

    Raises
    ------
    DTypeError
        It is none.
    """
    try:
        return index(argument)
    except TypeError:
        raise DTypeError(f"{operation}: got {argument!r}, expected an integer") from None


def check_signs(operation: str, shape: Sequence[int]) -> Shape:
    """The shape as a tuple.

    Raises
    ------
    InvalidArgumentError
        A size is negative, or there are more than 16 dimensions.
    """
    shape = tuple(shape)
    if len(shape) > MAX_NDIM:
        raise InvalidArgumentError(f"{operation}: got {len(shape)} dimensions, expected at most {MAX_NDIM}")
    for size in shape:
        if size < 0:
            raise InvalidArgumentError(f"{operation}: got size {size} in shape {shape}, expected 0 or more")
    return shape


def check_sizes(operation: str, shape: Sequence[int], itemsize: int) -> Shape:
    """The shape as a tuple, once a contiguous tensor can have it; raises as `check_signs` does, too.

    Raises
    ------
    SizeOverflowError
        The bytes cannot be counted in 63 bits. Sizes of 0 are left out, as strides leave them out.
    """
    shape = check_signs(operation, shape)
    nbytes = itemsize
    for size in shape:
        nbytes *= max(size, 1)
    if nbytes >= _LIMIT:
        raise SizeOverflowError(f"{operation}: shape {shape} needs {nbytes} bytes, expected fewer than 2**63")
    return shape


def check_numel(operation: str, shape: Sequence[int]) -> Shape:
    """The shape as a tuple, once a view can have it; raises as `check_signs` does, too.

    Raises
    ------
    SizeOverflowError
        The elements cannot be counted in 63 bits; they may be fewer in memory.
    """
    shape = check_signs(operation, shape)
    numel = math.prod(shape)
    if numel >= _LIMIT:
        raise SizeOverflowError(f"{operation}: shape {shape} has {numel} elements, expected fewer than 2**63")
    return shape


def wrap_dim(operation: str, dim: int, ndim: int) -> int:
    """A dimension counted from the front. A tensor without dimensions has the dimensions -1 and 0.

    Raises
    ------
    OutOfRangeError
        There is no such dimension.
    """
    room = max(ndim, 1)
    if not -room <= dim < room:
        raise OutOfRangeError(f"{operation}: got dimension {dim}, expected {-room} to {room - 1}")
    return dim % room


def sized_dim(operation: str, dim: int, ndim: int) -> int:
    """As `wrap_dim`, for a dimension whose size is asked for: a tensor without dimensions has none.

    Raises
    ------
    OutOfRangeError
        There is no such dimension.
    """
    if ndim == 0:
        raise OutOfRangeError(f"{operation}: got a tensor without dimensions, expected at least one")
    return wrap_dim(operation, dim, ndim)


def wrap_dims(operation: str, dims: Sequence[int] | None, ndim: int) -> Shape:
    """The dimensions counted from the front, in rising order; None and () mean all of them.

    Raises
    ------
    OutOfRangeError
        There is no such dimension.
    InvalidArgumentError
        A dimension is named twice.
    """
    if not dims:
        return tuple(range(ndim))
    wrapped = sorted(wrap_dim(operation, dim, ndim) for dim in dims)
    if len(set(wrapped)) != len(wrapped):
        raise InvalidArgumentError(f"{operation}: got dimensions {tuple(dims)}, expected each of them once")
    return tuple(wrapped) if ndim else ()


def broadcast(operation: str, *shapes: Shape) -> Shape:
    """The shape that all shapes broadcast to.

    Raises
    ------
    InvalidArgumentError
        Sizes differ and neither is 1.
    """
    result: list[int] = []
    for place in range(1, max(map(len, shapes), default=0) + 1):
        size = 1
        for shape in shapes:
            here = shape[-place] if place <= len(shape) else 1
            if size == 1:
                size = here
            elif here not in (1, size):
                raise InvalidArgumentError(
                    f"{operation}: got shapes {' and '.join(map(str, shapes))}, "
                    f"expected equal sizes or 1 in dimension -{place}, not {size} and {here}"
                )
        result.append(size)
    return tuple(reversed(result))


def broadcasts_to(shape: Shape, target: Shape) -> bool:
    """Whether a shape becomes another one when it is broadcast."""
    lead = len(target) - len(shape)
    return lead >= 0 and all(size in (1, target[lead + place]) for place, size in enumerate(shape))


def infer(operation: str, shape: Sequence[int], numel: int) -> Shape:
    """The shape with its one -1 deduced, for `numel` elements.

    Raises
    ------
    InvalidArgumentError
        The shape does not have that many elements, or -1 cannot be deduced.
    """
    shape = tuple(shape)
    if len(shape) > MAX_NDIM:
        raise InvalidArgumentError(f"{operation}: got {len(shape)} dimensions, expected at most {MAX_NDIM}")
    if any(size < -1 for size in shape) or shape.count(-1) > 1:
        raise InvalidArgumentError(f"{operation}: got shape {shape}, expected sizes of 0 or more and at most one -1")
    known = math.prod(size for size in shape if size != -1)
    if -1 in shape:
        if known == 0 or numel % known:
            raise InvalidArgumentError(f"{operation}: got shape {shape}, expected one that {numel} elements fill")
        shape = tuple(numel // known if size == -1 else size for size in shape)
        known = numel
    if known != numel:
        raise InvalidArgumentError(f"{operation}: got shape {shape} of {known} elements, expected {numel} elements")
    return check_sizes(operation, shape, 1)


def expanded(operation: str, old: Shape, shape: Sequence[int]) -> Shape:
    """The shape that `expand` gives: sizes of 1 grow, new dimensions come in front, -1 keeps a size.

    Raises
    ------
    InvalidArgumentError
        A size other than 1 would change, or a new dimension has no size.
    """
    shape = tuple(shape)
    lead = len(shape) - len(old)
    if lead < 0 or len(shape) > MAX_NDIM:
        raise InvalidArgumentError(
            f"{operation}: got {len(shape)} sizes, expected {len(old)} to {MAX_NDIM} for shape {old}"
        )
    result = []
    for place, size in enumerate(shape):
        here = old[place - lead] if place >= lead else None
        if size == -1 and here is not None:
            size = here
        if size < 0 or (here not in (None, 1) and size != here):
            raise InvalidArgumentError(f"{operation}: got shape {shape}, expected one that shape {old} broadcasts to")
        result.append(size)
    return check_numel(operation, result)


def contiguous_strides(shape: Shape) -> Shape:
    """Strides of C order."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def is_overlapping(shape: Shape, strides: Shape) -> bool:
    """Whether two elements may lie in one place: each stride has to step over all that smaller ones reach."""
    if 0 in shape:
        return False
    reach = 0
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size > 1:
            if stride <= reach:
                return True
            reach += (size - 1) * stride
    return False


def view_strides(shape: Shape, strides: Shape, wanted: Shape) -> Shape | None:
    """Strides of the view of `wanted` shape over the same elements; None when only a copy has it.

    `wanted` has as many elements as `shape`.
    """
    if math.prod(shape) == 0:
        return contiguous_strides(wanted)
    # Runs of old dimensions that lie densely behind one another, innermost first: [numel, inner stride].
    runs: list[list[int]] = []
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 1:
            continue
        if runs and stride == runs[-1][0] * runs[-1][1]:
            runs[-1][0] *= size
        else:
            runs.append([size, stride])
    runs.append([1, 1])
    result = []
    run, used = 0, 1  # elements of the current run that new dimensions cover already
    for size in reversed(wanted):
        if size != 1 and used == runs[run][0]:
            run, used = run + 1, 1
        numel, stride = runs[run]
        result.append(stride * used)
        used *= size
        if used > numel or numel % used:
            return None
    return tuple(reversed(result))
