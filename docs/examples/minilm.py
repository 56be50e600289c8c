"""all-MiniLM-L6-v2, a small sentence encoder, as `tensorplay.nn` modules.

The attribute names are those of the checkpoint, so its tensors load without being renamed.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorplay import Tensor, nn
from tensorplay.nn import functional

#: Tensors of the checkpoint that an embedding does not need: a table of 0 to 511, and a layer that was
#: trained for another task.
UNUSED_WEIGHTS = ("embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias")


@dataclass(frozen=True)
class Config:
    """Sizes of the model, under the names of the checkpoint's ``config.json``."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    type_vocab_size: int
    layer_norm_eps: float


class Embeddings(nn.Module):
    """Token ids to vectors: word, position and segment, summed and normalised."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, ids: Tensor) -> Tensor:
        """(batch, tokens) to (batch, tokens, hidden)."""
        # Positions count from 0 and a single text is segment 0, so both look-ups are plain slices.
        positions = self.position_embeddings.weight[: ids.shape[1]]
        segment = self.token_type_embeddings.weight[0]
        return self.LayerNorm(self.word_embeddings(ids) + segment + positions)


class SelfAttention(nn.Module):
    """Every token looks at every other one, in several heads."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden: Tensor, keys: Tensor | None) -> Tensor:
        """(batch, tokens, hidden) to the same; `keys` is True where a token may be looked at."""
        batch, tokens, width = hidden.shape
        query, key, value = (
            layer(hidden).view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=keys)
        return mixed.transpose(1, 2).reshape(batch, tokens, width)


class Output(nn.Module):
    """A linear layer whose result is added to an earlier state and normalised."""

    def __init__(self, config: Config, in_features: int) -> None:
        super().__init__()
        self.dense = nn.Linear(in_features, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, hidden: Tensor, residual: Tensor) -> Tensor:
        """(batch, tokens, in_features) to (batch, tokens, hidden)."""
        return self.LayerNorm(self.dense(hidden) + residual)


class Layer(nn.Module):
    """Attention, then two linear layers with a GELU between them."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.attention = nn.ModuleDict({"self": SelfAttention(config), "output": Output(config, config.hidden_size)})
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(config.hidden_size, config.intermediate_size)})
        self.output = Output(config, config.intermediate_size)

    def forward(self, hidden: Tensor, keys: Tensor | None) -> Tensor:
        """(batch, tokens, hidden) to the same."""
        attended = self.attention["output"](self.attention["self"](hidden, keys), hidden)
        inner = functional.gelu(self.intermediate["dense"](attended))
        return self.output(inner, attended)


class MiniLM(nn.Module):
    """The encoder: token ids to one vector of length 1 for each text."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))})

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """Embeds a batch.

        Parameters
        ----------
        ids : Tensor
            int64, shape (batch, tokens).
        mask : Tensor, optional
            bool, same shape: False where a text has ended. None when all texts have the same length.

        Returns
        -------
        Tensor
            float32, shape (batch, hidden): the mean of the text's token vectors, scaled to length 1.
        """
        hidden = self.embeddings(ids)
        # (batch, 1, 1, tokens): the same for all heads and all asking tokens.
        keys = None if mask is None else mask.unsqueeze(1).unsqueeze(2)
        for layer in self.encoder["layer"]:
            hidden = layer(hidden, keys)
        # Sums of many numbers are taken in float32, whatever the weights are.
        hidden = hidden.float()
        if mask is None:
            return functional.normalize(hidden.mean(1), dim=1)
        weights = mask.float()
        total = (hidden * weights.unsqueeze(2)).sum(1)
        return functional.normalize(total / weights.sum(1, keepdim=True), dim=1)
