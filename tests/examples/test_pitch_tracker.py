"""The example as a user runs it."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ElementTree
from functools import partial
from pathlib import Path

import melody
import pytest
from helpers import examples

track = partial(examples.run, "pitch_tracker")


def test_it_draws_what_it_heard(crepe_weights: Path, tmp_path: Path, device: str) -> None:
    path = tmp_path / "heard.svg"
    done = track("--device", device, "--picture", str(path))
    assert done.returncode == 0, done.stderr
    assert "100%" in done.stderr
    pattern = r"(\d+) frames, (\d+) of them with a pitch\nHalf of these are at most ([\d.]+) cents"
    found = re.search(pattern, done.stdout)
    assert found is not None, done.stdout
    frames, dots = int(found[1]), int(found[2])
    assert frames == 301
    assert dots > 280
    assert float(found[3]) < 10
    assert ("memory summary" in done.stdout.lower()) == (device != "cpu")

    picture = ElementTree.parse(path).getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert len(picture.findall(f"{space}circle")) == dots
    assert len(picture.findall(f"{space}polyline")) == len(melody.notes())


def failure(*arguments: str, **environment: str) -> str:
    done = track("--device", "cpu", *arguments, **environment)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done.stderr


def test_clean_errors(crepe_weights: Path, tmp_path: Path) -> None:
    assert "'gpu'" in failure("--device", "gpu")
    assert "cannot write the picture" in failure("--picture", str(tmp_path / "no" / "such" / "folder.svg"))


def test_a_missing_weights_package_is_named(tmp_path: Path) -> None:
    pytest.importorskip("tqdm")
    # A package of the same name without its files hides the real one.
    (tmp_path / "torchcrepe").mkdir()
    (tmp_path / "torchcrepe" / "__init__.py").touch()
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    assert "torchcrepe==0.0.24" in failure(PYTHONPATH=paths)


def test_notes_of_a_tune() -> None:
    first, last = melody.notes("A4 1  - 1  F#4~C5 2", beat=0.5)
    assert first == melody.Note(0.0, 0.5, 69, 69)
    assert last == melody.Note(1.0, 2.0, 66, 72)
