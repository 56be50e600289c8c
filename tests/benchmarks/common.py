"""What the benchmark programs share: the peer, medians, and the table with ratios."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType

import tensorplay

REPEATS = 9


@dataclass
class Row:
    """One line of the table.

    Attributes
    ----------
    name : str
    ours, peer : float
        In the table's unit; peer is None where torch has no CUDA device here.
    aim : float or None
        What ours / peer should not exceed (or fall below, where more is better).
    cupy : float or None
        The same work in CuPy, where it was measured.
    """

    name: str
    ours: float
    peer: float | None
    aim: float | None = None
    cupy: float | None = None


def find_torch() -> ModuleType | None:
    """torch, when it is installed and has a CUDA device."""
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def find_cupy() -> ModuleType | None:
    """CuPy, when it is installed and has a CUDA device."""
    try:
        import cupy
    except ImportError:
        return None
    found: ModuleType = cupy
    return found if cupy.cuda.is_available() else None


def medians(*measures: Callable[[], float] | None, repeats: int = REPEATS) -> list[float | None]:
    """The median of each measure; they take turns, so that what disturbs one disturbs all."""
    values: list[list[float]] = [[] for _ in measures]
    for _ in range(repeats):
        for measure, found in zip(measures, values, strict=True):
            if measure is not None:
                found.append(measure())
    return [statistics.median(found) if found else None for found in values]


def print_table(
    title: str,
    unit: str,
    rows: Iterable[Row],
    more_is_better: bool = False,
    peer: str = "torch",
    repeats: int = REPEATS,
) -> None:
    """The rows, with ours / the peer's and the aim for it; '!' marks an aim that was missed."""
    torch = find_torch()
    present = f"torch {torch.__version__}" if torch else "torch is not here"
    variant = tensorplay._plugins.get("cuda").describe()["variant"]
    print(f"{title}, {unit}; median of {repeats} runs")
    print(f"{tensorplay.cuda.get_device_name()}, variant {variant}, {present}, Python {platform.python_version()}")
    print(f"{'':<32}{'ours':>12}{peer:>14}{'ratio':>8}{'aim':>8}    CuPy")
    for row in rows:
        if row.peer is None:
            print(f"{row.name:<32}{row.ours:>12,.3f}{'-':>14}{'-':>8}")
            continue
        ratio = row.ours / row.peer
        aim = "" if row.aim is None else f"{row.aim:>8.2f}"
        missed = row.aim is not None and (ratio < row.aim if more_is_better else ratio > row.aim)
        other = "" if row.cupy is None else f"{row.cupy:>14,.3f}"
        print(f"{row.name:<32}{row.ours:>12,.3f}{row.peer:>14,.3f}{ratio:>8.2f}{aim}{' !' if missed else '  '}{other}")
    print()
