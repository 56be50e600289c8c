"""DLPack's protocol, step by step: what a consumer and a producer of another library would do."""

from __future__ import annotations

import ctypes
import gc
import threading
from typing import Any

import numpy as np
import pytest
from helpers import fresh
from helpers.operands import DTYPES

import tensorplay as tp
from tensorplay import _capsule
from tensorplay.errors import AcceleratorError, DTypeError, ExchangeError, InvalidArgumentError, StateError

api = ctypes.pythonapi
NAME = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


#: What a consumer holds: memory that is lent lives until its deleter is called.
HELD: list[Producer] = []


class Producer:
    """Memory of a tensor as another library would lend it; counts the calls of the deleter."""

    def __init__(self, tensor: tp.Tensor, *, version: tuple[int, int] | None = (1, 0), flags: int = 0) -> None:
        self.tensor, self.version, self.deleted = tensor, version, 0
        self.place = tensor.__dlpack_device__()
        self.asked: dict[str, Any] = {}
        self.keep: Any = tensor.__dlpack__(stream=None if tensor.device.type == "cpu" else -1, max_version=version)
        self.managed, _ = _capsule.read(*_capsule.content(self.keep))
        kind = _capsule.Unversioned if version is None else _capsule.Versioned
        self.lent: Any = kind.from_buffer_copy(self.managed)
        self.deleter = DELETER(self.delete)
        self.lent.deleter = ctypes.cast(self.deleter, ctypes.c_void_p).value
        if version is not None:
            self.lent.major, self.lent.minor = version
            self.lent.flags = flags

    def delete(self, managed: int) -> None:
        self.deleted += 1
        HELD.remove(self)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.place

    def __dlpack__(self, **asked: Any) -> object:
        if self.version is None and set(asked) != {"stream"}:
            raise TypeError("an old producer knows the stream alone")
        self.asked = asked
        HELD.append(self)
        return _capsule.new(ctypes.addressof(self.lent), self.version is not None, 0)


VERSIONS: list[tuple[int, int] | None] = [None, (1, 0), (1, 7)]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_round_trip(dtype: tp.DType, version: tuple[int, int] | None, device: str) -> None:
    tensor = tp.ones(3, 4, dtype=dtype, device=device)[1:, ::2].T
    for given in (tensor, tensor.__dlpack__(max_version=version), Producer(tensor, version=version)):
        again = tp.from_dlpack(given)
        assert again.dtype is dtype
        assert (again.shape, again.stride(), again.device) == (tensor.shape, tensor.stride(), tensor.device)
        assert again.data_ptr() == tensor.data_ptr()
        again[0, 0] = 0
        assert tensor[0, 0].item() == 0
        tensor[0, 0] = 1


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (0, 4, 5)])
def test_shapes_without_elements_or_dimensions(shape: tuple[int, ...], device: str) -> None:
    tensor = tp.ones(shape, device=device)
    for given in (tensor, Producer(tensor)):
        again = tp.from_dlpack(given)
        assert again.shape == shape
        assert again.data_ptr() == tensor.data_ptr()


def test_capsules_are_named_and_renamed(device: str) -> None:
    tensor = tp.ones(3, device=device)
    for version, name in ((None, b"dltensor"), ((0, 8), b"dltensor"), ((1, 0), b"dltensor_versioned")):
        capsule = tensor.__dlpack__(max_version=version)
        assert NAME(capsule) == name
        taken = tp.from_dlpack(capsule)
        assert NAME(capsule) == b"used_" + name
        with pytest.raises(ExchangeError, match="nobody has taken"):
            tp.from_dlpack(capsule)
        assert taken.tolist() == [1, 1, 1]


def test_a_capsule_that_nobody_takes_gives_the_memory_back(device: str) -> None:
    def held() -> int:
        gc.collect()
        return tp.cuda.memory_allocated() if device == "cuda" else 0

    before = held()
    tensor = tp.ones(1000, device=device)
    capsules = [tensor.__dlpack__(max_version=version) for version in VERSIONS]
    del tensor
    if device == "cuda":
        assert held() > before
    del capsules
    assert held() == before


@pytest.mark.parametrize("version", VERSIONS)
def test_the_deleter_is_called_once_when_the_last_view_goes(version: tuple[int, int] | None, device: str) -> None:
    producer = Producer(tp.arange(6, device=device), version=version)
    tensor = tp.from_dlpack(producer)
    view = tensor[2:]
    del tensor
    assert producer.deleted == 0
    assert view.tolist() == [2, 3, 4, 5]
    thread = threading.Thread(target=lambda held: held.clear(), args=([view],))
    del view
    thread.start()
    thread.join()
    if device == "cuda":
        tp.cuda.synchronize()
    assert producer.deleted == 1


