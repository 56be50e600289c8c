"""A backend's own check and `tensorplay._operands` agree: both accept, or both refuse.

Native code checks operands by itself and asks `_operands` only how to word a refusal. Here random operands,
good and bad ones, go through both.
"""

from __future__ import annotations

from typing import Any

import pytest
from helpers.operands import DTYPES, place, seeds, values
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorplay
from tensorplay import _operands, _plugins, _tables
from tensorplay.errors import InternalError, SizeOverflowError, TensorPlayError

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
many = settings(max_examples=100)

sizes = st.sampled_from([0, 1, 1, 2, 2, 3])
shapes = st.lists(sizes, max_size=3).map(tuple)
dims = st.integers(-4, 4)
# Mostly the dtypes and shapes that most operations take, or nothing would be accepted.
dtypes = st.sampled_from([*DTYPES, tensorplay.float32, tensorplay.float32, tensorplay.float32, tensorplay.int64])
scalars = st.one_of(
    st.booleans(),
    st.integers(-5, 5),
    st.floats(-5, 5),
    st.sampled_from([2**63, -(2**63), 2**63 - 1, float("inf"), 2 - 1j]),
)


class Draw:
    """Random arguments on one device."""

    def __init__(self, data: st.DataObject, device: str, seed: int) -> None:
        self.data = data
        self.device = device
        self.seed = seed

    def __call__(self, strategy: st.SearchStrategy[Any]) -> Any:
        return self.data.draw(strategy)

    def tensor(self, dtype: tensorplay.DType | None = None, shape: tuple[int, ...] | None = None) -> tensorplay.Tensor:
        """A tensor, perhaps transposed or expanded; indices lie inside every dimension of 1 or more."""
        self.seed += 1
        dtype = self(dtypes) if dtype is None else dtype
        shape = self(shapes) if shape is None else shape
        if dtype in (tensorplay.int32, tensorplay.int64):
            made = tensorplay.zeros(shape, dtype=dtype, device=self.device)
        else:
            made = place(values(shape, dtype, self.seed), dtype, self.device)
        if self(st.integers(0, 9)) == 9:  # elements that share memory
            made = made[tuple(slice(0, 1) for _ in shape)].expand(shape) if all(shape) else made
        return made.T if self(st.booleans()) else made

    def maybe(self, value: Any) -> Any:
        """The value, or None."""
        return value if self(st.booleans()) else None


