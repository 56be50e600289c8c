"""Whatever a program passes, it gets a result, an error of TensorPlay, or Python's own TypeError for a signature.

Random arguments, good and bad ones, go to every public function and method, on each device; the host's answer
is the right one.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tensorplay
import tensorplay.nn.functional as F
from tensorplay.errors import InternalError, TensorPlayError

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

# No number asks for as much memory as a machine just has.
PLAIN: list[Any] = [
    None, -1, 0, 1, 3, 17, 2**50, 2**63 - 1, 2**63, -(2**63), 2**64, -(2**70), float("nan"), float("inf"), 1.5, True,
    "x", "cuda:9", "", b"a", (), [], (0,), (-1,), (1,) * 17, (2**40, 2**40), (1.5,), [None], {}, object(), 1 + 2j,
    tensorplay.float16, tensorplay.bool, "float32", np.float64(2), np.int64(-3), np.array([1, 2]), np.array(3),
    np.complex64(1), slice(None), ..., range(3), {1, 2},
]  # fmt: skip
TENSORS: list[Callable[[str], tensorplay.Tensor]] = [
    lambda d: tensorplay.ones(2, 3, device=d),
    lambda d: tensorplay.ones(3, device=d),
    lambda d: tensorplay.ones(2, 3, dtype=tensorplay.int64, device=d),
    lambda d: tensorplay.ones(2, 3, dtype=tensorplay.bool, device=d),
    lambda d: tensorplay.ones((), device=d),
    lambda d: tensorplay.ones(0, 3, device=d),
    lambda d: tensorplay.ones(2, 3, dtype=tensorplay.float16, device=d).transpose(0, 1),
    lambda d: tensorplay.zeros(1, device=d).expand(2, 3),
    lambda d: tensorplay.zeros(3, dtype=tensorplay.int64, device=d),
    lambda d: tensorplay.ones((1,) * 16, device=d),
    lambda d: tensorplay.zeros(2, 3, device=d)[:, ::2],
]
FILES = ("load", "save")
# They change what other tests see.
SETTINGS = ("set_default_dtype", "set_float32_matmul_precision", "set_printoptions")
OPERATORS = [
    "__add__", "__radd__", "__iadd__", "__pow__", "__rpow__", "__matmul__", "__and__", "__eq__", "__getitem__",
    "__setitem__", "__contains__", "__len__", "__int__", "__float__", "__index__", "__bool__",
]  # fmt: skip
CALLS: dict[str, Callable[..., Any]] = {
    **{n: getattr(tensorplay, n) for n in tensorplay.__all__ if n not in (*FILES, *SETTINGS)},
    **{f"nn.functional.{n}": getattr(F, n) for n in F.__all__},
    **{f"Tensor.{n}": getattr(tensorplay.Tensor, n) for n in dir(tensorplay.Tensor) if not n.startswith("_")},
    **{f"Tensor.{n}": getattr(tensorplay.Tensor, n) for n in OPERATORS},
}
CALLS = {name: call for name, call in CALLS.items() if inspect.isfunction(call)}
# Their answer is another one on purpose: only the host's memory is NumPy's, and can be pinned.
OF_THE_HOST = ("Tensor.numpy", "Tensor.pin_memory", "pin_memory")
# Told by the address, or by a stream of CUDA.
OTHERWISE = ("Tensor.data_ptr", "Tensor.record_stream")

arguments = st.lists(st.integers(0, len(PLAIN) - 1) | st.integers(-len(TENSORS), -1), max_size=5)


def answer(call: Callable[..., Any], device: str, chosen: list[int], options: dict[str, int]) -> tuple[Any, ...]:
    """What comes of a call; tensors among the arguments are negative."""

    def made(number: int) -> Any:
        return TENSORS[-number - 1](device) if number < 0 else PLAIN[number]

    try:
        result = call(*map(made, chosen), **{name: made(number) for name, number in options.items()})
        if device == "cuda":
            tensorplay.cuda.synchronize()  # An index outside its range is told now, also one that was written to.
        if isinstance(result, tensorplay.Tensor):
            return "tensor", result.shape, result.dtype
        return ("result", type(result))
    except TensorPlayError as error:
        assert not isinstance(error, InternalError), error
        if isinstance(error, MemoryError):
            return ("error", MemoryError)  # Each device tells of its own memory.
        words = re.sub(r",\s+device='cuda:0'", "", str(error)).replace("cuda:0", "cpu")
        return ("error", type(error), words)
    except TypeError:
        return ("error", TypeError)


def check_answers(device: str, name: str, chosen: list[int], first: int, data: st.DataObject) -> None:
    call = CALLS[name]
    if name.startswith("Tensor.") or data.draw(st.integers(0, 4)):
        chosen = [first, *chosen]
    named = [p.name for p in inspect.signature(call).parameters.values() if p.kind is p.KEYWORD_ONLY]
    named = [name for name in named if name != "pin_memory"]
    options = {key: data.draw(st.integers(-len(TENSORS), len(PLAIN) - 1)) for key in named if data.draw(st.booleans())}
    if name in OF_THE_HOST:
        device, options = "cpu", {}
    found = answer(call, device, chosen, options)
    if name not in OTHERWISE:
        assert found == answer(call, "cpu", chosen, options)


# Hypothesis lays its settings for each parameter of a test over those for the one before, and looks through all of
# them: several tests, so that their number stays below Python's limit of recursion.
some = settings(max_examples=15, suppress_health_check=list(HealthCheck))
any_arguments = given(chosen=arguments, first=st.integers(-len(TENSORS), -1), data=st.data())


@pytest.mark.parametrize("name", [name for name in CALLS if "." not in name])
@some
@any_arguments
def test_every_function_answers(device: str, name: str, chosen: list[int], first: int, data: st.DataObject) -> None:
    check_answers(device, name, chosen, first, data)


@pytest.mark.parametrize("name", [name for name in CALLS if name.startswith("nn.")])
@some
@any_arguments
def test_every_function_of_nn_answers(
    device: str, name: str, chosen: list[int], first: int, data: st.DataObject
) -> None:
    check_answers(device, name, chosen, first, data)


@pytest.mark.parametrize("name", [name for name in CALLS if name.startswith("Tensor.")])
@some
@any_arguments
def test_every_method_answers(device: str, name: str, chosen: list[int], first: int, data: st.DataObject) -> None:
    check_answers(device, name, chosen, first, data)
