"""Tables of vectors."""

from __future__ import annotations

from .._device import Device
from .._dtype import DType
from .._tensor import Tensor
from ..errors import InvalidArgumentError
from . import functional, init
from ._parameters import parameter
from .module import Module
from .parameter import Parameter


class Embedding(Module):
    """Row i of a table for each index i.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        Rows and columns of the table.
    padding_idx : int, optional
        A row that begins as zeros; negative ones count from the end.
    device, dtype
        Of the table; the host and float32 by default.

    Attributes
    ----------
    weight : Parameter
        Shape (num_embeddings, embedding_dim), normal with mean 0 and deviation 1 at the start.
    """

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise InvalidArgumentError(
                f"Embedding: got padding_idx {padding_idx}, expected {-num_embeddings} to {num_embeddings - 1}"
            )
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.weight = parameter((num_embeddings, embedding_dim), device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the table anew."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight[self.padding_idx])

    def forward(self, input: Tensor) -> Tensor:
        """Indices of any shape (...) to vectors of shape (..., embedding_dim)."""
        return functional.embedding(input, self.weight)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None) -> Embedding:
        """A layer whose table shares the elements of a tensor.

        Parameters
        ----------
        embeddings : Tensor
            Shape (num_embeddings, embedding_dim).
        freeze : bool
            Taken for torch's sake: there is no autograd, so every table is frozen.
        padding_idx : int, optional
            A row that stands for no word; negative ones count from the end.
        """
        if embeddings.ndim != 2:
            raise InvalidArgumentError(f"from_pretrained: got shape {embeddings.shape}, expected two dimensions")
        with init.skipped():
            rows, columns = embeddings.shape
            layer = cls(rows, columns, padding_idx)
        layer.weight = Parameter(embeddings)
        return layer

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"
