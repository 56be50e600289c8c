"""The kind of tensor that a module counts as its own."""

from __future__ import annotations

from .._tensor import Tensor
from ..errors import DTypeError, StateError


class Parameter(Tensor):
    """A tensor that a `Module` registers when it is assigned as an attribute.

    A parameter shares the elements of `data`. There is no autograd, so `requires_grad` is False here,
    where torch's is True.

    Parameters
    ----------
    data : Tensor
        The elements, of any shape, dtype and device.
    requires_grad : bool
        False; it is taken so that code written for torch runs.

    Raises
    ------
    DTypeError
        If `data` is not a tensor.
    StateError
        If `requires_grad` is True.
    """

    __slots__ = ()

    def __new__(cls, data: Tensor, requires_grad: bool = False) -> Parameter:
        if not isinstance(data, Tensor):
            raise DTypeError(f"Parameter: got {type(data).__name__}, expected a Tensor")
        if requires_grad:
            raise StateError("Parameter: got requires_grad=True, expected False: TensorPlay has no autograd")
        return data.detach()._as(cls)

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()
