"""Elements of CUDA tensors by index: each operation is one call of C, queued on the current stream."""

from __future__ import annotations

from tensorplay._tensor import Tensor

from ._library import native
from ._views import Views


class Indexing(Views):
    """The methods of `Backend` that take an index."""

    def index_select(self, a: Tensor, dim: int, index: Tensor) -> Tensor:
        return self.made("index_select", (a, dim, index), native.tp_index_select, a._impl, dim, index._impl)

    def embedding(self, weight: Tensor, index: Tensor) -> Tensor:
        return self.made("embedding", (weight, index), native.tp_embedding, weight._impl, index._impl)
