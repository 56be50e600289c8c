"""all-MiniLM-L6-v2 on every device, against vectors that NumPy computed in float64 (`reference_minilm`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tensorplay

pytest.importorskip("tokenizers")
pytest.importorskip("safetensors")

import semantic_search
from reference_minilm import TEXTS, VECTORS, Reference
from sentence_encoder import SentenceEncoder


def embed(encoder: SentenceEncoder, texts: list[str], batch_size: int) -> np.ndarray:
    vectors = encoder.embed(encoder.tokenize(texts), batch_size)
    assert vectors.dtype is tensorplay.float32
    return vectors.cpu().numpy().astype(np.float64)


def test_the_stored_vectors_are_those_of_the_reference(weights_folder: Path) -> None:
    reference = Reference(weights_folder)
    stored = np.load(VECTORS)
    assert stored.shape == (len(TEXTS), 384)
    for row in (1, 3, 8):
        np.testing.assert_allclose(reference.embed(TEXTS[row]), stored[row], atol=1e-12)


@pytest.mark.parametrize(("dtype", "least"), [("float32", 0.99999), ("float16", 0.999)])
def test_embeddings_agree_with_the_reference(weights_folder: Path, device: str, dtype: str, least: float) -> None:
    encoder = SentenceEncoder(weights_folder, device, getattr(tensorplay, dtype))
    vectors = embed(encoder, TEXTS, batch_size=4)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    cosines = (vectors * np.load(VECTORS)).sum(axis=1) / np.linalg.norm(vectors, axis=1)
    assert cosines.min() >= least, dict(zip(TEXTS, cosines, strict=True))


def test_a_text_does_not_feel_the_others_of_its_batch(weights_folder: Path, device: str) -> None:
    encoder = SentenceEncoder(weights_folder, device)
    texts = ["volcano", "", TEXTS[6], TEXTS[5], TEXTS[7]]
    together = embed(encoder, texts, batch_size=5)
    alone = embed(encoder, texts, batch_size=1)
    np.testing.assert_allclose(together, alone, atol=2e-6)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_graphs_give_the_same_embeddings(weights_folder: Path, dtype: str) -> None:
    if not tensorplay.cuda.is_available():
        pytest.skip("no CUDA device")
    graphs = SentenceEncoder(weights_folder, "cuda", getattr(tensorplay, dtype), graph=True)
    without = SentenceEncoder(weights_folder, "cuda", getattr(tensorplay, dtype))
    without.graph = True  # the same shapes
    rounds = [embed(graphs, TEXTS, batch_size=2) for _ in range(3)]
    for vectors in rounds:
        np.testing.assert_array_equal(vectors, embed(without, TEXTS, batch_size=2))
    counts = graphs.run.compiled.statistics()
    assert counts["replays"] == counts["calls"] - counts["captures"] > 2 * counts["captures"] > 0
    without.graph = False
    cosines = (rounds[-1] * embed(without, TEXTS, batch_size=4)).sum(axis=1)
    assert cosines.min() > (0.999999 if dtype == "float32" else 0.999)


def test_the_shipped_sentences_have_an_answer_to_each_question(weights_folder: Path) -> None:
    answers = {
        "How do I bake bread?": "Knead the dough",
        "I forgot my login": "To reset your password",
        "Which animals sing in the sea?": "Whales sing",
        "Why is my savings account worth less?": "Interest rates rose",
        "When did humans first set foot on another world?": "In 1969",
    }
    sentences = (Path(semantic_search.__file__).parent / "sentences.txt").read_text(encoding="utf-8").splitlines()
    encoder = SentenceEncoder(weights_folder)
    scores = embed(encoder, list(answers), 8) @ embed(encoder, sentences, 8).T
    found = [sentences[best] for best in scores.argmax(axis=1)]
    for sentence, start in zip(found, answers.values(), strict=True):
        assert sentence.startswith(start)


def test_no_texts_give_no_vectors(weights_folder: Path) -> None:
    encoder = SentenceEncoder(weights_folder)
    assert encoder.embed(encoder.tokenize([])).shape == (0, 384)


def test_long_texts_are_cut_at_the_limit_of_the_model(weights_folder: Path) -> None:
    encoder = SentenceEncoder(weights_folder)
    fits, cut = encoder.tokenize(["word " * 254, "word " * 255])
    assert len(fits.ids) == len(cut.ids) == encoder.max_tokens == 256
    assert not fits.overflowing
    assert cut.overflowing


def test_progress_adds_up(weights_folder: Path) -> None:
    read: list[int] = []
    done: list[int] = []
    encoder = SentenceEncoder(weights_folder, progress=read.append)
    encoder.embed(encoder.tokenize(["a", "b", "c"]), batch_size=2, progress=done.append)
    assert done == [2, 1]
    assert 90_000_000 < sum(read) <= (weights_folder / "model.safetensors").stat().st_size
