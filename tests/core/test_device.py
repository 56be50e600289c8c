"""The one parser for devices."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import tensorplay
from tensorplay.errors import DTypeError, InvalidArgumentError

GOOD = {
    "cpu": ("cpu", None),
    "cpu:0": ("cpu", 0),
    "cuda": ("cuda", None),
    "cuda:0": ("cuda", 0),
    "cuda:12": ("cuda", 12),
    "cuda:99": ("cuda", 99),
}
BAD = [
    "", "cuda:", "cuda:-1", "cpu:-1", "cuda0", "cuda:01", "cuda: 1", " cuda", "cuda ", "CUDA:0", "cuda:1.0", "cuda:x",
    "cuda:2 cuda:3", "cuda:0\n", "cuda:٣", "cuda:99999999999", "gpu", "gpu:0", "tpu", "0", ":0",
]  # fmt: skip


@pytest.mark.parametrize("text", GOOD)
def test_good_spellings(text: str) -> None:
    place = tensorplay.device(text)
    assert (place.type, place.index) == GOOD[text]
    assert str(place) == text
    assert place == tensorplay.device(place) == tensorplay.device(*GOOD[text])
    assert len({place, tensorplay.device(text)}) == 1
    assert pickle.loads(pickle.dumps(place)) == copy.deepcopy(place) == place
    assert eval(repr(place), {"device": tensorplay.device}) == place


@pytest.mark.parametrize("text", BAD)
def test_bad_spellings_have_one_error_that_names_them(text: str) -> None:
    texts = set()
    x = tensorplay.ones(1)
    for call in (tensorplay.device, x.to, lambda t: tensorplay.empty(1, device=t), x.cuda):
        with pytest.raises(InvalidArgumentError) as caught:
            call(text)
        texts.add(str(caught.value))
    assert len(texts) == 1
    assert repr(text) in texts.pop()


def test_unknown_types_name_the_known_ones() -> None:
    with pytest.raises(InvalidArgumentError, match="unknown type 'gpu' in 'gpu:1', expected one of cpu, cuda"):
        tensorplay.device("gpu:1")


@pytest.mark.parametrize("value", [None, 1.0, b"cuda", ["cuda"], True])
def test_other_types_are_refused(value: Any) -> None:
    with pytest.raises(DTypeError, match="device: got"):
        tensorplay.device(value)


def test_integers_of_other_libraries_are_indices() -> None:
    numbers: list[Any] = [np.int64(1), np.uint8(1), np.array(1), tensorplay.tensor(1)]
    for number in numbers:
        device = tensorplay.device("cuda", number)
        assert device == tensorplay.device("cuda:1")
        assert type(device.index) is int


def test_one_index_only() -> None:
    with pytest.raises(InvalidArgumentError, match="got index 1 beside 'cuda:0', expected one index"):
        tensorplay.device("cuda:0", 1)
    with pytest.raises(InvalidArgumentError, match="got index -1"):
        tensorplay.device("cuda", -1)
    with pytest.raises(DTypeError, match="got '1', expected an integer as the index"):
        tensorplay.device("cuda", "1")  # type: ignore[arg-type]


def test_index_0_of_the_host_is_the_host() -> None:
    assert str(tensorplay.empty(1, device="cpu:0").device) == "cpu"
    x = tensorplay.ones(1)
    assert x.to("cpu:0") is x
    with pytest.raises(InvalidArgumentError, match="to: device 1 asked for, 1 visible"):
        x.to("cpu:1")
