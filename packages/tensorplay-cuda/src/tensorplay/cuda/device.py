"""Devices: counting, choosing, waiting, properties.

Every function that takes a device takes None (the thread's current device), an index, ``"cuda"``,
``"cuda:1"`` or a `tensorplay.device`, and refuses all else alike. The queries work before first use; they
start nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any, SupportsIndex

from tensorplay._device import Device, bare_index
from tensorplay._tensor import Tensor
from tensorplay.errors import DTypeError, InvalidArgumentError

from . import _select
from ._check import check
from ._library import native, text_of

DeviceArgument = Device | str | SupportsIndex | None

CURRENT = -1  # TP_DEVICE_CURRENT


@dataclass(frozen=True)
class DeviceProperties:
    """What `get_device_properties` tells of a device.

    Attributes
    ----------
    name : str
    total_memory : int
        Bytes.
    major, minor : int
        Compute capability.
    multi_processor_count : int
    max_threads_per_block : int
    warp_size : int
    """

    name: str
    total_memory: int
    major: int
    minor: int
    multi_processor_count: int
    max_threads_per_block: int
    warp_size: int


def is_available() -> bool:
    """Whether a CUDA device can be used. Never raises, starts nothing, and may be called before a fork."""
    return device_count() > 0


def device_count() -> int:
    """Number of visible devices, 0 where CUDA cannot be used. Never raises and starts nothing.

    Before first use the answer follows ``CUDA_VISIBLE_DEVICES`` as it is now; afterwards it is fixed.
    """
    choice = native.choice()
    if native.is_started:
        return max(0, int(native.tp_device_count()))
    return _select.count(choice)[0]


def unavailable_reason() -> str | None:
    """Why CUDA cannot be used and what to type, as a sentence; None when it can."""
    choice = native.choice()
    fault = None if native.is_started else _select.count(choice)[1]
    return None if fault is None else str(fault)


def current_device() -> int:
    """Index of the thread's current device (`tp_device_current`); 0 at first."""
    return int(native.tp_device_current()) if native.is_started else 0


def set_device(device: Device | str | SupportsIndex) -> None:
    """Makes a device current for this thread (`tp_device_set`). Starts no context.

    Parameters
    ----------
    device : device, str or int
        A negative index does nothing.
    """
    if not _is_negative(device):
        index = device_index(device)
        check(native.tp_device_set(index))


def synchronize(device: DeviceArgument = None) -> None:
    """Waits for all work of a device (`tp_device_synchronize`); a device that was never used has none.

    Raises
    ------
    OutOfRangeError
        A kernel met an index outside its range since the last wait.
    AcceleratorError
        CUDA reports that earlier work has failed.
    """
    index = device_index(device)
    if native.is_started:
        check(native.tp_device_synchronize(index))


def get_device_properties(device: DeviceArgument = None) -> DeviceProperties:
    """Name, memory and limits of a device (`tp_device_get_properties`)."""
    index = device_index(device)
    found = native.ffi.new("tp_device_properties_t *")
    check(native.tp_device_get_properties(index, found))
    return DeviceProperties(
        name=text_of(found.name),
        total_memory=found.total_memory,
        major=found.major,
        minor=found.minor,
        multi_processor_count=found.multi_processor_count,
        max_threads_per_block=found.max_threads_per_block,
        warp_size=found.warp_size,
    )


def get_device_name(device: DeviceArgument = None) -> str:
    """Name of a device, ``"NVIDIA H200"`` for example."""
    return get_device_properties(device).name


def get_device_capability(device: DeviceArgument = None) -> tuple[int, int]:
    """Compute capability of a device as (major, minor)."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device: DeviceArgument, peer_device: DeviceArgument) -> bool:
    """Whether a device reads and writes the memory of another directly; of itself False, as CUDA says."""
    found = native.tp_device_can_access_peer(device_index(device), device_index(peer_device))
    check(found)
    return bool(found)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current device computes in bfloat16: all do, those before capability 8.0 by way of float32.

    Parameters
    ----------
    including_emulation : bool
        False: whether it does so itself.
    """
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def is_initialized() -> bool:
    """Whether the library and the driver were started in this process."""
    return native.is_started and not native.is_forked


def init() -> None:
    """Starts the library and the driver, which the first call that needs them does anyway. Makes no context.

    Raises
    ------
    BackendUnavailableError
        CUDA cannot be used; the text says why.
    AcceleratorError
        CUDA was started before this process was forked.
    """
    check(native.tp_device_count())
    if native.is_forked:
        check(native.tp_device_synchronize(CURRENT))  # fails where the parent has used the device,
        get_device_properties()  # and this where it only started the driver


def get_arch_list() -> list[str]:
    """Architectures that the installed kernels are for: ``["sm_80", ...]``, none where CUDA cannot be used."""
    variant = native.choice().variant
    if variant is None or not is_available():
        return []
    from . import _native

    return _native.architectures(variant)


class device:  # noqa: N801 (torch's name)
    """Context manager that makes a device current and puts the former one back.

    Parameters
    ----------
    device : device, str, int or None
        None and a negative index do nothing.
    """

    __slots__ = ("_former", "_index")

    def __init__(self, device: DeviceArgument) -> None:
        self._index = CURRENT if device is None or _is_negative(device) else device_index(device)
        self._former: Any = None  # an index, and the same of the block around: it may be entered again in its block

    def __enter__(self) -> None:
        if self._index != CURRENT:
            index = current_device()
            try:
                check(native.tp_device_set(self._index))
            except BaseException:  # a signal's handler may raise behind the call, and nobody would leave
                native.tp_device_set(index)
                raise
            self._former = index, self._former

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._former is not None:
            index, around = self._former
            try:
                check(native.tp_device_set(index))
            finally:
                self._former = around


class device_of(device):  # noqa: N801 (torch's name)
    """Context manager that makes a tensor's device current and puts the former one back.

    Parameters
    ----------
    obj : Tensor
        One that lies on the host does nothing.
    """

    __slots__ = ()

    def __init__(self, obj: Tensor) -> None:
        if not isinstance(obj, Tensor):
            raise DTypeError(f"device_of: got {type(obj).__name__}, expected a tensor")
        super().__init__(obj.device if obj.is_cuda else None)


def device_index(device: DeviceArgument) -> int:
    """Index of a device argument: the one rule for all functions of `tensorplay.cuda`.

    Where no device is visible, index 0 stands for the missing one, so that statistics can be asked anywhere.

    Raises
    ------
    InvalidArgumentError
        A spelling that is none, another device type, or a device that is not visible.
    DTypeError
        An argument of another type.
    """
    if device is None:
        return current_device()
    if isinstance(device, str):
        device = Device(device)
    if isinstance(device, Device):
        if device.type != "cuda":
            raise InvalidArgumentError(f"device: got {device}, expected a cuda device")
        if device.index is None:
            return current_device()
        index = device.index
    else:
        index = _integer(device)
    count = device_count()
    if not 0 <= index < max(count, 1):
        raise InvalidArgumentError(f"device {index} asked for, {count} visible")
    return index


def _is_negative(device: Device | str | SupportsIndex) -> bool:
    return not isinstance(device, (Device, str)) and _integer(device) < 0


def _integer(device: SupportsIndex) -> int:
    return bare_index("device", device, "an index, a text such as 'cuda:0' or a device")
