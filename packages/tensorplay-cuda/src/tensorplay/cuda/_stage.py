"""`CUDAGraph.stage_and_launch`: what it does where C refuses, or takes no such arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tensorplay import _dispatch, _operands
from tensorplay.errors import DTypeError, InvalidArgumentError, TensorPlayError

from ._check import check, failure
from ._library import native

if TYPE_CHECKING:
    from tensorplay import Tensor

    from ._graph import CUDAGraph

_OPERATION = "stage_and_launch"


def explain(static_inputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
    """Finds what is wrong with the arguments, whatever the graph is like.

    Raises
    ------
    InvalidArgumentError
        The lists differ in length.
    TensorPlayError
        `copy_` would refuse a pair, with its words.
    """
    _dispatch.check_tensor(_OPERATION, *static_inputs, *inputs)
    if len(static_inputs) != len(inputs):
        raise InvalidArgumentError(
            f"{_OPERATION}: got {len(inputs)} inputs for {len(static_inputs)} static inputs, expected as many"
        )
    for i, (static, fresh) in enumerate(zip(static_inputs, inputs, strict=True)):
        try:
            _operands.copy_(static, fresh)
        except TensorPlayError as error:
            raise type(error)(f"{_OPERATION}: pair {i}: {error}") from None


def refuse(static_inputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
    """Raises for what C has refused: as `explain`, or with C's words where no pair is at fault."""
    error = failure()  # before other calls can fail
    try:
        explain(static_inputs, inputs)
        raise error
    finally:
        del error  # whose traceback would hold this frame, and the frame the tensors


def by_copies(graph: CUDAGraph, static_inputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
    """The same with tensors of other backends: each pair by `copy_`, in the order of the list."""
    static_inputs, inputs = _listed(static_inputs), _listed(inputs)
    explain(static_inputs, inputs)
    check(native.tp_graph_follow(graph._pointer, native.NULL))  # an earlier launch may be reading them
    for static, fresh in zip(static_inputs, inputs, strict=True):
        _dispatch.copy_(static, fresh)
    graph.replay()


def _listed(tensors: Any) -> list[Tensor]:
    if not isinstance(tensors, Iterable):
        raise DTypeError(f"{_OPERATION}: got {type(tensors).__name__}, expected a sequence of tensors")
    return list(tensors)
