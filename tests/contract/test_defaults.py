"""The default dtype, on every device."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tensorplay
from tensorplay import _plugins
from tensorplay._host.backend import HostBackend
from tensorplay.errors import DTypeError


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = tensorplay.get_default_dtype()
    yield
    tensorplay.set_default_dtype(before)


@pytest.mark.parametrize("dtype", [tensorplay.float64, tensorplay.float16, tensorplay.bfloat16, tensorplay.float32])
def test_what_follows_it(device: str, dtype: tensorplay.DType) -> None:
    assert tensorplay.get_default_dtype() is tensorplay.float32
    tensorplay.set_default_dtype(dtype)
    assert tensorplay.get_default_dtype() is dtype
    whole = tensorplay.tensor([1, 2], device=device)
    for made in (
        tensorplay.tensor([0.5], device=device),
        tensorplay.zeros(1, device=device),
        tensorplay.empty(1, device=device),
        tensorplay.full((1,), 0.5, device=device),
        tensorplay.arange(0.5, 3, device=device),
        tensorplay.linspace(0, 1, 3, device=device),
        tensorplay.eye(2, device=device),
        tensorplay.rand(2, device=device),
        whole + 0.5,
        whole / 2,
        whole.sqrt(),
        whole.bool().exp(),
        whole.logit(0.1),
    ):
        assert made.dtype is dtype
    for made in (tensorplay.tensor([1j], device=device), whole + 1j):
        assert made.dtype is dtype.to_complex()
    assert tensorplay.result_type(1, 0.5) is dtype
    assert (tensorplay.ones(1, dtype=tensorplay.float32, device=device) + 0.5).dtype is tensorplay.float32
    assert whole.dtype is tensorplay.int64


def test_fractions_are_computed_in_it(device: str) -> None:
    tensorplay.set_default_dtype(tensorplay.float64)
    third = 1 / tensorplay.tensor([3], device=device)
    assert third.tolist() == [1 / 3]


def test_backends_that_come_later_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told = []

    class Late(HostBackend):
        type = "late"

        def set_default_dtype(self, dtype: tensorplay.DType) -> None:
            told.append(dtype)

    monkeypatch.setattr(_plugins, "_backends", dict(_plugins._backends))
    tensorplay.set_default_dtype(tensorplay.float64)
    _plugins.register(Late())
    assert told == [tensorplay.float64]
    tensorplay.set_default_dtype(tensorplay.float32)
    assert told == [tensorplay.float64, tensorplay.float32]


def test_only_floating_dtypes() -> None:
    for dtype in (tensorplay.int64, tensorplay.complex64, tensorplay.bool):
        with pytest.raises(DTypeError, match=f"set_default_dtype: got dtype {dtype.name}, expected a floating dtype"):
            tensorplay.set_default_dtype(dtype)
    with pytest.raises(DTypeError, match="set_default_dtype: got dtype 'float64'"):
        tensorplay.set_default_dtype("float64")  # type: ignore[arg-type]
