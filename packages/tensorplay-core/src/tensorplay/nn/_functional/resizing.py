"""Images and signals of another size."""

from __future__ import annotations

import math
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from ... import _creation, _dispatch, _dtype, _shape
from ..._ops.wide import wide
from ...errors import InvalidArgumentError
from ._arguments import choice
from .adaptive import adaptive_avg_pool1d, adaptive_avg_pool2d

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._tensor import Tensor

_NAME = "interpolate"
#: Each mode that mixes elements, and how many dimensions it is for.
_MIXING = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
_CUBIC = -0.75
#: Up to here the nearest element in float32 is the one that exact arithmetic gives.
_MOST_TIMES = 32


def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Tensor:
    """Another size for the dimensions behind batch and channels.

    Parameters
    ----------
    input : Tensor
        Shape (batch, channels, ...), with one to three dimensions more.
    size : int or sequence of int, optional
        The new sizes.
    scale_factor : float or sequence of float, optional
        How many times as large they are; instead of `size`.
    mode : str
        ``"nearest"``, ``"nearest-exact"``: the element that is nearest, by its corner or by its middle; ``"linear"``,
        ``"bilinear"``, ``"trilinear"``: between the nearest ones; ``"bicubic"``: of the four nearest in each
        dimension; ``"area"``: means of parts. All but the first two are for floating dtypes.
    align_corners : bool, optional
        Whether the outermost elements stay where they are, instead of the outermost corners. Only where elements are
        mixed.
    recompute_scale_factor : bool, optional
        Whether a scale is that of the sizes, once these are whole numbers, instead of `scale_factor` itself.
    """
    _dispatch.check_tensor(_NAME, input)
    kind = choice(_NAME, "mode", mode, ("nearest", "nearest-exact", "area", *_MIXING))
    count = input.ndim - 2
    counts = (_MIXING[kind],) if kind in _MIXING else (1, 2) if kind == "area" else (1, 2, 3)
    if count not in counts:
        known = " or ".join(str(2 + sizes) for sizes in counts)
        raise InvalidArgumentError(
            f"{_NAME}: got shape {input.shape} for mode {kind!r}, expected {known} dimensions: batch, channels, sizes"
        )
    if align_corners is not None:
        _dispatch.flag(_NAME, "align_corners", align_corners)
        if kind not in _MIXING:
            raise InvalidArgumentError(f"{_NAME}: got align_corners for mode {kind!r}, expected None")
    recompute = recompute_scale_factor is not None and _dispatch.flag(
        _NAME, "recompute_scale_factor", recompute_scale_factor
    )
    wanted, factors = _sizes(input.shape[2:], size, scale_factor)
    if min(input.shape[2:]) < 1 or min(wanted) < (kind != "area"):
        raise InvalidArgumentError(f"{_NAME}: got sizes {input.shape[2:]} to {wanted}, expected 1 or more")
    if kind == "area":
        return (adaptive_avg_pool1d if count == 1 else adaptive_avg_pool2d)(input, wanted)
    if kind in _MIXING:
        _dtype.check_floating(_NAME, input.dtype)
    elif all(
        places % here == 0
        and places // here <= _MOST_TIMES
        and (recompute or not factors or factors[dim] * here == places)
        for dim, (here, places) in enumerate(zip(input.shape[2:], wanted, strict=True))
    ):
        return _repeated(input, wanted)
    result = wide(input, input.dtype) if kind in _MIXING else input
    for dim, places in enumerate(wanted):
        here = input.shape[dim + 2]
        factor = factors[dim] if factors and not recompute else None
        if kind == "nearest" and count == 2 and places in (here, 2 * here):
            factor = None  # As torch has it, for images only.
        if places == here and (factor is None or kind in ("linear", "bilinear", "trilinear")):
            continue
        if kind in _MIXING:
            result = _mixed(result, dim + 2, places, factor, kind, bool(align_corners))
        else:
            result = _nearest(result, dim + 2, places, factor, 0.5 if kind == "nearest-exact" else 0.0)
    return result.clone() if result is input else result.to(input.dtype)


