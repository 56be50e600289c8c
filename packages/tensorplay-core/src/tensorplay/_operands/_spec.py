"""What the checks share: the description of a result, devices, scalars and `out`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .. import _dtype, _plugins, _shape
from .._dtype import DType
from .._shape import Shape
from ..errors import BackendUnavailableError, DTypeError, InvalidArgumentError

if TYPE_CHECKING:
    from .._backend import Scalar
    from .._device import Device
    from .._tensor import Tensor


class Spec(NamedTuple):
    """The result of an operation, before it exists.

    Attributes
    ----------
    shape : tuple of int
    dtype : DType
        Of the result.
    device : Device
    compute : DType
        The dtype that the operands are taken to before anything is computed; half types are then
        computed in float32 and rounded once.
    """

    shape: Shape
    dtype: DType
    device: Device
    compute: DType


def device_of(operation: str, *operands: Tensor | None) -> Device:
    """The one device of the tensors among the operands (None: left out).

    Raises
    ------
    InvalidArgumentError
        They are on different devices.
    """
    devices = list(dict.fromkeys(operand.device for operand in operands if operand is not None))
    if len(devices) != 1:
        raise InvalidArgumentError(
            f"{operation}: operands on different devices, got {' and '.join(map(str, devices))}, expected one device"
        )
    return devices[0]


def check_device(operation: str, device: Device) -> None:
    """Refuses an index that does not exist.

    Raises
    ------
    InvalidArgumentError
        Fewer devices are visible.
    BackendUnavailableError
        None is; the text has the reason.
    """
    if device.index is not None:
        backend = _plugins.get(device.type)
        visible = backend.device_count()
        if not visible:
            raise BackendUnavailableError(f"{operation}: {backend.unavailable_reason()}")
        if device.index >= visible:
            raise InvalidArgumentError(
                f"{operation}: device {device.index} asked for, {visible} visible (devices of type {device.type!r})"
            )


def scalar_dtype(operation: str, value: Scalar) -> DType:
    """The dtype of a number without one.

    Raises
    ------
    DTypeError
        It is no number.
    InvalidArgumentError
        It is an integer outside int64.
    """
    if isinstance(value, bool):
        return _dtype.bool
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise InvalidArgumentError(f"{operation}: got the integer {value}, expected one that int64 holds")
        return _dtype.int64
    if isinstance(value, float):
        return _dtype.DEFAULTS[_dtype.FLOAT]
    if isinstance(value, complex):
        return _dtype.DEFAULTS[_dtype.COMPLEX]
    raise DTypeError(f"{operation}: got {type(value).__name__}, expected a tensor or a number")


def floating(operation: str, *operands: Tensor | None) -> DType:
    """The one floating dtype of the operands (None: left out).

    Raises
    ------
    DTypeError
        One is not floating, or they differ.
    """
    dtypes = list(dict.fromkeys(operand.dtype for operand in operands if operand is not None))
    if len(dtypes) != 1 or not dtypes[0].is_floating_point:
        raise DTypeError(
            f"{operation}: got {' and '.join(dtype.name for dtype in dtypes)}, expected one floating dtype"
        )
    return dtypes[0]


def check_target(operation: str, target: Tensor) -> None:
    """Refuses what cannot be written element by element.

    Raises
    ------
    InvalidArgumentError
        Elements share memory: which of the values would stay is not defined.
    """
    if _shape.is_overlapping(target.shape, target.stride()):
        raise InvalidArgumentError(
            f"{operation}: got a target of shape {target.shape} and strides {target.stride()}, whose elements share "
            "memory as expand makes them, expected separate elements: use clone()"
        )


def sized(operation: str, spec: Spec) -> Spec:
    """The description of a fresh result, once a tensor can have it.

    Raises
    ------
    SizeOverflowError
        Its bytes cannot be counted in 63 bits, as may be where operands are expanded.
    """
    _shape.check_sizes(operation, spec.shape, spec.dtype.itemsize)
    return spec


def into(operation: str, spec: Spec, out: Tensor | None) -> Spec:
    """The description of what is returned: `out`, when it is given and can hold the result.

    Raises
    ------
    InvalidArgumentError
        `out` has another shape or device, or elements that share memory.
    DTypeError
        Its dtype is of a lower category.
    SizeOverflowError
        It is not given, and the bytes of the result cannot be counted.
    """
    if out is None:
        return sized(operation, spec)
    if out.device != spec.device:
        raise InvalidArgumentError(
            f"{operation}: operands on different devices, got {spec.device} and out on {out.device}, "
            "expected one device"
        )
    if out.shape != spec.shape:
        raise InvalidArgumentError(f"{operation}: got out of shape {out.shape}, expected {spec.shape}")
    if not _dtype.can_cast(spec.dtype, out.dtype):
        raise DTypeError(
            f"{operation}: got out of dtype {out.dtype.name}, which cannot hold a result of dtype {spec.dtype.name}"
        )
    check_target(operation, out)
    return spec
