"""What a module owns, how it is walked through, moved, saved and loaded."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import tensorplay
from tensorplay import nn
from tensorplay.errors import DTypeError, InvalidArgumentError, StateError


class Block(nn.Module):
    """A module with everything: a parameter, two buffers, children, one of them shared."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.scale = nn.Parameter(tensorplay.ones(3))
        self.again = self.first
        self.register_buffer("steps", tensorplay.zeros(1, dtype=tensorplay.int64))
        self.register_buffer("scratch", tensorplay.zeros(2), persistent=False)
        self.missing = None

    def forward(self, input: tensorplay.Tensor) -> tensorplay.Tensor:
        return self.first(input) * self.scale


def test_walks_give_each_object_once_own_things_first() -> None:
    block = Block()
    assert [name for name, _ in block.named_parameters()] == ["scale", "first.weight", "first.bias"]
    assert [name for name, _ in block.named_buffers()] == ["steps", "scratch"]
    assert [name for name, _ in block.named_modules()] == ["", "first"]
    assert [name for name, _ in block.named_children()] == ["first"]
    assert [name for name, _ in block.named_parameters("block", recurse=False)] == ["block.scale"]


def test_state_dict_names_shared_tensors_twice_and_leaves_scratch_out() -> None:
    assert list(Block().state_dict()) == [
        "scale",
        "steps",
        "first.weight",
        "first.bias",
        "again.weight",
        "again.bias",
    ]


def test_walks_that_name_shared_things_each_time() -> None:
    block = Block()
    names = ["", "first", "again"]
    assert [name for name, _ in block.named_modules(remove_duplicate=False)] == names
    parameters = ["scale", "first.weight", "first.bias", "again.weight", "again.bias"]
    assert [name for name, _ in block.named_parameters(remove_duplicate=False)] == parameters
    assert [name for name, _ in block.named_modules({block.first}, prefix="top")] == ["top"]


def test_state_dict_into_a_given_one() -> None:
    block, state = Block(), {"other": tensorplay.ones(1)}
    assert block.state_dict(destination=state, prefix="block.") is state
    assert list(state)[:2] == ["other", "block.scale"]
    kept = block.state_dict(keep_vars=True)
    assert kept["scale"] is block.scale


def test_state_dict_shares_memory() -> None:
    block = Block()
    block.state_dict()["scale"].fill_(7)
    assert block.scale.tolist() == [7, 7, 7]
    assert type(block.state_dict()["scale"]) is tensorplay.Tensor


def test_load_state_dict_copies_and_keeps_dtype() -> None:
    block = Block()
    state = {
        name: tensorplay.full_like(tensor, 2).to(tensorplay.float16) for name, tensor in block.state_dict().items()
    }
    result = block.load_state_dict(state)
    assert result == ([], [])
    assert repr(result) == "<All keys matched successfully>"
    assert block.scale.tolist() == [2, 2, 2]
    assert block.scale.dtype is tensorplay.float32
    state["scale"].fill_(9)
    assert block.scale.tolist() == [2, 2, 2]


def test_load_state_dict_assign_takes_tensors_over() -> None:
    layer = nn.Linear(2, 1)
    weight = layer.weight
    state = {"weight": tensorplay.ones(1, 2, dtype=tensorplay.float16), "bias": tensorplay.zeros(1)}
    layer.load_state_dict(state, assign=True)
    assert layer.weight is weight
    assert layer.weight.dtype is tensorplay.float16
    state["weight"].fill_(5)
    assert layer.weight.tolist() == [[5, 5]]


def test_load_state_dict_names_every_misfit_and_changes_nothing() -> None:
    block = Block()
    before = {name: tensor.tolist() for name, tensor in block.state_dict().items()}
    state: dict[str, Any] = dict(block.state_dict())
    del state["steps"]
    state |= {"extra": tensorplay.ones(1), "scale": tensorplay.ones(4), "first.bias": [1, 2, 3]}
    state["first.weight"] = tensorplay.full((3, 2), 8.0)
    with pytest.raises(InvalidArgumentError) as caught:
        block.load_state_dict(state)
    text = str(caught.value)
    for part in (
        "Block",
        "missing: steps",
        "unexpected: extra",
        "scale, got (4,), expected (3,)",
        "first.bias, got list",
    ):
        assert part in text
    assert {name: tensor.tolist() for name, tensor in block.state_dict().items()} == before


