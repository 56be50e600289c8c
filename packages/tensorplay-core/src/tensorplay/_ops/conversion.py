"""Tensors to other dtypes, to other devices, and to Python and NumPy."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _dispatch, _dtype, _plugins
from .._device import Device, DeviceLike
from .._dtype import DType
from .._handle import Handle
from ..errors import DTypeError, InvalidArgumentError, StateError

if TYPE_CHECKING:
    from .._tensor import Tensor


class To(NamedTuple):
    """What `Tensor.to` was asked for; None keeps what the tensor has."""

    device: DeviceLike | None
    dtype: DType | None
    non_blocking: builtins.bool
    copy: builtins.bool


def parse_to(
    *args: Any,
    device: DeviceLike | None = None,
    dtype: DType | None = None,
    non_blocking: builtins.bool = False,
    copy: builtins.bool = False,
) -> To:
    """The arguments of `to`, in torch's spellings.

    Raises
    ------
    DTypeError
        An argument that is no device, dtype, tensor or flag, or one too many.
    """
    rest = list(args)
    if rest and isinstance(rest[0], Handle):
        other = rest.pop(0)
        device, dtype = other.device, other.dtype
    else:
        if rest and not isinstance(rest[0], (DType, builtins.bool)):
            device = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], DType)):
            dtype = rest.pop(0)
    if rest and isinstance(rest[0], builtins.bool):
        non_blocking = rest.pop(0)
    if rest and isinstance(rest[0], builtins.bool):
        copy = rest.pop(0)
    if rest:
        raise DTypeError(f"to: got {rest[0]!r}, expected a device, a dtype or a tensor, then non_blocking and copy")
    if dtype is not None:
        _dtype.check("to", dtype)
    flags = _dispatch.flag("to", "non_blocking", non_blocking), _dispatch.flag("to", "copy", copy)
    return To(device, dtype, *flags)


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor with another dtype or on another device; itself when nothing changes and `copy` is False.

    torch's spellings: ``to(device)``, ``to(dtype)``, ``to(device, dtype)``, ``to(other)``, each followed
    by ``non_blocking=False`` and ``copy=False``, and all of them by name.

    Parameters
    ----------
    non_blocking : bool
        Whether a copy between the host and a device may run after the call, behind the work that the current stream
        holds, while the host goes on. As in torch, what is asked for decides: a result on the host then lies in pinned
        memory, and must not be read before the stream was waited for; a source in pinned memory must not change
        before that. Dropping either is safe at any time. A source on the host that is not pinned, or has gaps, may
        change as soon as the call returns; and without `non_blocking` everything is done on return.

    Raises
    ------
    DTypeError
        An argument that is none of these.
    InvalidArgumentError
        A device that does not exist.
    """
    asked = parse_to(*args, **kwargs)
    dtype = self.dtype if asked.dtype is None else asked.dtype
    if asked.device is None:
        backend, device = self._backend, self.device
    else:
        backend, device = _plugins.resolve(asked.device)
    if not asked.copy and dtype is self.dtype and backend is self._backend and device == self.device:
        return self
    return _dispatch.move(self, backend, device, dtype, asked.non_blocking)


def cpu(self: Tensor, non_blocking: builtins.bool = False) -> Tensor:
    """The tensor on the host; complete on return, unless `non_blocking` is True (see `to`)."""
    return to(self, _plugins.HOST, non_blocking=non_blocking)


def cuda(self: Tensor, device: DeviceLike | None = None, non_blocking: builtins.bool = False) -> Tensor:
    """The tensor on a CUDA device, the current one by default; `non_blocking` as in `to`."""
    named = Device(device) if isinstance(device, (str, Device)) else Device("cuda", device)
    if named.type != "cuda":
        raise InvalidArgumentError(f"cuda: got {named}, expected a cuda device")
    return to(self, device=named, non_blocking=non_blocking)


def float(self: Tensor) -> Tensor:
    """To float32."""
    return to(self, _dtype.float32)


def double(self: Tensor) -> Tensor:
    """To float64."""
    return to(self, _dtype.float64)


def half(self: Tensor) -> Tensor:
    """To float16."""
    return to(self, _dtype.float16)


def bfloat16(self: Tensor) -> Tensor:
    """To bfloat16."""
    return to(self, _dtype.bfloat16)


def cfloat(self: Tensor) -> Tensor:
    """To complex64."""
    return to(self, _dtype.complex64)


def cdouble(self: Tensor) -> Tensor:
    """To complex128."""
    return to(self, _dtype.complex128)


def byte(self: Tensor) -> Tensor:
    """To uint8."""
    return to(self, _dtype.uint8)


def char(self: Tensor) -> Tensor:
    """To int8."""
    return to(self, _dtype.int8)


