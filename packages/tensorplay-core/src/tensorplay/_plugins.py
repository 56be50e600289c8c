"""Finding backends: the host's own one, and those that other distributions bring.

A distribution names its backend in the entry point group ``tensorplay.backends``, under its device
type. It is imported when a device of that type is first used, not before. One of the backends is the accelerator:
`accelerator_type` has the rule.
"""

from __future__ import annotations

import os
import threading
from functools import cache
from typing import TYPE_CHECKING

from . import _dtype, _wheels
from ._backend import Backend
from ._device import Device, DeviceLike
from .errors import BackendUnavailableError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from ._dtype import DType

#: The distribution to install for a device type that is known and missing.
DISTRIBUTIONS = {"cuda": "tensorplay-cuda"}

#: Names the accelerator where several backends are there; ``none``: there shall be none.
VARIABLE = "TENSORPLAY_ACCELERATOR"

_backends: dict[str, Backend] = {}
_lock = threading.RLock()
_seed: int | None = None  # what a backend that comes later is seeded with
_allows_tf32 = False

#: What texts name, and None, as `place` gives it. Only good spellings are kept: there are few of them.
places: dict[str | None, tuple[Backend, Device]] = {}

#: The host, as tensors there name it.
HOST = Device("cpu")


def register(backend: Backend) -> None:
    """Makes a backend known for its device type; the first one of a type stays.

    Entry points need no call: this is for programs and tests that bring their own backend.
    """
    with _lock:
        if _backends.setdefault(backend.type, backend) is not backend:
            return
        accelerator_type.cache_clear()
        if backend.type == "cpu":
            places[None] = backend, HOST
        if _seed is not None:
            seed_backend(backend, _seed)
        if (default := _dtype.DEFAULTS[_dtype.FLOAT]) is not _dtype.float32:
            backend.set_default_dtype(default)
        if _allows_tf32:
            backend.allow_tf32(True)


@cache
def _installed() -> dict[str, EntryPoint]:
    """The entry points by device type. Asked for once: installing needs a new process anyway.

    Raises
    ------
    BackendUnavailableError
        Two distributions bring different backends for one type.
    """
    from importlib.metadata import entry_points  # Brings half of the standard library along.

    found: dict[str, EntryPoint] = {}
    for point in entry_points(group="tensorplay.backends"):
        other = found.setdefault(point.name, point)
        if other.value != point.value:
            names = " and ".join(sorted(one.dist.name if one.dist else one.value for one in (other, point)))
            raise BackendUnavailableError(f"backends: {names} both bring type {point.name!r}: uninstall one of them")
    return found


def known_types() -> list[str]:
    """Device types that a spelling may name, the host's first."""
    return sorted({"cpu", *DISTRIBUTIONS, *_backends, *_installed()}, key=lambda kind: (kind != "cpu", kind))


def find(kind: str) -> Backend | None:
    """The backend of a device type, imported now if need be; None when no distribution brings one.

    Raises
    ------
    ImportError
        A distribution brings one that cannot be imported.
    """
    backend = _backends.get(kind)
    if backend is None and (point := _installed().get(kind)) is not None:
        register(_loaded(point))
        backend = _backends[kind]
    return backend


def _loaded(point: EntryPoint) -> Backend:
    """The backend that a distribution brings.

    Raises
    ------
    ImportError
        It fails, in whatever way, or brings something else than a backend of the type that it is named for.
    """
    try:
        backend = point.load()
    except (ImportError, BackendUnavailableError):
        raise
    except Exception as error:
        raise ImportError(f"{point.value}, backend of {point.name!r}: {type(error).__name__}: {error}") from error
    if not isinstance(backend, Backend) or backend.type != point.name:
        raise ImportError(f"{point.value}: got {backend!r}, expected a backend of type {point.name!r}")
    return backend


def get(kind: str) -> Backend:
    """As `find`.

    Raises
    ------
    BackendUnavailableError
        No distribution brings one; the text says what to install.
    """
    backend = find(kind)
    if backend is None:
        raise BackendUnavailableError(missing(kind))
    return backend


def missing(kind: str) -> str:
    """The sentence for a device type without a backend."""
    distribution = DISTRIBUTIONS.get(kind)
    advice = f": {_wheels.not_installed(distribution)}" if distribution else ""
    return f"no backend for devices of type {kind!r}{advice}"


