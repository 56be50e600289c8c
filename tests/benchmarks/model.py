"""One MiniLM-L6 forward pass, in ms with the wait for its result, beside the same arithmetic in torch.

    python tests/benchmarks/model.py [--shapes 1x16,1x128,64x128] [--runs 20]

Four tables: without graphs; a graph of each, replayed on the same input; our graph beside torch's of the model with its
fused attention; and with a new input each time, `tensorplay.compile` beside a copy and a replay.

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
#: Of graphs, by dtype and batch; 1 elsewhere.
GRAPH_AIMS = {("float16", 1): 0.85, ("float32", 1): 0.9}


class Lean:
    """The model in plain torch functions; `fused`: with torch's fused attention."""

    def __init__(self, torch: Any, weights: dict[str, np.ndarray[Any, Any]], dtype: str) -> None:
        self.torch, self.fused = torch, False
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
        if self.fused:
            mixed = self.torch.nn.functional.scaled_dot_product_attention(query, key, value)
            return mixed.transpose(1, 2).reshape(batch, tokens, width)
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


def captured(ours: MiniLM, ids: tensorplay.Tensor) -> tuple[Callable[[], None], tensorplay.Tensor]:
    """A replay of the model, and its result."""
    ours(ids)
    graph = tensorplay.cuda.CUDAGraph()
    with tensorplay.cuda.graph(graph):
        result = ours(ids)
    return graph.replay, result


def captured_by_torch(lean: Lean, ids: Any) -> tuple[Callable[[], None], Any]:
    """The same in torch, as its documentation captures."""
    cuda = lean.torch.cuda
    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        lean(ids)
    cuda.current_stream().wait_stream(side)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        result = lean(ids)
    return graph.replay, result


class Case:
    """One shape and dtype, in both libraries.

    Raises
    ------
    AssertionError
        The results differ.
    """

    def __init__(self, ours: MiniLM, lean: Lean | None, dtype: str, batch: int, tokens: int, runs: int) -> None:
        ids = np.random.default_rng(0).integers(1000, 30000, (batch, tokens))
        self.name, self.ours, self.lean, self.runs = f"{dtype}, batch {batch}, {tokens} tokens", ours, lean, runs
        self.graph_aim = GRAPH_AIMS.get((dtype, batch), 1.0)
        self.here = tensorplay.tensor(ids, device="cuda")
        self.there = None if lean is None else lean.torch.from_numpy(ids).cuda()

    def row(self, call: Callable[[], Any], peer: Callable[[], Any] | None, aim: float | None) -> Row:
        """Times both, which take turns."""
        measures: list[Callable[[], float] | None] = [milliseconds(call, tensorplay.cuda.synchronize, self.runs), None]
        if peer is not None:
            assert self.lean is not None
            measures[1] = milliseconds(peer, self.lean.torch.cuda.synchronize, self.runs)
        time_ours, time_peer = medians(*measures)
        assert time_ours is not None
        return Row(self.name, time_ours, time_peer, aim)

    def check(self, result: tensorplay.Tensor, peer: Any) -> None:
        cosine = (result.float().cpu().numpy() * peer.float().cpu().numpy()).sum(-1).min()
        assert cosine > 0.999, f"{self.name}: the results differ, cosine {cosine}"

    def rows(self) -> dict[str, Row]:
        """A row for each table."""
        replay, result = captured(self.ours, self.here)
        compiled = tensorplay.compile(self.ours)
        for _ in range(3):
            again = compiled(self.here)
        replay()
        np.testing.assert_array_equal(again.cpu().numpy(), result.cpu().numpy())
        lean, there = self.lean, self.there
        if lean is None:
            return {
                "eager": self.row(lambda: self.ours(self.here), None, None),
                "graph": self.row(replay, None, None),
                "compiled": self.row(lambda: compiled(self.here), None, None),
            }
        with lean.torch.inference_mode():
            self.check(result, lean(there))
            static = there.clone()
            replay_lean, result_lean = captured_by_torch(lean, static)
            lean.fused = True
            replay_fused, result_fused = captured_by_torch(lean, there)
            lean.fused = False
            for replay_peer, result_peer in ((replay_lean, result_lean), (replay_fused, result_fused)):
                replay_peer()
                self.check(result, result_peer)

            def staged() -> Any:
                static.copy_(there)
                replay_lean()
                return result_lean.clone()

            return {
                "eager": self.row(lambda: self.ours(self.here), lambda: lean(there), AIM),
                "graph": self.row(replay, replay_lean, self.graph_aim),
                "graph, torch with fused attention": self.row(replay, replay_fused, 1.0),
                "compiled": self.row(lambda: compiled(self.here), staged, None),
            }


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
    tables: dict[str, list[Row]] = {}
    for dtype in ("float32", "float16"):  # in this order: rounded weights do not come back
        ours = model.to("cuda", getattr(tensorplay, dtype))
        lean = None if torch is None else Lean(torch, weights, dtype)
        for batch, tokens in shapes:
            for title, row in Case(ours, lean, dtype, batch, tokens, options.runs).rows().items():
                tables.setdefault(title, []).append(row)
    for title, rows in tables.items():
        print_table(f"MiniLM-L6 forward, {title}", "ms", rows)


if __name__ == "__main__":
    main()
