"""Modules in the compiler backend: weights that are replaced, modes, and captures that fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from helpers.managers import vector

import tensorplay as tp
from tensorplay import cuda, nn
from tensorplay.compiler.backends.cudagraphs import CudaGraphManager
from tensorplay.errors import StateError

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="no CUDA device")


class Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(vector(2, 3))
        self.inner = nn.Dropout(0.5)
        self.register_buffer("calls", tp.zeros(1, device="cuda"))

    def forward(self, x: tp.Tensor) -> tp.Tensor:
        self.calls.add_(1)
        return self.inner(x * self.weight)


CHANGES: dict[str, Callable[[Scale], Any]] = {
    "assigned": lambda module: setattr(module, "weight", nn.Parameter(vector(5, 6))),
    "data": lambda module: setattr(module.weight, "data", vector(5, 6)),
    "loaded": lambda module: module.load_state_dict(
        {"weight": vector(5, 6), "calls": tp.zeros(1, device="cuda")}, assign=True
    ),
    "cast": lambda module: module.double(),
    "exchanged": lambda module: setattr(module, "inner", nn.Identity()),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
@pytest.mark.parametrize("as_method", [False, True])
def test_weights_that_were_replaced_are_noticed(change: Callable[[Scale], Any], as_method: bool) -> None:
    module = Scale().eval()
    manager = CudaGraphManager(module.forward if as_method else module)
    x = vector(1, 1)
    for _ in range(3):
        assert manager(x).tolist() == [2, 3]
    change(module)
    expected = (x * module.weight).tolist()
    for _ in range(3):
        assert manager(x).tolist() == expected
    assert manager.statistics()["renewals"] == 1
    assert manager.statistics()["captures"] == 2
    assert module.calls.item() == (3 if change is CHANGES["loaded"] else 6)


def test_weights_that_are_written_in_place_are_seen() -> None:
    module = Scale().eval()
    manager = CudaGraphManager(module, warmup=0)
    assert manager(vector(1, 1)).tolist() == [2, 3]
    module.load_state_dict({"weight": vector(7, 8), "calls": vector(0)})
    assert manager(vector(1, 1)).tolist() == [7, 8]
    assert manager.statistics()["captures"] == 1


def test_modes_have_graphs_of_their_own() -> None:
    module = Scale()
    manager = CudaGraphManager(module, warmup=0)
    module.eval()
    assert manager(vector(1, 1)).tolist() == [2, 3]
    module.train()
    assert set(manager(vector(1, 1)).tolist()) <= {0, 4, 6}
    module.eval()
    assert manager(vector(1, 1)).tolist() == [2, 3]


def test_modules_are_arguments() -> None:
    manager = CudaGraphManager(lambda module, x: module(x), warmup=0)
    one, two = Scale().eval(), Scale().eval()
    two.weight.fill_(1)
    for _ in range(2):
        assert manager(one, vector(1, 1)).tolist() == [2, 3]
        assert manager(two, vector(1, 1)).tolist() == [1, 1]
    one.weight.data = vector(9, 9)
    assert manager(one, vector(1, 1)).tolist() == [9, 9]
    assert manager.statistics()["captures"] == 3


class Rewriting(nn.Module):
    """Replaces a tensor of its own in each call, where it could have written it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("state", tp.zeros(1, device="cuda"))
        self.made: tp.Tensor | None = None

    def forward(self, x: tp.Tensor) -> tp.Tensor:
        self.state = self.state + x
        return self.state * 1


def test_a_module_that_replaces_its_tensors_is_refused_and_left_as_it_was() -> None:
    module = Rewriting()
    manager = CudaGraphManager(module)
    assert [manager(vector(1)).item() for _ in range(4)] == [1, 2, 3, 4]
    assert module.state.item() == 4
    assert "replaces a tensor or a part of its module" in manager.refusals()[0]


class Lazy(nn.Module):
    """Makes its table in the first call, and cannot be captured."""

    def __init__(self) -> None:
        super().__init__()
        self.table: tp.Tensor | None = None
        self.register_buffer("state", tp.zeros(1, device="cuda"))

    def forward(self, x: tp.Tensor) -> tp.Tensor:
        if self.table is None:
            self.table = x * 0 + 3
            self.register_buffer("other", x + 1)
        self.state.data = self.state + 1
        return x * self.table.item()


def test_what_a_failed_capture_made_is_forgotten() -> None:
    module = Lazy()
    with pytest.raises(StateError, match="Lazy: cannot be captured"):
        CudaGraphManager(module, warmup=0, fullgraph=True)(vector(2))
    assert list(module.state_dict()) == ["state"]
    assert module.state_dict()["state"].item() == 0
    manager = CudaGraphManager(module, warmup=0)
    for count in (1, 2):
        assert manager(vector(2)).item() == 6
        assert module.state.item() == count
        assert module.state_dict()["other"].item() == 3
    assert len(manager.refusals()) == 1
