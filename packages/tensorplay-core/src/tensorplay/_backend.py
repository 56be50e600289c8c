"""The protocol between core and a backend.

A backend keeps the elements of tensors of one device type. A `Tensor` holds two things: `_backend`, one
of these objects, and `_impl`, whatever the backend uses for a tensor (a NumPy array, a C handle). Core
never looks into an `_impl`.

Rules for every method:

* Tensors among the arguments belong to this backend, unless a line says otherwise: the dispatching code
  (`tensorplay._dispatch`) has moved nothing and mixed nothing. They may be on different devices of it.
* Dimensions, shapes and operands come as the user gave them; the backend checks. What it refuses, it
  refuses by the function of the same name and arguments in `tensorplay._operands`, which raises the
  exception. So every backend words its errors alike: host code calls that function first, native code
  only after its own check has refused.
* `out` is None for a new tensor.
* Operation names are those of `tensorplay._tables` (`UNARY`, `BINARY`, `REDUCE`), made from
  `libtensorplay/kernels/ops.def`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._dtype import DTYPES
from ._generators import Generators
from ._graphs import Graphs
from ._memory import Memory
from ._streams import Streams
from ._transfers import Transfers

if TYPE_CHECKING:
    from ._device import Device
    from ._dtype import DType
    from ._fault import Fault
    from ._tensor import Tensor

Scalar = bool | int | float | complex


class Backend(Transfers, Generators, Memory, Streams, Graphs):
    """Keeper of the tensors of one device type."""

    #: Device type as it is spelled in devices: ``"cpu"``, ``"cuda"``.
    type: str

    # -- devices ------------------------------------------------------------------------------------

    @abstractmethod
    def is_available(self) -> bool:
        """Whether a device works. Never raises, starts nothing."""

    @abstractmethod
    def unavailable_reason(self) -> str | None:
        """Why no device works, as a sentence; None when one does."""

    @abstractmethod
    def device_count(self) -> int:
        """Visible devices; 0 when unavailable. Never raises, starts nothing."""

    @abstractmethod
    def current_device(self) -> int:
        """Index of the thread's current device."""

    @abstractmethod
    def set_device(self, index: int) -> None:
        """Makes a device current; a negative index does nothing."""

    @abstractmethod
    def synchronize(self, index: int | None) -> None:
        """Waits for all work of a device (None: the current one)."""

    def supported_dtypes(self, index: int) -> set[DType]:
        """The dtypes that tensors on a visible device can have."""
        return set(DTYPES.values())

    def describe(self) -> dict[str, Any]:
        """Facts for `tensorplay.doctor`, in the order to show: names to texts, numbers, or lists of these.

        Never raises, starts nothing.
        """
        return {}

    def diagnose(self) -> tuple[dict[str, Any], list[Fault]]:
        """More facts, and what is wrong: what takes another process, or time, to find out.

        The facts may also be lists of dictionaries. Never raises, starts nothing in this process.
        """
        return {}, []

    # -- description of an impl ----------------------------------------------------------------------

    @abstractmethod
    def release(self, impl: Any) -> None:
        """Drops an impl: called once, from any thread, also while the interpreter ends."""

    @abstractmethod
    def shape(self, impl: Any) -> tuple[int, ...]: ...
    @abstractmethod
    def strides(self, impl: Any) -> tuple[int, ...]:
        """Strides in elements."""

    @abstractmethod
    def storage_offset(self, impl: Any) -> int:
        """Elements from the start of the storage."""

    @abstractmethod
    def dtype(self, impl: Any) -> DType: ...
    @abstractmethod
    def device(self, impl: Any) -> Device: ...
    @abstractmethod
    def data_ptr(self, impl: Any) -> int:
        """Address of the first element, 0 without elements."""

    @abstractmethod
    def storage_id(self, impl: Any) -> int:
        """Equal for two impls exactly when they share a storage."""

    @abstractmethod
    def storage_nbytes(self, impl: Any) -> int:
        """Bytes of the storage that the impl is a view of."""

    @abstractmethod
    def is_contiguous(self, impl: Any) -> bool: ...

    def set_default_dtype(self, dtype: DType) -> None:
        """The floating dtype that integers become where a function gives fractions, and that Python's floats have.

        Called when the program changes it, and before a backend's first operation where it is not float32.
        """

    # -- creation ------------------------------------------------------------------------------------

    @abstractmethod
    def empty(self, shape: Sequence[int], dtype: DType, device: Device) -> Tensor: ...
    @abstractmethod
    def full(self, shape: Sequence[int], value: Scalar, dtype: DType, device: Device) -> Tensor: ...
    @abstractmethod
    def arange(self, start: Scalar, step: Scalar, numel: int, dtype: DType, device: Device) -> Tensor: ...

    # -- copies on the backend -----------------------------------------------------------------------

    @abstractmethod
    def to(self, tensor: Tensor, dtype: DType, device: Device) -> Tensor:
        """A contiguous copy with this dtype on this device (one of this backend)."""

    @abstractmethod
    def copy_(self, target: Tensor, source: Tensor) -> None:
        """target := source, cast and broadcast; also between devices of this backend."""

    @abstractmethod
    def fill_(self, target: Tensor, value: Scalar) -> None: ...
    @abstractmethod
    def contiguous(self, tensor: Tensor) -> Tensor:
        """The tensor itself (another handle) when contiguous, else a copy."""

    # -- views ---------------------------------------------------------------------------------------

    @abstractmethod
    def alias(self, tensor: Tensor) -> Tensor:
        """Another tensor object over the same elements."""

    @abstractmethod
    def view(self, tensor: Tensor, shape: Sequence[int]) -> Tensor: ...
    @abstractmethod
    def reshape(self, tensor: Tensor, shape: Sequence[int]) -> Tensor: ...
    @abstractmethod
    def transpose(self, tensor: Tensor, dim0: int, dim1: int) -> Tensor: ...
    @abstractmethod
    def permute(self, tensor: Tensor, dims: Sequence[int]) -> Tensor: ...
    @abstractmethod
    def expand(self, tensor: Tensor, shape: Sequence[int]) -> Tensor: ...
    @abstractmethod
    def slice(self, tensor: Tensor, dim: int, start: int, stop: int, step: int) -> Tensor:
        """start and stop are clamped to the size, step is positive (the caller has seen to both)."""

    @abstractmethod
    def select(self, tensor: Tensor, dim: int, index: int) -> Tensor: ...
    @abstractmethod
    def unsqueeze(self, tensor: Tensor, dim: int) -> Tensor: ...
    @abstractmethod
    def squeeze(self, tensor: Tensor, dim: int) -> Tensor: ...
    @abstractmethod
    def as_strided(self, tensor: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int) -> Tensor: ...

    @abstractmethod
    def view_dtype(self, tensor: Tensor, dtype: DType) -> Tensor:
        """The same bytes as elements of another dtype.

        Where its size differs, the last dimension, whose elements are adjacent, becomes longer or shorter.
        """

    @abstractmethod
    def flip(self, tensor: Tensor, dims: Sequence[int]) -> Tensor:
        """A contiguous copy in which these dimensions run backwards; strides of views are never negative."""

    # -- operations ----------------------------------------------------------------------------------

    @abstractmethod
    def unary(self, op: str, a: Tensor, out: Tensor | None = None) -> Tensor: ...
    @abstractmethod
    def binary(self, op: str, a: Tensor | Scalar, b: Tensor | Scalar, out: Tensor | None = None) -> Tensor:
        """At least one operand is a tensor; a scalar is weak."""

    @abstractmethod
    def where(self, condition: Tensor, a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor: ...
    @abstractmethod
    def reduce(
        self,
        op: str,
        a: Tensor,
        dims: Sequence[int] | None,
        keepdim: bool = False,
        dtype: DType | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """dims None: all of them."""

    @abstractmethod
    def arg_reduce(self, op: str, a: Tensor, dim: int | None, keepdim: bool = False) -> Tensor:
        """Places along a dimension (None: in the elements in C order), int64: of equals the first, nan before all."""

    @abstractmethod
    def scan(self, op: str, a: Tensor, dim: int, dtype: DType | None = None, out: Tensor | None = None) -> Tensor:
        """Totals of the elements so far along a dimension."""

    @abstractmethod
    def argsort(self, a: Tensor, dim: int, descending: bool = False) -> Tensor:
        """Places that bring a dimension into order, int64; always stable.

        nan is larger than all numbers, and equal to itself; -0 equals 0.
        """

    @abstractmethod
    def softmax(self, a: Tensor, dim: int, log: bool = False) -> Tensor: ...
    @abstractmethod
    def layer_norm(
        self, a: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
    ) -> Tensor: ...
    @abstractmethod
    def index_select(self, a: Tensor, dim: int, index: Tensor) -> Tensor: ...
    @abstractmethod
    def gather(self, a: Tensor, dim: int, index: Tensor) -> Tensor:
        """Elements of `a` at `index` along a dimension, at the index's own place in all others: its shape.

        An index outside 0 .. size - 1 raises on the host, and is a fault of a device (at the next call that waits).
        One without elements gives nothing, whatever its shape.
        """

    @abstractmethod
    def scatter_(self, target: Tensor, dim: int, index: Tensor, source: Tensor, accumulate: bool = False) -> None:
        """Writes the elements of `source` where `gather` would read, or adds them; faults as there.

        `source` has the index's shape or more, and the target's dtype. Equal indices: of several writes any one
        stays (host: the last); sums are the same from run to run. What shares memory with the target is read first.
        """

    @abstractmethod
    def index(self, a: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
        """``a[indices]``: one entry for each of the first dimensions, None for a whole one; at least one tensor.

        The tensors are int32 or int64 and broadcast together; negative elements count from the end. Their dimensions
        take the place of those indexed when these are neighbours, else they come first. Faults as `gather`, but none
        where the result has no elements; a dimension of size 0 takes no index, which raises at once.
        """

    @abstractmethod
    def index_put_(
        self, target: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
    ) -> None:
        """``target[indices] = values``, or ``+=`` counting every repeated index.

        `values` broadcasts to the shape of `index` and has the target's dtype. Order and faults as `scatter_`.
        """

    @abstractmethod
    def embedding(self, weight: Tensor, index: Tensor) -> Tensor: ...
    @abstractmethod
    def matmul(self, a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
        """Of one dtype of numbers; integers wrap."""

    @abstractmethod
    def addmm(
        self, input: Tensor, a: Tensor, b: Tensor, beta: complex, alpha: complex, out: Tensor | None = None
    ) -> Tensor:
        """beta * input + alpha * (a @ b), rounded once; without reading `input` where beta is 0.

        `input` broadcasts to the product; all have one dtype of numbers. The factors are floats that it holds,
        and complex for a complex one.
        """

    def allow_tf32(self, allowed: bool) -> None:
        """Whether products of float32 may be made of numbers with fewer digits, where that is faster."""

    @abstractmethod
    def linear(self, a: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """a @ weight.T + bias, of one dtype of numbers."""

    @abstractmethod
    def linear_gelu(self, op: str, a: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """gelu or gelu_tanh of `linear`, of one floating dtype; rounded once where that is one kernel."""

    # -- exchange with other libraries ---------------------------------------------------------------

    @abstractmethod
    def dlpack_stream(self, index: int) -> int | None:
        """The stream that a producer is told to make its data ready for: the thread's current one of a device."""

    @abstractmethod
    def export_dlpack(self, tensor: Tensor, stream: int | None, is_versioned: bool, flags: int) -> object:
        """A capsule over the tensor's memory. The stream is one of DLPack's numbers, flags are DLPack's."""

    @abstractmethod
    def import_dlpack(self, managed: int, is_versioned: bool) -> tuple[Tensor, int]:
        """The tensor of what a capsule holds, and its flags, with that of a copy where the tensor is one.

        The deleter is called when the last tensor over the memory is gone; after an error the capsule still has it.
        """

    def cuda_array_interface(self, tensor: Tensor) -> dict[str, Any]:
        """``__cuda_array_interface__``; an AttributeError says that the tensor has none."""
        raise AttributeError(f"__cuda_array_interface__: got a tensor on {tensor.device}, expected one on cuda")

    def from_cuda_array_interface(self, producer: Any, interface: dict[str, Any]) -> tuple[Tensor, int]:
        """As `import_dlpack`, of an object and its ``__cuda_array_interface__``; it lives as long as memory is used."""
        raise AttributeError(f"__cuda_array_interface__: got a backend of type {self.type!r}, expected cuda")

    # -- random numbers ------------------------------------------------------------------------------

    @abstractmethod
    def uniform_(self, tensor: Tensor, low: float, high: float) -> None: ...
    @abstractmethod
    def normal_(self, tensor: Tensor, mean: float, std: float) -> None: ...
    @abstractmethod
    def random_bits_(self, tensor: Tensor) -> None:
        """All 64 bits of each element of an int64 tensor."""
