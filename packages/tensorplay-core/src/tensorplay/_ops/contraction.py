"""Sums of products over dimensions of two tensors, as one product of matrices.

Dimensions have labels. Those that both tensors have, with the same label, go together.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence
from typing import TYPE_CHECKING

from .. import _dispatch, _shape
from ..errors import InvalidArgumentError
from .products import matmul

if TYPE_CHECKING:
    from .._dtype import DType
    from .._tensor import Tensor

Labels = tuple[Hashable, ...]


def contract(
    operation: str, a: Tensor, a_labels: Labels, b: Tensor, b_labels: Labels, kept: Collection[Hashable]
) -> tuple[Tensor, Labels]:
    """The product, summed over all labels that are not kept, and the labels of its dimensions.

    A size of 1 goes along with any other. No tensor has a label twice.

    Raises
    ------
    InvalidArgumentError
        Sizes of one label differ.
    """
    a, a_labels = _without_ones(operation, a, a_labels, b, b_labels)
    b, b_labels = _without_ones(operation, b, b_labels, a, a_labels)
    a, a_labels = summed(a, a_labels, {*kept, *b_labels}, a.dtype)
    b, b_labels = summed(b, b_labels, {*kept, *a_labels}, b.dtype)
    shared = [label for label in a_labels if label in b_labels]
    batch = [label for label in shared if label in kept]
    inner = [label for label in shared if label not in kept]
    rows = [label for label in a_labels if label not in shared]
    columns = [label for label in b_labels if label not in shared]
    left, right = ordered(a, a_labels, batch + rows + inner), ordered(b, b_labels, batch + inner + columns)
    lead, many = left.shape[: len(batch)], len(batch) + len(rows)
    shape = (*left.shape[:many], *right.shape[len(batch) + len(inner) :])
    if inner:
        m, n = math.prod(left.shape[len(batch) : many]), math.prod(right.shape[len(batch) + len(inner) :])
        k = math.prod(left.shape[many:])
        result = matmul(left.reshape(*lead, m, k), right.reshape(*lead, k, n)).reshape(shape)
    else:
        wide = right.reshape(*lead, *(1 for _ in rows), *right.shape[len(batch) :])
        result = left.reshape(*left.shape, *(1 for _ in columns)) * wide
    return result, (*batch, *rows, *columns)


def summed(x: Tensor, labels: Labels, kept: Collection[Hashable], dtype: DType | None = None) -> tuple[Tensor, Labels]:
    """The tensor summed over all labels that are not kept, as `Tensor.sum` does it."""
    dims = [dim for dim, label in enumerate(labels) if label not in kept]
    if not dims:
        return x, labels
    return x.sum(dims, dtype=dtype), tuple(label for label in labels if label in kept)


def ordered(x: Tensor, labels: Labels, wanted: Sequence[Hashable]) -> Tensor:
    """The dimensions in the order of these labels, which are all that it has."""
    return x.permute([labels.index(label) for label in wanted])


def _without_ones(operation: str, x: Tensor, labels: Labels, other: Tensor, others: Labels) -> tuple[Tensor, Labels]:
    """Without the dimensions of size 1 that the other tensor has in another size."""
    dropped = []
    for dim, label in enumerate(labels):
        if label in others and x.shape[dim] != other.shape[others.index(label)]:
            if x.shape[dim] == 1:
                dropped.append(dim)
            elif other.shape[others.index(label)] != 1:
                raise InvalidArgumentError(
                    f"{operation}: got sizes {x.shape[dim]} and {other.shape[others.index(label)]} of a dimension "
                    f"in shapes {x.shape} and {other.shape}, expected equal ones"
                )
    if not dropped:
        return x, labels
    return x.squeeze(dropped), tuple(label for dim, label in enumerate(labels) if dim not in dropped)


def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sums of products over the last dimension of both; a tensor without dimensions multiplies every element."""
    _dispatch.check_tensor("inner", input, other)
    if not input.ndim or not other.ndim:
        return _dispatch.binary("mul", input, other, out)
    if input.shape[-1] != other.shape[-1]:
        raise InvalidArgumentError(
            f"inner: got shapes {input.shape} and {other.shape}, expected equal sizes of the last dimension"
        )
    return _over("inner", input, other, (input.ndim - 1,), (other.ndim - 1,), out)


def tensordot(a: Tensor, b: Tensor, dims: int | Sequence[Sequence[int]] = 2, out: Tensor | None = None) -> Tensor:
    """Sums of products over dimensions of both.

    Parameters
    ----------
    dims : int or two sequences of int
        How many: the last ones of `a` and the first ones of `b`. Or which of `a`, and which of `b` in the same order.
        A size of 1 goes along with any other.
    """
    _dispatch.check_tensor("tensordot", a, b)
    if isinstance(dims, (tuple, list)):
        if len(dims) != 2:
            raise InvalidArgumentError(f"tensordot: got {dims!r}, expected a number or two sequences of dimensions")
        left, right = (_shape.integers("tensordot", (given,)) for given in dims)
    else:
        count = _shape.integer("tensordot", dims)
        if not 0 <= count <= min(a.ndim, b.ndim):
            raise InvalidArgumentError(f"tensordot: got {count} dimensions of shapes {a.shape} and {b.shape}")
        left, right = tuple(range(a.ndim - count, a.ndim)), tuple(range(count))
    return _over("tensordot", a, b, left, right, out)


def _over(
    operation: str, a: Tensor, b: Tensor, left: Sequence[int], right: Sequence[int], out: Tensor | None
) -> Tensor:
    """Summed over these dimensions of `a` and these of `b`."""
    ours = [_shape.sized_dim(operation, dim, a.ndim) for dim in left]
    theirs = [_shape.sized_dim(operation, dim, b.ndim) for dim in right]
    if len(ours) != len(theirs) or len(set(ours)) != len(ours) or len(set(theirs)) != len(theirs):
        raise InvalidArgumentError(
            f"{operation}: got dimensions {tuple(left)} and {tuple(right)}, expected as many of each, each once"
        )
    labels = list(range(a.ndim, a.ndim + b.ndim))
    for one, other in zip(ours, theirs, strict=True):
        labels[other] = one
    kept = {*range(a.ndim + b.ndim)} - {*ours}
    result, _ = contract(operation, a, tuple(range(a.ndim)), b, tuple(labels), kept)
    return _dispatch.into(operation, result, out)
