"""A transformer writes a whole sequence in one replay of one graph: a while node stops at the end token.

    python docs/examples/while_decode.py [--seed SEED] [--sequences N]

The decoder is small and its weights come from a seed, so what it writes means nothing; each token is drawn from the
distribution that the model gives. Every step keeps the keys and values of its token on the device, and the device
decides whether there is another step. The same step runs three times over: eagerly, as a graph that is replayed once
for each token, and as the body of a while node. All three write the same tokens.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING

from without_gpu import use_emulated_device_without_gpu

if TYPE_CHECKING:
    import tensorplay as tp

BEGIN, END = 0, 1
WORDS, LONGEST = 32, 96
WIDTH, HEADS, LAYERS = 64, 4, 2


class Layer:
    """Attention to all tokens so far, then two products."""

    def __init__(self) -> None:
        import tensorplay as tp

        def weight(rows: int, columns: int) -> tp.Tensor:
            return tp.randn(rows, columns, device="cuda") / columns**0.5

        self.to_all, self.to_out = weight(3 * WIDTH, WIDTH), weight(WIDTH, WIDTH)
        self.to_hidden, self.from_hidden = weight(4 * WIDTH, WIDTH), weight(WIDTH, 4 * WIDTH)
        self.keys, self.values = tp.zeros(2, LONGEST, HEADS, WIDTH // HEADS, device="cuda")

    def __call__(self, x: tp.Tensor, place: tp.Tensor, is_seen: tp.Tensor) -> tp.Tensor:
        import tensorplay as tp
        import tensorplay.nn.functional as F

        query, key, value = F.linear(F.layer_norm(x, (WIDTH,)), self.to_all).view(3, 1, HEADS, WIDTH // HEADS)
        self.keys.index_copy_(0, place, key)
        self.values.index_copy_(0, place, value)
        scores = (query * self.keys).sum(-1) / (WIDTH // HEADS) ** 0.5
        weights = tp.where(is_seen, scores, float("-inf")).softmax(0)
        attended = (weights.unsqueeze(-1) * self.values).sum(0)
        x = x + F.linear(attended.view(1, WIDTH), self.to_out)
        return x + F.linear(F.gelu(F.linear(F.layer_norm(x, (WIDTH,)), self.to_hidden)), self.from_hidden)


class Decoder:
    """Writes one sequence after the other. Everything that a step changes is memory of the device."""

    def __init__(self) -> None:
        import tensorplay as tp

        self.words, self.to_words = tp.randn(2, WORDS, WIDTH, device="cuda")
        self.places = tp.randn(LONGEST, WIDTH, device="cuda")
        self.layers = [Layer() for _ in range(LAYERS)]
        self.all_places = tp.arange(LONGEST, device="cuda").view(LONGEST, 1)
        self.place = tp.zeros(1, dtype=tp.int64, device="cuda")
        self.token = tp.zeros(1, dtype=tp.int64, device="cuda")
        self.tokens = tp.zeros(LONGEST, dtype=tp.int64, device="cuda")
        self.noise = tp.zeros(1, WORDS, device="cuda")
        self.goes_on = tp.zeros(1, dtype=tp.bool, device="cuda")

    def begin(self) -> None:
        """A new sequence."""
        self.place.zero_()
        self.token.fill_(BEGIN)
        self.tokens.fill_(END)
        self.goes_on.fill_(True)

    def step(self) -> None:
        """One token more."""
        import tensorplay as tp
        import tensorplay.nn.functional as F

        x = F.embedding(self.token, self.words) + F.embedding(self.place, self.places)
        is_seen = self.all_places <= self.place
        for layer in self.layers:
            x = layer(x, self.place, is_seen)
        logits = F.linear(F.layer_norm(x, (WIDTH,)), self.to_words) / WIDTH**0.5
        self.noise.exponential_()  # The word with the least noise for its probability is a draw from them all.
        self.token.copy_((logits - self.noise.log()).argmax(-1))
        self.tokens.index_copy_(0, self.place, self.token)
        self.place.add_(1)
        tp.logical_and(self.token != END, self.place < LONGEST, out=self.goes_on)

    def written(self) -> list[int]:
        """The sequence, its end token left out."""
        found: list[int] = self.tokens.tolist()
        return found[: found.index(END)] if END in found else found


def eagerly(decoder: Decoder) -> None:
    """A call for each operation, and a look at the device for each token."""
    decoder.begin()
    while decoder.goes_on.item():
        decoder.step()


def step_by_step(decoder: Decoder) -> Callable[[Decoder], None]:
    """A replay, and a look at the device, for each token."""
    import tensorplay as tp

    graph = tp.cuda.CUDAGraph()
    with tp.cuda.graph(graph):
        decoder.step()

    def run(decoder: Decoder) -> None:
        decoder.begin()
        while decoder.goes_on.item():
            graph.replay()

    return run


def at_once(decoder: Decoder) -> Callable[[Decoder], None]:
    """One replay for the whole sequence."""
    import tensorplay as tp

    graph = tp.cuda.CUDAGraph()
    with tp.cuda.graph(graph):
        decoder.begin()
        with graph.while_(decoder.goes_on):
            decoder.step()
    return lambda decoder: graph.replay()


def write(run: Callable[[Decoder], None], decoder: Decoder, seed: int, sequences: int) -> tuple[list[list[int]], float]:
    """What is written with that seed, and the microseconds for each token."""
    import tensorplay as tp

    tp.manual_seed(seed)
    found, seconds = [], 0.0
    for _ in range(sequences):
        tp.cuda.synchronize()
        start = perf_counter()
        run(decoder)
        tp.cuda.synchronize()
        seconds += perf_counter() - start
        found.append(decoder.written())
    return found, seconds * 1e6 / sum(len(tokens) + 1 for tokens in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="of the weights and of what is written (default: 0)")
    parser.add_argument("--sequences", type=int, default=5, help="how many are written (default: 5)")
    options = parser.parse_args()

    use_emulated_device_without_gpu()
    import tensorplay as tp

    tp.manual_seed(options.seed)
    decoder = Decoder()
    write(eagerly, decoder, options.seed, 1)  # What the first calls make is there from now on.
    expected, eager_us = write(eagerly, decoder, options.seed, options.sequences)
    for tokens in expected:
        print(" ".join(map(str, tokens)) or "(nothing)")
    print(f"{'eager':24}{eager_us:10.1f} us for a token")
    for name, make in (("a replay for each token", step_by_step), ("one replay", at_once)):
        run = make(decoder)
        found, us = write(run, decoder, options.seed, options.sequences)
        if found != expected:
            raise SystemExit(f"{name}: other tokens than eager")
        print(f"{name:24}{us:10.1f} us for a token")


if __name__ == "__main__":
    main()
