"""Elements that are dropped at random while a model is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import _dispatch
from ..._ops import sampling
from ..._ops.choice import where
from ._arguments import probability

if TYPE_CHECKING:
    from ..._tensor import Tensor


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Sets elements to zero at random and divides the others by ``1 - p``.

    Parameters
    ----------
    input : Tensor
        A floating dtype, any shape.
    p : float
        Probability of a zero, 0 to 1.
    training : bool
        False: the input is returned as it is.
    inplace : bool
        Whether the result is written into the input.
    """
    _dispatch.check_tensor("dropout", input)
    return _dropped("dropout", input, input.shape, p, training, inplace)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """As `dropout`, of whole channels: the first two dimensions tell them."""
    _dispatch.check_tensor("dropout2d", input)
    return _dropped("dropout2d", input, (*input.shape[:2], *(1,) * (input.ndim - 2)), p, training, inplace)


def _dropped(operation: str, input: Tensor, shape: tuple[int, ...], p: object, training: bool, inplace: bool) -> Tensor:
    p = probability(operation, p)
    _dispatch.flag(operation, "inplace", inplace)
    if not _dispatch.flag(operation, "training", training) or p == 0.0:
        return input
    kept = sampling.rand(shape, device=input.device) >= p
    scale = 1.0 / (1.0 - p) if p < 1.0 else 0.0
    return _dispatch.into(operation, where(kept, input * scale, 0.0), input if inplace else None)
