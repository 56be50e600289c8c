"""The facade is what its specification lists: tests/data/accelerator_api.txt has the lines as they stand there."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from tensorplay import accelerator

LINES = (Path(__file__).parents[1] / "data" / "accelerator_api.txt").read_text(encoding="utf-8").splitlines()

#: Names whose signatures the specification leaves out.
MEMORY = {
    "empty_cache": "()",
    "empty_host_cache": "()",
    "get_memory_info": "(device=None)",
    "max_memory_allocated": "(device=None)",
    "max_memory_reserved": "(device=None)",
    "memory_allocated": "(device=None)",
    "memory_reserved": "(device=None)",
    "memory_stats": "(device=None)",
    "reset_accumulated_memory_stats": "(device=None)",
    "reset_peak_memory_stats": "(device=None)",
}
RANDOM = {
    "get_rng_state": "(device=None)",
    "get_rng_state_all": "()",
    "initial_seed": "()",
    "manual_seed": "(seed)",
    "manual_seed_all": "(seed)",
    "seed": "()",
    "seed_all": "()",
    "set_rng_state": "(new_state, device=None)",
    "set_rng_state_all": "(new_states)",
}


def words(call: Any, like: str) -> str:
    """A signature without what `self` adds, with types and result where the text beside it has some."""
    found, written = inspect.signature(call, eval_str=True), like.partition(" → ")
    empty = inspect.Signature.empty
    parameters = [
        parameter if ": " in written[0] else parameter.replace(annotation=empty)
        for parameter in found.parameters.values()
        if parameter.name != "self"
    ]
    returns = found.return_annotation if written[1] else empty
    return str(inspect.Signature(parameters, return_annotation=returns)).replace("typing.", "").replace("->", "→")


def test_the_list_is_whole() -> None:
    assert len(LINES) == 21
    assert all(re.fullmatch(r"(class |property )?[\w.]+(\(.*)?", line) for line in LINES)


@pytest.mark.parametrize("line", LINES)
def test_every_line_of_the_specification_holds(line: str) -> None:
    name, _, rest = line.removeprefix("class ").partition("(")
    if line.startswith("property "):
        assert isinstance(inspect.getattr_static(accelerator.Graph, line.split()[1]), property)
        return
    owner = accelerator if name.startswith("tensorplay.accelerator.") else accelerator.Graph
    assert words(getattr(owner, name.rpartition(".")[2]), f"({rest}") == f"({rest}"


@pytest.mark.parametrize(
    ("module", "name", "signature"),
    [("memory", *row) for row in MEMORY.items()] + [("random", *row) for row in RANDOM.items()],
)
def test_memory_and_random_have_the_names_that_programs_use(module: str, name: str, signature: str) -> None:
    assert words(getattr(getattr(accelerator, module), name), signature) == signature


def test_memory_and_streams_stand_in_the_package_too() -> None:
    for name in MEMORY:
        assert getattr(accelerator, name) is getattr(accelerator.memory, name)
    assert {"current_stream", "set_stream", "device_index", "Graph", *MEMORY} < set(accelerator.__all__)


def test_a_device_is_taken_by_position_and_by_name() -> None:
    for name in ("synchronize", "current_stream", "set_device_index", "get_device_capability", "memory_stats"):
        parameter = inspect.signature(getattr(accelerator, name)).parameters["device"]
        assert parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
