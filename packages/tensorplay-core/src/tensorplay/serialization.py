"""Saving and loading named tensors, in the safetensors format."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from . import _dispatch, _plugins
from ._backend import Backend
from ._device import Device, DeviceLike
from ._safetensors import METADATA, NAMES, PREFIX, DamagedError, Entry, make_header, read_header
from ._tensor import Tensor
from .errors import DTypeError, InvalidArgumentError

__all__ = ["load", "save"]

PathLike = str | os.PathLike[str]

#: Bytes of a large tensor that go to a device between two calls of `progress`.
STEP = 64 * 2**20


def load(
    path: PathLike,
    *,
    device: DeviceLike | None = None,
    progress: Callable[[int], object] | None = None,
) -> dict[str, Tensor]:
    """The tensors of a file, by name. The file is mapped into memory, not read into it.

    On the host the tensors are the file's contents, which are read when they are first used; writing to a tensor
    leaves the file as it is. The file may be removed, or replaced as `save` does it, but not be written over. For
    another device the elements go there straight from the file.

    Parameters
    ----------
    path : str or os.PathLike
        A file that ends in ``.safetensors``, or any other in that format.
    device : Device or str or int, optional
        Where the tensors go, the host by default.
    progress : callable, optional
        Called with the number of bytes that were loaded since its last call, as a progress bar's ``update`` takes
        them; several times for a large tensor.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    InvalidArgumentError
        The file is damaged or in another format, or the device does not exist.
    DTypeError
        A tensor has a dtype that TensorPlay lacks; the text names it.
    BackendUnavailableError
        No device of that type works.
    """
    backend, place = _plugins.resolve(device)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"load: no file at {os.fspath(path)!r}")
    on_host = place.type == "cpu"
    try:
        contents = _mapped(path, writable=on_host)
        with memoryview(contents) as view:
            entries = read_header(view)
    except DamagedError as error:
        raise InvalidArgumentError(f"load: {os.fspath(path)!r} is no safetensors file: {error}") from None
    tell = progress or (lambda nbytes: None)
    found: dict[str, Tensor] = {}
    for name, entry in entries.items():
        array = _elements(contents, entry)
        if on_host:
            found[name] = backend.from_host(array if array.flags.aligned else array.copy(), place)
            tell(array.nbytes)
        else:
            found[name] = _sent(backend, array, entry, place, tell)
    return found


def _mapped(path: PathLike, *, writable: bool) -> mmap.mmap | bytes:
    """The file's contents; what is written to them stays in this process."""
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size < PREFIX:
            return file.read()  # an empty file cannot be mapped
        # A private mapping counts as memory that will be needed, of which there may be less than the file has.
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY if writable else mmap.ACCESS_READ)


def _elements(contents: mmap.mmap | bytes, entry: Entry) -> np.ndarray[Any, Any]:
    if entry.start == entry.stop:
        return np.empty(entry.shape, entry.dtype.numpy)
    count = (entry.stop - entry.start) // entry.dtype.itemsize
    return np.frombuffer(contents, entry.dtype.numpy, count, entry.start).reshape(entry.shape)


def _sent(
    backend: Backend, array: np.ndarray[Any, Any], entry: Entry, place: Device, tell: Callable[[int], object]
) -> Tensor:
    """The array as a tensor on another device."""
    if array.nbytes <= STEP:
        made = backend.from_host(array, place)
        tell(array.nbytes)
        return made
    made = backend.empty(entry.shape, entry.dtype, place)
    target, source = made.view(-1), array.reshape(-1)
    step = STEP // entry.dtype.itemsize
    for start in range(0, source.size, step):
        part = source[start : start + step]
        backend.copy_from_host_(target[start : start + step], part)
        tell(part.nbytes)
    return made


def save(tensors: Mapping[str, Tensor], path: PathLike, *, metadata: Mapping[str, str] | None = None) -> None:
    """Writes named tensors to a file, which `load` and other programs for safetensors files read.

    Views are written with the elements that they show, each by itself. The file appears under its name, or replaces
    an earlier one, once all of it is written. Tensors of a device are fetched one after the other.

    Parameters
    ----------
    tensors : mapping of str to Tensor
        On any devices; a module's ``state_dict()`` for example.
    path : str or os.PathLike
        The file.
    metadata : mapping of str to str, optional
        Texts for the file's header.

    Raises
    ------
    DTypeError
        No mapping, a name or metadata that is no text, a value that is no tensor, or complex128, which the format
        lacks.
    InvalidArgumentError
        A tensor is named ``__metadata__``, as the format names its texts.
    """
    if not isinstance(tensors, Mapping):
        raise DTypeError(f"save: got {type(tensors).__name__}, expected tensors by name, as state_dict() gives them")
    for name, value in tensors.items():
        _check(name, value)
    for key, text in ({} if metadata is None else metadata).items():
        if not (isinstance(key, str) and isinstance(text, str)):
            raise DTypeError(f"save: got metadata {key!r}: {text!r}, expected texts")
    header, order = make_header({name: (value.dtype, value.shape) for name, value in tensors.items()}, metadata)
    target = os.path.realpath(path)
    if not os.path.isdir(os.path.dirname(target)):
        raise FileNotFoundError(f"save: no folder for {os.fspath(path)!r}")
    part = f"{target}.{os.urandom(6).hex()}.part"
    try:
        with open(part, "xb") as file:
            file.write(header)
            for name in order:
                array = np.ascontiguousarray(tensors[name]._backend.to_host(tensors[name]))
                file.write(array.reshape(-1).view(np.uint8).data)
            file.flush()
            os.fsync(file.fileno())  # else the name may outlive the contents when power fails
        os.replace(part, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(part)
        raise


def _check(name: object, value: object) -> None:
    if not isinstance(name, str):
        raise DTypeError(f"save: got name {name!r}, expected a text")
    if name == METADATA:
        raise InvalidArgumentError(f"save: got a tensor named {METADATA}, expected another name: the format needs it")
    tensor = _dispatch.tensor(f"save: {name!r}", value)
    if tensor.dtype not in NAMES:
        raise DTypeError(
            f"save: tensor {name!r}: got dtype {tensor.dtype.name}, which safetensors files do not hold: "
            "use to(tensorplay.complex64), or save its real and imaginary parts"
        )
