"""One set of names for whichever accelerator is installed: device index, capability, synchronisation, graphs.

The functions forward to the accelerator that core knows about. Without one, `is_available` is False,
`device_count` is 0, `current_accelerator` is None, and what needs a device raises.
"""

from . import graphs
from .device import (
    current_accelerator,
    current_device_index,
    device_count,
    get_device_capability,
    is_available,
    set_device_index,
    synchronize,
)
from .graphs import Graph

__all__ = [
    "Graph",
    "current_accelerator",
    "current_device_index",
    "device_count",
    "get_device_capability",
    "graphs",
    "is_available",
    "set_device_index",
    "synchronize",
]
