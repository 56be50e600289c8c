"""What a module owns, how it is walked through, shown and copied."""

from __future__ import annotations

import copy
import pickle

import pytest
from helpers.modules import Block

import tensorplay
from tensorplay import nn
from tensorplay.errors import DTypeError, InvalidArgumentError, StateError


def test_walks_give_each_object_once_own_things_first() -> None:
    block = Block()
    assert [name for name, _ in block.named_parameters()] == ["scale", "first.weight", "first.bias"]
    assert [name for name, _ in block.named_buffers()] == ["steps", "scratch"]
    assert [name for name, _ in block.named_modules()] == ["", "first"]
    assert [name for name, _ in block.named_children()] == ["first"]
    assert [name for name, _ in block.named_parameters("block", recurse=False)] == ["block.scale"]


def test_walks_that_name_shared_things_each_time() -> None:
    block = Block()
    names = ["", "first", "again"]
    assert [name for name, _ in block.named_modules(remove_duplicate=False)] == names
    parameters = ["scale", "first.weight", "first.bias", "again.weight", "again.bias"]
    assert [name for name, _ in block.named_parameters(remove_duplicate=False)] == parameters
    assert [name for name, _ in block.named_modules({block.first}, prefix="top")] == ["top"]


def test_there_are_no_gradients() -> None:
    block = Block()
    block.zero_grad()
    assert block.requires_grad_(False) is block
    with pytest.raises(StateError, match="no autograd"):
        block.requires_grad_()


def test_train_and_eval_reach_all_modules() -> None:
    block = Block()
    assert block.training
    assert block.first.training
    assert block.eval() is block
    assert not block.training
    assert not block.first.training
    block.train()
    assert block.first.training
    with pytest.raises(DTypeError):
        block.train("yes")  # type: ignore[arg-type]


def test_attributes_keep_their_kind() -> None:
    block = Block()
    with pytest.raises(TypeError, match="expected a Parameter"):
        block.scale = tensorplay.ones(3)
    with pytest.raises(TypeError, match="expected a Module"):
        block.first = 3
    with pytest.raises(TypeError, match="expected a Tensor"):
        block.steps = 3
    block.scale = None
    assert [name for name, _ in block.named_parameters(recurse=False)] == []
    block.scale = nn.Parameter(tensorplay.zeros(1))
    with pytest.raises(InvalidArgumentError, match="taken by a Parameter"):
        block.register_buffer("scale", tensorplay.zeros(1))
    block.register_buffer("steps", block.scale)
    assert [name for name, _ in block.named_parameters(recurse=False)] == ["scale"]
    block.steps = nn.Parameter(tensorplay.zeros(1))
    assert [name for name, _ in block.named_buffers()] == ["scratch"]
    assert [name for name, _ in block.named_parameters(recurse=False)] == ["scale", "steps"]
    del block.steps
    assert [name for name, _ in block.named_buffers()] == ["scratch"]


@pytest.mark.parametrize("name", ["", "a.b", "forward", "training", "named_parameters"])
def test_bad_names_are_refused(name: str) -> None:
    module = nn.Module()
    for register, value in (
        (module.add_module, nn.Identity()),
        (module.register_parameter, nn.Parameter(tensorplay.ones(1))),
        (module.register_buffer, tensorplay.ones(1)),
    ):
        with pytest.raises(InvalidArgumentError, match="got the name"):
            register(name, value)  # type: ignore[operator]


def test_wrong_kinds_are_refused_by_register() -> None:
    module = nn.Module()
    with pytest.raises(DTypeError, match="expected a Module"):
        module.add_module("a", 3)  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match="expected a Parameter"):
        module.register_parameter("a", tensorplay.ones(1))  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match="expected a Tensor"):
        module.register_buffer("a", 3)  # type: ignore[arg-type]
    assert not hasattr(module, "a")


def test_init_must_run_first() -> None:
    class Forgetful(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Identity()

    with pytest.raises(StateError, match=r"before Module\.__init__"):
        Forgetful()


def test_forward_must_be_defined() -> None:
    with pytest.raises(NotImplementedError, match="Module"):
        nn.Module()(1)


def test_get_submodule_names_what_is_missing() -> None:
    model = nn.Sequential(Block())
    assert model.get_submodule("") is model
    assert model.get_submodule("0.first") is model[0].first  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="'second'"):
        model.get_submodule("0.second")


def test_get_parameter_and_get_buffer() -> None:
    model = nn.Sequential(Block())
    assert model.get_parameter("0.first.weight") is model[0].first.weight
    assert model.get_buffer("0.scratch") is model[0].scratch
    for call, name in ((model.get_parameter, "0.scratch"), (model.get_buffer, "0.scale"), (model.get_buffer, "1.x")):
        with pytest.raises(AttributeError):
            call(name)


def test_a_module_may_be_none() -> None:
    block = Block()
    block.add_module("extra", None)
    block.add_module("first", None)
    assert [name for name, _ in block.named_children()] == ["again"]


def test_apply_visits_children_before_their_parent() -> None:
    seen: list[str] = []
    model = nn.Sequential(nn.Linear(1, 1), nn.GELU())
    assert model.apply(lambda module: seen.append(type(module).__name__)) is model
    assert seen == ["Linear", "GELU", "Sequential"]


def test_repr_is_torchs() -> None:
    model = nn.Sequential(
        nn.Linear(2, 3), nn.ModuleList([nn.GELU(), nn.LayerNorm(3)]), nn.Embedding(3, 4, padding_idx=0)
    )
    assert repr(model) == (
        "Sequential(\n"
        "  (0): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (1): ModuleList(\n"
        "    (0): GELU(approximate='none')\n"
        "    (1): LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=True)\n"
        "  )\n"
        "  (2): Embedding(3, 4, padding_idx=0)\n"
        ")"
    )


def test_repr_of_several_lines() -> None:
    class Told(nn.Module):
        def extra_repr(self) -> str:
            return "a=1\nb=2"

    assert repr(Told()) == "Told(\n  a=1\n  b=2\n)"
    told = Told()
    told.inner = nn.ReLU()
    assert repr(told) == "Told(\n  a=1\n  b=2\n  (inner): ReLU()\n)"


def test_copies_are_independent() -> None:
    block = Block()
    for other in (copy.deepcopy(block), pickle.loads(pickle.dumps(block))):
        assert isinstance(other.scale, nn.Parameter)
        assert other.again is other.first
        other.scale.fill_(3)
        assert block.scale.tolist() == [1, 1, 1]
        assert other(tensorplay.ones(1, 2)).shape == (1, 3)


def test_parameter_shares_its_data() -> None:
    data = tensorplay.ones(2)
    parameter = nn.Parameter(data)
    data.fill_(4)
    assert parameter.tolist() == [4, 4]
    assert isinstance(parameter, tensorplay.Tensor)
    assert type(parameter + 1) is tensorplay.Tensor
    assert repr(parameter) == "Parameter containing:\n" + repr(data)
    assert not parameter.requires_grad


def test_parameter_refuses_what_it_cannot_be() -> None:
    with pytest.raises(DTypeError, match="got list"):
        nn.Parameter([1.0])  # type: ignore[arg-type]
    with pytest.raises(StateError, match="autograd"):
        nn.Parameter(tensorplay.ones(1), requires_grad=True)
