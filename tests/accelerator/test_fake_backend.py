"""The second backend keeps the contract of tensors: it is no mock, and what the facade does with it means something."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.fake_backend import FakeBackend

import tensorplay
from tensorplay import accelerator
from tensorplay._backend import Backend
from tensorplay.errors import StateError

from .conftest import Place, at

TESTS = Path(__file__).parents[1]


def test_it_keeps_the_contract_of_tensors() -> None:
    files = [f"test_{name}.py" for name in ("copies", "creation", "random", "views")]
    plugins = ["-p", "no:cacheprovider", "-p", "no:benchmark", "-p", "helpers.on_fake"]
    arguments = ["-q", *plugins, "-k", "not asked_for", *files]  # names cuda:0
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=TESTS / "contract",
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert int(done.stdout.rpartition("\n")[0].rpartition("\n")[2].split()[0]) > 100


def test_a_backend_that_leaves_a_method_out_is_none() -> None:
    assert not FakeBackend.__abstractmethods__
    with pytest.raises(TypeError, match="abstract"):
        type("Half", (Backend,), {"type": "half"})()


def test_what_waits_is_refused_while_its_stream_is_captured() -> None:
    with at("fake") as place:
        x, g = tensorplay.ones(3, device="fake"), accelerator.Graph()
        g.capture_begin(stream=place.new_stream())
        for call in (x.tolist, accelerator.synchronize, accelerator.random.get_rng_state, accelerator.random.seed):
            with pytest.raises(StateError, match="captured"):
                call()
        g.capture_end()
        assert x.tolist() == [1] * 3


def test_a_replay_draws_as_eager_work_would(here: Place) -> None:
    accelerator.set_stream(here.new_stream())
    x = tensorplay.zeros(4, device=here.type)
    with accelerator.Graph() as g:
        x.uniform_()
    accelerator.random.manual_seed(5)
    replayed = []
    for _ in range(3):
        g.replay()
        replayed.append(x.tolist())
    accelerator.random.manual_seed(5)
    assert replayed == [tensorplay.rand(4, device=here.type).tolist() for _ in range(3)]
