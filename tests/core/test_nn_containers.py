"""Modules and parameters in order, or by name."""

from __future__ import annotations

import pytest

import tensorplay
from tensorplay import nn
from tensorplay.errors import DTypeError, InvalidArgumentError, OutOfRangeError


def kinds(modules: object) -> list[str]:
    return [type(module).__name__ for module in modules]  # type: ignore[attr-defined]


def test_sequential() -> None:
    relu = nn.ReLU()
    model = nn.Sequential(relu, nn.Tanh(), relu)
    assert len(model) == 3
    assert model[-1] is relu
    assert kinds(model[:2]) == ["ReLU", "Tanh"]
    assert model(tensorplay.tensor([-1.0])).tolist() == [0.0]
    assert len(model.append(nn.GELU())) == 4
    with pytest.raises(IndexError, match="got index 4"):
        model[4]
    named = nn.Sequential({"a": nn.Linear(1, 1, bias=False), "b": relu})
    assert list(named.state_dict()) == ["a.weight"]
    named[0] = nn.Tanh()
    assert [name for name, _ in named.named_children()] == ["a", "b"]


@pytest.mark.parametrize("make", [nn.ModuleList, lambda modules: nn.Sequential(*modules)], ids=["list", "sequential"])
def test_what_is_put_in_and_taken_out_renames_the_rest(make: type[nn.ModuleList]) -> None:
    modules = make([nn.ReLU(), nn.Tanh(), nn.GELU()])
    assert kinds(modules.insert(1, nn.SiLU())) == ["ReLU", "SiLU", "Tanh", "GELU"]
    assert kinds(modules.insert(4, nn.Mish())) == ["ReLU", "SiLU", "Tanh", "GELU", "Mish"]
    assert type(modules.pop(-2)) is nn.GELU
    del modules[0]
    assert kinds(modules) == ["SiLU", "Tanh", "Mish"]
    assert [name for name, _ in modules.named_children()] == ["0", "1", "2"]
    del modules[1:]
    assert kinds(modules.extend([nn.ELU()])) == ["SiLU", "ELU"]
    with pytest.raises(OutOfRangeError, match="got index 2"):
        modules.pop(2)


def test_module_list() -> None:
    layers = nn.ModuleList(nn.Linear(1, 1) for _ in range(2))
    layers.append(nn.Linear(1, 1, bias=False))
    layers[0] = nn.Identity()
    assert list(layers.state_dict()) == ["1.weight", "1.bias", "2.weight"]
    assert len(layers[1:]) == 2


def test_module_dict() -> None:
    relu = nn.ReLU()
    named = nn.ModuleDict({"one": nn.Linear(1, 1, bias=False), "two": relu})
    assert list(named) == named.keys() == ["one", "two"]
    assert named["two"] is relu
    assert "three" not in named
    assert "training" not in named
    assert [name for name, _ in named.items()] == ["one", "two"]
    assert named.values()[1] is relu
    del named["one"]
    assert len(named) == 1
    for missing in ("one", "training"):
        with pytest.raises(KeyError):
            named[missing]
        with pytest.raises(KeyError):
            del named[missing]
    assert named.pop("two") is relu
    named.update([("three", relu)])
    named.clear()
    assert len(named) == 0
    with pytest.raises(InvalidArgumentError, match="'keys'"):
        named["keys"] = relu


def test_parameter_list() -> None:
    first = nn.Parameter(tensorplay.ones(2))
    parameters = nn.ParameterList([first, tensorplay.zeros(3)])
    assert parameters[0] is first
    assert isinstance(parameters[-1], nn.Parameter)
    assert list(parameters.state_dict()) == ["0", "1"]
    parameters[1] = tensorplay.ones(1)
    assert [parameter.shape for parameter in parameters.extend([tensorplay.ones(4)])] == [(2,), (1,), (4,)]
    assert len(parameters[1:]) == 2
    with pytest.raises(IndexError, match="got index 3"):
        parameters[3]
    with pytest.raises(DTypeError, match="got int"):
        parameters.append(3)  # type: ignore[arg-type]


def test_parameter_dict() -> None:
    parameters = nn.ParameterDict({"a": tensorplay.ones(2)})
    parameters["b"] = nn.Parameter(tensorplay.ones(1))
    assert list(parameters) == parameters.keys() == ["a", "b"]
    assert parameters.items()[0][1] is parameters["a"] is parameters.values()[0]
    assert list(nn.Sequential(parameters).state_dict()) == ["0.a", "0.b"]
    del parameters["a"]
    assert "a" not in parameters
    assert len(parameters) == 1
    for call in (lambda: parameters["a"], lambda: parameters.__delitem__("a")):
        with pytest.raises(KeyError):
            call()


def test_repr_is_torchs(device: str) -> None:
    at = " (cuda:0)" if device == "cuda" else ""
    model = nn.Sequential(
        nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Linear(1, 2)]),
        nn.ParameterList([tensorplay.ones(2, 3, device=device), tensorplay.ones(1, device=device)]),
    )
    assert repr(model) == (
        "Sequential(\n"
        "  (0): ModuleList(\n"
        "    (0-1): 2 x ReLU()\n"
        "    (2): Linear(in_features=1, out_features=2, bias=True)\n"
        "  )\n"
        "  (1): ParameterList(\n"
        f"      (0): Parameter containing: [tensorplay.float32 of size 2x3{at}]\n"
        f"      (1): Parameter containing: [tensorplay.float32 of size 1{at}]\n"
        "  )\n"
        ")"
    )
