"""From a status of C to an exception."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import tensorplay as tp
from tensorplay import _operands, errors
from tensorplay.cuda import _check
from tensorplay.cuda._library import native
from tensorplay.cuda._tables import STATUSES


def test_every_status_has_its_exception() -> None:
    for status, (name, exception, _) in STATUSES.items():
        assert (exception is None) == (status == 0), name
        if exception is not None:
            assert issubclass(getattr(errors, exception), errors.TensorPlayError)


def test_failure_carries_the_text_of_c(gpu: None) -> None:
    assert not native.tp_stream_default(12345)
    found = _check.failure()
    assert isinstance(found, errors.InvalidArgumentError)
    assert "12345" in str(found)


def test_check_lets_counts_pass(gpu: None) -> None:
    _check.check(0)
    _check.check(5)
    assert native.tp_memory_stat(12345, 0) < 0
    with pytest.raises(errors.InvalidArgumentError):
        _check.check(-4)


def test_refusal_is_worded_by_core(gpu: None) -> None:
    a, b = tp.zeros((2, 3), device="cuda"), tp.zeros((4, 3), device="cuda")
    with pytest.raises(errors.InvalidArgumentError) as device:
        a + b
    with pytest.raises(errors.InvalidArgumentError) as host:
        a.cpu() + b.cpu()
    assert str(device.value) == str(host.value)


def test_a_refusal_that_core_cannot_explain_names_the_status(gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_fault(*arguments: Any) -> None:
        pass

    monkeypatch.setattr(_operands, "binary", no_fault)
    with pytest.raises(errors.InternalError, match="SHAPE"):
        tp.zeros(2, device="cuda") + tp.zeros(3, device="cuda")


def test_cuda_failure_carries_code_name_and_operation(emulated: None) -> None:
    from tensorplay.testing import emulated as control

    tensor = tp.zeros(4, device="cuda")
    tp.cuda.synchronize()
    with control.fail("cudaStreamSynchronize", error=719), pytest.raises(tp.AcceleratorError) as caught:
        tp.cuda.current_stream().synchronize()
    assert caught.value.code == 719
    assert caught.value.name == "cudaErrorLaunchFailure"
    assert caught.value.operation
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.code, again.name, again.operation, str(again)) == (
        719, "cudaErrorLaunchFailure", caught.value.operation, str(caught.value),
    )  # fmt: skip
    assert tensor.sum().item() == 0


def test_failure_in_a_forked_child_says_why(emulated: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorplay.testing import emulated as control

    monkeypatch.setattr(native, "is_forked", True)
    with control.fail("cudaStreamSynchronize", error=3), pytest.raises(tp.AcceleratorError, match="'spawn'"):
        tp.cuda.current_stream().synchronize()


def test_a_failed_allocation_in_the_driver_is_out_of_memory(emulated: None) -> None:
    from tensorplay.testing import emulated as control

    tp.cuda.empty_cache()
    with control.capacity(64 * 2**20), pytest.raises(tp.OutOfMemoryError):
        tp.empty(2**28, dtype=tp.bool, device="cuda")
