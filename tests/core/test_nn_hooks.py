"""Functions that are called before and after a module."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import tensorplay
from tensorplay import nn
from tensorplay.errors import DTypeError


class Times(nn.Module):
    """Multiplies by a factor."""

    def forward(self, input: tensorplay.Tensor, factor: float = 1.0) -> tensorplay.Tensor:
        if factor == 0:
            raise ZeroDivisionError
        return input * factor


def double(module: nn.Module, args: tuple[Any, ...], result: tensorplay.Tensor) -> tensorplay.Tensor:
    return result * 2


X = tensorplay.tensor([3.0])


def test_a_pre_hook_sees_and_changes_the_arguments() -> None:
    module = Times()
    seen: list[Any] = []
    module.register_forward_pre_hook(lambda module, args: seen.append((module, args)))
    assert module(X, 2.0).tolist() == [6.0]
    assert seen == [(module, (X, 2.0))]
    module.register_forward_pre_hook(lambda module, args: args[0] + 1)
    assert module(X).tolist() == [4.0]
    module.register_forward_pre_hook(lambda module, args: (args[0], 10.0))
    assert module(X).tolist() == [40.0]


def test_a_pre_hook_with_keywords() -> None:
    module = Times()
    handle = module.register_forward_pre_hook(
        lambda module, args, kwargs: (args, {"factor": kwargs["factor"] + 1}), with_kwargs=True
    )
    assert module(X, factor=2.0).tolist() == [9.0]
    handle.remove()
    module.register_forward_pre_hook(lambda module, args, kwargs: None, with_kwargs=True)
    assert module(X, factor=2.0).tolist() == [6.0]
    module.register_forward_pre_hook(lambda module, args, kwargs: args, with_kwargs=True)
    with pytest.raises(DTypeError, match="expected None or"):
        module(X, factor=2.0)


def test_a_hook_sees_and_changes_the_result() -> None:
    module = Times()
    seen: list[Any] = []
    module.register_forward_hook(lambda module, args, result: seen.append((args, result.tolist())))
    module.register_forward_hook(double)
    assert module(X, 2.0).tolist() == [12.0]
    assert seen == [((X, 2.0), [6.0])]
    module.register_forward_hook(lambda module, args, kwargs, result: result + kwargs["factor"], with_kwargs=True)
    assert module(X, factor=2.0).tolist() == [14.0]


def test_hooks_are_called_in_order_and_until_they_are_removed() -> None:
    module = Times()
    order: list[int] = []

    def noting(number: int) -> Any:
        return lambda *args: order.append(number)

    handles = [module.register_forward_hook(noting(number)) for number in range(3)]
    module.register_forward_hook(noting(3), prepend=True)
    module(X)
    assert order == [3, 0, 1, 2]
    handles[1].remove()
    handles[1].remove()
    order.clear()
    module(X)
    assert order == [3, 0, 2]
    with handles[0]:
        pass
    order.clear()
    module(X)
    assert order == [3, 2]
    assert len({handle.id for handle in handles}) == 3


def test_a_hook_that_is_always_called() -> None:
    module = Times()
    seen: list[Any] = []
    module.register_forward_hook(lambda module, args, result: seen.append("plain"))
    module.register_forward_hook(lambda module, args, result: seen.append(result), always_call=True)
    with pytest.raises(ZeroDivisionError):
        module(X, 0)
    assert seen == [None]


def test_a_hook_may_remove_itself() -> None:
    module = Times()
    handle = module.register_forward_hook(lambda *args: handle.remove())
    assert module(X).tolist() == module(X).tolist() == [3.0]


def test_hooks_run_inside_a_model_and_go_along_with_copies() -> None:
    model = nn.Sequential(nn.Identity(), Times())
    handle = model[1].register_forward_hook(double)
    assert model(X).tolist() == [6.0]
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other(X).tolist() == [6.0]
    handle.remove()
    assert model(X).tolist() == [3.0]


def test_the_handle_outlives_the_module() -> None:
    module = Times()
    handle = module.register_forward_hook(double)
    del module
    handle.remove()


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(DTypeError, match="register_forward_hook: got int"):
        nn.Identity().register_forward_hook(3)  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match="register_forward_pre_hook: got int"):
        nn.Identity().register_forward_pre_hook(3)  # type: ignore[arg-type]
