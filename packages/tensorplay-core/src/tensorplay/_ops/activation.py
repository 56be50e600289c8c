"""Functions between the layers of a network that are no methods of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _dispatch
from ..errors import DTypeError
from .choice import where
from .families import unary
from .wide import fractions, wide

if TYPE_CHECKING:
    from .._tensor import Tensor

silu = unary("silu", "The element times its sigmoid.")[0]


def gelu(input: Tensor, approximate: str = "none", *, out: Tensor | None = None) -> Tensor:
    """The element times the normal distribution's share below it.

    Parameters
    ----------
    approximate : str
        ``"none"``: by the error function; ``"tanh"``: by the usual formula with tanh.
    """
    op = gelu_op("gelu", approximate)
    result = _dispatch.common(op, input, optional=(out,)).unary(op, input, out)
    return result if out is None else out


def gelu_op(operation: str, approximate: str) -> str:
    """The operation that `approximate` names."""
    if not isinstance(approximate, str) or approximate not in ("none", "tanh"):
        raise DTypeError(f"{operation}: got approximate={approximate!r}, expected 'none' or 'tanh'")
    return "gelu" if approximate == "none" else "gelu_tanh"


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0, *, out: Tensor | None = None) -> Tensor:
    """log(1 + exp(beta * input)) / beta; the element itself where beta * input is above the threshold."""
    _dispatch.check_tensor("softplus", input)
    dtype = fractions(input.dtype)
    x, steepness = wide(input, dtype), _dispatch.real("softplus", beta)
    scaled = x * steepness
    result = where(scaled > _dispatch.real("softplus", threshold), x, scaled.exp().log1p() / steepness)
    return _dispatch.into("softplus", result.to(dtype), out)
