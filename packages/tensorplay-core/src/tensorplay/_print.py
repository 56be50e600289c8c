"""Tensors as text, in torch's form: large ones summarised, dtype and device where they are not the default ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _dtype
from .errors import InvalidArgumentError

if TYPE_CHECKING:
    from ._tensor import Tensor


@dataclass(frozen=True)
class _Options:
    precision: int = 4  # digits after the point
    threshold: float = 1000  # elements up to which all are shown
    edgeitems: int = 3  # elements shown at each end of a dimension beyond
    linewidth: int = 80  # columns
    sci_mode: bool | None = None  # None: by the range of the elements


_PROFILES = {
    "default": _Options(),
    "short": _Options(precision=2, edgeitems=2),
    "full": _Options(threshold=math.inf),
}
_options = _Options()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """How tensors are written as text from now on; what is not named stays.

    Parameters
    ----------
    precision : int, optional
        Digits after the point, 4 at first.
    threshold : int or float, optional
        Elements up to which all of them are shown, 1000 at first.
    edgeitems : int, optional
        Elements at each end of a dimension in summaries, 3 at first.
    linewidth : int, optional
        Columns of a line, 80 at first.
    profile : str, optional
        Where to begin from: ``"default"``, ``"short"`` or ``"full"``.
    sci_mode : bool, optional
        Scientific notation always or never; None, which is never kept, chooses by the range of the elements.

    Raises
    ------
    InvalidArgumentError
        There is no such profile.
    """
    global _options
    if profile is not None and profile not in _PROFILES:
        raise InvalidArgumentError(f"set_printoptions: got profile {profile!r}, expected one of {', '.join(_PROFILES)}")
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    begin = _options if profile is None else _PROFILES[profile]
    _options = replace(begin, sci_mode=sci_mode, **changes)


class _Form:
    """How the elements of a tensor, or the real or imaginary parts of them, are written.

    torch's rules: scientific for a wide range, a bare point for whole numbers; zeros and what is not finite
    have no say.
    """

    def __init__(self, elements: np.ndarray[Any, Any]) -> None:
        self._format = "{}"
        if elements.dtype.kind == "f":
            elements = elements[np.isfinite(elements) & (elements != 0)]
            self._format = self._of_fractions(np.abs(elements))
        self.width = max((len(self._format.format(value)) for value in elements.reshape(-1).tolist()), default=1)

    @staticmethod
    def _of_fractions(sizes: np.ndarray[Any, Any]) -> str:
        low, high = (sizes.min(), sizes.max()) if sizes.size else (1.0, 1.0)
        is_scientific = _options.sci_mode
        if is_scientific is None or not sizes.size:
            is_scientific = bool(high / low > 1000 or high > 1e8 or low < 1e-4)
        if is_scientific:
            return f"{{:.{_options.precision}e}}"
        return "{:.0f}." if np.all(sizes == np.ceil(sizes)) else f"{{:.{_options.precision}f}}"

    def write(self, value: Any) -> str:
        """One element, at least as wide as the others."""
        is_bare = isinstance(value, float) and not math.isfinite(value)
        return (str(value) if is_bare else self._format.format(value)).rjust(self.width)


class _Complex:
    """As `_Form`, for both parts of complex numbers."""

    def __init__(self, elements: np.ndarray[Any, Any]) -> None:
        self._real, self._imag = _Form(elements.real), _Form(elements.imag)
        self.width = self._real.width + self._imag.width + 1

    def write(self, value: complex) -> str:
        imag = self._imag.write(value.imag).lstrip()
        return f"{self._real.write(value.real)}{'' if imag.startswith('-') else '+'}{imag}j"


def text(tensor: Tensor) -> str:
    """The repr of a tensor; waits for the elements that it shows."""
    prefix = "tensor("
    suffixes = []
    if tensor.device.type != "cpu":
        suffixes.append(f"device='{tensor.device}'")
    if tensor.numel():
        shown = _corners(tensor) if tensor.numel() > _options.threshold else tensor
        elements = shown._backend.to_host(shown)
        if tensor.dtype.is_floating_point:
            elements = elements.astype(np.float64)
        form = (_Complex if tensor.dtype.is_complex else _Form)(elements)
        body = _body(elements, tensor.shape, form, len(prefix))
        is_usual = tensor.dtype in _dtype.DEFAULTS.values()
    else:
        body = "[]"
        if tensor.ndim != 1:
            suffixes.append(f"size={tensor.shape}")
        is_usual = tensor.dtype is _dtype.DEFAULTS[_dtype.FLOAT]
    if not is_usual:
        suffixes.append(f"dtype={tensor.dtype!r}")
    return _with_suffixes(prefix + body, suffixes, len(prefix))


def _corners(tensor: Tensor) -> Tensor:
    """The elements that a summary shows: both ends of every long dimension, on the tensor's device."""
    from ._ops.joining import cat

    edge = _options.edgeitems
    for dim, size in enumerate(tensor.shape):
        if size > 2 * edge:
            tensor = cat([tensor.narrow(dim, 0, edge), tensor.narrow(dim, size - edge, edge)], dim)
    return tensor


def _body(elements: np.ndarray[Any, Any], shape: tuple[int, ...], form: _Form | _Complex, indent: int) -> str:
    """The nested brackets; `shape` is the whole tensor's, `elements` are those that are shown."""
    if not shape:
        return form.write(elements.item())
    edge = _options.edgeitems
    is_cut = len(elements) < shape[0]
    if len(shape) == 1:
        parts = [form.write(value) for value in elements.tolist()]
        if is_cut:
            parts.insert(edge, " ...")
        per_line = max(1, (_options.linewidth - indent) // (form.width + 2))
        lines = [", ".join(parts[start : start + per_line]) for start in range(0, len(parts), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    parts = [_body(part, shape[1:], form, indent + 1) for part in elements]
    if is_cut:
        parts.insert(edge, "...")
    return "[" + ("," + "\n" * (len(shape) - 1) + " " * (indent + 1)).join(parts) + "]"


def _with_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if column + len(suffix) + 2 > _options.linewidth:
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text + ")"