def arguments(draw: Draw, method: str) -> tuple[Any, ...]:
    """Arguments of a method of the backend: many are good, many are not."""
    x = draw.tensor()
    near = draw(st.sampled_from([x.shape, x.shape[-1:], x.shape[::-1], draw(shapes)]))
    y = draw.tensor(draw(st.sampled_from([x.dtype, draw(dtypes)])), near)
    out = draw.maybe(draw.tensor(draw(dtypes), draw(st.sampled_from([x.shape, near]))))
    if method == "unary":
        return draw(st.sampled_from(list(_tables.UNARY))), x, out
    if method == "binary":
        other = draw(st.sampled_from([y, draw(scalars)]))
        pair = (x, other) if draw(st.booleans()) else (other, x)
        return draw(st.sampled_from(list(_tables.BINARY))), *pair, out
    if method == "where":
        return draw.tensor(draw(st.sampled_from([tensorplay.bool, draw(dtypes)])), near), x, y, out
    if method == "reduce":
        axes = draw(st.none() | st.lists(dims, max_size=3).map(tuple))
        op = draw(st.sampled_from(list(_tables.REDUCE)))
        return op, x, axes, draw(st.booleans()), draw.maybe(draw(dtypes)), out
    if method in ("arg_reduce", "scan", "argsort"):
        op = draw(st.sampled_from(list(_tables.SCAN if method == "scan" else _tables.ARG_REDUCE)))
        if method == "scan":
            return op, x, draw(dims), draw.maybe(draw(dtypes)), out
        return (op, x, draw.maybe(draw(dims)), draw(st.booleans())) if method == "arg_reduce" else (x, draw(dims), True)
    if method == "softmax":
        return x, draw(dims), draw(st.booleans())
    if method == "layer_norm":
        tail = draw(st.sampled_from([x.shape[-1:], x.shape, near]))
        weight = draw.maybe(draw.tensor(x.dtype, draw(st.sampled_from([tail, near]))))
        return x, tail, weight, draw.maybe(y), 1e-5
    if method in ("index_select", "embedding"):
        # No dimension is 0, or the index 0 would be a fault of the device, which is another matter.
        x = draw.tensor(shape=draw(shapes.filter(all)))
    if method == "index_select":
        return x, draw(dims), draw.tensor(draw(st.sampled_from([tensorplay.int64, tensorplay.int32, x.dtype])))
    if method == "embedding":
        return x, draw.tensor(draw(st.sampled_from([tensorplay.int64, tensorplay.int32, x.dtype])))
    indices = st.sampled_from([tensorplay.int64, tensorplay.int64, tensorplay.int32, x.dtype])
    if method in ("gather", "scatter_"):
        along = draw.tensor(shape=draw(shapes.filter(all)))
        index = draw.tensor(draw(indices), draw(st.sampled_from([along.shape, along.shape, draw(shapes)])))
        if method == "gather":
            return along, draw(dims), index
        shape = draw(st.sampled_from([index.shape, along.shape, draw(shapes)]))
        return along, draw(dims), index, draw.tensor(draw(st.sampled_from([along.dtype, x.dtype])), shape), x.ndim == 1
    if method in ("index", "index_put_"):
        shape = draw(st.sampled_from([(), (1,), (2,), (2, 1)]))
        entries = [
            draw.maybe(draw.tensor(draw(indices), draw(st.sampled_from([shape, shape, near]))))
            for _ in range(draw(st.integers(0, 3)))
        ]
        return (x, entries) if method == "index" else (x, entries, draw.tensor(x.dtype, draw(shapes)), y.ndim == 1)
    if method == "matmul":
        return x, draw(st.sampled_from([y, x.mT if x.ndim > 1 else x])), out
    if method == "addmm":
        z = draw.tensor(draw(st.sampled_from([x.dtype, draw(dtypes)])), draw(st.sampled_from([x.shape[:1], near, ()])))
        return z, x, draw(st.sampled_from([y, x.mT if x.ndim > 1 else x])), draw(st.sampled_from([0.0, 1.0])), 1.0, out
    if method in ("linear", "linear_gelu"):
        operands = x, y, draw.maybe(draw.tensor(x.dtype, draw(st.sampled_from([y.shape[:1], near]))))
        return operands if method == "linear" else (draw(st.sampled_from(["gelu", "gelu_tanh"])), *operands)
    if method in ("view", "reshape", "expand"):
        numel = [x.numel()] if x.numel() else [0]
        return x, draw(st.lists(st.sampled_from([-1, 1, 2, 3, 2**40, *numel, *x.shape]), max_size=4).map(tuple))
    if method == "view_dtype":
        return x, draw(dtypes)
    if method == "flip":
        return x, draw(st.lists(dims, max_size=3).map(tuple))
    if method == "permute":
        return x, draw(st.permutations(range(x.ndim)).map(tuple) | st.lists(dims, max_size=3).map(tuple))
    if method == "transpose":
        return x, draw(dims), draw(dims)
    if method in ("select", "slice"):
        return (x, draw(dims), draw(dims)) if method == "select" else (x, draw(dims), 0, draw(st.integers(0, 1)), 1)
    if method == "as_strided":
        steps = draw(st.lists(st.integers(-1, 3), max_size=3).map(tuple))
        return x, draw(st.lists(st.integers(0, 3), min_size=len(steps), max_size=3).map(tuple)), steps, draw(dims)
    if method == "copy_":
        return x, y
    if method in ("uniform_", "normal_"):
        return x, draw(st.floats(-5, 5)), draw(st.floats() | st.floats(-5, 5))
    if method == "random_bits_":
        return (x,)
    numbers = scalars | st.complex_numbers(max_magnitude=5)
    if method == "fill_":
        return x, draw(numbers)
    if method == "full":
        return x.shape, draw(numbers), x.dtype, x.device
    if method == "arange":
        return draw(numbers), draw(numbers), draw(st.integers(-1, 3)), x.dtype, x.device
    if method == "empty":
        size = st.sampled_from([-1, 0, 1, 2, 2**31, 2**40, 2**62, 2**63])
        shape = draw(st.lists(size, max_size=3).map(tuple))
        return shape, draw(dtypes), tensorplay.device(f"{draw.device}:{draw(st.integers(0, 3))}")
    assert method in ("squeeze", "unsqueeze")
    return x, draw(dims)


METHODS = [
    "unary", "binary", "where", "reduce", "arg_reduce", "scan", "argsort", "softmax", "layer_norm", "index_select",
    "embedding", "matmul", "addmm", "linear", "linear_gelu", "view", "reshape", "transpose", "permute", "expand",
    "slice", "select", "unsqueeze", "squeeze", "as_strided", "view_dtype", "flip", "copy_", "fill_", "full", "arange",
    "empty", "uniform_", "normal_", "random_bits_", "gather", "scatter_", "index", "index_put_",
]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@many
@given(data=st.data(), seed=seeds)
def test_both_accept_or_both_refuse(device: str, method: str, data: st.DataObject, seed: int) -> None:
    given_ = arguments(Draw(data, device, seed), method)
    spec: Any = None
    refusal = None
    try:
        spec = getattr(_operands, method)(*given_)
    except TensorPlayError as error:
        refusal = error
    try:
        result = getattr(_plugins.get(device), method)(*given_)
    except tensorplay.OutOfMemoryError:
        assert refusal is None
        return
    except TensorPlayError as error:
        assert not isinstance(error, InternalError), error
        if device == "cpu" and "the host has no room" in str(error):
            return  # See the last test.
        assert refusal is not None, f"the backend refuses what _operands accepts: {error}"
        assert (type(error), str(error)) == (type(refusal), str(refusal))
        return
    assert refusal is None, f"the backend accepts what _operands refuses: {refusal}"
    if isinstance(spec, _operands.Spec):
        assert result.shape == spec.shape
        out = given_[-1] if method in ("unary", "binary", "where", "reduce", "scan", "matmul", "addmm") else None
        assert result.dtype is (spec.dtype if out is None else out.dtype)


@pytest.mark.parametrize(("dtype", "shape"), [("bool", (2**40, 2**40, 0)), ("float64", (2**40, 2**20))])
def test_views_that_numpy_has_no_room_for(device: str, dtype: str, shape: tuple[int, ...]) -> None:
    x = tensorplay.zeros(*(min(size, 1) for size in shape), dtype=getattr(tensorplay, dtype), device=device)
    if device == "cpu":
        with pytest.raises(SizeOverflowError, match="expand: the host has no room: array is too big"):
            x.expand(shape)
    else:
        assert x.expand(shape).shape == shape