def _sizes(
    room: _shape.Shape, size: int | Sequence[int] | None, scale_factor: float | Sequence[float] | None
) -> tuple[_shape.Shape, list[float]]:
    """The new sizes, and the factors where these were given."""
    count = len(room)
    if (size is None) == (scale_factor is None):
        raise InvalidArgumentError(
            f"{_NAME}: got size={size!r} and scale_factor={scale_factor!r}, expected one of them"
        )
    if size is not None:
        wanted = _shape.integers(_NAME, (size,))
        wanted = wanted * count if isinstance(size, int) else wanted
        if len(wanted) != count:
            raise InvalidArgumentError(f"{_NAME}: got size {size!r}, expected {count} integers")
        return wanted, []
    given = scale_factor if isinstance(scale_factor, (tuple, list)) else [scale_factor] * count
    factors = [_dispatch.real(_NAME, factor) for factor in given]
    if len(factors) != count or not all(0 < factor < math.inf for factor in factors):
        raise InvalidArgumentError(f"{_NAME}: got scale_factor {scale_factor!r}, expected {count} numbers above 0")
    return tuple(int(here * factor) for here, factor in zip(room, factors, strict=True)), factors


def _repeated(input: Tensor, wanted: _shape.Shape) -> Tensor:
    """Each element a whole number of times: one copy of a view, for all dimensions."""
    room = input.shape[2:]
    apart = [size for here in room for size in (here, 1)]
    times = [size for here, places in zip(room, wanted, strict=True) for size in (here, places // here)]
    lead = input.shape[:2]
    return input.reshape(*lead, *apart).expand(*lead, *times).clone().reshape(*lead, *wanted)


def _places(input: Tensor, places: int, shift: float, factor: float) -> Tensor:
    """For each new place, the old one, as a fraction, in the dtype that torch computes it in."""
    dtype = _dtype.float64 if input.dtype is _dtype.float64 else _dtype.float32
    place = _creation.arange(places, dtype=dtype, device=input.device)
    return (place + shift) * factor if shift else place * factor


def _nearest(input: Tensor, dim: int, places: int, factor: float | None, shift: float) -> Tensor:
    size = input.shape[dim]
    step = size / places if factor is None else 1.0 / factor
    place = _creation.arange(places, dtype=_dtype.float32, device=input.device)
    index = ((place + shift) * step).floor().clamp_max(size - 1)
    return input._backend.index_select(input, dim, index.to(_dtype.int64))


def _mixed(input: Tensor, dim: int, places: int, factor: float | None, kind: str, align_corners: bool) -> Tensor:
    """Sums of a few old elements with weights, for each new place."""
    size = input.shape[dim]
    if align_corners:
        source = _places(input, places, 0.0, (size - 1) / (places - 1) if places > 1 else 0.0)
    else:
        source = _places(input, places, 0.5, size / places if factor is None else 1.0 / factor) - 0.5
    if kind == "bicubic":
        first = source.floor()
        part = source - first
        taps = [(-1, _outer(part + 1.0)), (0, _inner(part)), (1, _inner(1.0 - part)), (2, _outer(2.0 - part))]
    else:
        source = source.clamp_min(0.0)
        first = source.floor()
        part = source - first
        taps = [(0, 1.0 - part), (1, part)]
    nearest = first.to(_dtype.int64)
    shape = (-1, *(1,) * (input.ndim - dim - 1))
    terms = [
        # Beyond the ends, the outermost elements go on.
        input._backend.index_select(input, dim, (nearest + offset).clamp(0, size - 1)) * weight.reshape(shape)
        for offset, weight in taps
    ]
    return reduce(add, terms)


def _inner(x: Tensor) -> Tensor:
    """Weight of an element at a distance of 0 to 1."""
    return ((x * (_CUBIC + 2.0)) - (_CUBIC + 3.0)) * x * x + 1.0


def _outer(x: Tensor) -> Tensor:
    """Weight of an element at a distance of 1 to 2."""
    return ((x * _CUBIC - 5.0 * _CUBIC) * x + 8.0 * _CUBIC) * x - 4.0 * _CUBIC
