"""Where a captured call reads its arguments, and where its results come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorplay
from tensorplay import Device, Tensor, _shape

from ._graphed import GraphedCall
from ._history import memory_snapshot
from ._signature import CONSTANTS, Refusal
from ._tree import unflatten


class Buffer:
    """Memory with the layout of an argument. Dimensions that `expand` has made are copied once, not size times."""

    __slots__ = ("_shape", "_strides", "place", "target", "tensor")

    def __init__(self, place: int, argument: Tensor) -> None:
        self.place = place
        shape, strides = argument.shape, argument.stride()
        self.tensor = tensorplay.empty_strided(shape, strides, dtype=argument.dtype, device=argument.device)
        self._shape: tuple[int, ...] | None = None
        self._strides = strides
        self.target = self.tensor
        if 0 in strides:
            self._shape = tuple(min(size, 1) if step == 0 else size for size, step in zip(shape, strides, strict=True))
            self.target = self.source(self.tensor)
        if _shape.is_overlapping(self.target.shape, strides):
            raise Refusal(f"elements of argument {place} share memory: got shape {shape} and strides {strides}")

    def source(self, argument: Tensor) -> Tensor:
        """What is copied to `target`: the argument, or its elements that are not repeated."""
        return argument if self._shape is None else argument.as_strided(self._shape, self._strides)


class Results:
    """How the result of a call is made after each replay.

    A tensor that the graph writes comes as a copy in C order, or as it is. A view of an argument is that view of the
    argument that was given, as without a graph. A tensor that was there before the capture is the same object.

    Parameters
    ----------
    call : GraphedCall
    buffers : list of Tensor
        Those of the arguments.
    device : int
    clones : bool
        Whether tensors that the graph writes are copied.

    Raises
    ------
    Refusal
        The result holds something else than tensors of the device, numbers and text.
    """

    __slots__ = ("_clones", "_device", "_makers", "_places", "_pool", "_storages", "_structure")

    def __init__(self, call: GraphedCall, buffers: list[Tensor], device: int, clones: bool) -> None:
        self._structure, self._device, self._clones = call.structure, device, clones
        first, second = call.graph.pool()
        self._pool = [(one["address"], one["address"] + one["total_size"]) for one in memory_snapshot((first, second))]
        self._storages = [_storage(buffer) for buffer in buffers]
        self._places: dict[int, int] = {}
        self._makers = [self._maker(place, leaf, buffers) for place, leaf in enumerate(call.leaves)]

    def make(self, arguments: list[Tensor]) -> Any:
        """The result of the replay that was queued last."""
        made: list[Any] = []
        for maker in self._makers:
            made.append(maker(arguments, made))
        return unflatten(made, self._structure)

    def _maker(self, place: int, leaf: Any, buffers: list[Tensor]) -> Callable[[list[Tensor], list[Any]], Any]:
        """Makes one leaf from the arguments and the leaves before it."""
        earlier = self._places.setdefault(id(leaf), place)
        if earlier < place:
            return lambda arguments, made: made[earlier]
        if not isinstance(leaf, Tensor):
            if not isinstance(leaf, (*CONSTANTS, float, complex)):
                raise Refusal(f"the result holds a {type(leaf).__name__}, expected tensors, numbers and text")
            return lambda arguments, made: leaf
        if leaf.device != Device("cuda", self._device):
            raise Refusal(f"the result holds a tensor on {leaf.device}, expected one on cuda:{self._device}")
        storage = _storage(leaf)
        if storage in self._storages:
            number = self._storages.index(storage)
            buffer = buffers[number]
            if leaf is buffer:
                return lambda arguments, made: arguments[number]
            if leaf.dtype is buffer.dtype:
                shape, strides, shift = leaf.shape, leaf.stride(), leaf.storage_offset() - buffer.storage_offset()
                return lambda arguments, made: arguments[number].as_strided(
                    shape, strides, arguments[number].storage_offset() + shift
                )
        elif not any(start <= leaf.data_ptr() < end for start, end in self._pool):
            return lambda arguments, made: leaf
        return (lambda arguments, made: leaf.clone()) if self._clones else (lambda arguments, made: leaf)


def _storage(tensor: Tensor) -> int:
    return tensor._backend.storage_id(tensor._impl)
