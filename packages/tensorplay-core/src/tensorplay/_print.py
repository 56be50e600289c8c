"""Tensors as text, in torch's form.

Four digits, large tensors summarised, dtype and device where they are not the default ones.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _dtype

if TYPE_CHECKING:
    from ._tensor import Tensor

_PRECISION = 4  # digits after the point
_THRESHOLD = 1000  # elements up to which all are shown
_EDGE = 3  # elements shown at each end of a dimension beyond
_WIDTH = 80  # columns


def text(tensor: Tensor) -> str:
    """The repr of a tensor; waits for the elements that it shows."""
    prefix = "tensor("
    shown = _corners(tensor) if tensor.numel() > _THRESHOLD else tensor
    elements = shown._backend.to_host(shown)
    if tensor.dtype.is_floating_point:
        elements = elements.astype(np.float64)
    suffixes = []
    if tensor.device.type != "cpu":
        suffixes.append(f"device='{tensor.device}'")
    if not tensor.numel():
        body = "[]"
        if tensor.ndim != 1:
            suffixes.append(f"size={tensor.shape}")
    else:
        body = _body(elements, tensor.shape, *_form(elements), len(prefix))
    is_usual = tensor.dtype in _dtype.DEFAULTS.values() if tensor.numel() else tensor.dtype is _dtype.float32
    if not is_usual:
        suffixes.append(f"dtype={tensor.dtype!r}")
    return _with_suffixes(prefix + body, suffixes, len(prefix))


def _corners(tensor: Tensor) -> Tensor:
    """The elements that a summary shows: both ends of every long dimension, on the tensor's device."""
    from ._ops.joining import cat

    for dim, size in enumerate(tensor.shape):
        if size > 2 * _EDGE:
            ends = [tensor.narrow(dim, 0, _EDGE), tensor.narrow(dim, size - _EDGE, _EDGE)]
            tensor = cat(ends, dim)
    return tensor


def _form(elements: np.ndarray[Any, Any]) -> tuple[str, int]:
    """The format of every element, and the width to fill.

    torch's rules: scientific for a wide range, a bare point for whole numbers; zeros and what is not finite
    have no say.
    """
    form = "{}"
    if elements.dtype.kind == "f":
        elements = elements[np.isfinite(elements) & (elements != 0)]
        sizes = np.abs(elements) if len(elements) else np.ones(1)
        low, high = sizes.min(), sizes.max()
        is_whole = bool(np.all(sizes == np.ceil(sizes)))
        if high / low > 1000 or high > 1e8 or (low < 1e-4 and not is_whole):
            form = f"{{:.{_PRECISION}e}}"
        else:
            form = "{:.0f}." if is_whole else f"{{:.{_PRECISION}f}}"
    return form, max((len(form.format(value)) for value in elements.reshape(-1).tolist()), default=0)


def _written(form: str, value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return form.format(value)


def _body(elements: np.ndarray[Any, Any], shape: tuple[int, ...], form: str, width: int, indent: int) -> str:
    """The nested brackets; `shape` is the whole tensor's, `elements` are those that are shown."""
    if not shape:
        return _written(form, elements.item())
    is_cut = len(elements) < shape[0]
    if len(shape) == 1:
        parts = [_written(form, value).rjust(width) for value in elements.tolist()]
        if is_cut:
            parts.insert(_EDGE, " ...")
        per_line = max(1, (_WIDTH - indent) // (width + 2))
        lines = [", ".join(parts[start : start + per_line]) for start in range(0, len(parts), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    parts = [_body(part, shape[1:], form, width, indent + 1) for part in elements]
    if is_cut:
        parts.insert(_EDGE, "...")
    return "[" + ("," + "\n" * (len(shape) - 1) + " " * (indent + 1)).join(parts) + "]"


def _with_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    last = len(text) - text.rfind("\n") - 1
    for suffix in suffixes:
        if last + len(suffix) + 3 > _WIDTH:
            text += ",\n" + " " * indent + suffix
            last = indent + len(suffix)
        else:
            text += ", " + suffix
            last += len(suffix) + 2
    return text + ")"
