"""What a C program includes: ``tensorplay.h``, and the numbers that its functions take and return, by name.

The numbers stand in the .def files, which the library's own sources expand; ``tensorplay_codes.h`` spells them out.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from tables import host_statistics, rows, statistics

HERE = Path(__file__).resolve().parent
OPERATIONS = ("UNARY", "BINARY", "REDUCE", "ARG_REDUCE", "SCAN")


def write_headers(folder: Path) -> None:
    """Fills the folder that a compiler is pointed to."""
    folder.mkdir()
    shutil.copy(HERE / "include" / "tensorplay.h", folder)
    (folder / "tensorplay_codes.h").write_text(codes())


def codes() -> str:
    """Text of tensorplay_codes.h."""
    blocks = [
        ("Statuses.", [(f"TP_{row[0]}", row[1]) for row in rows("src/status.def", "TP_STATUS")]),
        ("Dtypes.", [(f"TP_DTYPE_{row[0]}", row[2]) for row in rows("kernels/dtypes.def", "TP_DTYPE")]),
    ]
    for macro in OPERATIONS:
        found = rows("kernels/ops.def", f"TP_{macro}")
        blocks.append((f"Operations of tp_{macro.lower()}.", [(f"TP_{macro}_{row[0]}", row[1]) for row in found]))
    actions = [row[0] for row in rows("src/alloc/trace.def", "TP_TRACE_ACTION")]
    blocks += [
        ("Actions of tp_memory_entry_t.", _places("TP_TRACE", actions)),
        ("Keys of tp_memory_stat, and places in what tp_memory_stats tells.", _places("TP_STAT", statistics())),
        ("Places in what tp_pinned_stats tells.", _places("TP_HOST_STAT", host_statistics())),
    ]
    enums = [
        f"/* {title} */\nenum {{\n" + "".join(f"  {name} = {number},\n" for name, number in entries) + "};\n"
        for title, entries in blocks
    ]
    guard = "#ifndef TENSORPLAY_CODES_H\n#define TENSORPLAY_CODES_H\n"
    about = "/* The numbers that tensorplay.h takes and returns. Made from the lists of libtensorplay. */\n"
    return "\n".join([about + guard, *enums, "#endif\n"])


def _places(prefix: str, names: Iterable[str]) -> list[tuple[str, str]]:
    """Names with their numbers, and how many there are."""
    entries = [(f"{prefix}_{name.replace('.', '_')}", str(place)) for place, name in enumerate(names)]
    return [*entries, (f"{prefix}_COUNT", str(len(entries)))]