def test_load_state_dict_not_strict_reports_and_still_refuses_shapes() -> None:
    layer = nn.Linear(2, 1)
    result = layer.load_state_dict({"weight": tensorplay.ones(1, 2), "other": tensorplay.ones(1)}, strict=False)
    assert result.missing_keys == ["bias"]
    assert result.unexpected_keys == ["other"]
    assert repr(result) == "IncompatibleKeys(missing_keys=['bias'], unexpected_keys=['other'])"
    assert layer.weight.tolist() == [[1, 1]]
    with pytest.raises(InvalidArgumentError, match="wrong shape: weight"):
        layer.load_state_dict({"weight": tensorplay.ones(2, 2)}, strict=False)


def test_to_keeps_parameter_objects_and_casts_only_floating_tensors() -> None:
    block = Block()
    parameters = dict(block.named_parameters())
    assert block.half() is block
    assert dict(block.named_parameters()) == parameters
    assert {tensor.dtype for tensor in block.parameters()} == {tensorplay.float16}
    assert block.steps.dtype is tensorplay.int64
    assert block.scratch.dtype is tensorplay.float16
    assert block.again.weight is block.first.weight
    assert block.bfloat16().scale.dtype is tensorplay.bfloat16
    assert block.float().scale.dtype is tensorplay.float32
    assert block.double().scale.dtype is tensorplay.float64
    assert block.to(tensorplay.ones(1, dtype=tensorplay.float16)).scale.dtype is tensorplay.float16
    assert block.to("cpu", tensorplay.float32).scale.dtype is tensorplay.float32
    assert isinstance(block.scale, nn.Parameter)


def test_complex_parameters_are_cast_by_to_alone() -> None:
    module = nn.ParameterDict({"z": tensorplay.ones(1, dtype=tensorplay.complex64), "x": tensorplay.ones(1)})
    assert module.double()["z"].dtype is tensorplay.complex64
    assert module["x"].dtype is tensorplay.float64
    assert module.to(tensorplay.complex128)["z"].dtype is tensorplay.complex128
    assert module["x"].dtype is tensorplay.complex128


def test_type_casts_integers_too() -> None:
    block = Block().type(tensorplay.float16)
    assert block.steps.dtype is tensorplay.float16
    with pytest.raises(DTypeError, match="float32"):
        block.type("float32")  # type: ignore[arg-type]


def test_there_are_no_gradients() -> None:
    block = Block()
    block.zero_grad()
    assert block.requires_grad_(False) is block
    with pytest.raises(StateError, match="no autograd"):
        block.requires_grad_()


def test_to_that_fails_leaves_the_module_as_it_was() -> None:
    block = Block()
    with pytest.raises(DTypeError, match="int64"):
        block.to(tensorplay.int64)
    with pytest.raises(InvalidArgumentError):
        block.to("gpu")
    assert block.scale.dtype is tensorplay.float32


def test_to_moves_everything_and_back(device: str) -> None:
    block = Block()
    parameters = dict(block.named_parameters())
    weight = block.first.weight.tolist()
    block.to(device)
    assert {tensor.device.type for tensor in (*block.parameters(), *block.buffers())} == {device}
    assert block(tensorplay.ones(1, 2, device=device)).device.type == device
    block.to("cpu", non_blocking=True)
    assert block.scale.device.type == "cpu"
    getattr(block, device)()
    assert block.scale.device.type == device
    block.cpu()
    assert dict(block.named_parameters()) == parameters
    assert block.first.weight.tolist() == weight


def test_to_that_runs_out_of_memory_on_the_way_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    block = Block()
    convert = tensorplay.Tensor.to
    calls = 0

    def third_fails(tensor: tensorplay.Tensor, *args: Any, **kwargs: Any) -> tensorplay.Tensor:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise tensorplay.OutOfMemoryError("to: no room")
        return convert(tensor, *args, **kwargs)

    monkeypatch.setattr(tensorplay.Tensor, "to", third_fails)
    with pytest.raises(tensorplay.OutOfMemoryError):
        block.half()
    assert calls == 3
    assert {tensor.dtype for tensor in block.parameters()} == {tensorplay.float32}


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
