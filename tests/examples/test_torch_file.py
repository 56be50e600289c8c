"""The reader of torch's files, on files of that format which are written here."""

from __future__ import annotations

import io
import pickle
import sys
import types
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch_file


class Storage:
    """The memory of tensors, by the name of torch's class for it."""

    def __init__(self, kind: str, array: np.ndarray) -> None:
        self.kind, self.array = kind, array


class View:
    """A tensor: what torch's pickle says of it."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return sys.modules["torch._utils"]._rebuild_tensor_v2, (*self.arguments, False, OrderedDict())


@pytest.fixture
def write(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Writes an object as `torch.save` does, and gives the path."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")

    def named(kind: str, module: str) -> Any:
        return type(kind, (), {"__module__": module})

    utils._rebuild_tensor_v2 = named("_rebuild_tensor_v2", "torch._utils")  # type: ignore[attr-defined]
    for kind in ("FloatStorage", "HalfStorage", "LongStorage", "BFloat16Storage"):
        setattr(torch, kind, named(kind, "torch"))
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch._utils", utils)

    def save(content: object) -> Path:
        storages: list[Storage] = []

        class Pickler(pickle.Pickler):
            def persistent_id(self, item: Any) -> Any:
                if not isinstance(item, Storage):
                    return None
                storages.append(item)
                return "storage", getattr(torch, item.kind), str(len(storages) - 1), "cpu", item.array.size

        stream = io.BytesIO()
        Pickler(stream, 2).dump(content)
        path = tmp_path / "weights.pth"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/data.pkl", stream.getvalue())
            for key, storage in enumerate(storages):
                archive.writestr(f"archive/data/{key}", storage.array.tobytes())
        return path

    return save


def test_shapes_strides_and_offsets(write: Any) -> None:
    numbers = np.arange(12, dtype="<f4")
    state = OrderedDict(
        whole=View(Storage("FloatStorage", numbers), 0, (3, 4), (4, 1)),
        turned=View(Storage("FloatStorage", numbers), 0, (4, 3), (1, 4)),
        part=View(Storage("FloatStorage", numbers), 5, (2, 2), (4, 2)),
        count=View(Storage("LongStorage", np.array([7])), 0, (), ()),
        nothing=View(Storage("HalfStorage", np.zeros(0, "<f2")), 0, (0, 3), (3, 1)),
    )
    read = torch_file.load(write(state))
    assert list(read) == list(state)
    np.testing.assert_array_equal(read["whole"], numbers.reshape(3, 4))
    np.testing.assert_array_equal(read["turned"], numbers.reshape(3, 4).T)
    np.testing.assert_array_equal(read["part"], [[5, 7], [9, 11]])
    assert (read["count"].item(), read["count"].dtype) == (7, np.int64)
    assert (read["nothing"].shape, read["nothing"].dtype) == ((0, 3), np.float16)


class Run:
    """What a hostile file would do."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("raise SystemExit('the file has run')",)


@pytest.mark.parametrize("state", [{"weight": Run()}, Run(), OrderedDict(weight=print)])
def test_nothing_of_a_file_is_run(write: Any, state: object) -> None:
    with pytest.raises(ValueError, match=r"__builtin__\.\w+ is not allowed"):
        torch_file.load(write(state))


@pytest.mark.parametrize(("offset", "shape", "strides"), [(0, (13,), (1,)), (-1, (2,), (1,)), (3, (3, 4), (4, 1))])
def test_tensors_lie_inside_their_storage(write: Any, offset: int, shape: Any, strides: Any) -> None:
    view = View(Storage("FloatStorage", np.arange(12, dtype="<f4")), offset, shape, strides)
    with pytest.raises(ValueError, match="no state_dict"):
        torch_file.load(write({"weight": view}))


def test_other_files_are_refused(write: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected tensors by their names"):
        torch_file.load(write([1, 2]))
    with pytest.raises(ValueError, match=r"torch\.BFloat16Storage is not allowed"):
        torch_file.load(write({"weight": View(Storage("BFloat16Storage", np.zeros(2, "<f2")), 0, (2,), (1,))}))
    short = write({})
    with zipfile.ZipFile(short, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({}, 2)[:-1])
    with pytest.raises(ValueError, match="Ran out of input"):
        torch_file.load(short)
    text = tmp_path / "text.pth"
    text.write_text("not an archive")
    with pytest.raises(ValueError, match=r"text\.pth is no state_dict"):
        torch_file.load(text)
    with zipfile.ZipFile(text, "w") as archive:
        archive.writestr("something", "else")
    with pytest.raises(ValueError, match=r"got 0 members data\.pkl"):
        torch_file.load(text)
