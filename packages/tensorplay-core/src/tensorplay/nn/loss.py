"""Layers that say how far results are from what was wanted."""

from __future__ import annotations

from .._tensor import Tensor
from . import functional
from .module import Module


class _Loss(Module):
    """A difference to a target.

    Parameters
    ----------
    reduction : str
        ``"mean"``, ``"sum"``, or ``"none"``.
    """

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction


class MSELoss(_Loss):
    """Squares of the differences."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """As `functional.mse_loss`."""
        return functional.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """Magnitudes of the differences."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """As `functional.l1_loss`."""
        return functional.l1_loss(input, target, reduction=self.reduction)


class _ClassLoss(_Loss):
    """A loss for classes.

    Parameters
    ----------
    weight : Tensor, optional
        What each class counts; a buffer.
    ignore_index : int
        A class that does not count.
    reduction : str
        ``"mean"``, ``"sum"``, or ``"none"``.
    """

    weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, *, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index


class NLLLoss(_ClassLoss):
    """Minus the logarithm of the probability of the wanted class."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """As `functional.nll_loss`."""
        return functional.nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class CrossEntropyLoss(_ClassLoss):
    """Minus the logarithm of the softmax at the wanted class.

    Parameters
    ----------
    weight, ignore_index, reduction
        As in `NLLLoss`.
    label_smoothing : float
        0 to 1: the share that all classes get alike.
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, ignore_index=ignore_index, reduction=reduction)
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """As `functional.cross_entropy`."""
        return functional.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )
