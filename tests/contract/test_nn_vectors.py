"""Functions of vectors and their indices on every device, against float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.operands import FLOATING, assert_close, operand, read

import tensorplay
from tensorplay import cuda, nn
from tensorplay.errors import DTypeError, InvalidArgumentError, OutOfRangeError
from tensorplay.nn import functional

each_dtype = pytest.mark.parametrize("dtype", FLOATING, ids=lambda dtype: dtype.name)


@each_dtype
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, math.inf])
def test_normalize(device: str, dtype: tensorplay.DType, p: float) -> None:
    x, a = operand(device, (4, 3, 5), dtype, "transposed", 1)
    lengths = np.linalg.norm(a, ord=p, axis=1, keepdims=True)
    assert_close(functional.normalize(x, p), a / lengths, dtype)
    assert_close(functional.normalize(x, p, eps=2.5), a / np.maximum(lengths, 2.5), dtype)


def test_normalize_of_half_numbers_that_overflow_when_squared(device: str) -> None:
    x = tensorplay.tensor([[3000.0, 4000.0], [0.0, 0.0]], dtype=tensorplay.float16, device=device)
    assert_close(functional.normalize(x), [[0.6, 0.8], [0.0, 0.0]], tensorplay.float16)


@each_dtype
@pytest.mark.parametrize("shape", [(4, 3, 5), (3, 1), (5,)], ids=str)
def test_cosine_similarity(device: str, dtype: tensorplay.DType, shape: tuple[int, ...]) -> None:
    x, a = operand(device, (4, 3, 5), dtype, "contiguous", 1)
    y, b = operand(device, shape, dtype, "contiguous", 2)
    b = np.broadcast_to(b, a.shape)
    wanted = (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    assert_close(functional.cosine_similarity(x, y), wanted, dtype)


def test_cosine_similarity_of_large_half_numbers_and_of_zeros(device: str) -> None:
    x = tensorplay.tensor([[40000.0, 40000.0], [0.0, 0.0]], dtype=tensorplay.float16, device=device)
    assert functional.cosine_similarity(x, x).tolist() == [1.0, 0.0]


@each_dtype
@pytest.mark.parametrize("lead", [(), (4,), (2, 0), (2, 3)], ids=str)
def test_bilinear(device: str, dtype: tensorplay.DType, lead: tuple[int, ...]) -> None:
    layer = nn.Bilinear(3, 4, 5, device=device, dtype=dtype)
    x, a = operand(device, (*lead, 3), dtype, "contiguous", 1)
    y, b = operand(device, (*lead, 4), dtype, "contiguous", 2)
    w, shift = read(layer.weight), read(layer.bias)
    assert_close(layer(x, y), np.einsum("...i,kij,...j->...k", a, w, b) + shift, dtype, room=10)


def test_one_hot(device: str) -> None:
    indices = tensorplay.tensor([[0, 2], [1, 1]], device=device)
    wanted = np.eye(4, dtype=np.int64)[[[0, 2], [1, 1]]]
    assert functional.one_hot(indices, 4).tolist() == wanted.tolist()
    assert functional.one_hot(indices).tolist() == wanted[..., :3].tolist()
    assert functional.one_hot(indices, 4).dtype is tensorplay.int64
    assert functional.one_hot(indices[0, 1]).tolist() == [0, 0, 1]
    assert functional.one_hot(indices[:0], 3).shape == (0, 2, 3)


@pytest.mark.parametrize("index", [3, -1])
def test_one_hot_tells_of_an_index_that_there_is_not(device: str, index: int) -> None:
    with pytest.raises(OutOfRangeError):
        functional.one_hot(tensorplay.tensor([0, index], device=device), 3).tolist()
    if device == "cuda":
        cuda.synchronize()


def test_embedding_takes_int32_and_shares_what_it_was_given(device: str) -> None:
    table, a = operand(device, (5, 3), tensorplay.bfloat16, "contiguous", 1)
    layer = nn.Embedding.from_pretrained(table, padding_idx=-1)
    assert layer.weight.data_ptr() == table.data_ptr()
    assert layer.padding_idx == 4
    ids = tensorplay.tensor([[0, 4], [2, 2]], dtype=tensorplay.int32, device=device)
    assert_close(layer(ids), a[[[0, 4], [2, 2]]], tensorplay.bfloat16)


def test_refusals(device: str) -> None:
    x = tensorplay.ones(2, 3, device=device)
    with pytest.raises(DTypeError, match="normalize: got dtype int64"):
        functional.normalize(x.long())
    with pytest.raises(InvalidArgumentError, match="p=0"):
        functional.normalize(x, p=0.0)
    with pytest.raises(DTypeError, match="cosine_similarity: got dtype int64"):
        functional.cosine_similarity(x.long(), x.long())
    with pytest.raises(InvalidArgumentError, match="bilinear: got shapes"):
        functional.bilinear(x, x, tensorplay.ones(1, 3, 2, device=device))
    with pytest.raises(DTypeError, match="one_hot: got dtype float32"):
        functional.one_hot(x)
    with pytest.raises(InvalidArgumentError, match="one_hot: got num_classes=0"):
        functional.one_hot(x.long(), 0)
    with pytest.raises(InvalidArgumentError, match="from_pretrained: got shape"):
        nn.Embedding.from_pretrained(x[0])
