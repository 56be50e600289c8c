"""The example as a user runs it, and what one replay of its graph does."""

from __future__ import annotations

import re

import pytest
import while_decode
from helpers import examples

import tensorplay as tp
from tensorplay import cuda
from tensorplay.testing import emulated

on_cuda = pytest.mark.parametrize("device", ["cuda"], indirect=True)


@on_cuda
def test_all_ways_write_the_same_and_say_so(device: str) -> None:
    done = examples.run("while_decode", "--sequences", "4", "--seed", "3")
    assert done.returncode == 0, done.stderr
    sequences = re.findall(r"^(?:\(nothing\)|(?:\d+ )*\d+)$", done.stdout, re.M)
    assert len(sequences) == 4
    assert len(set(sequences)) > 1
    assert re.findall(r"^(\w[\w ]*?) +[\d.]+ us for a token$", done.stdout, re.M) == [
        "eager", "a replay for each token", "one replay",
    ]  # fmt: skip


@on_cuda
def test_a_replay_goes_on_to_the_end_token_and_asks_the_host_nothing(device: str) -> None:
    tp.manual_seed(3)
    decoder = while_decode.Decoder()
    while_decode.eagerly(decoder)
    run = while_decode.at_once(decoder)
    lengths = set()
    for seed in range(8):
        expected, _ = while_decode.write(while_decode.eagerly, decoder, seed, 2)
        tp.manual_seed(seed)
        found = []
        for _ in expected:
            run(decoder)
            found.append(decoder.written())
        assert found == expected
        lengths |= set(map(len, found))
        assert found[0] != found[1]
    assert len(lengths) > 4
    assert min(lengths) < while_decode.LONGEST


@on_cuda
def test_a_sequence_is_one_launch(device: str) -> None:
    if tp._plugins.get("cuda").describe()["variant"] != "emulated":
        pytest.skip("the emulated device counts calls")
    decoder = while_decode.Decoder()
    while_decode.eagerly(decoder)
    run = while_decode.at_once(decoder)
    run(decoder)
    with emulated.calls() as counted:
        run(decoder)
    assert counted["cudaGraphLaunch"] == 1
    assert counted["cudaStreamSynchronize"] == counted["cudaMemcpyAsync"] == 0
    cuda.synchronize()
    assert decoder.written() != []
