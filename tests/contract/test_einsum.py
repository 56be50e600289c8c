"""Sums of products over dimensions, on every device, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.operands import assert_close, operand, seeds
from hypothesis import given
from hypothesis import strategies as st

import tensorplay
from tensorplay.errors import DTypeError, InvalidArgumentError

summed = st.sampled_from([tensorplay.float32, tensorplay.float64, tensorplay.complex64, tensorplay.int64])


@st.composite
def equations(draw: st.DrawFn) -> tuple[str, list[tuple[int, ...]]]:
    """An equation and shapes for it; letters of a term repeat, and any size may be 1 in one of them."""
    sizes = {letter: draw(st.integers(0, 4)) for letter in "abcXY"}
    rest = draw(st.lists(st.integers(1, 3), max_size=2))
    terms, shapes = [], []
    for _ in range(draw(st.integers(1, 4))):
        letters = draw(st.text("abcXY", max_size=4))
        shape = [sizes[letter] for letter in letters]
        if len(set(letters)) == len(letters):
            shape = [1 if draw(st.integers(0, 5)) == 0 else size for size in shape]
        if draw(st.booleans()):
            at = draw(st.integers(0, len(letters)))
            dims = [draw(st.sampled_from([1, size])) for size in rest[draw(st.integers(0, len(rest))) :]]
            letters, shape = letters[:at] + "..." + letters[at:], shape[:at] + dims + shape[at:]
        terms.append(letters)
        shapes.append(tuple(shape))
    equation = ",".join(terms)
    if draw(st.booleans()):
        used = sorted({letter for letter in equation if letter.isalpha()})
        wanted = draw(st.lists(st.sampled_from(used), unique=True)) if used else []
        at = draw(st.integers(0, len(wanted)))
        equation += "->" + "".join([*wanted[:at], *(["..."] if "..." in equation else []), *wanted[at:]])
    return equation, shapes


@given(case=equations(), dtype=summed, seed=seeds)
def test_einsum(device: str, case: tuple[str, list[tuple[int, ...]]], dtype: tensorplay.DType, seed: int) -> None:
    equation, shapes = case
    pairs = [operand(device, shape, dtype, "contiguous", seed + place) for place, shape in enumerate(shapes)]
    expected = np.einsum(equation, *(pair.array for pair in pairs))
    assert_close(tensorplay.einsum(equation, *(pair.tensor for pair in pairs)), expected, dtype, room=300)


def test_einsum_in_torchs_other_forms(device: str) -> None:
    a, x = operand(device, (2, 3), tensorplay.float64, "transposed", 1)
    b, y = operand(device, (3, 4), tensorplay.float64, "stepped", 2)
    assert_close(tensorplay.einsum(a, [0, 27], b, [27, 5], [5, 0]), (x @ y).T, tensorplay.float64)
    assert_close(tensorplay.einsum(a, [..., 1], [1, ...]), x.T, tensorplay.float64)
    # Capitals are the first 26 numbers, and come first.
    assert_close(tensorplay.einsum(a, [26, 25]), x.T, tensorplay.float64)
    assert_close(tensorplay.einsum(" i j , j k ", [a, b]), x @ y, tensorplay.float64)
    # What NumPy refuses: dimensions of "..." that the result does not have are summed over.
    assert_close(tensorplay.einsum("...j->j", a), x.sum(0), tensorplay.float64)


@pytest.mark.parametrize(
    ("equation", "shapes", "words"),
    [
        ("ij,jk->ik", [(2, 3), (2, 4)], r"got sizes 3 and 2 of a dimension"),
        ("ij,jk", [(2, 3)], "got 1 tensors, expected 2"),
        ("ij", [(2,)], r"got a tensor of shape \(2,\) for 'ij' in 'ij', expected 2 dimensions"),
        ("i", [(2, 3)], r"got a tensor of shape \(2, 3\) for 'i' in 'i', expected 1 dimensions"),
        ("ii", [(2, 3)], "got sizes 2 and 3 for 'i'"),
        ("i->j", [(2,)], "got 'j' in the result"),
        ("i->ii", [(2,)], "got 'i' in the result"),
        ("i1", [(2, 3)], "got '1' in 'i1', expected letters"),
        ("...i...", [(2, 3)], r"got '\.'"),
    ],
)
def test_einsum_refuses(device: str, equation: str, shapes: list[tuple[int, ...]], words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"einsum: {words}"):
        tensorplay.einsum(equation, *(tensorplay.ones(shape, device=device) for shape in shapes))


def test_einsum_refuses_other_arguments(device: str) -> None:
    x = tensorplay.ones(2, 3, device=device)
    with pytest.raises(InvalidArgumentError, match="einsum: got no tensors"):
        tensorplay.einsum("i")
    with pytest.raises(DTypeError, match="einsum: got float, expected a tensor"):
        tensorplay.einsum("", 1.0)
    with pytest.raises(InvalidArgumentError, match="einsum: got 52 in a list"):
        tensorplay.einsum(x, [0, 52])
    with pytest.raises(DTypeError, match="einsum: got Tensor, expected an equation, or lists"):
        tensorplay.einsum(x, x)


@given(
    shape=st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple),
    count=st.integers(0, 3),
    extra=st.lists(st.integers(0, 3), max_size=2),
    dtype=summed,
    seed=seeds,
)
def test_tensordot(
    device: str, shape: tuple[int, ...], count: int, extra: list[int], dtype: tensorplay.DType, seed: int
) -> None:
    count = min(count, len(shape))
    a, x = operand(device, shape, dtype, "transposed", seed)
    b, y = operand(device, (*shape[len(shape) - count :], *extra), dtype, "contiguous", seed + 1)
    assert_close(tensorplay.tensordot(a, b, count), np.tensordot(x, y, count), dtype, room=300)
    ours, theirs = tuple(range(len(shape)))[len(shape) - count :][::-1], tuple(range(count))[::-1]
    got = tensorplay.tensordot(a, b, dims=([dim - len(shape) for dim in ours], theirs))
    assert_close(got, np.tensordot(x, y, (ours, theirs)), dtype, room=300)


def test_tensordot_refuses(device: str) -> None:
    x = tensorplay.ones(2, 3, device=device)
    assert tensorplay.tensordot(x[:, :1], x, ([1], [1])).tolist() == [[3, 3], [3, 3]]  # a size of 1, as in torch
    with pytest.raises(InvalidArgumentError, match="tensordot: got sizes 3 and 2 of a dimension"):
        tensorplay.tensordot(x, x, 1)
    with pytest.raises(InvalidArgumentError, match="tensordot: got 3 dimensions of shapes"):
        tensorplay.tensordot(x, x, 3)
    with pytest.raises(InvalidArgumentError, match="expected as many of each, each once"):
        tensorplay.tensordot(x, x, ([0], [0, 1]))
    with pytest.raises(InvalidArgumentError, match="expected a number or two sequences"):
        tensorplay.tensordot(x, x, ([0],))


def test_inner(device: str) -> None:
    a, x = operand(device, (2, 3, 4), tensorplay.float32, "transposed", 1)
    b, y = operand(device, (5, 4), tensorplay.float32, "stepped", 2)
    assert_close(a.inner(b), np.inner(x, y), tensorplay.float32, room=10)
    assert_close(a.inner(b.sum()), x * y.sum(), tensorplay.float32, room=10)
    out = tensorplay.empty(2, 3, 5, device=device)
    assert tensorplay.inner(a, b, out=out) is out
    assert_close(out, np.inner(x, y), tensorplay.float32, room=10)
    with pytest.raises(InvalidArgumentError, match=r"inner: got shapes \(2, 3, 4\) and \(5, 1\), expected equal sizes"):
        a.inner(b[:, :1])
