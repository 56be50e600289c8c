"""How far results are from what was wanted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ... import _dispatch, _dtype, _shape
from ..._operands._spec import device_of
from ..._ops.choice import where
from ..._ops.exponentials import log_softmax
from ..._ops.promotion import together
from ..._ops.reductions import mean, sum
from ..._ops.wide import wide
from ...errors import DTypeError, InvalidArgumentError
from ._arguments import choice

if TYPE_CHECKING:
    from ..._tensor import Tensor

_REDUCTIONS = ("mean", "sum", "none")


def mse_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Squares of the differences.

    Parameters
    ----------
    input, target : Tensor
        Shapes that broadcast together; floating dtypes.
    reduction : str
        ``"mean"``, ``"sum"``, or ``"none"``: one number for each element.
    """
    difference, dtype = _difference("mse_loss", input, target)
    return _reduced("mse_loss", difference * difference, reduction, dtype)


def l1_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Magnitudes of the differences; the arguments are those of `mse_loss`."""
    difference, dtype = _difference("l1_loss", input, target)
    return _reduced("l1_loss", difference.abs(), reduction, dtype)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Minus the element of the wanted class, for logarithms of probabilities.

    Parameters
    ----------
    input : Tensor
        Shape (classes,), (batch, classes) or (batch, classes, ...), a floating dtype.
    target : Tensor
        int64 classes, in that shape without the classes.
    weight : Tensor, optional
        Shape (classes,): what each class counts.
    ignore_index : int
        A class that does not count.
    reduction : str
        ``"mean"``: divided by what counts, ``"sum"``, or ``"none"``: the shape of `target`.

    Raises
    ------
    OutOfRangeError
        An IndexError, for a class that there is not: on the host at once, on a device at the next call that waits.
    """
    dim = _check_classes("nll_loss", input, target, weight)
    _check_indices("nll_loss", input, target, dim)
    loss, counted = _picked("nll_loss", wide(input, input.dtype), target, weight, dim, ignore_index)
    return _weighted("nll_loss", loss, counted, reduction, input.dtype)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """`nll_loss` of the logarithm of the softmax over the classes.

    Parameters
    ----------
    input : Tensor
        Shape (classes,), (batch, classes) or (batch, classes, ...), a floating dtype.
    target : Tensor
        int64 classes, in that shape without the classes; or probabilities of that shape.
    weight, ignore_index, reduction
        As in `nll_loss`; probabilities are never ignored, and their mean is taken over the batch.
    label_smoothing : float
        0 to 1: the share that all classes get alike.
    """
    operation = "cross_entropy"
    smoothing = _dispatch.real(operation, label_smoothing)
    if not 0.0 <= smoothing <= 1.0:
        raise InvalidArgumentError(f"{operation}: got label_smoothing={smoothing}, expected 0 to 1")
    dim = _check_classes(operation, input, target, weight)
    dtype, classes = input.dtype, input.shape[dim]
    logs = log_softmax(wide(input, dtype), dim)
    if target.shape == input.shape and target.dtype.is_floating_point:
        wanted = wide(target, target.dtype)
        if smoothing:
            wanted = wanted * (1.0 - smoothing) + smoothing / classes
        loss = -sum(wanted * _counting(logs, weight, dim), dim)
        if choice(operation, "reduction", reduction, _REDUCTIONS) == "mean":
            return (sum(loss) / loss.numel() if loss.numel() else sum(loss) * math.nan).to(dtype)
        return _reduced(operation, loss, reduction, dtype)
    _check_indices(operation, input, target, dim)
    loss, counted = _picked(operation, logs, target, weight, dim, ignore_index)
    if smoothing:
        everywhere = -sum(_counting(logs, weight, dim), dim)
        kept = where(target == ignore_index, 0.0, everywhere)
        loss = loss * (1.0 - smoothing) + kept * (smoothing / classes)
    return _weighted(operation, loss, counted, reduction, dtype)


def _difference(operation: str, input: Tensor, target: Tensor) -> tuple[Tensor, _dtype.DType]:
    """In the dtype that is computed in, and the dtype of the result."""
    _dispatch.common(operation, input, target)
    dtype = _dtype.check_floating(operation, together(operation, input, target))
    return wide(input, dtype) - wide(target, dtype), dtype


def _check_classes(operation: str, input: Tensor, target: Tensor, weight: Tensor | None) -> int:
    """The dimension of the classes."""
    _dispatch.common(operation, input, target, optional=(weight,))
    device_of(operation, input, target, weight)
    if not input.dtype.is_floating_point or not (weight is None or weight.dtype.is_floating_point):
        raise DTypeError(f"{operation}: got dtype {input.dtype.name}, expected a floating dtype, of the weight too")
    dim = min(1, input.ndim - 1)
    if not input.ndim or not input.shape[dim]:
        raise InvalidArgumentError(f"{operation}: got shape {input.shape}, expected a dimension of classes")
    if weight is not None and weight.shape != input.shape[dim : dim + 1]:
        raise InvalidArgumentError(
            f"{operation}: got a weight of shape {weight.shape}, expected {input.shape[dim : dim + 1]}"
        )
    return dim


def _check_indices(operation: str, input: Tensor, target: Tensor, dim: int) -> None:
    if target.dtype is not _dtype.int64:
        raise DTypeError(f"{operation}: got a target of dtype {target.dtype.name}, expected int64")
    shape = (*input.shape[:dim], *input.shape[dim + 1 :])
    if target.shape != shape:
        raise InvalidArgumentError(f"{operation}: got a target of shape {target.shape}, expected {shape}")


def _picked(
    operation: str, logs: Tensor, target: Tensor, weight: Tensor | None, dim: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Minus the elements of the wanted classes times their weights, and the weights; 0 where a class is ignored."""
    ignored = target == _shape.integer(operation, ignore_index)
    safe = target.masked_fill(ignored, 0)
    loss = -logs.gather(dim, safe.unsqueeze(dim)).squeeze(dim)
    if weight is None:
        counted = (~ignored).to(loss.dtype)
    else:
        counted = wide(weight, weight.dtype).to(loss.dtype)[safe].masked_fill(ignored, 0.0)
        loss = loss * counted
    return loss.masked_fill(ignored, 0.0), counted


def _counting(logs: Tensor, weight: Tensor | None, dim: int) -> Tensor:
    """Times the weight of each class."""
    if weight is None:
        return logs
    return logs * wide(weight, weight.dtype).reshape(-1, *(1,) * (logs.ndim - dim - 1))


def _weighted(operation: str, loss: Tensor, counted: Tensor, reduction: str, dtype: _dtype.DType) -> Tensor:
    """A mean divided by what counts."""
    if choice(operation, "reduction", reduction, _REDUCTIONS) == "mean":
        return (sum(loss) / sum(counted)).to(dtype)
    return _reduced(operation, loss, reduction, dtype)


def _reduced(operation: str, loss: Tensor, reduction: str, dtype: _dtype.DType) -> Tensor:
    kind = choice(operation, "reduction", reduction, _REDUCTIONS)
    if kind == "none":
        return loss.to(dtype)
    return (mean(loss) if kind == "mean" else sum(loss)).to(dtype)