@cache
def accelerator_type() -> str | None:
    """The device type of the one accelerator, None without one: of what is installed, not of what works now.

    The environment variable ``TENSORPLAY_ACCELERATOR`` names it. Where it is not set, it is the first backend that the
    program itself has registered, or else of the installed ones the first by name. It is decided once; a backend that
    is registered later has it decided anew.

    Raises
    ------
    BackendUnavailableError
        The variable names a type that has no backend.
    """
    installed = sorted(_installed())
    found = [kind for kind in (*(kind for kind in _backends if kind not in installed), *installed) if kind != "cpu"]
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return found[0] if found else None
    if wanted == "none":
        return None
    if wanted not in found:
        raise BackendUnavailableError(f"{VARIABLE}: got {wanted!r}, expected one of {', '.join((*found, 'none'))}")
    return wanted


def no_accelerator() -> str:
    """The sentence for a call that needs an accelerator where there is none."""
    if os.environ.get(VARIABLE) == "none":
        return f"no accelerator: {VARIABLE} is none"
    return f"no accelerator: {', or '.join(map(_wheels.not_installed, DISTRIBUTIONS.values()))}"


def accelerator() -> Backend | None:
    """The accelerator's backend, imported now if need be; None without one, and raises as `accelerator_type` does."""
    kind = accelerator_type()
    return None if kind is None else _backends.get(kind) or get(kind)


def loaded_accelerator() -> Backend | None:
    """The accelerator's backend, where something has imported it."""
    return _backends.get(accelerator_type() or "")


def needed(operation: str) -> Backend:
    """The accelerator's backend.

    Raises
    ------
    BackendUnavailableError
        A RuntimeError, if there is none.
    """
    backend = accelerator()
    if backend is None:
        raise BackendUnavailableError(f"{operation}: {no_accelerator()}")
    return backend


def place(device: DeviceLike | None) -> tuple[Backend, Device]:
    """As `resolve`, but ``"cuda"`` gets no index: the backend takes its current device when it makes the tensor."""
    if not isinstance(device, str):
        return resolve(device)
    known = places.get(device)
    if known is None:
        named = Device(device)
        known = places[device] = get(named.type), named
    return known


def resolve(device: DeviceLike | None) -> tuple[Backend, Device]:
    """The backend of a device, and the device with its index (None: the host).

    ``"cuda"`` becomes the thread's current device. Whether the index exists is checked by the call
    that uses it.

    Raises
    ------
    InvalidArgumentError, DTypeError
        What was given names no device.
    BackendUnavailableError
        No distribution brings a backend for it.
    """
    if device is None:
        return _backends["cpu"], HOST
    if isinstance(device, str):
        backend, found = place(device)
    else:
        found = device if isinstance(device, Device) else Device(device)
        backend = _backends.get(found.type) or get(found.type)
    if found.type == "cpu":
        # The host is one device: index 0 is another spelling of it, any other is refused where it is used.
        return backend, found if found.index else HOST
    if found.index is None:
        found = Device(found.type, backend.current_device())
    return backend, found


def set_default_dtype(dtype: DType) -> None:
    """Sets the dtype of fractions, and its complex counterpart, for every backend, those that come later too."""
    with _lock:
        _dtype.DEFAULTS.update({_dtype.FLOAT: dtype, _dtype.COMPLEX: dtype.to_complex()})
        for backend in _backends.values():
            backend.set_default_dtype(dtype)


def allow_tf32(allowed: bool) -> None:
    """Sets whether products of float32 may use TF32, for every backend, those that come later too."""
    global _allows_tf32
    with _lock:
        _allows_tf32 = allowed
        for backend in _backends.values():
            backend.allow_tf32(allowed)


def allows_tf32() -> bool:
    """What `allow_tf32` set."""
    return _allows_tf32


def seed_backend(backend: Backend, seed: int) -> None:
    """Seeds every device of a backend."""
    for index in range(backend.device_count()):
        backend.seed(index, seed)


def seed_all(seed: int) -> None:
    """Seeds every backend, those that are imported later too; the host last, since devices may refuse in a capture."""
    global _seed
    with _lock:
        for backend in reversed(_backends.values()):
            seed_backend(backend, seed)
        _seed = seed
