"""The tensor class itself: a handle, with no autograd behind it."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import tensorplay
from tensorplay import nn
from tensorplay.errors import DTypeError, InvalidArgumentError, StateError


def test_the_class_makes_no_tensors() -> None:
    with pytest.raises(DTypeError, match="use tensorplay.tensor"):
        tensorplay.Tensor(2, 3)
    gc.collect()  # The object that was not made goes silently: warnings are errors here.


def test_tensors_have_no_other_attributes() -> None:
    with pytest.raises(AttributeError):
        tensorplay.ones(1).colour = "red"  # type: ignore[attr-defined]


def test_identity_is_what_hashes() -> None:
    x, y = tensorplay.ones(2), tensorplay.ones(2)
    assert len({x, y, x}) == 2
    assert weakref.ref(x)() is x


def test_description(device: str) -> None:
    x = tensorplay.zeros(2, 3, 4, dtype=tensorplay.float16, device=device)
    assert (x.ndim, x.dim(), x.numel(), x.itemsize, x.element_size(), x.nbytes) == (3, 3, 24, 2, 2, 48)
    assert (x.size(), x.size(-1), x.stride(), x.stride(0)) == ((2, 3, 4), 4, (12, 4, 1), 12)
    assert x[1, :, 1:].storage_offset() == 13
    assert x[1].data_ptr() - x.data_ptr() == 24
    assert x.is_floating_point()
    assert (x.nelement(), x.ndimension()) == (24, 3)
    assert (x.is_cuda, x.is_cpu, x.get_device()) == ((True, False, 0) if device == "cuda" else (False, True, -1))
    assert tensorplay.is_tensor(x)
    assert not tensorplay.is_tensor(np.zeros(2))


def test_there_is_no_autograd(device: str) -> None:
    x = tensorplay.ones(2, device=device)
    assert x.requires_grad is False
    assert x.grad is None
    assert x.requires_grad_(False) is x
    x.requires_grad = False
    for call in (x.backward, x.requires_grad_, lambda: setattr(x, "requires_grad", True)):
        with pytest.raises(StateError, match="TensorPlay has no autograd"):
            call()

    @tensorplay.no_grad()
    def double(t: tensorplay.Tensor) -> tensorplay.Tensor:
        return t + t

    with tensorplay.no_grad(), tensorplay.inference_mode(), tensorplay.inference_mode(False):
        assert double(x).tolist() == [2, 2]
    with tensorplay.set_grad_enabled(False):
        assert tensorplay.is_grad_enabled() is False
    with pytest.raises(StateError, match="set_grad_enabled: TensorPlay has no autograd"):
        tensorplay.set_grad_enabled(True)


def test_data_is_the_elements(device: str) -> None:
    x = nn.Parameter(tensorplay.zeros(2, device=device))
    assert type(x.data) is tensorplay.Tensor
    x.data.copy_(tensorplay.ones(2, device=device))
    assert x.tolist() == [1, 1]
    other = tensorplay.arange(6, device="cpu").reshape(2, 3)
    x.data = other
    assert type(x) is nn.Parameter
    assert (x.device.type, x.dtype, x.shape) == ("cpu", tensorplay.int64, (2, 3))
    other[0, 0] = 9
    assert x[0].tolist() == [9, 1, 2]
    with pytest.raises(DTypeError, match=r"data: got int, expected a tensor"):
        x.data = 1  # type: ignore[assignment]


def test_format(device: str) -> None:
    x = tensorplay.tensor([1.5, 2.0], device=device)
    assert (f"{x}", f"{x[0]:.2f}") == (str(x), "1.50")
    with pytest.raises(DTypeError, match=r"format: got '.2f' for a tensor of shape \(2,\)"):
        f"{x:.2f}"


def test_numpy_leaves_operators_to_the_tensor() -> None:
    x = tensorplay.ones(2)
    for result in (np.float32(2) * x, np.int64(2) * x, np.array(2.0) * x):
        assert isinstance(result, tensorplay.Tensor)
        assert result.dtype is tensorplay.float32
    with pytest.raises(DTypeError, match="NumPy array of shape"):
        np.ones(2) * x


def test_results_of_parameters_are_plain_tensors(device: str) -> None:
    x = nn.Parameter(tensorplay.ones(2, device=device))
    for result in (x + 1, x.exp(), x[0], x.clone(), x @ x, x.to(tensorplay.float16)):
        assert type(result) is tensorplay.Tensor


def test_whole_tensors_are_compared() -> None:
    x = tensorplay.tensor([1.0, float("nan")])
    assert not tensorplay.equal(x, x)
    assert tensorplay.equal(x[:1], tensorplay.ones(1))
    assert not tensorplay.equal(x, x[:1])
    assert tensorplay.allclose(x, x + 1e-9, equal_nan=True)
    assert not tensorplay.allclose(x, x)
    assert not tensorplay.allclose(x[:1], x[:1] * 1.001)


def test_methods_in_place_are_named_and_refuse_what_is_no_operand(device: str) -> None:
    x = tensorplay.ones(2, device=device)
    assert x.add_.__name__ == "add_"
    assert x.exp_.__doc__ == "As `exp`, in place."
    for other in ("a", [1, 2], None):
        with pytest.raises(DTypeError, match=f"add: got {type(other).__name__}"):
            x.add_(other)
        with pytest.raises(TypeError, match="unsupported operand"):
            x += other
    assert x.tolist() == [1, 1]


@pytest.mark.parametrize("name", ["cat", "stack"])
def test_one_tensor_is_no_sequence_of_tensors(name: str) -> None:
    x = tensorplay.ones(2, 2)
    with pytest.raises(DTypeError, match=f"{name}: got Tensor, expected a sequence of tensors"):
        getattr(tensorplay, name)(x, x)


def test_complex_numbers_come_out(device: str) -> None:
    x = tensorplay.tensor([1 + 2j], dtype=tensorplay.complex64, device=device)
    assert complex(x) == x.item() == x.tolist()[0] == 1 + 2j
    assert complex(tensorplay.tensor(1.5, device=device)) == 1.5
    assert bool(x * 1j)
    assert f"{x[0]:.1f}" == "1.0+2.0j"
    assert (float(x - 2j), int(x - 2j)) == (1.0, 1)
    for convert in (float, int):
        with pytest.raises(InvalidArgumentError, match=r"got \(1\+2j\), expected a number without an imaginary part"):
            convert(x)
    assert (x.is_complex(), x.is_floating_point(), x.is_signed()) == (True, False, True)


def test_one_integer_is_an_index(device: str) -> None:
    items = [10, 20, 30]
    for index in (tensorplay.tensor([2]), tensorplay.tensor(1, dtype=tensorplay.uint8), tensorplay.tensor(True)):
        assert items[index.to(device)] == items[int(index)]
    for bad in (tensorplay.tensor([0, 1]), tensorplay.tensor(1.0), tensorplay.tensor(1j)):
        with pytest.raises(DTypeError, match=r"index: got a tensor .*, expected one integer"):
            items[bad.to(device)]


def test_element_types_by_name(device: str) -> None:
    x = tensorplay.tensor([0.0, 1.0], device=device)
    for name, dtype in [
        ("double", "float64"), ("float", "float32"), ("half", "float16"), ("bfloat16", "bfloat16"),
        ("cfloat", "complex64"), ("cdouble", "complex128"), ("bool", "bool"), ("byte", "uint8"),
        ("char", "int8"), ("short", "int16"), ("int", "int32"), ("long", "int64"),
    ]:  # fmt: skip
        converted = getattr(x, name)()
        assert converted.dtype is getattr(tensorplay, dtype)
        assert converted.tolist() == [0, 1]


def test_sequences_of_parts(device: str) -> None:
    x = tensorplay.tensor([[1, 2], [3, 4]], device=device)
    assert [part.tolist() for part in x] == x.tolist()
    assert len(x) == 2
    for call in (len, iter):
        with pytest.raises(DTypeError, match="got a tensor without dimensions"):
            call(x[0, 0])
