"""What is refused is refused alike on every device: the same class, the same words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorplay
from tensorplay.errors import InternalError, InvalidArgumentError, TensorPlayError
from tensorplay.nn import functional

F32, F16, I64, BOOL = tensorplay.float32, tensorplay.float16, tensorplay.int64, tensorplay.bool


def ones(device: str, *shape: int, dtype: tensorplay.DType = F32) -> tensorplay.Tensor:
    return tensorplay.ones(*shape, dtype=dtype, device=device)


CASES: dict[str, Callable[[str], Any]] = {
    "empty: negative": lambda d: tensorplay.empty(-1, device=d),
    "empty: overflow": lambda d: tensorplay.empty(2**62, device=d),
    "empty: dimensions": lambda d: tensorplay.empty((1,) * 17, device=d),
    "full: beyond int64": lambda d: tensorplay.full((1,), 2**64, device=d),
    "fill_: beyond int64": lambda d: ones(d, 1).fill_(-(2**64)),
    "copy_: shape": lambda d: ones(d, 2, 3).copy_(ones(d, 3, 2)),
    "view: numel": lambda d: ones(d, 2, 3).view(4),
    "view: strides": lambda d: ones(d, 2, 3).T.view(6),
    "view: -1 twice": lambda d: ones(d, 2, 3).view(-1, -1),
    "reshape: numel": lambda d: ones(d, 2, 3).reshape(5, -1),
    "transpose: dimension": lambda d: ones(d, 2, 3).transpose(0, 2),
    "permute: twice": lambda d: ones(d, 2, 3).permute(0, 0),
    "permute: too few": lambda d: ones(d, 2, 3).permute(0),
    "expand: size": lambda d: ones(d, 2, 3).expand(4, 3),
    "expand: too few": lambda d: ones(d, 2, 3).expand(3),
    "select: index": lambda d: ones(d, 2, 3).select(1, 3),
    "select: no dimensions": lambda d: ones(d).select(0, 0),
    "unsqueeze: dimension": lambda d: ones(d, 2, 3).unsqueeze(4),
    "squeeze: dimension": lambda d: ones(d, 2, 3).squeeze(2),
    "as_strided: outside": lambda d: ones(d, 2, 3).as_strided((7,), (1,)),
    "neg: bool": lambda d: -ones(d, 2, dtype=BOOL),
    "sub: bool": lambda d: ones(d, 2, dtype=BOOL) - True,
    "add: shapes": lambda d: ones(d, 2, 3) + ones(d, 4),
    "add: beyond int64": lambda d: ones(d, 2) + 2**63,
    "add: in place, dtype": lambda d: ones(d, 2, dtype=I64).add_(0.5),
    "add: in place, shape": lambda d: ones(d, 2).add_(ones(d, 2, 2)),
    "mul: out, shape": lambda d: tensorplay.mul(ones(d, 2), 2, out=ones(d, 3)),
    "exp: out, dtype": lambda d: tensorplay.exp(ones(d, 2), out=ones(d, 2, dtype=I64)),
    "where: condition": lambda d: tensorplay.where(ones(d, 2), ones(d, 2), ones(d, 2)),
    "where: shapes": lambda d: tensorplay.where(ones(d, 2, dtype=BOOL), ones(d, 3), ones(d, 2)),
    "add: overflow": lambda d: ones(d, 1, dtype=BOOL).expand(2**61) + 1.0,
    "where: overflow": lambda d: tensorplay.where(ones(d, 1, dtype=BOOL).expand(2**61), ones(d), ones(d)),
    "argsort: overflow": lambda d: ones(d, 1, dtype=BOOL).expand(2**61).argsort(),
    "cumsum: overflow": lambda d: ones(d, 1, dtype=BOOL).expand(2**61).cumsum(0),
    "sum: dimension": lambda d: ones(d, 2).sum(1),
    "mean: integers": lambda d: ones(d, 2, dtype=I64).mean(),
    "amax: nothing": lambda d: ones(d, 2, 0).amax(1),
    "amin: twice": lambda d: ones(d, 2, 1).amin((1, -1)),
    "softmax: integers": lambda d: ones(d, 2, dtype=I64).softmax(0),
    "log_softmax: dimension": lambda d: ones(d, 2).log_softmax(-2),
    "layer_norm: shape": lambda d: (x := ones(d, 2, 3))._backend.layer_norm(x, (2,), None, None, 1e-5),
    "layer_norm: weight": lambda d: (x := ones(d, 2, 3))._backend.layer_norm(x, (3,), ones(d, 2), None, 1e-5),
    "layer_norm: dtypes": lambda d: (x := ones(d, 3))._backend.layer_norm(x, (3,), x.half(), None, 1e-5),
    "index_select: dtype": lambda d: ones(d, 2, 3).index_select(0, ones(d, 1)),
    "index_select: dimensions": lambda d: ones(d, 2, 3).index_select(0, ones(d, 1, 1, dtype=I64)),
    "embedding: weight": lambda d: (x := ones(d, 3))._backend.embedding(x, ones(d, 1, dtype=I64)),
    "matmul: inner": lambda d: ones(d, 2, 3) @ ones(d, 2, 3),
    "matmul: batches": lambda d: ones(d, 2, 2, 3) @ ones(d, 3, 3, 2),
    "matmul: dtypes": lambda d: ones(d, 2, 3) @ ones(d, 3, 2, dtype=F16),
    "matmul: bool": lambda d: ones(d, 2, 2, dtype=tensorplay.bool) @ ones(d, 2, 2, dtype=tensorplay.bool),
    "matmul: no dimensions": lambda d: ones(d, 2) @ ones(d),
    "linear: inner": lambda d: (x := ones(d, 2, 3))._backend.linear(x, ones(d, 2, 2), None),
    "linear: bias": lambda d: (x := ones(d, 2, 3))._backend.linear(x, x, ones(d, 3)),
    "linear_gelu: inner": lambda d: functional.linear_gelu(ones(d, 2, 3), ones(d, 2, 2), approximate="tanh"),
    "linear_gelu: weight": lambda d: functional.linear_gelu(ones(d, 2, 3), ones(d, 3)),
    "linear_gelu: bias": lambda d: functional.linear_gelu(ones(d, 2, 3), ones(d, 2, 3), ones(d, 3), "tanh"),
    "linear_gelu: integers": lambda d: functional.linear_gelu(ones(d, 3, dtype=I64), ones(d, 2, 3, dtype=I64)),
    "linear_gelu: dtypes": lambda d: functional.linear_gelu(ones(d, 3), ones(d, 2, 3, dtype=F16), None, "tanh"),
    "uniform_: limits": lambda d: ones(d, 2).uniform_(1, 0),
    "normal_: dtype": lambda d: ones(d, 2, dtype=I64).normal_(),
    "add: in place, expanded": lambda d: ones(d, 1).expand(3).add_(1),
    "exp: in place, expanded": lambda d: ones(d, 1).expand(3).exp_(),
    "mul: out, expanded": lambda d: tensorplay.mul(ones(d, 3), 2, out=ones(d).expand(3)),
    "sum: out, expanded": lambda d: tensorplay.sum(ones(d, 3, 2), 1, out=ones(d).expand(3)),
    "matmul: out, expanded": lambda d: tensorplay.matmul(ones(d, 3, 2), ones(d, 2), out=ones(d).expand(3)),
    "copy_: expanded": lambda d: ones(d, 1).expand(3).copy_(ones(d, 3)),
    "copy_: expanded, from the host": lambda d: ones(d, 1).expand(3).copy_(ones("cpu", 3)),
    "copy_: windows": lambda d: ones(d, 4).as_strided((2, 3), (1, 1)).copy_(ones(d, 3)),
    "uniform_: expanded": lambda d: ones(d, 1).expand(3).uniform_(),
    "normal_: expanded": lambda d: ones(d, 1).expand(3).normal_(),
    "item: elements": lambda d: ones(d, 2).item(),
}


def refusal(case: str, device: str) -> TensorPlayError:
    with pytest.raises(TensorPlayError) as caught:
        CASES[case](device)
    assert not isinstance(caught.value, InternalError), caught.value
    return caught.value


@pytest.mark.parametrize("case", CASES)
def test_refusals_are_worded_alike(device: str, case: str) -> None:
    error, host = refusal(case, device), refusal(case, "cpu")
    assert type(error) is type(host)
    assert str(error).replace("cuda:0", "cpu") == str(host)
    operation = case.partition(":")[0]
    assert str(host).startswith(f"{operation}: ")


def test_operands_on_different_devices_are_refused(two_devices: tuple[str, str]) -> None:
    for first, second in (two_devices, ("cpu", two_devices[1]), (two_devices[0], "cpu")):
        a, b = tensorplay.ones(2, device=first), tensorplay.ones(2, device=second)
        words = f"operands on different devices, got {first} and {second}, expected one device"
        for operation, call in {
            "add": lambda: a + b,  # noqa: B023
            "mul": lambda: a.mul_(b),  # noqa: B023
            "where": lambda: tensorplay.where(a > 0, a, b),  # noqa: B023
            "matmul": lambda: a @ b,  # noqa: B023
            "cat": lambda: tensorplay.cat([a, b]),  # noqa: B023
        }.items():
            with pytest.raises(InvalidArgumentError, match=f"{operation}: {words}"):
                call()
        assert a.tolist() == b.tolist() == [1.0, 1.0]


def test_a_host_tensor_without_dimensions_goes_along(device: str) -> None:
    two = tensorplay.tensor(2.0)
    x = tensorplay.ones(3, dtype=tensorplay.float16, device=device)
    for y in (x * two, two * x, x.mul_(two)):
        assert y.device == x.device
        assert y.dtype is tensorplay.float16
        assert y.tolist() == [2.0] * 3
    if device != "cpu":
        with pytest.raises(InvalidArgumentError, match="different devices"):
            tensorplay.ones(3) * x.sum()


@pytest.mark.parametrize("name", ["cpu", "cuda"])
def test_devices_that_do_not_exist_are_refused_when_they_are_used(name: str, two_devices: tuple[str, str]) -> None:
    visible = 1 if name == "cpu" else 2
    x = tensorplay.ones(2, device=name)
    for index in (visible, 99, 127, 128, 255, 256):
        place = tensorplay.device(f"{name}:{index}")
        for call in (
            lambda: tensorplay.empty(1, device=place),  # noqa: B023
            lambda: tensorplay.full((1,), 1.0, device=place),  # noqa: B023
            lambda: tensorplay.arange(3, device=place),  # noqa: B023
            lambda: tensorplay.tensor([1], device=place),  # noqa: B023
            lambda: x.to(place),  # noqa: B023
            lambda: tensorplay.ones(2).to(place),  # noqa: B023
        ):
            if name == "cuda" and index < tensorplay.cuda.device_count():
                continue
            with pytest.raises(InvalidArgumentError, match=f"device {index} asked for, .* visible"):
                call()


def test_an_error_keeps_no_tensor_alive(device: str) -> None:
    import gc
    import weakref

    gc.disable()
    try:
        x = tensorplay.ones(2, 3, device=device)
        seen = weakref.ref(x)
        try:
            x @ x
        except InvalidArgumentError as error:
            kept = error.with_traceback(None)
        del x
        assert seen() is None
        assert "matmul" in str(kept)
    finally:
        gc.enable()
