"""Element types and their promotion."""

from __future__ import annotations

import copy
import itertools
import pickle

import ml_dtypes
import numpy as np
import pytest

import tensorplay
from tensorplay import _dtype
from tensorplay.errors import DTypeError

ORDER = ["bool", "int32", "int64", "float16", "bfloat16", "float32"]


def test_names_and_sizes() -> None:
    assert [dtype.name for dtype in _dtype.BY_CODE] == ORDER
    assert [dtype.itemsize for dtype in _dtype.BY_CODE] == [1, 4, 8, 2, 2, 4]
    assert repr(tensorplay.float32) == "tensorplay.float32"
    assert tensorplay.float is tensorplay.float32
    assert tensorplay.half is tensorplay.float16
    assert tensorplay.long is tensorplay.int64
    assert tensorplay.int is tensorplay.int32
    assert tensorplay.bfloat16.numpy == ml_dtypes.bfloat16


@pytest.mark.parametrize("name", ORDER)
def test_there_is_one_object_for_each(name: str) -> None:
    dtype = getattr(tensorplay, name)
    assert pickle.loads(pickle.dumps(dtype)) is copy.deepcopy(dtype) is copy.copy(dtype) is dtype
    assert _dtype.from_numpy("test", dtype.numpy) is dtype


@pytest.mark.parametrize(("left", "right"), list(itertools.product(ORDER, ORDER)))
def test_promotion_is_a_lattice(left: str, right: str) -> None:
    a, b = _dtype.DTYPES[left], _dtype.DTYPES[right]
    both = _dtype.promote(a, b)
    assert both is _dtype.promote(b, a)
    assert both is _dtype.promote(both, a) is _dtype.promote(both, b)
    assert both.category == max(a.category, b.category)
    weak = _dtype.promote_weak(a, b)
    assert weak is (a if a.category >= b.category else both)


def test_casts_go_within_or_above_the_category() -> None:
    assert _dtype.can_cast(tensorplay.float32, tensorplay.float16)
    assert _dtype.can_cast(tensorplay.bool, tensorplay.int32)
    assert not _dtype.can_cast(tensorplay.float16, tensorplay.int64)
    assert not _dtype.can_cast(tensorplay.int32, tensorplay.bool)


def test_what_is_no_dtype() -> None:
    with pytest.raises(DTypeError, match="to: got dtype <class 'numpy.float32'>, expected a tensorplay dtype: bool"):
        tensorplay.ones(1).to(dtype=np.float32)
