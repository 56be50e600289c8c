"""tensorplay.testing.assert_close: what it lets pass, and what it says of the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplay
from tensorplay.errors import DTypeError, InvalidArgumentError
from tensorplay.testing import assert_close

ONE = tensorplay.tensor([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("actual", "expected", "options"),
    [
        (ONE, ONE * (1 + 1e-6), {}),
        (ONE, ONE + 0.1, {"rtol": 0.0, "atol": 0.2}),
        (ONE, ONE.double(), {"check_dtype": False}),
        (tensorplay.tensor([float("inf")]), tensorplay.tensor([float("inf")]), {}),
        (tensorplay.tensor([float("nan")]), tensorplay.tensor([float("nan")]), {"equal_nan": True}),
        (tensorplay.tensor([2**62 + 1]), tensorplay.tensor([2**62 + 1]), {}),
        (ONE.to(tensorplay.bfloat16), (ONE * 1.01).to(tensorplay.bfloat16), {}),
        (tensorplay.zeros(0, 3), tensorplay.zeros(0, 3), {}),
        ([1, (2.0, ONE)], [1, (2.0 + 1e-9, ONE)], {}),
        ({"a": ONE, "b": 1j}, {"b": 1j, "a": ONE}, {}),
        (np.array([1.0, 2.0]), np.array([1.0, 2.0]), {}),
        (True, True, {}),
    ],
)
def test_alike(actual: Any, expected: Any, options: dict[str, Any]) -> None:
    assert_close(actual, expected, **options)


@pytest.mark.parametrize(
    ("actual", "expected", "options", "text"),
    [
        (ONE, ONE + tensorplay.tensor([0.0, 0.5, 0.0]), {}, r"1 of 3 .*difference is 0\.5, at index \(1,\): got 2\.0"),
        (ONE, ONE.double(), {}, "got dtype tensorplay.float32, expected tensorplay.float64"),
        (ONE, ONE[:2], {}, r"got shape \(3,\), expected \(2,\)"),
        (ONE[::2], tensorplay.tensor([1.0, 3.0]), {"check_stride": True}, r"got stride \(2,\), expected \(1,\)"),
        (tensorplay.tensor([float("nan")]), tensorplay.tensor([float("nan")]), {}, "difference is nan, at index"),
        (tensorplay.tensor([float("inf")]), tensorplay.tensor([1.0]), {}, "difference is inf"),
        (tensorplay.tensor([2**62 + 1]), tensorplay.tensor([2**62]), {}, "1 of 1 elements differ"),
        (tensorplay.tensor(255, dtype=tensorplay.uint8), tensorplay.tensor(0, dtype=tensorplay.uint8), {}, "is 255.0"),
        ([1, (2.0, ONE)], [1, (2.0, ONE + 1)], {}, r"assert_close\[1\]\[1\]: 3 of 3"),
        ([1], [1, 2], {}, "got 1 items, expected 2"),
        ({"a": 1}, {"b": 1}, {}, r"missing keys \['b'\], additional \['a'\]"),
        (1.0, ONE, {}, "got float, expected Tensor"),
        (1, 1.0, {}, "got dtype"),
    ],
)
def test_different(actual: Any, expected: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(AssertionError, match=text):
        assert_close(actual, expected, **options)
    with pytest.raises(AssertionError, match="^mine$"):
        assert_close(actual, expected, msg="mine", **options)


def test_devices(device: str) -> None:
    here = ONE.to(device)
    assert_close(here, here.clone())
    assert_close(here, ONE, check_device=False)
    if device == "cuda":
        with pytest.raises(AssertionError, match="got device cuda:0, expected cpu"):
            assert_close(here, ONE)


def test_refused() -> None:
    with pytest.raises(DTypeError, match="assert_close: got str, expected tensors"):
        assert_close("a", "a")
    with pytest.raises(InvalidArgumentError, match="got rtol=0.1 and atol=None, expected both or none"):
        assert_close(ONE, ONE, rtol=0.1)
