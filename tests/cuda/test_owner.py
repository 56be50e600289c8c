"""What is released once is not copied."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest

from tensorplay import cuda
from tensorplay.errors import DTypeError

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no CUDA device")


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("make", [cuda.Event, cuda.CUDAGraph, lambda: cuda.memory_budget("one")])
def test_an_owner_is_not_copied(make: Callable[[], object], way: Callable[[object], object]) -> None:
    with pytest.raises(DTypeError, match="cannot be copied or pickled: make another one"):
        way(make())
