"""CUDA graphs: work that is captured once and replayed with one call.

``with graph(g):`` captures what its block queues; ``g.replay()`` runs it again, on the same memory.
"""

from ._capture import graph, is_current_stream_capturing
from ._graph import CUDAGraph, export_dot
from ._graphed import make_graphed_callables
from ._mempool import graph_pool_handle

__all__ = [
    "CUDAGraph",
    "export_dot",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
]
