"""CUDA devices: TensorPlay's caching allocator, streams and events on NVIDIA GPUs.

Importing starts nothing. The library and the driver start with the first call that needs a device; which
variant of the library serves is told by ``TENSORPLAY_CUDA_RUNTIME`` (``cuda12``, ``cuda13``, ``emulated`` or
``none``), else by the driver.
"""

try:
    from tensorplay.errors import AcceleratorError, OutOfMemoryError
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "tensorplay.cuda needs the distribution tensorplay-core, which is not installed: pip install tensorplay-core",
        name=error.name,
    ) from error

from .device import (
    DeviceProperties,
    current_device,
    device,
    device_count,
    get_device_capability,
    get_device_name,
    get_device_properties,
    is_available,
    set_device,
    synchronize,
    unavailable_reason,
)
from .memory import (
    MemPool,
    caching_allocator_alloc,
    caching_allocator_delete,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    graph_pool_handle,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_budget,
    memory_budgets,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
    use_mem_pool,
)
from .random import initial_seed, manual_seed, manual_seed_all, seed, seed_all
from .streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)

__all__ = [
    "AcceleratorError",
    "DeviceProperties",
    "Event",
    "ExternalStream",
    "MemPool",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "empty_cache",
    "get_allocator_backend",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_per_process_memory_fraction",
    "graph_pool_handle",
    "initial_seed",
    "is_available",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_budget",
    "memory_budgets",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_stream",
    "stream",
    "synchronize",
    "unavailable_reason",
    "use_mem_pool",
]
