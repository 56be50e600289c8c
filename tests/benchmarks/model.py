"""One MiniLM-L6 forward pass, in ms with the wait for its result, beside the same arithmetic in torch.

    python tests/benchmarks/model.py [--shapes 1x16,1x128,64x128] [--runs 20]

The weights are random: they do not change the time. Both models get the same ones, and their results are
compared before anything is timed.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import Row, find_torch, medians, print_table

import tensorplay

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "examples"))

from minilm import Config, MiniLM

CONFIG = Config(
    vocab_size=30522,
    hidden_size=384,
    num_hidden_layers=6,
    num_attention_heads=12,
    intermediate_size=1536,
    max_position_embeddings=512,
    type_vocab_size=2,
    layer_norm_eps=1e-12,
)
AIM = 0.55


class Lean:
    """The model in plain torch functions."""

    def __init__(self, torch: Any, weights: dict[str, np.ndarray[Any, Any]], dtype: str) -> None:
        self.torch = torch
        self.weights = {
            name: torch.from_numpy(values).to("cuda", getattr(torch, dtype)) for name, values in weights.items()
        }

    def linear(self, x: Any, name: str) -> Any:
        return self.torch.nn.functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def norm(self, x: Any, name: str) -> Any:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return self.torch.nn.functional.layer_norm(x, (CONFIG.hidden_size,), weight, bias, CONFIG.layer_norm_eps)

    def attention(self, hidden: Any, layer: str) -> Any:
        batch, tokens, width = hidden.shape
        heads = CONFIG.num_attention_heads
        query, key, value = (
            self.linear(hidden, f"{layer}.attention.self.{name}")
            .view(batch, tokens, heads, width // heads)
            .transpose(1, 2)
            for name in ("query", "key", "value")
        )
        scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(width // heads))
        return (scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, tokens, width)

    def __call__(self, ids: Any) -> Any:
        functional = self.torch.nn.functional
        words = functional.embedding(ids, self.weights["embeddings.word_embeddings.weight"])
        segment = self.weights["embeddings.token_type_embeddings.weight"][0]
        positions = self.weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        hidden = self.norm(words + segment + positions, "embeddings.LayerNorm")
        for number in range(CONFIG.num_hidden_layers):
            layer = f"encoder.layer.{number}"
            mixed = self.linear(self.attention(hidden, layer), f"{layer}.attention.output.dense")
            attended = self.norm(mixed + hidden, f"{layer}.attention.output.LayerNorm")
            inner = functional.gelu(self.linear(attended, f"{layer}.intermediate.dense"))
            outer = self.linear(inner, f"{layer}.output.dense")
            hidden = self.norm(outer + attended, f"{layer}.output.LayerNorm")
        return functional.normalize(hidden.mean(1), dim=-1)


def milliseconds(call: Callable[[], Any], synchronize: Callable[[], None], runs: int) -> Callable[[], float]:
    """A function that times some runs, each with its wait; it has run once."""

    def once() -> float:
        synchronize()
        start = time.perf_counter()
        for _ in range(runs):
            call()
            synchronize()
        return (time.perf_counter() - start) / runs * 1e3

    once()
    return once


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", default="1x16,1x128,64x128", help="batch x tokens, with commas")
    parser.add_argument("--runs", type=int, default=20, help="forward passes in one measurement")
    options = parser.parse_args()
    shapes = [tuple(map(int, shape.split("x"))) for shape in options.shapes.split(",")]
    torch = find_torch()
    tensorplay.manual_seed(0)
    model = MiniLM(CONFIG).eval()
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    rows = []
    for dtype in ("float32", "float16"):  # in this order: rounded weights do not come back
        ours = model.to("cuda", getattr(tensorplay, dtype))
        lean = None if torch is None else Lean(torch, weights, dtype)
        for batch, tokens in shapes:
            ids = np.random.default_rng(0).integers(1000, 30000, (batch, tokens))
            rows.append(compare(f"{dtype}, batch {batch}, {tokens} tokens", ours, lean, ids, options.runs))
    print_table("MiniLM-L6 forward, eager", "ms", rows)


def compare(name: str, ours: MiniLM, lean: Lean | None, ids: np.ndarray[Any, Any], runs: int) -> Row:
    """Times both on the same ids, once they agree."""
    here = tensorplay.tensor(ids, device="cuda")
    measure = milliseconds(lambda: ours(here), tensorplay.cuda.synchronize, runs)
    if lean is None:
        (time_ours,) = medians(measure)
        assert time_ours is not None
        return Row(name, time_ours, None)
    there = lean.torch.from_numpy(ids).cuda()
    with lean.torch.inference_mode():
        cosine = (ours(here).float().cpu().numpy() * lean(there).float().cpu().numpy()).sum(-1).min()
        assert cosine > 0.999, f"{name}: the results differ, cosine {cosine}"
        peer = milliseconds(lambda: lean(there), lean.torch.cuda.synchronize, runs)
        time_ours, time_peer = medians(measure, peer)
    assert time_ours is not None
    return Row(name, time_ours, time_peer, AIM)


if __name__ == "__main__":
    main()
