"""What every tensor holds, and its description. The methods that work on elements are in `_tensor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from . import _shape
from ._gradient import refuse_autograd
from .errors import DTypeError

if TYPE_CHECKING:
    from ._backend import Backend
    from ._device import Device
    from ._dtype import DType
    from ._tensor import Tensor

_T = TypeVar("_T", bound="Handle")


class Handle:
    """A backend, its object for the elements, and what can be asked about them."""

    # Backend and impl are set by whoever makes the tensor, with object.__new__(Tensor). Shape and dtype
    # are asked for once; unset slots cost nothing.
    __slots__ = ("__weakref__", "_backend", "_dtype", "_impl", "_shape")

    _backend: Backend
    _impl: Any
    _shape: tuple[int, ...]
    _dtype: DType

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise DTypeError("Tensor: the class makes no tensors, use tensorplay.tensor(data) or tensorplay.empty(size)")

    def __del__(self) -> None:
        try:
            self._backend.release(self._impl)
        except Exception:
            # The slots are unset when making the tensor failed; at exit, modules may be gone already.
            pass

    # -- handles --------------------------------------------------------------------------------------

    def _adopt(self, other: Handle) -> None:
        """Takes over the elements of a tensor that nobody else holds; `self` has none yet."""
        self._backend = other._backend
        self._impl = other._impl
        del other._impl

    def _replace(self, other: Tensor) -> None:
        """Becomes another handle to the elements of `other`, in place; its own are released."""
        fresh = other._backend.alias(other)
        self._backend, fresh._backend = fresh._backend, self._backend
        self._impl, fresh._impl = fresh._impl, self._impl
        for cached in ("_shape", "_dtype"):
            if hasattr(self, cached):
                delattr(self, cached)

    def _as(self, cls: type[_T]) -> _T:
        """The same elements as an object of a class; `self`, which nobody else holds, is used up."""
        result = object.__new__(cls)
        result._adopt(self)
        return result

    def _storage_numel(self) -> int:
        """Elements that the whole storage has room for."""
        return self._backend.storage_nbytes(self._impl) // self.dtype.itemsize

    # -- description ----------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Size of each dimension."""
        try:
            return self._shape
        except AttributeError:
            self._shape = self._backend.shape(self._impl)
            return self._shape

    @property
    def dtype(self) -> DType:
        """Type of the elements."""
        try:
            return self._dtype
        except AttributeError:
            self._dtype = self._backend.dtype(self._impl)
            return self._dtype

    @property
    def device(self) -> Device:
        """Where the elements lie."""
        return self._backend.device(self._impl)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def is_cuda(self) -> bool:
        """Whether the elements lie on a CUDA device."""
        return self._backend.type == "cuda"

    @property
    def is_cpu(self) -> bool:
        """Whether the elements lie on the host."""
        return self._backend.type == "cpu"

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, without gaps."""
        return self.numel() * self.dtype.itemsize

    @property
    def requires_grad(self) -> bool:
        """False: there is no autograd."""
        return False

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value:
            refuse_autograd("requires_grad")

    @property
    def grad(self) -> None:
        """None: there is no autograd."""
        return None

    def backward(self, *args: Any, **kwargs: Any) -> None:
        """Raises StateError: there is no autograd."""
        refuse_autograd("backward")

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one dimension."""
        shape = self.shape
        return shape if dim is None else shape[_shape.sized_dim("size", _shape.integer("size", dim), len(shape))]

    def stride(self, dim: int | None = None) -> Any:
        """Elements from one index to the next: of each dimension, or of one."""
        strides = self._backend.strides(self._impl)
        return strides if dim is None else strides[_shape.sized_dim("stride", _shape.integer("stride", dim), self.ndim)]

    def numel(self) -> int:
        """Number of elements."""
        numel = 1
        for size in self.shape:
            numel *= size
        return numel

    nelement = numel

    def dim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    ndimension = dim

    def get_device(self) -> int:
        """Index of the device; -1 on the host."""
        index = self.device.index
        return -1 if index is None else index

    def storage_offset(self) -> int:
        """Elements from the start of the storage to the first element."""
        return self._backend.storage_offset(self._impl)

    def data_ptr(self) -> int:
        """Address of the first element; 0 without elements."""
        return self._backend.data_ptr(self._impl)

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def is_contiguous(self) -> bool:
        """Whether the elements lie in C order without gaps."""
        return self._backend.is_contiguous(self._impl)

    def is_floating_point(self) -> bool:
        """Whether the dtype holds fractions."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Whether the dtype holds complex numbers."""
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        """Whether the dtype holds negative numbers."""
        return self.dtype.is_signed
