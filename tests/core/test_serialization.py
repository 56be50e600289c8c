"""Saving and loading tensors."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.operands import DTYPES, operand, read

import tensorplay
from tensorplay.errors import DTypeError, InvalidArgumentError


def test_tensors_come_back(device: str, tmp_path: Path) -> None:
    kept = [dtype for dtype in DTYPES if dtype is not tensorplay.complex128]
    made = {dtype.name: operand(device, (3, 4), dtype, "transposed", seed=1) for dtype in kept}
    made["empty"] = operand(device, (0, 2), tensorplay.float32, "contiguous", seed=1)
    made["scalar"] = operand(device, (), tensorplay.float16, "contiguous", seed=1)
    file = tmp_path / "a.safetensors"
    tensorplay.save({name: x for name, (x, _) in made.items()}, file, metadata={"made": "here"})
    read_nbytes: list[int] = []
    found = tensorplay.load(file, device=device, progress=read_nbytes.append)
    assert found.keys() == made.keys()
    for name, (x, array) in made.items():
        assert (found[name].dtype, found[name].device) == (x.dtype, x.device)
        np.testing.assert_array_equal(read(found[name]), array)
    assert sorted(read_nbytes) == sorted(x.nbytes for x, _ in made.values())


def test_loaded_tensors_can_be_written(tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    tensorplay.save({"x": tensorplay.zeros(2)}, file)
    x = tensorplay.load(file)["x"]
    x += 1
    assert x.tolist() == [1, 1]
    assert tensorplay.load(str(file))["x"].tolist() == [0, 0]


def test_files_of_other_programs(tmp_path: Path) -> None:
    numpy = pytest.importorskip("safetensors.numpy")
    file = tmp_path / "a.safetensors"
    numpy.save_file({"good": np.arange(3, dtype=np.float32)}, file)
    assert tensorplay.load(file)["good"].tolist() == [0, 1, 2]
    numpy.save_file({"bad": np.zeros(2, np.uint16)}, file)
    with pytest.raises(DTypeError, match=r"load: tensor 'bad': got dtype U16, expected one of BOOL, U8"):
        tensorplay.load(file)


def test_other_programs_read_our_files(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors")
    kept = {dtype.name: tensorplay.ones(3, dtype=dtype) for dtype in DTYPES if dtype is not tensorplay.complex128}
    kept |= {"empty": tensorplay.ones(0, 2), "scalar": tensorplay.ones(()), "ünicode": tensorplay.ones(1)}
    tensorplay.save(kept, tmp_path / "a", metadata={"made": "here"})
    with library.safe_open(tmp_path / "a", framework="numpy") as file:
        assert set(file.keys()) == kept.keys()
        assert file.metadata() == {"made": "here"}
        for name, x in kept.items():
            found = file.get_tensor(name)
            assert (found.dtype, found.shape, (found == 1).all()) == (x.dtype.numpy, x.shape, True)


def test_missing_files(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.safetensors", tmp_path):
        with pytest.raises(FileNotFoundError, match="load: no file at"):
            tensorplay.load(path)
    with pytest.raises(FileNotFoundError, match=r"save: no folder for '.*/missing/a'"):
        tensorplay.save({}, tmp_path / "missing" / "a")


def made(header: Any, elements: bytes = b"") -> bytes:
    """A file with that header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + elements


def entry(dtype: Any = "F32", shape: Any = (1,), places: Any = (0, 4)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": places}


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        (b"", "its 0 bytes do not hold the header"),
        (b"something else entirely", "do not hold the header"),
        (b"PK\3\4\0\0\x08\x08 by torch.save", "a ZIP archive, as torch.save writes: write it with safetensors"),
        ((2**63).to_bytes(8, "little") + b"{}", "do not hold the header"),
        (made(b"{")[:-1] + b"x", "its header is not in JSON"),
        (made(b"[" * 100_000), "its header is not in JSON"),
        (made(b"\xff{}"), "its header is not in JSON"),
        (made(b'{"x": 1, "x": 2}'), "twice"),
        (made([]), "its header does not name tensors"),
        *((made({"x": bad}, bytes(4)), "does not say what tensor 'x' is") for bad in (
            1, [], {}, {"dtype": "F32"}, entry(1), entry(shape=1), entry(shape=(True,)), entry(shape=(1.0,)),
            entry(shape=(-1,)), entry(places=(0,)), entry(places=(0, 4, 4)), entry(places=("0", 4)),
        )),
        (made({"x": entry()}), "it has .* bytes, expected"),
        (made({"x": entry()}, bytes(5)), "it has .* bytes, expected"),
        (made({"x": entry(shape=(2,))}, bytes(4)), "'x' of F32 and shape .2. has 4 bytes"),
        (made({"x": entry(places=(4, 0))}, bytes(4)), "has -4 bytes"),
        (made({"x": entry(places=(4, 8))}, bytes(8)), "starts at byte"),
        (made({"x": entry(), "y": entry()}, bytes(8)), "starts at byte"),
    ],
)  # fmt: skip
def test_damaged_files(tmp_path: Path, contents: bytes, reason: str) -> None:
    file = tmp_path / "a.safetensors"
    file.write_bytes(contents)
    with pytest.raises(InvalidArgumentError, match=f"is no safetensors file: .*{reason}"):
        tensorplay.load(file)


