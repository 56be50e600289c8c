"""The text of tensors, as torch prints them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tensorplay
from tensorplay.errors import InvalidArgumentError

nan, inf = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([1.0, 2.0], "tensor([1., 2.])"),
        ([1.5, -2.0], "tensor([ 1.5000, -2.0000])"),
        ([1e-5, 1.0], "tensor([1.0000e-05, 1.0000e+00])"),
        ([1e9, 2.0], "tensor([1.0000e+09, 2.0000e+00])"),
        ([nan, 3.0, -inf], "tensor([nan, 3., -inf])"),
        ([nan, 0.25], "tensor([   nan, 0.2500])"),
        ([0.0, 0.0], "tensor([0., 0.])"),
        ([1, -20], "tensor([  1, -20])"),
        ([True, False], "tensor([ True, False])"),
        (3.25, "tensor(3.2500)"),
        (7, "tensor(7)"),
        ([], "tensor([])"),
        ([[1, 2], [3, 4]], "tensor([[1, 2],\n        [3, 4]])"),
        ([[[1], [2]]], "tensor([[[1],\n         [2]]])"),
        ([1e-5, 1e-5], "tensor([1.0000e-05, 1.0000e-05])"),
        ([0.1, nan, 1.0], "tensor([0.1000,    nan, 1.0000])"),
        ([1 + 2j, 2 - 0.5j], "tensor([1.+2.0000j, 2.-0.5000j])"),
        ([complex(nan, inf), 100 - 1j], "tensor([ nan+infj, 100.-1.j])"),
        (-1j, "tensor(-0.-1.j)"),
    ],
)
def test_text(data: Any, text: str) -> None:
    x = tensorplay.tensor(data)
    assert repr(x) == text
    assert str(x) == f"{x}" == text or x.ndim == 0


def test_dtype_device_and_size_are_named_where_they_are_not_usual(device: str) -> None:
    x = tensorplay.ones(2, dtype=tensorplay.float16, device=device)
    place = "" if device == "cpu" else ", device='cuda:0'"
    assert repr(x) == f"tensor([1., 1.]{place}, dtype=tensorplay.float16)"
    assert repr(x[:0].float()) == f"tensor([]{place})"
    assert repr(tensorplay.zeros(0, 2, dtype=tensorplay.int64)) == "tensor([], size=(0, 2), dtype=tensorplay.int64)"


@pytest.mark.parametrize(
    ("data", "dtype", "text"),
    [
        ([200, 1], "uint8", "tensor([200,   1], dtype=tensorplay.uint8)"),
        ([-100, 1], "int8", "tensor([-100,    1], dtype=tensorplay.int8)"),
        ([-1], "int16", "tensor([-1], dtype=tensorplay.int16)"),
        ([0.1], "float64", "tensor([0.1000], dtype=tensorplay.float64)"),
        ([0.1], "bfloat16", "tensor([0.1001], dtype=tensorplay.bfloat16)"),
        ([6e4, 1e-3], "float16", "tensor([6.0000e+04, 1.0004e-03], dtype=tensorplay.float16)"),
        ([0.1 + 0.25j], "complex128", "tensor([0.1000+0.2500j], dtype=tensorplay.complex128)"),
        ([[]], "bool", "tensor([], size=(1, 0), dtype=tensorplay.bool)"),
    ],
)
def test_dtypes(data: Any, dtype: str, text: str, device: str) -> None:
    x = tensorplay.tensor(data, dtype=getattr(tensorplay, dtype), device=device)
    place = "" if device == "cpu" else "device='cuda:0', "
    assert repr(x).replace("\n       ", " ").replace(place, "", 1) == text


def test_a_suffix_that_does_not_fit_gets_a_line() -> None:
    full = tensorplay.zeros(14, dtype=tensorplay.float16)
    assert repr(full) == f"tensor([{', '.join(['0.'] * 14)}],\n       dtype=tensorplay.float16)"
    assert "\n" not in repr(full[:11])


@pytest.fixture
def options() -> Iterator[Callable[..., None]]:
    """`set_printoptions`, undone in the end."""
    yield tensorplay.set_printoptions
    tensorplay.set_printoptions(profile="default")


def test_options(options: Callable[..., None]) -> None:
    x = tensorplay.tensor([1 / 3, 200.0])
    options(precision=2)
    assert repr(x) == "tensor([  0.33, 200.00])"
    options(sci_mode=True)
    assert repr(x) == "tensor([3.33e-01, 2.00e+02])"
    options(threshold=2, edgeitems=1, precision=0)
    assert repr(tensorplay.arange(9)) == "tensor([0,  ..., 8])"
    options(linewidth=12)
    assert repr(tensorplay.arange(2)) == "tensor([0,\n        1])"
    options(profile="full")
    assert "..." not in repr(tensorplay.zeros(2000))
    options(profile="short")
    assert repr(x) == "tensor([  0.33, 200.00])"
    with pytest.raises(InvalidArgumentError, match="got profile 'long', expected one of default, short, full"):
        options(profile="long")
    options(profile="default")
    assert repr(x) == "tensor([  0.3333, 200.0000])"


def test_large_tensors_are_summarised(device: str) -> None:
    place = "" if device == "cpu" else ", device='cuda:0'"
    x = tensorplay.arange(1001, device=device)
    assert repr(x) == f"tensor([   0,    1,    2,  ...,  998,  999, 1000]{place})"
    rows = repr(tensorplay.zeros(2000, 2, device=device)).splitlines()
    row = "[0., 0.],"
    assert [line.strip() for line in rows] == [f"tensor([{row}", row, row, "...,", row, row, f"[0., 0.]]{place})"]


def test_long_lines_are_broken() -> None:
    lines = repr(tensorplay.arange(100)).splitlines()
    assert len(lines) > 1
    assert all(len(line) <= 81 for line in lines)
