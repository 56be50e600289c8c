"""Windows over the last dimensions of a tensor, as convolutions and poolings move them. They are views."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._tensor import Tensor


def reach(kernel: int, dilation: int) -> int:
    """Elements from the first to the last of a window."""
    return dilation * (kernel - 1) + 1


def windows(
    input: Tensor, counts: Sequence[int], kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> Tensor:
    """Shape (..., *kernel, *counts): the elements of each window. All windows lie inside the tensor."""
    lead = input.ndim - len(kernel)
    shape, steps = input.shape, input.stride()
    inner = [step * apart for step, apart in zip(steps[lead:], dilation, strict=True)]
    outer = [step * apart for step, apart in zip(steps[lead:], stride, strict=True)]
    return input._backend.as_strided(
        input, (*shape[:lead], *kernel, *counts), (*steps[:lead], *inner, *outer), input.storage_offset()
    )
