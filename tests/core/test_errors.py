"""The exception classes: what else they are, and that they pickle."""

from __future__ import annotations

import pickle

import pytest

import tensorplay
from tensorplay import errors

ALSO = {
    "InvalidArgumentError": ValueError,
    "DTypeError": TypeError,
    "ExchangeError": BufferError,
    "OutOfRangeError": IndexError,
    "IndexTypeError": IndexError,
    "SizeOverflowError": OverflowError,
    "OutOfMemoryError": MemoryError,
    "HostMemoryError": MemoryError,
}


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_is_caught_by_both_habits(name: str) -> None:
    kind = getattr(errors, name)
    assert issubclass(kind, errors.TensorPlayError)
    assert issubclass(kind, RuntimeError)
    assert issubclass(kind, ALSO.get(name, RuntimeError))
    error = pickle.loads(pickle.dumps(kind("add: got 1, expected 2")))
    assert type(error) is kind
    assert str(error) == "add: got 1, expected 2"


def test_accelerator_error_carries_what_failed() -> None:
    error = tensorplay.AcceleratorError("add: cudaErrorLaunchFailure", 719, "cudaErrorLaunchFailure", "add")
    again = pickle.loads(pickle.dumps(error))
    assert (again.code, again.name, again.operation) == (719, "cudaErrorLaunchFailure", "add")
    assert str(again) == "add: cudaErrorLaunchFailure"


def test_public_names() -> None:
    assert tensorplay.OutOfMemoryError is errors.OutOfMemoryError
    assert tensorplay.AcceleratorError is errors.AcceleratorError
