"""One set of names for whichever accelerator is installed: devices, streams, memory, random numbers, graphs.

The functions forward to the accelerator that core knows about. Without one, `is_available` is False,
`device_count` is 0, `current_accelerator` is None, and what needs a device raises.
"""

from . import _version  # noqa: F401 (first: it says when core is missing or does not fit)

# isort: split
from . import graphs, memory, random
from .device import (
    current_accelerator,
    current_device_idx,
    current_device_index,
    device_count,
    device_index,
    get_device_capability,
    is_available,
    set_device_idx,
    set_device_index,
)
from .graphs import Graph
from .memory import (
    empty_cache,
    empty_host_cache,
    get_memory_info,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)
from .streams import current_stream, set_stream, synchronize

__all__ = [
    "Graph",
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "empty_host_cache",
    "get_device_capability",
    "get_memory_info",
    "graphs",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "random",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]
