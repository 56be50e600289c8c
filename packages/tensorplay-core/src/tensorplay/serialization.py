"""Saving and loading named tensors, in the safetensors format.

The library `safetensors` is needed for it: ``pip install safetensors``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from . import _dispatch, _dtype, _plugins
from ._device import DeviceLike
from ._tensor import Tensor
from .errors import BackendUnavailableError, DTypeError, InvalidArgumentError

__all__ = ["load", "save"]

PathLike = str | os.PathLike[str]


def load(
    path: PathLike,
    *,
    device: DeviceLike | None = None,
    progress: Callable[[int], object] | None = None,
) -> dict[str, Tensor]:
    """The tensors of a file, by name. One after the other is read, so that the host holds one copy at most.

    Parameters
    ----------
    path : str or os.PathLike
        A file that ends in ``.safetensors``, or any other in that format.
    device : Device or str or int, optional
        Where the tensors go, the host by default.
    progress : callable, optional
        Called after each tensor with its bytes, as a progress bar's ``update`` takes them.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    InvalidArgumentError
        The file is damaged or in another format, or the device does not exist.
    DTypeError
        A tensor has a dtype that TensorPlay lacks; the text names it.
    BackendUnavailableError
        `safetensors` is not installed, or no device of that type works.
    """
    library = _library("load")
    backend, place = _plugins.resolve(device)
    found: dict[str, Tensor] = {}
    if not os.path.isfile(path):
        raise FileNotFoundError(f"load: no file at {os.fspath(path)!r}")
    try:
        with library.safe_open(os.fspath(path), framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118 (the file is no mapping)
                array = _writable(file.get_tensor(name))
                try:
                    found[name] = backend.from_host(array, place)
                except DTypeError as error:
                    raise DTypeError(f"load: tensor {name!r}: {error}") from None
                if progress is not None:
                    progress(array.nbytes)
    except library.SafetensorError as error:
        raise InvalidArgumentError(f"load: {os.fspath(path)!r} is no safetensors file: {error}") from error
    return found


def save(tensors: Mapping[str, Tensor], path: PathLike, *, metadata: Mapping[str, str] | None = None) -> None:
    """Writes named tensors to a file, which `load` and the library `safetensors` read.

    Views are written with the elements that they show, each by itself.

    Parameters
    ----------
    tensors : mapping of str to Tensor
        On any devices; a module's ``state_dict()`` for example.
    path : str or os.PathLike
        The file, which is replaced.
    metadata : mapping of str to str, optional
        Texts for the file's header.

    Raises
    ------
    DTypeError
        No mapping, a name that is no text, a value that is no tensor, or complex128, which the format lacks.
    BackendUnavailableError
        `safetensors` is not installed.
    """
    _library("save")
    if not isinstance(tensors, Mapping):
        raise DTypeError(f"save: got {type(tensors).__name__}, expected tensors by name, as state_dict() gives them")
    for name, value in tensors.items():
        if not isinstance(name, str):
            raise DTypeError(f"save: got name {name!r}, expected a text")
        _dispatch.check_tensor(f"save: {name!r}", value)
        if value.dtype is _dtype.complex128:
            raise DTypeError(
                f"save: tensor {name!r}: got dtype complex128, which safetensors files do not hold: "
                "use to(tensorplay.complex64), or save its real and imaginary parts"
            )
    arrays = {name: np.array(value._backend.to_host(value), order="C") for name, value in tensors.items()}
    writer = import_module("safetensors.numpy")
    writer.save_file(arrays, os.fspath(path), metadata=None if metadata is None else dict(metadata))


def _library(operation: str) -> Any:
    try:
        return import_module("safetensors")
    except ImportError:
        raise BackendUnavailableError(
            f"{operation}: the library safetensors is not installed: pip install safetensors"
        ) from None


def _writable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array if array.flags.writeable else array.copy()
