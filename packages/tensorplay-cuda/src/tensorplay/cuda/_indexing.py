"""Elements of CUDA tensors by index: each operation is one call of C, queued on the current stream."""

from __future__ import annotations

from collections.abc import Sequence

from tensorplay._tensor import Tensor

from ._check import refused
from ._library import native
from ._views import Views, or_null


class Indexing(Views):
    """The methods of `Backend` that take an index."""

    def index_select(self, a: Tensor, dim: int, index: Tensor) -> Tensor:
        return self.made("index_select", (a, dim, index), native.tp_index_select, a._impl, dim, index._impl)

    def embedding(self, weight: Tensor, index: Tensor) -> Tensor:
        return self.made("embedding", (weight, index), native.tp_embedding, weight._impl, index._impl)

    def gather(self, a: Tensor, dim: int, index: Tensor) -> Tensor:
        return self.made("gather", (a, dim, index), native.tp_gather, a._impl, dim, index._impl)

    def scatter_(self, target: Tensor, dim: int, index: Tensor, source: Tensor, accumulate: bool = False) -> None:
        try:
            status = native.tp_scatter(target._impl, dim, index._impl, source._impl, accumulate)
        except OverflowError:
            status = None
        if status != 0:
            refused(status, "scatter_", (target, dim, index, source, accumulate))

    def index(self, a: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
        entries = [or_null(entry) for entry in indices]
        return self.made("index", (a, indices), native.tp_index, a._impl, len(entries), entries)

    def index_put_(
        self, target: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
    ) -> None:
        entries = [or_null(entry) for entry in indices]
        status = native.tp_index_put(target._impl, len(entries), entries, values._impl, accumulate)
        if status:
            refused(status, "index_put_", (target, indices, values, accumulate))
