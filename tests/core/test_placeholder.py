"""Core without tensorplay-cuda, and backends that come from elsewhere."""

from __future__ import annotations

from helpers.fresh import run

TYPE = "tensorplay-cuda is not installed; type `python -m pip install tensorplay_core-*.whl tensorplay_cuda-*.whl`"

# A finder that hides tensorplay.cuda, and no entry points: as if only core were installed.
ALONE = """
import importlib.metadata, sys
from importlib.machinery import PathFinder

found = importlib.metadata.entry_points
importlib.metadata.entry_points = lambda **wanted: []

class Hidden(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.startswith("tensorplay.cuda") else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Hidden
"""


def alone(code: str) -> None:
    run(ALONE + code)


def test_the_module_imports_and_answers_none() -> None:
    alone(
        f"""
import tensorplay
import tensorplay.cuda
from tensorplay import cuda
assert cuda is tensorplay.cuda
assert cuda.is_available() is False
assert cuda.device_count() == 0
reason = cuda.unavailable_reason()
assert reason == "no backend for devices of type 'cuda': {TYPE} in the folder of the wheels", reason
assert tensorplay._plugins.no_accelerator() == "no accelerator: {TYPE} in the folder of the wheels"
assert not hasattr(cuda, "__wrapped__")
"""
    )


def test_other_names_say_what_to_install() -> None:
    alone(
        f"""
import tensorplay
for call in (
    lambda: tensorplay.cuda.Stream,
    lambda: tensorplay.cuda.memory_allocated(),
    lambda: tensorplay.empty(1, device="cuda"),
    lambda: tensorplay.ones(1).cuda(),
    lambda: tensorplay.ones(1).to("cuda:0"),
):
    try:
        call()
    except tensorplay.errors.BackendUnavailableError as error:
        assert "{TYPE}" in str(error), error
    else:
        raise AssertionError
try:
    import tensorplay.cuda.streams
except ImportError:
    pass
else:
    raise AssertionError
assert tensorplay.device("cuda:1").index == 1
assert tensorplay._plugins.accelerator_type() is None
"""
    )


def test_a_backend_of_another_type() -> None:
    alone(
        """
import tensorplay
from tensorplay import _plugins
from tensorplay._host.backend import HostBackend

class Other(HostBackend):
    type = "other"
    seeds = []
    def device_count(self): return 2
    def seed(self, index, seed): self.seeds.append((index, seed))

tensorplay.manual_seed(7)
_plugins.register(Other())
# What was seeded before it came is seeded alike.
assert Other.seeds == [(0, 7), (1, 7)]
assert tensorplay.device("other:1").type == "other"
assert _plugins.accelerator_type() == "other"
assert tensorplay.device(1) == tensorplay.device("other:1")
try:
    tensorplay.device("gpu")
except ValueError as error:
    assert "expected one of cpu, cuda, other" in str(error), error
else:
    raise AssertionError
"""
    )
