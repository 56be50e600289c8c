"""The text of tensors, as torch prints them."""

from __future__ import annotations

from typing import Any

import pytest

import tensorplay

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
