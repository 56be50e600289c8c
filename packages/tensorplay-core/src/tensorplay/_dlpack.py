"""DLPack 1.x, both ways: memory that goes to other libraries, and comes from them, without a copy.

Core settles who shares what with whom; a backend makes and reads what the capsules hold. The rules are in
docs/design/exchange.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _capsule, _dispatch, _plugins
from .errors import DTypeError, ExchangeError, InvalidArgumentError

if TYPE_CHECKING:
    from ._backend import Backend
    from ._device import DeviceLike
    from ._tensor import Tensor

#: DLPack's numbers of device types.
CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
_TYPES = {CPU: "cpu", CUDA_HOST: "cpu", CUDA: "cuda", CUDA_MANAGED: "cuda"}
_NUMBERS = {"cpu": CPU, "cuda": CUDA}

#: Flags of a versioned capsule.
READ_ONLY, COPIED = 1, 2


# -- out -------------------------------------------------------------------------------------------------


def device(self: Tensor) -> tuple[int, int]:
    """DLPack's type and index of the tensor's device."""
    place = self.device
    return _NUMBERS[place.type], place.index or 0


def export(
    self: Tensor,
    *,
    stream: int | None = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> object:
    """A DLPack capsule over the tensor's memory, for ``from_dlpack`` of any library.

    Parameters
    ----------
    stream : int, optional
        On CUDA the stream that the consumer works on: it waits for the current one, and the memory is not used
        again before its work is done. None or 1: the default stream, 2: the per-thread default stream, -1: no order,
        else a handle. On the host None.
    max_version : (int, int), optional
        The newest version that the consumer understands.
    dl_device : (int, int), optional
        The device that the consumer wants the memory on: the tensor's own, or the host.
    copy : bool, optional
        True: always copy. False: raise where a copy is needed.

    Raises
    ------
    ExchangeError
        A device that is neither, a copy that is needed and refused, or an emulated device beside a real one.
    InvalidArgumentError
        Another stream.
    StateError
        The current stream is being captured, and the consumer's is the default stream.
    """
    _check_stream(self, stream)
    is_versioned = max_version is not None and max_version[0] >= 1
    flags = 0
    if dl_device is not None and tuple(dl_device) != device(self):
        if tuple(dl_device) != (CPU, 0) or copy is False:
            raise ExchangeError(
                f"__dlpack__: got dl_device={dl_device!r} and copy={copy} for a tensor on {self.device}, expected "
                f"{device(self)}, or {(CPU, 0)} with a copy"
            )
        if stream is not None:
            raise InvalidArgumentError(f"__dlpack__: got stream={stream!r} for a copy on the host, expected None")
        self, flags = self.cpu(), COPIED
    elif copy:
        self, flags = self.clone(), COPIED
    return self._backend.export_dlpack(self, stream, is_versioned, flags)


def _check_stream(self: Tensor, stream: object) -> None:
    if stream is None:
        return
    if type(stream) is not int or self._backend.type == "cpu" or stream == 0 or stream < -1:
        expected = "None" if self._backend.type == "cpu" else "None, -1, 1, 2 or a stream's handle"
        raise InvalidArgumentError(
            f"__dlpack__: got stream={stream!r} for a tensor on {self.device}, expected {expected}"
        )


# -- in --------------------------------------------------------------------------------------------------


def from_dlpack(obj: Any, *, device: DeviceLike | None = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of another library's array: whatever has ``__dlpack__``, or a DLPack capsule.

    On CUDA the thread's current stream waits for the producer's work, and the producer gets its memory back once the
    work of the streams that used it here is done.

    Parameters
    ----------
    device : Device or str or int, optional
        Where the tensor lies, by default where the memory is; elsewhere is a copy.
    copy : bool, optional
        True: always copy. False: raise where a copy is needed. None: copy where it is needed: for another device,
        read-only memory, or strides that run backwards.

    Raises
    ------
    ExchangeError
        A device that no tensor has, a copy that is needed and refused, or another major version of DLPack.
    DTypeError
        An object without ``__dlpack__``, or a dtype that no tensor has.
    """
    if copy is not None:
        _dispatch.flag("from_dlpack", "copy", copy)
    if _capsule.is_capsule(obj):
        made, flags = _take(_backend_of(_capsule.device_type(obj)), obj)
    elif hasattr(obj, "__dlpack__") and hasattr(obj, "__dlpack_device__"):
        made, flags = _borrow(obj, copy)
    else:
        raise DTypeError(f"from_dlpack: got {type(obj).__name__}, expected an object with __dlpack__ or a capsule")
    if device is None and not flags and not copy:
        return made
    place = made.device if device is None else _plugins.resolve(device)[1]
    if copy is False and (flags & (READ_ONLY | COPIED) or place != made.device):
        what = "read-only memory" if flags & READ_ONLY else "a copy" if flags & COPIED else f"memory on {made.device}"
        raise ExchangeError(f"from_dlpack: got {what} and copy=False, expected memory on {place} that can be shared")
    must = (copy or flags & READ_ONLY) and not flags & COPIED
    return made.to(place, copy=bool(must))


def borrowed(data: Any) -> tuple[Tensor, int] | None:
    """A tensor over the memory of another library's object, and DLPack's flags; None of what shares none."""
    speaks_dlpack = hasattr(data, "__dlpack__") and hasattr(data, "__dlpack_device__")
    try:
        interface = getattr(data, "__cuda_array_interface__", None)
    except (KeyError, RuntimeError, TypeError):  # torch, of bfloat16 and of tensors with gradients
        if not speaks_dlpack:
            raise
        interface = None
    # Before version 3 it names no stream, and DLPack does.
    if interface is not None and (interface.get("version", 0) >= 3 or not speaks_dlpack):
        return _plugins.get("cuda").from_cuda_array_interface(data, interface)
    if speaks_dlpack:
        try:
            return _borrow(data, None)
        except DTypeError:
            if _TYPES.get(data.__dlpack_device__()[0]) != "cpu":
                raise  # else NumPy may know the dtype
    return None


def _borrow(producer: Any, copy: bool | None) -> tuple[Tensor, int]:
    number, index = producer.__dlpack_device__()
    backend = _backend_of(number)
    return _take(backend, _ask(producer, backend.dlpack_stream(index), copy))


def _ask(obj: Any, stream: int | None, copy: bool | None) -> object:
    """A capsule from a producer of any age."""
    wishes = {} if copy is not False else {"copy": False}
    try:
        return obj.__dlpack__(stream=stream, max_version=_capsule.VERSION, **wishes)
    except TypeError:
        # Before DLPack 1.0 there was the stream alone.
        return obj.__dlpack__(stream=stream)


def _backend_of(number: int) -> Backend:
    kind = _TYPES.get(number)
    if kind is None:
        raise ExchangeError(
            f"from_dlpack: got memory of DLPack's device type {number}, expected one of {', '.join(map(str, _TYPES))}"
        )
    return _plugins.get(kind)


def _take(backend: Backend, given: object) -> tuple[Tensor, int]:
    """The tensor of a capsule and its flags; what the capsule held is then the tensor's."""
    managed, is_versioned = _capsule.content(given)
    made, flags = backend.import_dlpack(managed, is_versioned)
    _capsule.mark_taken(given, is_versioned)
    return made, flags