def short(self: Tensor) -> Tensor:
    """To int16."""
    return to(self, _dtype.int16)


def int(self: Tensor) -> Tensor:
    """To int32."""
    return to(self, _dtype.int32)


def long(self: Tensor) -> Tensor:
    """To int64."""
    return to(self, _dtype.int64)


def bool(self: Tensor) -> Tensor:
    """To bool: whether the element is not 0."""
    return to(self, _dtype.bool)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """To the dtype of another tensor."""
    _dispatch.check_tensor("type_as", other)
    return to(self, other.dtype)


def contiguous(self: Tensor) -> Tensor:
    """The tensor itself when its elements lie in C order, else a copy."""
    return self if self.is_contiguous() else self._backend.contiguous(self)


def clone(self: Tensor) -> Tensor:
    """A contiguous copy."""
    return self._backend.to(self, self.dtype, self.device)


def detach(self: Tensor) -> Tensor:
    """Another tensor over the same elements. There is no autograd to detach from."""
    return self._backend.alias(self)


def numpy(self: Tensor, *, force: builtins.bool = False) -> np.ndarray[Any, Any]:
    """The elements of a host tensor as an array that shares them; bfloat16 comes as `ml_dtypes.bfloat16`.

    Parameters
    ----------
    force : bool
        Copies from other devices, where a DTypeError is raised otherwise.
    """
    if self._backend.type != "cpu" and not force:
        raise DTypeError(f"numpy: got a tensor on {self.device}, expected one on cpu: use .cpu() or force=True")
    return self._backend.to_host(self)


def array(self: Tensor, dtype: Any = None, copy: builtins.bool | None = None) -> np.ndarray[Any, Any]:
    """`numpy.asarray(tensor)`, for host tensors."""
    elements = numpy(self)
    if copy is False and dtype is not None and elements.dtype != dtype:
        raise StateError(f"numpy: got dtype {dtype} and copy=False, expected {elements.dtype}")
    elements = elements if dtype is None else elements.astype(dtype, copy=False)
    return elements.copy() if copy and np.shares_memory(elements, numpy(self)) else elements


def one_element(operation: str, tensor: Tensor) -> Any:
    """The element of a tensor of one element, as a Python number; waits for it.

    Raises
    ------
    InvalidArgumentError
        It has more elements, or none.
    """
    if tensor.numel() != 1:
        raise InvalidArgumentError(f"{operation}: got a tensor of shape {tensor.shape}, expected one element")
    return _dispatch.number(tensor._backend.to_host(tensor).reshape(()))


def real_element(operation: str, tensor: Tensor) -> builtins.float | builtins.int:
    """As `one_element`, of numbers without an imaginary part.

    Raises
    ------
    InvalidArgumentError
        It has one, or as `one_element`.
    """
    value = one_element(operation, tensor)
    if not isinstance(value, complex):
        return value  # type: ignore[no-any-return]
    if value.imag:
        raise InvalidArgumentError(f"{operation}: got {value}, expected a number without an imaginary part")
    return value.real


def item(self: Tensor) -> Any:
    """The element of a tensor of one element, as a Python number; waits for it."""
    return one_element("item", self)


def as_index(self: Tensor) -> builtins.int:
    """The element of a tensor of one integer or bool, for Python's indices."""
    if self.numel() != 1 or self.dtype.category > _dtype.INT:
        raise DTypeError(f"index: got a tensor of shape {self.shape} and dtype {self.dtype.name}, expected one integer")
    return builtins.int(one_element("index", self))


def tolist(self: Tensor) -> Any:
    """The elements as Python numbers in nested lists; waits for them."""
    elements = self._backend.to_host(self)
    # NumPy keeps ml_dtypes' own scalars; float32 holds every value of the half types.
    return (elements.astype(np.float32) if self.dtype is _dtype.bfloat16 else elements).tolist()


def rebuild(cls: type[Tensor], elements: np.ndarray[Any, Any], device: str) -> Tensor:
    """What pickle calls: a tensor of a class from its elements."""
    backend, place = _plugins.resolve(device)
    result = backend.from_host(elements, place)
    return result if type(result) is cls else result._as(cls)


def reduce(self: Tensor) -> tuple[Any, ...]:
    """For pickle: the elements come along, and go to a device of the same name."""
    return rebuild, (type(self), np.array(self._backend.to_host(self)), str(self.device))


def shallow(self: Tensor) -> Tensor:
    """copy.copy: another tensor over the same elements."""
    return self._backend.alias(self)._as(type(self))


def deep(self: Tensor, memo: dict[builtins.int, Any]) -> Tensor:
    """copy.deepcopy: a copy of the elements; tensors over one storage become separate ones."""
    result = memo[id(self)] = clone(self)._as(type(self))
    return result
