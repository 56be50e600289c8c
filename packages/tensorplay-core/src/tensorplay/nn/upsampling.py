"""Layers that give images and signals another size."""

from __future__ import annotations

from collections.abc import Sequence

from .._tensor import Tensor
from . import functional
from .module import Module


class Upsample(Module):
    """Another size for the dimensions behind batch and channels; see `functional.interpolate`.

    Parameters
    ----------
    size : int or sequence of int, optional
        The new sizes.
    scale_factor : float or sequence of float, optional
        How many times as large they are; instead of `size`.
    mode : str
        ``"nearest"``, ``"linear"``, ``"bilinear"``, ``"bicubic"``, ``"trilinear"``.
    align_corners : bool, optional
        Whether the outermost elements stay where they are.
    recompute_scale_factor : bool, optional
        Whether the scale is that of the sizes, once these are whole numbers.
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size = size
        if isinstance(scale_factor, (tuple, list)):
            self.scale_factor: float | Sequence[float] | None = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None  # type: ignore[arg-type]
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """(batch, channels, ...) to the same with other sizes."""
        return functional.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        what = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{what}, mode={self.mode!r}"
