"""Statistics of memory as a table, and as dictionaries in dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_WIDTH = 75
_UNITS = ("B  ", "KiB", "MiB", "GiB", "TiB", "PiB")
_FIGURES = ("current", "peak", "allocated", "freed")
_HEADINGS = ("Cur Usage", "Peak Usage", "Tot Alloc", "Tot Freed")
_POOLS = (("all", ""), ("large_pool", "      from large pool"), ("small_pool", "      from small pool"))


def _nbytes(value: int, largest: int) -> str:
    """A size in the unit that suits the first figure of its group, or a larger one where it has no room with that."""
    unit = 0
    while (largest >= 768 * 1024 or value >= 10**6) and unit + 1 < len(_UNITS):
        value //= 1024
        largest //= 1024
        unit += 1
    return f"{value:6d} {_UNITS[unit]}"


def _count(value: int, largest: int) -> str:
    for suffix in (" ", "K"):
        if largest < 750 * 1000:
            return f"{value:7d} {suffix} "
        value //= 1000
        largest //= 1000
    return f"{value:7d} M "


_GROUPS: tuple[tuple[str, str, Callable[[int, int], str]], ...] = (
    ("allocated_bytes", "Allocated memory", _nbytes),
    ("active_bytes", "Active memory", _nbytes),
    ("requested_bytes", "Requested memory", _nbytes),
    ("reserved_bytes", "GPU reserved memory", _nbytes),
    ("inactive_split_bytes", "Non-releasable memory", _nbytes),
    ("allocation", "Allocations", _count),
    ("active", "Active allocs", _count),
    ("segment", "GPU reserved segments", _count),
    ("inactive_split", "Non-releasable allocs", _count),
)
_OVERSIZE = (("oversize_allocations", "Oversize allocations"), ("oversize_segments", "Oversize GPU segments"))
_HOST = (("allocated_bytes", "Pinned host memory"), ("active_bytes", "      in use"))


def nested(stats: Mapping[str, int]) -> dict[str, Any]:
    """The statistics by the parts of their names."""
    found: dict[str, Any] = {}
    for name, value in stats.items():
        *path, last = name.split(".")
        place = found
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return found


def summary(device: int, stats: Mapping[str, int], host: Mapping[str, int], abbreviated: bool) -> str:
    """The table of `tensorplay.cuda.memory_summary`."""
    title = f"TensorPlay CUDA memory summary, device ID {device}"
    failures = f"CUDA OOMs: {stats['num_ooms']}"
    retries = f"cudaMalloc retries: {stats['num_alloc_retries']}"
    lines = [
        "=" * _WIDTH,
        f"{title:^{_WIDTH}}",
        "-" * _WIDTH,
        f"{failures:^37}|{retries:^37}",
        "=" * _WIDTH,
        _row(f"{'Metric':^21}", [f"{heading:<10}" for heading in _HEADINGS]),
    ]
    for family, name, form in _GROUPS:
        lines.append("-" * _WIDTH)
        for pool, label in _POOLS[:1] if abbreviated else _POOLS:
            lines.append(_figures(label or name, stats, f"{family}.{pool}", f"{family}.all", form))
    for family, name in _OVERSIZE:
        lines.append("-" * _WIDTH)
        lines.append(_figures(name, stats, family, family, _count))
    lines.append("-" * _WIDTH)
    lines += [_figures(name, host, family, "allocated_bytes", _nbytes) for family, name in _HOST]
    lines.append("=" * _WIDTH)
    return "".join(f"|{line}|\n" for line in lines)


def _figures(label: str, stats: Mapping[str, int], prefix: str, group: str, form: Callable[[int, int], str]) -> str:
    """One line; the units follow the group's own figures, so that its lines compare."""
    return _row(label, [form(stats[f"{prefix}.{figure}"], stats[f"{group}.{figure}"]) for figure in _FIGURES])


def _row(label: str, cells: list[str]) -> str:
    return f" {label:<21} | " + " | ".join(cells) + " "
