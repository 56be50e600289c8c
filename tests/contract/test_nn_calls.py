"""What a composed function asks of a device: so many kernels at most, and never to wait."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tensorplay
from tensorplay import cuda
from tensorplay.nn import functional

Tensors = dict[str, tensorplay.Tensor]

WAITING = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cudaMemcpyAsync", "cudaMemcpy")

#: Kernels of each function.
MOST: list[tuple[str, int, Callable[[Tensors], object]]] = [
    ("a linear layer", 1, lambda t: functional.linear(t["rows"], t["square"], t["row"])),
    ("a linear layer and GELU", 2, lambda t: functional.linear_gelu(t["rows"], t["square"], t["row"], "tanh")),
    ("a convolution", 2, lambda t: functional.conv2d(t["image"], t["filters"])),
    (
        "a convolution with padding and bias",
        4,
        lambda t: functional.conv2d(t["image"], t["filters"], t["four"], padding=1),
    ),
    ("a convolution of points", 1, lambda t: functional.conv2d(t["image"], t["points"])),
    ("largest elements", 1, lambda t: functional.max_pool2d(t["image"], 2)),
    ("means", 1, lambda t: functional.avg_pool2d(t["image"], 2)),
    ("a mean of all", 1, lambda t: functional.adaptive_avg_pool2d(t["image"], 1)),
    ("unequal parts", 40, lambda t: functional.adaptive_avg_pool2d(t["image"], 3)),
    ("layer norm", 1, lambda t: functional.layer_norm(t["rows"], (16,), t["row"], t["row"])),
    ("rms norm", 6, lambda t: functional.rms_norm(t["rows"], (16,), t["row"])),
    ("group norm", 3, lambda t: functional.group_norm(t["image"], 2, t["four"], t["four"])),
    ("batch norm", 7, lambda t: functional.batch_norm(t["image"], *[t["four"]] * 4)),
    ("attention", 4, lambda t: functional.scaled_dot_product_attention(*[t["image"]] * 3)),
    ("causal attention", 8, lambda t: functional.scaled_dot_product_attention(*[t["image"]] * 3, is_causal=True)),
    ("cross entropy", 12, lambda t: functional.cross_entropy(t["rows"], t["classes"])),
    ("repetition", 1, lambda t: functional.interpolate(t["image"], scale_factor=2)),
    ("interpolation", 40, lambda t: functional.interpolate(t["image"], 11, mode="bilinear")),
    ("one hot", 2, lambda t: functional.one_hot(t["classes"], 16)),
    ("dropout", 4, lambda t: functional.dropout(t["rows"])),
    ("relu in place", 1, lambda t: functional.relu(t["rows"], inplace=True)),
    ("hardswish", 5, lambda t: functional.hardswish(t["rows"])),
]


def skip_where_calls_are_not_counted() -> None:
    if not cuda.is_available():
        pytest.skip(f"no CUDA device: {cuda.unavailable_reason()}")
    if tensorplay._plugins.get("cuda").describe()["variant"] != "emulated":
        pytest.skip("the emulated device is needed")


def made() -> Tensors:
    shapes = {
        "rows": (6, 16), "square": (16, 16), "row": (16,), "image": (2, 4, 8, 8), "filters": (4, 4, 3, 3),
        "points": (4, 4, 1, 1), "four": (4,),
    }  # fmt: skip
    tensors = {name: tensorplay.rand(shape, device="cuda") for name, shape in shapes.items()}
    return tensors | {"classes": tensorplay.zeros(6, dtype=tensorplay.int64, device="cuda")}


@pytest.mark.parametrize(("most", "call"), [row[1:] for row in MOST], ids=[row[0] for row in MOST])
def test_few_kernels_and_no_waiting(most: int, call: Callable[[Tensors], object]) -> None:
    skip_where_calls_are_not_counted()
    from tensorplay.testing import emulated

    tensors = made()
    call(tensors)  # memory is there now
    cuda.synchronize()
    with emulated.calls() as calls:
        call(tensors)
    assert 0 < calls["cudaLaunchKernel"] <= most
    assert {name: calls[name] for name in WAITING if calls[name]} == {}
