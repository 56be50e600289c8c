"""Functions whose work is captured once: each call copies its arguments into the captured memory, and replays."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

from tensorplay import Tensor, _shape
from tensorplay.errors import DTypeError, InvalidArgumentError, StateError

from . import _beside
from ._capture import graph
from ._current import current_stream, stream
from ._graph import CUDAGraph
from ._mempool import PoolId, graph_pool_handle
from ._tree import flatten, unflatten
from .device import device as device_context
from .streams import Stream


class GraphedCall:
    """The graph of one call.

    Parameters
    ----------
    call : callable
        Runs the function once on the buffers; it is captured.
    buffers : list of Tensor
        What the function reads its arguments from, in each replay.
    pool : PoolId, pair or CUDAGraph
        Where the capture allocates.

    Attributes
    ----------
    graph : CUDAGraph
    leaves : list
        The tensors of the result, which each replay overwrites, and whatever else it holds.
    """

    __slots__ = ("buffers", "graph", "leaves", "structure")

    def __init__(self, call: Callable[[], Any], buffers: list[Tensor], pool: Any) -> None:
        self.buffers = buffers
        self.graph = CUDAGraph()
        # Other threads may go on with what a capture forbids: nothing here depends on it.
        with _WholeCapture(self.graph, pool=pool, capture_error_mode="thread_local"):
            result = call()
        self.leaves, self.structure = flatten(result)

    def replay(self, inputs: list[Tensor]) -> None:
        """Copies the inputs into the buffers and runs the graph, on the current stream of its device."""
        self.graph.stage_and_launch(self.buffers, inputs)

    def result(self) -> Any:
        """What the function returned, with the tensors of the capture."""
        return unflatten(self.leaves, self.structure)


class _WholeCapture(graph):
    """A capture that is refused, where another warns, if a part of its block's work ran at once."""

    def _end(self) -> None:
        self._graph._end()
        missed = _beside.describe(self._graph._pointer)
        if missed:
            raise StateError(f"capture: {missed}")


def warm_up(call: Callable[[], Any], side: Stream) -> Any:
    """Runs a function on a side stream, behind the current stream, which waits for it: the function's result.

    What is made by its first calls is there before a capture, where it could not be made.
    """
    here = current_stream(side.device)
    side.wait_stream(here)
    try:
        with stream(side):
            result = call()
    finally:
        here.wait_stream(side)
    for leaf in flatten(result)[0]:
        if isinstance(leaf, Tensor) and leaf.device == side.device:
            leaf.record_stream(here)
    return result


def make_graphed_callables(
    callables: Any,
    sample_args: tuple[Any, ...],
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: PoolId | Any = None,
) -> Any:
    """Functions or modules that replay a graph in place of their work: for inference, as there is no autograd.

    Each is captured once, with its sample arguments. From then on a call copies its arguments into these very tensors
    and replays; it takes the same shapes, dtypes and device. Results are the tensors of the capture: the next call of
    the same callable overwrites them.

    Parameters
    ----------
    callables : callable, Module, or tuple of them
        Several share memory, so no two of them may run at the same time, on streams that do not wait for each other. A
        module's own ``forward`` is replaced; in the other mode of `train` and `eval` it runs the former one.
    sample_args : tuple of Tensor, or tuple of those
        Positional arguments of the one callable, or of each. Tensors on one device, in tuples, lists and dicts as well.
        One that stands for several arguments needs one tensor for them in each call; others share no memory.
    num_warmup_iters : int
        Calls before the capture, on a side stream. What they change stays changed.
    allow_unused_input : bool
        Changes nothing: only gradients could miss an input.
    pool : PoolId, pair or CUDAGraph, optional
        Where the captures allocate; a pool of their own when left out.

    Returns
    -------
    callable or tuple of callables
        As `callables` was given; modules are the same objects.
    """
    several = isinstance(callables, tuple)
    functions = callables if several else (callables,)
    samples = sample_args if several else (sample_args,)
    if not isinstance(samples, tuple):
        name = type(samples).__name__
        raise DTypeError(f"make_graphed_callables: got a {name}, expected a tuple of tuples of tensors")
    if len(samples) != len(functions):
        raise InvalidArgumentError(
            f"make_graphed_callables: got {len(samples)} tuples of sample arguments for {len(functions)} callables"
        )
    shared = graph_pool_handle() if pool is None else pool
    made = [_Graphed(*pair) for pair in zip(functions, samples, strict=True)]
    for graphed in made:
        graphed.warm_up(num_warmup_iters)
    for graphed in made:
        graphed.capture(shared)
    results = tuple(graphed.replace() for graphed in made)
    return results if several else results[0]


