"""Questions about whole tensors, answered with a Python bool; they wait for the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import _dispatch, _shape

if TYPE_CHECKING:
    from .._tensor import Tensor


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether shapes and all elements are equal; nan is equal to nothing."""
    _dispatch.common("equal", input, other)
    return input.shape == other.shape and bool((input == other).all())


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether ``|input - other| <= atol + rtol * |other|`` everywhere, computed on the host in float64."""
    _dispatch.common("allclose", input, other)
    tolerances = {"rtol": _dispatch.real("allclose", rtol), "atol": _dispatch.real("allclose", atol)}
    _shape.broadcast("allclose", input.shape, other.shape)
    a, b = (np.asarray(x._backend.to_host(x)).astype(np.float64) for x in (input, other))
    return bool(np.allclose(a, b, **tolerances, equal_nan=equal_nan))
