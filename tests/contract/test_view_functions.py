"""Views by torch's other names, as functions and by keyword, on every device, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.operands import assert_equal, counted

import tensorplay
from tensorplay.errors import DTypeError, InvalidArgumentError


def test_views_by_other_names(device: str) -> None:
    x, array = counted(device, 2, 3, 4)
    assert_equal(x.movedim((0, 1), (-1, 0)), np.moveaxis(array, (0, 1), (-1, 0)))
    assert_equal(tensorplay.moveaxis(x, 2, 0), np.moveaxis(array, 2, 0))
    assert_equal(x.swapaxes(0, 2), array.swapaxes(0, 2))
    assert_equal(x.unflatten(2, (2, -1)), array.reshape(2, 3, 2, 2))
    assert_equal(x.ravel(), array.ravel())
    assert_equal(tensorplay.broadcast_to(x[:, :1], (5, 2, 3, 4)), np.broadcast_to(array[:, :1], (5, 2, 3, 4)))
    assert_equal(x[0].H, array[0].T)
    assert_equal(x.mH, array.swapaxes(-1, -2))
    for offset in range(-4, 5):
        assert_equal(x.diagonal(offset, 1, 2), np.diagonal(array, offset, 1, 2))
    assert_equal(x.unfold(2, 2, 2), array.reshape(2, 3, 2, 2))
    assert_equal(x.unfold(1, 2, 1), np.lib.stride_tricks.sliding_window_view(array, 2, 1))
    assert [part.shape for part in tensorplay.broadcast_tensors(x, x[0, 0])] == [(2, 3, 4)] * 2
    assert tensorplay.numel(x) == 24


def test_adjoint_of_complex_numbers(device: str) -> None:
    array = np.arange(6).reshape(2, 3) * (1 - 2j)
    assert_equal(tensorplay.tensor(array, device=device).adjoint(), array.conj().T)


def test_names_of_arguments_are_those_of_torch(device: str) -> None:
    x, array = counted(device, 2, 3)
    assert_equal(tensorplay.reshape(input=x, shape=(3, 2)), array.reshape(3, 2))
    assert_equal(tensorplay.permute(input=x, dims=(1, 0)), array.T)
    assert_equal(tensorplay.transpose(input=x, dim0=0, dim1=1), array.T)
    assert_equal(x.expand(size=(4, 2, 3)), np.broadcast_to(array, (4, 2, 3)))
    assert_equal(x.view(size=(6,)), array.reshape(6))
    parts = tensorplay.split(tensor=x, split_size_or_sections=1, dim=1)
    assert [part.tolist() for part in parts] == array.T[:, :, None].tolist()
    with pytest.raises(DTypeError, match=r"permute: got \(1, 0\) and \(0, 1\), expected one of them"):
        x.permute(1, 0, dims=(0, 1))
    with pytest.raises(DTypeError, match="reshape: got list, expected a tensor"):
        tensorplay.reshape([1], (1,))  # type: ignore[arg-type]


def test_pieces(device: str) -> None:
    x, array = counted(device, 7, 2)
    for sections in (1, 3, 9, (2, 5), (-1, 3, 20)):
        for got, expected in zip(x.tensor_split(sections), np.array_split(array, sections), strict=True):
            assert_equal(got, expected)
    assert [part.tolist() for part in x.unbind(1)] == array.T.tolist()
    assert [part.shape for part in x[:0].chunk(3)] == [(0, 2)] * 3
    with pytest.raises(InvalidArgumentError, match="chunk: got 0 pieces"):
        x.chunk(0)
    with pytest.raises(InvalidArgumentError, match=r"split: got sizes \[8, -1\]"):
        x.split([8, -1])


def test_at_least_so_many_dimensions(device: str) -> None:
    for shape in [(), (3,), (3, 2), (3, 2, 1)]:
        x, array = counted(device, *shape)
        for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
            got = getattr(tensorplay, name)(x, x)
            assert isinstance(got, tuple)
            assert_equal(got[0], getattr(np, name)(array))
            assert_equal(getattr(tensorplay, name)(x), getattr(np, name)(array))
