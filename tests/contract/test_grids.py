"""Matrices by the place of their elements, and grids, on every device."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.operands import DTYPES, LAYOUTS, assert_close, operand

import tensorplay
from tensorplay.errors import DTypeError, InvalidArgumentError


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_triangles(device: str, dtype: tensorplay.DType) -> None:
    for seed, layout in enumerate(LAYOUTS):
        for shape in [(3, 5), (2, 4, 3), (0, 3)]:
            x, array = operand(device, shape, dtype, layout, seed)
            for diagonal in (-4, -1, 0, 2, 5):
                assert_close(x.tril(diagonal), np.tril(array, diagonal), dtype)
                assert_close(tensorplay.triu(x, diagonal), np.triu(array, diagonal), dtype)
    own = x.clone()
    assert own.triu_(1) is own
    assert_close(own, np.triu(array, 1), dtype)


def test_nan_outside_the_triangle_is_gone(device: str) -> None:
    x = tensorplay.full((2, 2), float("nan"), device=device)
    assert x.tril()[0, 1].item() == 0.0
    assert x.triu(1)[1].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("row", "col", "offset"), [(3, 4, 0), (4, 2, -1), (2, 4, 2), (0, 3, 0), (3, 3, 9)])
def test_indices_of_triangles(device: str, row: int, col: int, offset: int) -> None:
    expected = np.stack(np.tril_indices(row, offset, col))
    assert_close(tensorplay.tril_indices(row, col, offset, device=device), expected, tensorplay.int64)
    expected = np.stack(np.triu_indices(row, offset, col))
    got = tensorplay.triu_indices(row, col, offset, dtype=tensorplay.int32, device=device)
    assert_close(got, expected, tensorplay.int32)


@pytest.mark.parametrize("indexing", ["ij", "xy"])
def test_grids(device: str, indexing: str) -> None:
    axes = [np.arange(3), np.arange(4) + 10, np.arange(2) + 20]
    for count in (1, 2, 3):
        tensors = [tensorplay.tensor(axis, device=device) for axis in axes[:count]]
        expected = np.meshgrid(*axes[:count], indexing=indexing)  # type: ignore[call-overload]
        for got, array in zip(tensorplay.meshgrid(*tensors, indexing=indexing), expected, strict=True):
            assert_close(got, array, tensorplay.int64)
    # Views: nothing is copied.
    first = tensorplay.meshgrid(tensors, indexing=indexing)[0]
    assert first.data_ptr() == tensors[0].data_ptr()


def test_what_is_refused(device: str) -> None:
    x = tensorplay.ones(3, device=device)
    with pytest.raises(InvalidArgumentError, match=r"tril: got shape \(3,\), expected at least two dimensions"):
        x.tril()
    with pytest.raises(InvalidArgumentError, match="meshgrid: got no tensors"):
        tensorplay.meshgrid()
    with pytest.raises(InvalidArgumentError, match="meshgrid: got indexing='ji'"):
        tensorplay.meshgrid(x, indexing="ji")
    with pytest.raises(DTypeError, match="meshgrid: got float32 of shape \\(3,\\), int64 of shape \\(3,\\), expected"):
        tensorplay.meshgrid(x, x.long())
