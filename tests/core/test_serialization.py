"""Saving and loading tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.fresh import run
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
    with pytest.raises(DTypeError, match=r"load: tensor 'bad': .*uint16, expected one of bool, int32"):
        tensorplay.load(file)
    tensorplay.save({"x": tensorplay.ones(2, dtype=tensorplay.bfloat16)}, file)
    assert numpy.load_file(file)["x"].tolist() == [1, 1]


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"load: no file at '.*missing.safetensors'"):
        tensorplay.load(tmp_path / "missing.safetensors")
    file = tmp_path / "a.safetensors"
    tensorplay.save({"x": tensorplay.zeros(100)}, file)
    whole = file.read_bytes()
    for damaged in (b"", b"PK\3\4 something else entirely", whole[:-1], whole[:20]):
        file.write_bytes(damaged)
        with pytest.raises(InvalidArgumentError, match="is no safetensors file"):
            tensorplay.load(file)


@pytest.mark.parametrize("bad", [{1: tensorplay.zeros(1)}, {"x": [1.0]}, {"x": np.zeros(1)}])
def test_what_cannot_be_saved(tmp_path: Path, bad: Any) -> None:
    with pytest.raises(DTypeError, match="save: "):
        tensorplay.save(bad, tmp_path / "a.safetensors")
    assert not (tmp_path / "a.safetensors").exists()


def test_complex128_is_not_in_the_format(tmp_path: Path) -> None:
    x = tensorplay.ones(2, dtype=tensorplay.complex128)
    with pytest.raises(DTypeError, match=r"save: tensor 'x': got dtype complex128, .* use to\(tensorplay.complex64\)"):
        tensorplay.save({"x": x}, tmp_path / "a.safetensors")
    assert not list(tmp_path.iterdir())


def test_without_the_library() -> None:
    run(
        """
        import sys
        sys.modules["safetensors"] = None
        import tensorplay
        for call in (lambda: tensorplay.load("x"), lambda: tensorplay.save({}, "x")):
            try:
                call()
            except tensorplay.errors.BackendUnavailableError as error:
                assert "pip install safetensors" in str(error), error
            else:
                raise AssertionError
        """
    )


def test_a_module_is_not_what_is_saved(tmp_path: Path) -> None:
    with pytest.raises(DTypeError, match="got Linear, expected tensors by name, as state_dict"):
        tensorplay.save(tensorplay.nn.Linear(1, 1), tmp_path / "x.safetensors")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
