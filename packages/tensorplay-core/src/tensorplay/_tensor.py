"""The tensor class: a table of contents.

Methods that are functions too live in `tensorplay._ops`, by family; the description is in `_handle`. Those that work
element by element or along dimensions, and Python's operators, come by the base classes.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

from . import _creation, _data, _dispatch, _dlpack, _indexing, _pinned, _print
from ._ops import (
    choice,
    comparison,
    conversion,
    grids,
    inplace,
    parts,
    rearranging,
    sampling,
    splitting,
    views,
)
from ._ops.algebra import Algebra
from ._ops.binary import Binary
from ._ops.dimensional import Dimensional
from ._ops.operators import Operators
from ._ops.unary import Unary
from .errors import DTypeError


class Tensor(Unary, Binary, Dimensional, Algebra, Operators):
    """Elements of one dtype on one device, with a shape and strides.

    Tensors are made by `tensorplay.tensor`, `tensorplay.zeros` and their like.

    Raises
    ------
    DTypeError
        When called: the class is no constructor.
    """

    __slots__ = ()

    # NumPy leaves operators with a tensor on their right to the tensor.
    __array_priority__ = 1000

    def record_stream(self, stream: Any) -> None:
        """Marks that a stream uses the elements: their memory is reused only after its work so far."""
        self._backend.record_stream(self, stream)

    # -- views ----------------------------------------------------------------------------------------

    view = views.view
    view_as = views.view_as
    reshape = views.reshape
    reshape_as = views.reshape_as
    flatten = views.flatten
    ravel = views.ravel
    unflatten = views.unflatten
    transpose = views.transpose
    swapdims = views.transpose
    swapaxes = views.swapaxes
    t = views.t
    adjoint = views.adjoint
    permute = views.permute
    movedim = views.movedim
    moveaxis = views.movedim
    expand = views.expand
    broadcast_to = views.broadcast_to
    expand_as = views.expand_as
    squeeze = views.squeeze
    unsqueeze = views.unsqueeze
    select = views.select
    narrow = views.narrow
    diagonal = views.diagonal
    unfold = views.unfold
    as_strided = views.as_strided
    split = splitting.split
    tensor_split = splitting.tensor_split
    chunk = splitting.chunk
    unbind = splitting.unbind

    @property
    def T(self) -> Tensor:
        """The dimensions in reverse order."""
        return self._backend.permute(self, tuple(reversed(range(self.ndim))))

    @property
    def mT(self) -> Tensor:
        """The last two dimensions exchanged."""
        return self._backend.transpose(self, -2, -1)

    @property
    def H(self) -> Tensor:
        """A matrix transposed, with the conjugates of complex elements."""
        return views.adjoint(views.matrix("H", self))

    @property
    def mH(self) -> Tensor:
        """As `adjoint`."""
        return views.adjoint(self)

    @property
    def real(self) -> Tensor:
        """The real parts, as a view; the tensor itself when it is not complex."""
        return parts.real(self)

    @property
    def imag(self) -> Tensor:
        """The imaginary parts of complex elements, as a view."""
        return parts.imag(self)

    # -- copies in another order ----------------------------------------------------------------------

    flip = rearranging.flip
    fliplr = rearranging.fliplr
    flipud = rearranging.flipud
    rot90 = rearranging.rot90
    roll = rearranging.roll
    repeat = rearranging.repeat
    repeat_interleave = rearranging.repeat_interleave
    tile = rearranging.tile
    diag = rearranging.diag

    def __getitem__(self, key: Any) -> Tensor:
        return _indexing.get(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        _indexing.put(self, key, value)

    def __len__(self) -> builtins.int:
        if not self.shape:
            raise DTypeError("len: got a tensor without dimensions, expected at least one")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            raise DTypeError("iter: got a tensor without dimensions, expected at least one")
        return (self.select(0, place) for place in range(self.shape[0]))

    # -- conversion -----------------------------------------------------------------------------------

    to = conversion.to
    cpu = conversion.cpu
    cuda = conversion.cuda
    pin_memory = _pinned.pin_memory
    is_pinned = _pinned.is_pinned
    float = conversion.float
    double = conversion.double
    half = conversion.half
    bfloat16 = conversion.bfloat16
    cfloat = conversion.cfloat
    cdouble = conversion.cdouble
    byte = conversion.byte
    char = conversion.char
    short = conversion.short
    int = conversion.int
    long = conversion.long
    bool = conversion.bool
    type_as = conversion.type_as
    contiguous = conversion.contiguous
    clone = conversion.clone
    detach = conversion.detach
    numpy = conversion.numpy
    item = conversion.item
    tolist = conversion.tolist
    __array__ = conversion.array
    __dlpack__ = _dlpack.export
    __dlpack_device__ = _dlpack.device
    __reduce__ = conversion.reduce
    __copy__ = conversion.shallow
    __deepcopy__ = conversion.deep

    @property
    def data(self) -> Tensor:
        """As `detach`. When assigned to, the tensor has the elements of the other one, which both share then."""
        return self.detach()

    @data.setter
    def data(self, other: Tensor) -> None:
        _dispatch.check_tensor("data", other)
        self._replace(other)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of the interface, with the current stream. bfloat16 and tensors on the host have none."""
        return self._backend.cuda_array_interface(self)

    def __bool__(self) -> builtins.bool:
        return builtins.bool(conversion.one_element("bool", self))

    def __int__(self) -> builtins.int:
        return builtins.int(conversion.real_element("int", self))

    def __float__(self) -> builtins.float:
        return builtins.float(conversion.real_element("float", self))

    def __complex__(self) -> complex:
        return complex(conversion.one_element("complex", self))

    def __index__(self) -> builtins.int:
        return conversion.as_index(self)

    def __repr__(self) -> str:
        return _print.text(self)

    def __format__(self, spec: str) -> str:
        if not self.shape:
            return format(self.item(), spec)
        if spec:
            raise DTypeError(f"format: got {spec!r} for a tensor of shape {self.shape}, expected no dimensions")
        return repr(self)

    # -- operations, by family ------------------------------------------------------------------------

    where = choice.where_method
    equal = comparison.equal
    isclose = comparison.isclose
    allclose = comparison.allclose
    bernoulli = sampling.bernoulli
    multinomial = sampling.multinomial
    tril = grids.tril
    triu = grids.triu

    # -- new tensors that are like this one ----------------------------------------------------------

    new_empty = _creation.new_empty
    new_zeros = _creation.new_zeros
    new_ones = _creation.new_ones
    new_full = _creation.new_full
    new_tensor = _data.new_tensor

    # -- in place ------------------------------------------------------------------------------------

    fill_ = inplace.fill_
    zero_ = inplace.zero_
    copy_ = inplace.copy_
    uniform_ = sampling.uniform_
    normal_ = sampling.normal_
    random_ = sampling.random_
    bernoulli_ = sampling.bernoulli_
    exponential_ = sampling.exponential_
    tril_ = grids.tril_
    triu_ = grids.triu_
    requires_grad_ = inplace.requires_grad_

    def __contains__(self, value: Any) -> builtins.bool:
        return builtins.bool(Tensor.eq(self, value).any())