def test_a_refused_capsule_stays_the_producers(device: str) -> None:
    producer = Producer(tp.ones(3, device=device), version=(2, 0))
    capsule = producer.__dlpack__()
    with pytest.raises(ExchangeError, match=r"DLPack 2\.0"):
        tp.from_dlpack(capsule)
    assert NAME(capsule) == b"dltensor_versioned"
    assert producer.deleted == 0
    HELD.remove(producer)


def test_read_only_memory_is_copied_or_refused(device: str) -> None:
    tensor = tp.ones(3, device=device)
    copied = tp.from_dlpack(Producer(tensor, flags=1))
    copied.fill_(5)
    assert tensor.tolist() == [1, 1, 1]
    with pytest.raises(BufferError, match="read-only"):
        tp.from_dlpack(Producer(tensor, flags=1), copy=False)
    shared = tp.asarray(Producer(tensor))
    assert shared.data_ptr() == tensor.data_ptr()
    assert tp.asarray(Producer(tensor, flags=1)).data_ptr() != tensor.data_ptr()
    assert tp.tensor(Producer(tensor)).data_ptr() != tensor.data_ptr()


def test_flags_of_an_export(device: str) -> None:
    tensor = tp.ones(3, device=device)
    for copy, flags in ((None, 0), (False, 0), (True, 2)):
        capsule = tensor.__dlpack__(max_version=(1, 0), copy=copy)
        found, given = _capsule.read(*_capsule.content(capsule))
        assert given == flags
        assert (found.tensor.data == tensor.data_ptr()) == (copy is not True)
    assert tp.from_dlpack(tensor, copy=True).data_ptr() != tensor.data_ptr()


def test_what_a_producer_is_asked(device: str) -> None:
    producer = Producer(tp.ones(3, device=device))
    tp.from_dlpack(producer)
    assert producer.asked == {"stream": None if device == "cpu" else 1, "max_version": (1, 1)}
    tp.from_dlpack(producer, copy=False)
    assert producer.asked["copy"] is False
    if device == "cuda":
        with tp.cuda.stream(stream := tp.cuda.Stream()):
            tp.from_dlpack(producer)
        assert producer.asked["stream"] == stream.cuda_stream


@pytest.mark.parametrize("stream", [0, -2, True, "x", 1.0])
def test_streams_that_mean_nothing(stream: Any, device: str) -> None:
    with pytest.raises(InvalidArgumentError, match="__dlpack__: got stream="):
        tp.ones(3, device=device).__dlpack__(stream=stream)


@pytest.mark.parametrize("stream", [-1, 1, 2])
def test_the_host_has_no_streams(stream: int) -> None:
    with pytest.raises(InvalidArgumentError, match="expected None"):
        tp.ones(3).__dlpack__(stream=stream)


def test_stream_2_is_the_per_thread_default_stream(cuda: Any) -> None:
    tensor = tp.arange(3, device="cuda")
    if tp._plugins.get("cuda").describe()["variant"] == "emulated":  # which has none
        with pytest.raises(AcceleratorError, match="invalid resource handle"):
            tensor.__dlpack__(stream=2)
        return
    capsule = tensor.__dlpack__(stream=2)
    cuda.ExternalStream(2).synchronize()
    assert tp.from_dlpack(capsule).tolist() == [0, 1, 2]


def test_an_exchange_in_a_capture(cuda: Any) -> None:
    """It works on the captured stream; what would break the capture is refused, and does not."""
    tensor, g = tp.ones(3, device="cuda"), cuda.CUDAGraph()
    cuda.synchronize()
    with cuda.graph(g):
        doubled = tensor * 2
        taken = [tp.from_dlpack(given) for given in (tensor, doubled, Producer(tensor))]
        taken += [tp.from_dlpack(doubled.__dlpack__(stream=n)) for n in (-1, cuda.current_stream().cuda_stream)]
        total = sum(taken[1:], taken[0])
        for stream in (None, 1):
            with pytest.raises(StateError, match="give stream= as that stream's number, or -1 for no order"):
                doubled.__dlpack__(stream=stream)
    for value in (1, 5):
        tensor.fill_(value)
        g.replay()
        assert total.tolist() == [8 * value] * 3


def test_memory_goes_to_the_host_as_a_copy() -> None:
    if not tp.cuda.is_available():
        pytest.skip("a CUDA device is needed")
    tensor = tp.arange(3, device="cuda")
    assert np.from_dlpack(tensor, device="cpu").tolist() == [0, 1, 2]
    for asked in ({"copy": False}, {"stream": 1}):
        with pytest.raises((ExchangeError, InvalidArgumentError), match="__dlpack__"):
            tensor.__dlpack__(dl_device=(1, 0), **asked)
    for place in ((10, 0), (2, 7), (1, 1)):
        with pytest.raises(BufferError, match="dl_device"):
            tensor.__dlpack__(dl_device=place)


