"""How a module is saved, loaded, moved and cast."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.modules import Block

import tensorplay
from tensorplay import nn
from tensorplay.errors import DTypeError, InvalidArgumentError


def test_state_dict_names_shared_tensors_twice_and_leaves_scratch_out() -> None:
    assert list(Block().state_dict()) == [
        "scale",
        "steps",
        "first.weight",
        "first.bias",
        "again.weight",
        "again.bias",
    ]


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
