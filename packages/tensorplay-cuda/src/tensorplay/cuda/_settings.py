"""The allocators' settings, in the syntax of the variable TENSORPLAY_CUDA_ALLOC_CONF."""

from __future__ import annotations

from typing import Any

from tensorplay.errors import DTypeError, InvalidArgumentError

from ._check import check
from ._library import native, text_of


def set_allocator_settings(settings: str) -> None:
    """Sets all settings of the allocators at once, for all devices (`tp_memory_set_settings`).

    Blocks and segments that there are stay as they are. Starts no device; docs/guide/memory.md explains the keys.

    Parameters
    ----------
    settings : str
        ``"key:value,key:value"``, as in the variable TENSORPLAY_CUDA_ALLOC_CONF. Keys that it does not name get their
        defaults, so ``""`` sets them all back.

    Raises
    ------
    InvalidArgumentError
        An unknown key or a value that cannot be obeyed; the settings are as before.
    DTypeError
        Not a text.
    """
    if not isinstance(settings, str):
        raise DTypeError(f"set_allocator_settings: got {settings!r}, expected a text")
    if "\0" in settings:
        raise InvalidArgumentError("set_allocator_settings: got a text with a null character")
    check(native.tp_memory_set_settings(settings.encode()))


def get_allocator_settings() -> str:
    """The text that is in force: what `set_allocator_settings` takes to bring the same settings back."""
    settings = current()  # whose text goes with it
    return text_of(settings.text)


def get_allocator_backend() -> str:
    """``"native"``: TensorPlay's own caching allocator, the only one."""
    return "native"


def current() -> Any:
    """All settings as a C structure (`tp_memory_get_settings`)."""
    found = native.ffi.new("tp_memory_settings_t *")
    native.tp_memory_get_settings(found)
    return found