class _Graphed:
    """One callable with its buffers."""

    def __init__(self, function: Any, sample: Any) -> None:
        if not callable(function):
            raise DTypeError(f"make_graphed_callables: got {function!r}, expected a callable")
        if not isinstance(sample, tuple):
            name = type(sample).__name__
            raise DTypeError(f"make_graphed_callables: got a {name} as sample arguments, expected a tuple of tensors")
        self.function, self.sample = function, sample
        self.buffers, self.structure = flatten(sample)
        for leaf in self.buffers:
            if not isinstance(leaf, Tensor) or not leaf.is_cuda:
                what = f"a tensor on {leaf.device}" if isinstance(leaf, Tensor) else repr(leaf)
                raise DTypeError(f"make_graphed_callables: got {what} as a sample argument, expected a CUDA tensor")
            if _shape.is_overlapping(leaf.shape, leaf.stride()):
                raise InvalidArgumentError(
                    f"make_graphed_callables: got a sample argument of shape {leaf.shape} and strides {leaf.stride()}, "
                    f"whose elements share memory as expand makes them, expected separate elements: use clone()"
                )
        first: dict[tuple[Any, ...], int] = {}
        places = [(first.setdefault(_memory(leaf), place), place) for place, leaf in enumerate(self.buffers)]
        self.repeated = [(earlier, place) for earlier, place in places if earlier != place]
        for (one, a), (other, b) in combinations(((place, self.buffers[place]) for place in first.values()), 2):
            if _meet(a, b):
                raise InvalidArgumentError(
                    f"make_graphed_callables: got sample arguments {one} and {other} that share memory, where each "
                    f"call would write one over the other, expected separate ones: use clone()"
                )
        devices = {leaf.device.index for leaf in self.buffers}
        if len(devices) > 1:
            raise InvalidArgumentError(
                f"make_graphed_callables: got sample arguments on devices {sorted(devices)}, expected one device"
            )
        self.device = devices.pop() if devices else current_stream().device_index
        if getattr(function, "_forward_pre_hooks", None) or getattr(function, "_forward_hooks", None):
            raise StateError("make_graphed_callables: the module has hooks, which no replay would call: remove them")

    def _call(self) -> Any:
        return self.function(*self.sample)

    def warm_up(self, times: int) -> None:
        with device_context(self.device):
            side = Stream()
            for _ in range(times):
                warm_up(self._call, side)

    def capture(self, pool: Any) -> None:
        with device_context(self.device):
            self.call = GraphedCall(self._call, self.buffers, pool)

    def __call__(self, *args: Any) -> Any:
        inputs, structure = flatten(args)
        if structure != self.structure:
            raise InvalidArgumentError("graphed callable: the arguments are not built like the sample arguments")
        for place, (given, buffer) in enumerate(zip(inputs, self.buffers, strict=True)):
            if not isinstance(given, Tensor) or _kind(given) != _kind(buffer):
                got = "{} of shape {} on {}".format(*_kind(given)) if isinstance(given, Tensor) else repr(given)
                wanted = "{} of shape {} on {}".format(*_kind(buffer))
                raise InvalidArgumentError(f"graphed callable: got {got} as argument {place}, expected {wanted}")
        for earlier, place in self.repeated:
            if _memory(inputs[earlier]) != _memory(inputs[place]):
                raise InvalidArgumentError(
                    f"graphed callable: got two tensors as arguments {earlier} and {place}, expected one for both, as "
                    f"their sample arguments are one"
                )
        self.call.replay(inputs)
        return self.call.result()

    def replace(self) -> Any:
        """What takes the place of the callable: a module itself, else this object."""
        from tensorplay.nn import Module  # Imported here: whoever has no module need not load it.

        if not isinstance(self.function, Module):
            return self
        module, former, training = self.function, self.function.forward, self.function.training

        def forward(*args: Any, **kwargs: Any) -> Any:
            return self(*args, **kwargs) if module.training == training else former(*args, **kwargs)

        module.forward = forward  # type: ignore[method-assign]
        return module


def _kind(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tensor.shape, tensor.device


def _meet(a: Tensor, b: Tensor) -> bool:
    """Whether elements of both may lie in one place: parts of one layout are told apart, others by their ranges."""
    distance = b.data_ptr() - a.data_ptr()
    if _memory(a)[1:] == _memory(b)[1:] and distance % a.itemsize == 0:
        return _shape.is_overlapping((2, *a.shape), (abs(distance) // a.itemsize, *a.stride()))
    return -_reach(b) < distance < _reach(a)


def _reach(tensor: Tensor) -> int:
    """Bytes from the first element to behind the last one."""
    steps = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return (steps + 1) * tensor.itemsize if tensor.numel() else 0


def _memory(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype
