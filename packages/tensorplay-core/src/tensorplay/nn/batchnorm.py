"""Layers that take each channel to mean 0 and variance 1."""

from __future__ import annotations

from .. import _creation, _dtype
from .._device import Device
from .._dtype import DType
from .._tensor import Tensor
from ..errors import InvalidArgumentError
from . import functional, init
from ._parameters import keep_as_is, parameter
from .module import Module
from .parameter import Parameter


class _BatchNorm(Module):
    """What the layers of all dimensions share; `_ndims` are the numbers of dimensions that an input may have."""

    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    _ndims: tuple[int, ...]
    _optional_state = frozenset(("num_batches_tracked",))

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device | str | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats

        self.weight = parameter((num_features,), device, dtype) if affine else None
        self.bias = parameter((num_features,), device, dtype) if affine and bias else None

        def statistic() -> Tensor | None:
            return _creation.empty((num_features,), device=device, dtype=dtype) if track_running_stats else None

        self.register_buffer("running_mean", statistic())
        self.register_buffer("running_var", statistic())
        batches = _creation.zeros((), device=device, dtype=_dtype.int64) if track_running_stats else None
        self.register_buffer("num_batches_tracked", batches)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Sets the running statistics to mean 0 and variance 1."""
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Sets weight to ones and bias to zeros, and the running statistics to mean 0 and variance 1."""
        self.reset_running_stats()
        keep_as_is(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """(batch, channels, ...) to the same shape."""
        if input.ndim not in self._ndims:
            wanted = " or ".join(map(str, self._ndims))
            raise InvalidArgumentError(f"{type(self).__name__}: got shape {input.shape}, expected {wanted} dimensions")
        share = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                share = 1.0 / int(self.num_batches_tracked)
        kept = self.track_running_stats or not self.training
        return functional.batch_norm(
            input,
            self.running_mean if kept else None,
            self.running_var if kept else None,
            self.weight,
            self.bias,
            self.training or self.running_mean is None,
            share,
            self.eps,
        )

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Takes each channel of vectors, or of signals, to mean 0 and variance 1, then scales and shifts it.

    The arguments are those of `BatchNorm2d`.
    """

    _ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Takes each channel of images to mean 0 and variance 1, then scales and shifts it.

    In training the mean and variance are those of the batch, and running ones are kept; otherwise they are the
    running ones.

    Parameters
    ----------
    num_features : int
        Channels.
    eps : float
        Added to the variance.
    momentum : float or None
        How far a batch moves the running statistics in training; None: they are means over all batches, for which
        training waits for the device.
    affine : bool
        Whether there is a scale, `weight`.
    track_running_stats : bool
        Whether there are running statistics; without them, the batch's own are taken always.
    bias : bool
        Whether there is a shift, `bias`; only with `affine`.
    device, dtype
        Of the parameters and statistics; the host and float32 by default.

    Attributes
    ----------
    weight, bias : Parameter or None
        Shape (num_features,), ones and zeros at the start.
    running_mean, running_var : Tensor or None
        Shape (num_features,), zeros and ones at the start.
    num_batches_tracked : Tensor or None
        Batches that the running statistics are of; older files do not have it, and need not.
    """

    _ndims = (4,)
