"""The tensor class: a table of contents.

Methods that are functions too live in `tensorplay._ops`, by family; the description is in `_handle`.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

from . import _indexing, _print
from ._handle import Handle
from ._ops import conversion, elementwise, inplace, operators, products, rearranging, reductions, splitting, views
from .errors import DTypeError


class Tensor(Handle):
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
    float = conversion.float
    half = conversion.half
    bfloat16 = conversion.bfloat16
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
    __reduce__ = conversion.reduce
    __copy__ = conversion.shallow
    __deepcopy__ = conversion.deep

    def __bool__(self) -> builtins.bool:
        return builtins.bool(conversion.one_element("bool", self))

    def __int__(self) -> builtins.int:
        return builtins.int(conversion.one_element("int", self))

    def __float__(self) -> builtins.float:
        return builtins.float(conversion.one_element("float", self))

    def __index__(self) -> builtins.int:
        return conversion.as_index(self)

    def __repr__(self) -> str:
        return _print.text(self)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if not self.shape else format(repr(self), spec)

    # -- operations, by family ------------------------------------------------------------------------

    neg = elementwise.neg
    abs = elementwise.abs
    sqrt = elementwise.sqrt
    rsqrt = elementwise.rsqrt
    exp = elementwise.exp
    log = elementwise.log
    tanh = elementwise.tanh
    erf = elementwise.erf
    sigmoid = elementwise.sigmoid
    relu = elementwise.relu
    reciprocal = elementwise.reciprocal
    sin = elementwise.sin
    cos = elementwise.cos
    logical_not = elementwise.logical_not
    add = elementwise.add
    sub = elementwise.sub
    mul = elementwise.mul
    div = elementwise.div
    pow = elementwise.pow
    maximum = elementwise.maximum
    minimum = elementwise.minimum
    eq = elementwise.eq
    ne = elementwise.ne
    lt = elementwise.lt
    le = elementwise.le
    gt = elementwise.gt
    ge = elementwise.ge
    logical_and = elementwise.logical_and
    logical_or = elementwise.logical_or
    clamp = elementwise.clamp
    masked_fill = elementwise.masked_fill
    sum = reductions.sum
    mean = reductions.mean
    amax = reductions.amax
    amin = reductions.amin
    any = reductions.any
    all = reductions.all
    softmax = reductions.softmax
    log_softmax = reductions.log_softmax
    matmul = products.matmul
    index_select = products.index_select

    # -- in place ------------------------------------------------------------------------------------

    fill_ = inplace.fill_
    zero_ = inplace.zero_
    copy_ = inplace.copy_
    masked_fill_ = inplace.masked_fill_
    uniform_ = inplace.uniform_
    normal_ = inplace.normal_
    requires_grad_ = inplace.requires_grad_
    add_ = operators.binary_method("add")
    sub_ = operators.binary_method("sub")
    mul_ = operators.binary_method("mul")
    div_ = operators.binary_method("div")
    pow_ = operators.binary_method("pow")
    neg_ = operators.unary_method("neg")
    abs_ = operators.unary_method("abs")
    sqrt_ = operators.unary_method("sqrt")
    rsqrt_ = operators.unary_method("rsqrt")
    exp_ = operators.unary_method("exp")
    log_ = operators.unary_method("log")
    tanh_ = operators.unary_method("tanh")
    sigmoid_ = operators.unary_method("sigmoid")
    relu_ = operators.unary_method("relu")
    reciprocal_ = operators.unary_method("reciprocal")

    # -- operators -----------------------------------------------------------------------------------

    __add__ = operators.forward("add")
    __radd__ = operators.reflected("add")
    __iadd__ = operators.in_place("add")
    __sub__ = operators.forward("sub")
    __rsub__ = operators.reflected("sub")
    __isub__ = operators.in_place("sub")
    __mul__ = operators.forward("mul")
    __rmul__ = operators.reflected("mul")
    __imul__ = operators.in_place("mul")
    __truediv__ = operators.forward("div")
    __rtruediv__ = operators.reflected("div")
    __itruediv__ = operators.in_place("div")
    __pow__ = operators.forward("pow")
    __rpow__ = operators.reflected("pow")
    __ipow__ = operators.in_place("pow")
    __eq__ = operators.forward("eq")  # type: ignore[assignment]
    __ne__ = operators.forward("ne")  # type: ignore[assignment]
    __lt__ = operators.forward("lt")
    __le__ = operators.forward("le")
    __gt__ = operators.forward("gt")
    __ge__ = operators.forward("ge")
    __matmul__ = operators.matmul
    __and__ = operators.and_
    __rand__ = operators.and_
    __or__ = operators.or_
    __ror__ = operators.or_
    __xor__ = operators.xor
    __rxor__ = operators.xor
    __invert__ = operators.invert
    __neg__ = elementwise.neg
    __abs__ = elementwise.abs

    # Tensors are equal element by element, so they are told apart by identity.
    __hash__ = object.__hash__

    def __pos__(self) -> Tensor:
        return self

    def __contains__(self, value: Any) -> builtins.bool:
        return builtins.bool(elementwise.eq(self, value).any())
