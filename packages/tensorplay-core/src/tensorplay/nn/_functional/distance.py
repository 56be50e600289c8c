"""How long vectors are, and how near to one another they point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import _dispatch, _dtype, _shape
from ..._functions import maximum
from ..._ops.promotion import together
from ..._ops.reductions import sum
from ..._ops.statistics import norm
from ..._ops.wide import wide
from ...errors import InvalidArgumentError

if TYPE_CHECKING:
    from ..._tensor import Tensor


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divides vectors by their p-norm, or by `eps` where that is larger.

    Parameters
    ----------
    input : Tensor
        A floating dtype, any shape.
    p : float
        The norm: greater than 0, infinity included.
    dim : int
        The dimension along which the vectors lie.
    eps : float
        The smallest divisor.
    """
    _dispatch.check_tensor("normalize", input)
    _dtype.check_floating("normalize", input.dtype)
    p, dim = _dispatch.real("normalize", p), _shape.integer("normalize", dim)
    if not p > 0:
        raise InvalidArgumentError(f"normalize: got p={p}, expected a number greater than 0")
    x = wide(input, input.dtype)
    return (x / maximum(norm(x, p, dim, keepdim=True), _dispatch.real("normalize", eps))).to(input.dtype)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between vectors.

    Parameters
    ----------
    x1, x2 : Tensor
        Floating dtypes, shapes that broadcast together.
    dim : int
        The dimension along which the vectors lie, of what they broadcast to.
    eps : float
        The smallest length that a vector counts as.
    """
    operation = "cosine_similarity"
    _dispatch.common(operation, x1, x2)
    dtype = _dtype.check_floating(operation, together(operation, x1, x2))
    least = _dispatch.real(operation, eps)
    shape = _shape.broadcast(operation, x1.shape, x2.shape)
    dim = _shape.wrap_dim(operation, _shape.integer(operation, dim), len(shape))
    a, b = (wide(x, dtype).expand(shape) for x in (x1, x2))
    # Each vector is taken to length 1 before the product, which so does not overflow.
    a, b = (x / maximum(norm(x, 2.0, dim, keepdim=True), least) for x in (a, b))
    return sum(a * b, dim).to(dtype)
