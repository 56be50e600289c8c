"""What a captured call depends on: of tensors all but their elements, of everything else the value."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import tensorplay
from tensorplay import Device, DType, Tensor
from tensorplay.nn import Module

from ._library import native
from ._tree import flatten, unflatten
from .device import current_device

#: What is told apart by its value, beside fractions.
CONSTANTS = (bool, int, str, bytes, type(None), DType, Device)


class Refusal(Exception):  # noqa: N818 - it is caught, and becomes a reason
    """Why a call cannot be captured."""


class Signature:
    """The arguments of one call.

    Raises
    ------
    Refusal
        An argument is none that could be compared, or lies on another device than the others.

    Attributes
    ----------
    key : hashable
        Equal for calls that one graph can serve. Settings that change results are part of it.
    tensors : list of Tensor
        In their order.
    places : list of int
        Which arguments they are, where all leaves are counted.
    modules : list of Module
        Those among the arguments.
    device : int
        Where the tensors lie; the current device without tensors.
    current : int
        The current device, which the function may ask for, and which is part of the key.
    """

    __slots__ = ("_leaves", "_structure", "current", "device", "key", "modules", "places", "tensors")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._leaves, self._structure = flatten((args, dict(sorted(kwargs.items()))))
        self.places: list[int] = []
        self.tensors: list[Tensor] = []
        self.modules: list[Module] = []
        parts = [self._part(place, leaf) for place, leaf in enumerate(self._leaves)]
        # Numbers, for speed: every call comes by here.
        devices = {native.tp_tensor_device(tensor._impl) if tensor.is_cuda else -1 for tensor in self.tensors}
        if len(devices) > 1 or -1 in devices:
            places = sorted({str(tensor.device) for tensor in self.tensors})
            raise Refusal(f"the arguments lie on {', '.join(places)}, expected one CUDA device")
        self.current = current_device()
        self.device: int = devices.pop() if devices else self.current
        settings = tensorplay.get_default_dtype(), tensorplay.get_float32_matmul_precision()
        self.key: Hashable = (self._structure, self.device, self.current, settings, *parts)

    def _part(self, place: int, leaf: Any) -> Hashable:
        if isinstance(leaf, Tensor):
            self.places.append(place)
            self.tensors.append(leaf)
            return leaf.dtype, leaf.shape, None if leaf.is_contiguous() else leaf.stride()
        if isinstance(leaf, Module):
            self.modules.append(leaf)
            return leaf
        if isinstance(leaf, (float, complex)):
            return type(leaf), repr(leaf)  # NaN equals itself so, and -0.0 is not 0.0
        if isinstance(leaf, CONSTANTS):
            return type(leaf), leaf
        raise Refusal(
            f"argument {place} is a {type(leaf).__name__}, expected a tensor, a module, a number or text, or tuples, "
            "lists and dicts of them"
        )

    def with_tensors(self, tensors: list[Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same arguments with other tensors."""
        leaves = list(self._leaves)
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        args, kwargs = unflatten(leaves, self._structure)
        return args, kwargs
