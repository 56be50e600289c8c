"""The backend's own part: handles, scalars, copies to and from the host. tests/contract has the operations."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from helpers import fresh

import tensorplay as tp
from tensorplay import _dtype, errors
from tensorplay.cuda._backend import backend
from tensorplay.cuda._library import native

DTYPES = list(_dtype.DTYPES.values())


def test_the_entry_point_is_this_object(gpu: None) -> None:
    assert tp.zeros(1, device="cuda")._backend is backend


def test_release_is_the_c_function_itself(gpu: None) -> None:
    tp.zeros(1, device="cuda")
    assert backend.release is native.tp_tensor_release


@pytest.mark.smoke
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (5, 7), (2, 1, 3)])
def test_host_and_back(gpu: None, dtype: tp.DType, shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype.numpy)
    tensor = tp.tensor(values, device="cuda")
    assert tensor.dtype is dtype
    assert tensor.shape == shape
    back = tensor.cpu().numpy()
    assert back.dtype == dtype.numpy
    assert back.shape == shape
    assert back.tobytes() == values.tobytes()


def test_strided_and_foreign_arrays_come_in_order(gpu: None) -> None:
    values = np.arange(24, dtype=np.int32).reshape(4, 6)
    for view in (values.T, values[::2, ::-1], np.asfortranarray(values), values[1]):
        assert (tp.tensor(view, device="cuda").cpu().numpy() == view).all()


def test_source_may_change_after_the_copy(gpu: None) -> None:
    values = np.ones(100_000, dtype=np.float32)
    tensor = tp.tensor(values, device="cuda")
    values[:] = 2
    assert tensor.sum().item() == 100_000


def test_unknown_dtype_is_refused(gpu: None) -> None:
    with pytest.raises(errors.DTypeError, match="uint32"):
        backend.from_host(np.zeros(2, dtype=np.uint32), tp.device("cuda:0"))


def test_bfloat16_is_not_float16(gpu: None) -> None:
    values = np.array([1.5, -2.25], dtype=ml_dtypes.bfloat16)
    assert tp.tensor(values, device="cuda").float().tolist() == [1.5, -2.25]


def test_out_is_returned_itself_and_holds_no_second_handle(gpu: None) -> None:
    a, out = tp.ones(8, device="cuda"), tp.empty(8, device="cuda")
    assert backend.binary("add", a, a, out) is out
    assert backend.unary("neg", a, out) is out
    assert backend.where(a > 0, a, a, out) is out
    assert a.add_(1) is a
    allocated = tp.cuda.memory_allocated()
    del out
    assert tp.cuda.memory_allocated() == allocated - 512


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [True, 3, -(2**31), 2.5, float("inf")])
def test_scalars_on_both_sides_are_weak(gpu: None, dtype: tp.DType, value: float) -> None:
    host = tp.tensor([0, 1], dtype=dtype)
    for op in ("add", "mul", "eq"):
        for operands in ((host, value), (value, host)):
            expected = host._backend.binary(op, *operands)
            moved = [one.cuda() if isinstance(one, tp.Tensor) else one for one in operands]
            found = backend.binary(op, *moved)
            assert found.dtype is expected.dtype
            np.testing.assert_array_equal(found.float().cpu().numpy(), expected.float().numpy())


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**200])
def test_integers_outside_int64_are_refused(gpu: None, value: int) -> None:
    tensor = tp.zeros(2, dtype=tp.int64, device="cuda")
    for call in (lambda: tensor + value, lambda: value - tensor, lambda: tensor.fill_(value)):
        with pytest.raises(errors.InvalidArgumentError, match=str(value)):
            call()
    assert tensor.tolist() == [0, 0]


def test_sizes_and_dimensions_outside_c_types_are_refused(gpu: None) -> None:
    tensor = tp.zeros((2, 3), device="cuda")
    with pytest.raises(errors.InvalidArgumentError):
        tensor.view(2**64, -1)
    with pytest.raises(errors.OutOfRangeError):
        tensor.transpose(0, 2**40)
    with pytest.raises(errors.OutOfRangeError):
        tensor.sum(dim=2**40)


@pytest.mark.parametrize("dims", [(0, 0), (0, -2), (5,), (-3,)])
def test_bad_dimensions_of_a_reduction_are_refused(gpu: None, dims: tuple[int, ...]) -> None:
    with pytest.raises((errors.InvalidArgumentError, errors.OutOfRangeError)) as found:
        backend.reduce("sum", tp.zeros((2, 3), device="cuda"), dims)
    with pytest.raises(type(found.value)) as expected:
        tp.zeros((2, 3)).sum(dim=dims)
    assert str(found.value) == str(expected.value)


def test_normalized_shape_is_checked_though_c_sees_its_length_only(gpu: None) -> None:
    tensor, weight = tp.zeros((2, 3), device="cuda"), tp.ones(3, device="cuda")
    for normalized, scale in (((4,), None), ((4,), weight), ((3, 3), None), ((), None), ((3, 2, 3), None)):
        with pytest.raises(errors.InvalidArgumentError, match="layer_norm"):
            backend.layer_norm(tensor, normalized, scale, None, 1e-5)


@pytest.mark.smoke
def test_fault_of_the_device_comes_with_the_next_wait(gpu: None) -> None:
    weight = tp.zeros((10, 4), device="cuda")
    rows = backend.embedding(weight, tp.tensor([1, 99], device="cuda"))
    with pytest.raises(errors.OutOfRangeError, match="99"):
        tp.cuda.synchronize()
    del rows
    assert backend.embedding(weight, tp.tensor([9], device="cuda")).sum().item() == 0


@pytest.mark.smoke
def test_copies_between_devices(two_gpus: None) -> None:
    there = tp.arange(1000, device="cuda:0").to("cuda:1")
    assert there.device == tp.device("cuda:1")
    assert there.sum().item() == 499500
    back = tp.empty(1000, dtype=tp.float32, device="cuda:0")
    back.copy_(there)
    assert back.sum().item() == 499500
    with pytest.raises(errors.InvalidArgumentError, match="cuda:0 and cuda:1"):
        back + there


def test_handles_know_their_storage(gpu: None) -> None:
    tensor = tp.zeros((4, 6), device="cuda")
    view = tensor[1:, ::2]
    assert backend.storage_id(view._impl) == backend.storage_id(tensor._impl)
    assert backend.storage_id(view._impl) != backend.storage_id(tensor.clone()._impl)
    assert backend.storage_nbytes(view._impl) == tensor.nbytes
    assert view.storage_offset() == 6
    assert view.stride() == (6, 2)
    assert not view.is_contiguous()
    assert view.data_ptr() == tensor.data_ptr() + 6 * 4


@pytest.mark.smoke
def test_description_tells_the_variant(gpu: None) -> None:
    tp.zeros(1, device="cuda")
    facts = backend.describe()
    assert facts["variant"] in ("cuda12", "cuda13", "emulated")
    assert facts["started"]
    assert "matrix products" in facts


def test_state_of_the_generator_goes_back(gpu: None) -> None:
    backend.seed(0, 5)
    tp.rand(10, device="cuda")
    seed, offset = backend.get_rng_state(0)
    assert (seed, offset) == (5, 12)
    following = tp.rand(4, device="cuda").tolist()
    backend.set_rng_state(0, seed, offset)
    assert tp.rand(4, device="cuda").tolist() == following
    with pytest.raises(errors.InvalidArgumentError):
        backend.set_rng_state(0, 5, 3)


def test_a_default_dtype_from_before_the_start_is_told(gpu: None) -> None:
    printed = fresh.run("""
        import tensorplay as tp
        tp.set_default_dtype(tp.float64)
        ones = tp.ones(2, dtype=tp.int64, device="cuda")
        print((ones / 3).dtype, (ones + 0.1).tolist())
        tp.set_default_dtype(tp.float16)
        print(ones.exp().dtype)
    """)
    assert printed.split("\n") == ["tensorplay.float64 [1.1, 1.1]", "tensorplay.float16", ""]


def test_what_a_start_that_fails_has_to_tell_is_told(gpu: None) -> None:
    printed = fresh.run(
        """
        import tensorplay as tp
        tp.set_default_dtype(tp.float64)
        tp.manual_seed(7)
        try:
            tp.ones(2, device="cuda")
        except tp.errors.InvalidArgumentError as error:
            print(error)
        print((tp.ones(2, dtype=tp.int64, device="cuda") / 3).dtype, tp.cuda.initial_seed())
        """,
        TENSORPLAY_CUDA_SANITIZER="yes",
    )
    assert printed == "TENSORPLAY_CUDA_SANITIZER: got 'yes', expected 0 or 1\ntensorplay.float64 7\n"


def test_a_start_that_is_interrupted_is_repeated(gpu: None) -> None:
    printed = fresh.run("""
        import os
        import tensorplay as tp
        from tensorplay.cuda import _native
        from tensorplay.cuda._library import native
        tp._plugins.get("cuda")  # all that has something to tell
        tp.set_default_dtype(tp.float64)
        tp.manual_seed(7)
        tp.cuda.memory.set_memory_limit(2**30)
        calls, bind = native.at_start, _native.bind
        def bind_and_interrupt(variant):
            _native.bind = bind
            bind(variant)
            raise KeyboardInterrupt
        for place, call in enumerate([*calls, None]):
            def interrupt():
                calls[place] = call
                raise KeyboardInterrupt
            child = os.fork()
            if child:
                assert os.waitpid(child, 0)[1] == 0, call
                continue
            if call is None:
                _native.bind = bind_and_interrupt
            else:
                calls[place] = interrupt
            try:
                tp.ones(2, device="cuda")
            except KeyboardInterrupt:
                third = tp.ones(2, dtype=tp.int64, device="cuda") / 3
                told = third.dtype, tp.cuda.initial_seed(), tp.cuda.memory.get_memory_limit()
                os._exit(told != (tp.float64, 7, 2**30))
            os._exit(2)
        print(len(calls))
    """)
    assert int(printed) > 5
