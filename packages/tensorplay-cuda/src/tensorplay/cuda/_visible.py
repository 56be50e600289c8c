"""CUDA_VISIBLE_DEVICES as the CUDA driver reads it."""

from __future__ import annotations

import re
from collections.abc import Sequence


def visible(setting: str | None, uuids: Sequence[str]) -> int | None:
    """How many devices CUDA will see.

    Parameters
    ----------
    setting : str or None
        Value of the variable, None when it is not set.
    uuids : sequence of str
        Identifiers (``"GPU-..."``) of all GPUs of the machine.

    Returns
    -------
    int or None
        None where only the driver can say: a MIG slice is named.

    Notes
    -----
    Rules of the CUDA C++ Programming Guide, "Environment Variables": the list is read up to the first entry
    that is no device, and naming a device twice leaves none. An ordinal is read as strtol reads it, up to
    its first non-digit; an identifier may be shortened as long as it fits one GPU only.
    """
    if setting is None:
        return len(uuids)
    entries = [entry.strip() for entry in setting.split(",")]
    if entries[0].startswith("MIG-"):
        return None
    read = _identifier if entries[0].startswith("GPU-") else _ordinal
    found: list[int] = []
    for entry in entries:
        index = read(entry, uuids)
        if index is None:
            break
        if index in found:
            return 0
        found.append(index)
    return len(found)


def _ordinal(entry: str, uuids: Sequence[str]) -> int | None:
    digits = re.match(r"\+?[0-9]+", entry)
    index = int(digits[0]) if digits else -1
    return index if 0 <= index < len(uuids) else None


def _identifier(entry: str, uuids: Sequence[str]) -> int | None:
    fits = [index for index, uuid in enumerate(uuids) if entry.startswith("GPU-") and uuid.startswith(entry)]
    return fits[0] if len(fits) == 1 else None
