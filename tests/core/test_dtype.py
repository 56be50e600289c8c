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

SIZES = {
    "bool": 1, "int32": 4, "int64": 8, "float16": 2, "bfloat16": 2, "float32": 4,
    "uint8": 1, "int8": 1, "int16": 2, "float64": 8, "complex64": 8, "complex128": 16,
}  # fmt: skip
ORDER = list(SIZES)


def test_names_and_sizes() -> None:
    assert [dtype.name for dtype in _dtype.BY_CODE] == ORDER
    assert {dtype.name: dtype.itemsize for dtype in _dtype.BY_CODE} == SIZES
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
    if a.is_floating_point and b.is_complex:
        assert weak is a.to_complex()
    else:
        assert weak is (a if a.category >= b.category else both)


def test_weak_complex_numbers_keep_the_size_of_fractions() -> None:
    x = tensorplay.ones(2)
    assert (x + tensorplay.tensor(1j, dtype=tensorplay.complex128)).dtype is tensorplay.complex64
    assert (x.to(tensorplay.float64) + 1j).dtype is tensorplay.complex128
    assert (x.to(tensorplay.float16) * 1j).dtype is tensorplay.complex64
    assert (x.to(tensorplay.int64) + 1j).dtype is tensorplay.complex64


def test_casts_go_within_or_above_the_category() -> None:
    assert _dtype.can_cast(tensorplay.float32, tensorplay.float16)
    assert _dtype.can_cast(tensorplay.bool, tensorplay.int32)
    assert not _dtype.can_cast(tensorplay.float16, tensorplay.int64)
    assert not _dtype.can_cast(tensorplay.int32, tensorplay.bool)


def test_what_is_no_dtype() -> None:
    with pytest.raises(DTypeError, match="to: got dtype <class 'numpy.float32'>, expected a tensorplay dtype: bool"):
        tensorplay.ones(1).to(dtype=np.float32)


def test_which_dtype_operands_have_together() -> None:
    one = {name: tensorplay.ones(1, dtype=dtype) for name, dtype in _dtype.DTYPES.items()}
    point = {name: x[0] for name, x in one.items()}
    for a, b, expected in [
        (1, 0.5, "float32"),
        (True, 2, "int64"),
        (1, 1j, "complex64"),
        (one["int8"], 5, "int8"),
        (one["int8"], 0.5, "float32"),
        (one["float16"], 0.5, "float16"),
        (one["float16"], 1j, "complex64"),
        (one["float64"], 1j, "complex128"),
        (one["uint8"], one["int8"], "int16"),
        (one["float16"], one["bfloat16"], "float32"),
        (one["float64"], one["complex64"], "complex128"),
        (one["int8"], point["int64"], "int8"),
        (one["int8"], point["float64"], "float64"),
        (one["float16"], point["float64"], "float16"),
        (point["int8"], point["int64"], "int64"),
        (point["int8"], 300, "int8"),
        (one["bool"], 1, "int64"),
    ]:
        found = tensorplay.result_type(a, b)
        assert found is tensorplay.result_type(b, a) is _dtype.DTYPES[expected]
        assert isinstance(a, int) or (a + b).dtype is found
    assert tensorplay.promote_types(tensorplay.uint8, tensorplay.int8) is tensorplay.int16
    assert tensorplay.can_cast(tensorplay.float64, tensorplay.float16)
    assert not tensorplay.can_cast(tensorplay.complex64, tensorplay.float64)
    with pytest.raises(DTypeError, match="result_type: got str, expected a tensor or a number"):
        tensorplay.result_type("1", 2)  # type: ignore[arg-type]


def test_what_tensors_tell_of_their_dtype() -> None:
    for dtype in _dtype.DTYPES.values():
        x = tensorplay.zeros(1, dtype=dtype)
        assert tensorplay.is_floating_point(x) is x.is_floating_point() is dtype.is_floating_point
        assert tensorplay.is_complex(x) is x.is_complex() is dtype.is_complex
        assert tensorplay.is_signed(x) is x.is_signed() is dtype.is_signed
    with pytest.raises(DTypeError, match="is_complex: got complex, expected a tensor"):
        tensorplay.is_complex(1j)  # type: ignore[arg-type]