def test_devices_that_no_tensor_has(device: str) -> None:
    producer = Producer(tp.ones(3, device=device))
    producer.place = 10, 0
    with pytest.raises(ExchangeError, match="device type 10"):
        tp.from_dlpack(producer)
    with pytest.raises(ExchangeError, match="expected a capsule of DLPack"):
        tp.from_dlpack(_capsule._new(1, b"another", 0))


def test_a_capsule_of_another_device_than_its_producer_names_is_refused(cuda: Any) -> None:
    host, device = Producer(tp.ones(3)), Producer(tp.ones(3, device="cuda"))
    host.place, device.place = device.place, host.place
    with pytest.raises(ExchangeError, match="got memory of DLPack's device type 1, expected 2"):
        tp.from_dlpack(host)
    with pytest.raises(ExchangeError, match="got memory of DLPack's device type 2, expected 1 or 3"):
        tp.from_dlpack(device)
    HELD.clear()  # what is refused stays the producer's


# -- the emulated device: held streams show the order ---------------------------------------------------


@pytest.mark.parametrize(("number", "waits"), [(None, True), (1, True), (-1, False)])
def test_the_consumers_stream_waits(control: Any, number: int | None, waits: bool) -> None:
    with tp.cuda.stream(stream := tp.cuda.Stream()):
        tensor = tp.ones(100, device="cuda")
        with control.hold(stream):
            tensor.fill_(7)
            capsule = tensor.__dlpack__(stream=number)
            assert tp.cuda.default_stream().query() != waits
        stream.synchronize()
    assert tp.from_dlpack(capsule).tolist() == [7] * 100


def test_the_consumers_own_stream_waits(control: Any) -> None:
    producer, consumer = tp.cuda.Stream(), tp.cuda.Stream()
    with tp.cuda.stream(producer):
        tensor = tp.ones(100, device="cuda")
        with control.hold(producer):
            tensor.fill_(7)
            capsule = tensor.__dlpack__(stream=consumer.cuda_stream)
            assert not consumer.query()
            assert tp.cuda.default_stream().query()
    with tp.cuda.stream(consumer):
        assert tp.from_dlpack(capsule).tolist() == [7] * 100


def test_the_producer_has_its_memory_back_after_our_work(control: Any) -> None:
    producer = Producer(tp.zeros(100, device="cuda"))
    with tp.cuda.stream(stream := tp.cuda.Stream()):
        tensor = tp.from_dlpack(producer)
        with control.hold(stream):
            tensor.fill_(3)
            del tensor
            assert producer.deleted == 0
        stream.synchronize()
        assert producer.deleted == 1


def test_foreign_addresses_are_refused(control: Any) -> None:
    producer = Producer(tp.ones(8, device="cuda"))
    producer.lent.tensor.data = np.ones(8).ctypes.data
    with pytest.raises(ExchangeError, match="expected memory of a CUDA device"):
        tp.from_dlpack(producer)
    HELD.remove(producer)
    with pytest.raises(AcceleratorError, match="invalid resource handle"):
        tp.cuda.ExternalStream(4096)


def test_nothing_is_shared_beside_real_cuda(control: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tensor, stream = tp.ones(3, device="cuda"), tp.cuda.Stream()
    monkeypatch.setattr("tensorplay.cuda._driver.is_loaded", lambda: True)
    for share in (tensor.__dlpack__, lambda: tensor.__cuda_array_interface__, stream.__cuda_stream__):
        with pytest.raises(BufferError, match=r"libcuda\.so\.1 is loaded"):
            share()


def test_is_loaded_asks_and_loads_nothing(control: Any) -> None:
    code = """
    from pathlib import Path
    from tensorplay.cuda import _driver
    assert not _driver.is_loaded()
    assert "libcuda.so" not in Path("/proc/self/maps").read_text()
    """
    fresh.run(code)


def test_memory_that_outlives_python(cuda: Any) -> None:
    code = """
    import ctypes, tensorplay as tp
    from tensorplay import _capsule
    kept = [tp.ones(10, device=d).__dlpack__(max_version=v) for d in ("cpu", "cuda") for v in (None, (1, 0))]
    lent = [tp.from_dlpack(tp.ones(10, device=d)) for d in ("cpu", "cuda")]
    # What another library in C would still hold at the end.
    for one in kept + lent:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))
    """
    fresh.run(code)


def test_copy_is_a_bool_or_none() -> None:
    with pytest.raises(DTypeError, match="from_dlpack: got copy=1, expected a bool"):
        tp.from_dlpack(np.ones(3), copy=1)  # type: ignore[arg-type]