def test_every_cut_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    tensorplay.save({"x": tensorplay.zeros(10), "empty": tensorplay.zeros(0)}, file)
    whole = file.read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        with pytest.raises(InvalidArgumentError, match="is no safetensors file"):
            tensorplay.load(file)


def test_too_many_dimensions(tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    file.write_bytes(made({"x": entry(shape=(1,) * 99)}, bytes(4)))
    with pytest.raises(InvalidArgumentError, match="load: tensor 'x': .*99"):
        tensorplay.load(file)


def test_large_tensors_go_in_steps(device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorplay.serialization, "STEP", 1000)
    file, x = tmp_path / "a.safetensors", tensorplay.arange(1001, dtype=tensorplay.int16).view(7, 143)
    tensorplay.save({"x": x}, file)
    told: list[int] = []
    assert tensorplay.load(file, device=device, progress=told.append)["x"].tolist() == x.tolist()
    assert told == ([2002] if device == "cpu" else [1000, 1000, 2])


def test_elements_anywhere_in_the_file(device: str, tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    header = {"b": entry("U8", (1,), (0, 1)), "x": entry("F64", (2,), (1, 17))}
    file.write_bytes(made(header, b"\7" + np.array([1.5, -2.0]).tobytes()))
    found = tensorplay.load(file, device=device)
    assert (found["b"].tolist(), found["x"].tolist()) == ([7], [1.5, -2.0])
    assert found["x"].data_ptr() % 8 == 0


def test_the_host_reads_when_elements_are_used(tmp_path: Path) -> None:
    """The file is mapped: a tensor outlives its name, and loading takes no memory of its own."""
    file = tmp_path / "a.safetensors"
    tensorplay.save({"x": tensorplay.arange(2**20), "y": tensorplay.ones(3, dtype=tensorplay.bfloat16)}, file)
    tracemalloc.start()
    found = tensorplay.load(file)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()
    file.unlink()
    assert (int(found["x"].sum()), found["y"].tolist()) == (2**20 * (2**20 - 1) // 2, [1, 1, 1])


def test_a_file_can_be_saved_over_itself(tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    tensorplay.save({"x": tensorplay.arange(5)}, file)
    (tmp_path / "link").symlink_to(file)
    x = tensorplay.load(file)["x"]
    tensorplay.save({"x": x + 1}, tmp_path / "link")
    assert (x.tolist(), tensorplay.load(file)["x"].tolist()) == ([0, 1, 2, 3, 4], [1, 2, 3, 4, 5])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.safetensors", "link"]


def test_a_save_that_fails_leaves_the_earlier_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.safetensors"
    tensorplay.save({"x": tensorplay.ones(1)}, file)

    def full(descriptor: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        tensorplay.save({"x": tensorplay.zeros(1)}, file)
    assert tensorplay.load(file)["x"].tolist() == [1]
    assert [path.name for path in tmp_path.iterdir()] == ["a.safetensors"]


@pytest.mark.parametrize("bad", [{1: tensorplay.zeros(1)}, {"x": [1.0]}, {"x": np.zeros(1)}])
def test_what_cannot_be_saved(tmp_path: Path, bad: Any) -> None:
    with pytest.raises(DTypeError, match="save: "):
        tensorplay.save(bad, tmp_path / "a.safetensors")
    assert not list(tmp_path.iterdir())


def test_texts_of_the_header(tmp_path: Path) -> None:
    with pytest.raises(DTypeError, match="save: got metadata 'a': 1, expected texts"):
        tensorplay.save({}, tmp_path / "a", metadata={"a": 1})  # type: ignore[dict-item]
    with pytest.raises(InvalidArgumentError, match="save: got a tensor named __metadata__"):
        tensorplay.save({"__metadata__": tensorplay.ones(1)}, tmp_path / "a")
    assert not list(tmp_path.iterdir())


def test_complex128_is_not_in_the_format(tmp_path: Path) -> None:
    x = tensorplay.ones(2, dtype=tensorplay.complex128)
    with pytest.raises(DTypeError, match=r"save: tensor 'x': got dtype complex128, .* use to\(tensorplay.complex64\)"):
        tensorplay.save({"x": x}, tmp_path / "a.safetensors")
    assert not list(tmp_path.iterdir())


def test_a_module_is_not_what_is_saved(tmp_path: Path) -> None:
    with pytest.raises(DTypeError, match="got Linear, expected tensors by name, as state_dict"):
        tensorplay.save(tensorplay.nn.Linear(1, 1), tmp_path / "x.safetensors")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
