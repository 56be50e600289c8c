"""The memory fraction of a process: a note, for programs that set it."""

from __future__ import annotations

import math
from numbers import Real

from tensorplay.errors import DTypeError, InvalidArgumentError

from . import _settings
from .device import DeviceArgument, device_count, device_index

_fractions: dict[int, float] = {}  # by device


def set_per_process_memory_fraction(fraction: float, device: DeviceArgument = None) -> None:
    """Not enforced: notes which part of a device's memory this process means to use; `set_memory_limit` is a limit.

    Parameters
    ----------
    fraction : float
        From 0 to 1.
    device : device, str or int, optional
        The current device when left out.

    Raises
    ------
    InvalidArgumentError
        A number below 0 or above 1, or no number of that kind (nan).
    DTypeError
        Not a number.
    """
    if isinstance(fraction, bool) or not isinstance(fraction, Real):
        raise DTypeError(f"set_per_process_memory_fraction: got {fraction!r}, expected a number from 0 to 1")
    if math.isnan(fraction) or not 0 <= fraction <= 1:
        raise InvalidArgumentError(f"set_per_process_memory_fraction: got {fraction}, expected a number from 0 to 1")
    _fractions[device_index(device)] = float(fraction)


def get_per_process_memory_fraction(device: DeviceArgument = None) -> float:
    """Not enforced: what `set_per_process_memory_fraction` noted for a device, else the settings, else 1.0."""
    index = device_index(device)
    if index in _fractions:
        return _fractions[index]
    return float(_settings.current().per_process_memory_fraction) if device_count() else 1.0
