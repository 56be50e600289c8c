"""Makes the Python tables from the .def files: ``python libtensorplay/tables.py`` rewrites them.

Core is pure Python and cannot read C when it is installed, so the tables are kept in the tree, and so is the
version in each distribution, which core's file gives; tests/layout fails when they are stale.
"""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGES = HERE.parent / "packages"
CORE_TABLES = PACKAGES / "tensorplay-core" / "src" / "tensorplay" / "_tables.py"
CUDA_TABLES = PACKAGES / "tensorplay-cuda" / "src" / "tensorplay" / "cuda" / "_tables.py"

# Functions that are listed as methods, and given away as functions too.
FUNCTIONS = CORE_TABLES.with_name("_functions.py")
METHODS = [CORE_TABLES.parent / "_ops" / name for name in ("unary.py", "binary.py", "dimensional.py", "algebra.py")]

# What the statistics tell of each thing that is counted.
FIGURES = ("current", "peak", "allocated", "freed")


VERSION = CORE_TABLES.with_name("_version.py")
VERSION_COPIES = [CUDA_TABLES.with_name("_version.py")]
VERSION_COPIES += [PACKAGES / "tensorplay-accelerator" / "src" / "tensorplay" / "accelerator" / "_version.py"]


def rows(name: str, macro: str) -> list[list[str]]:
    """The arguments of each use of `macro` in a .def file, as text."""
    text = re.sub(r"/\*.*?\*/", "", (HERE / name).read_text(), flags=re.S)
    found = re.findall(rf"^{macro}\((.*)\)\s*$", text, re.M)
    return [re.findall(r'"[^"]*"|[^,\s][^,]*', row) for row in found]


def core_tables() -> str:
    """Text of tensorplay/_tables.py: what every backend shares."""
    dtypes = rows("kernels/dtypes.def", "TP_DTYPE")
    lines = [
        '"""Made by libtensorplay/tables.py from the .def files of libtensorplay. Do not edit."""',
        "",
        "# name: (code, itemsize in bytes, category)",
        "DTYPES: dict[str, tuple[int, int, str]] = {",
    ]
    lines += [f'    "{n}": ({code}, {size}, "{category}"),' for n, _, code, _, size, category in dtypes]
    lines += ["}", "", "# PROMOTION[left][right]", "PROMOTION: dict[str, dict[str, str]] = {"]
    names = {row[1]: row[0] for row in dtypes}
    for left, *results in rows("src/promotion.def", "TP_PROMOTION"):
        lines.append(f'    "{names[left]}": {{')
        pairs = zip(names.values(), results, strict=True)
        lines += [f'        "{name}": "{names[result]}",' for name, result in pairs]
        lines.append("    },")
    lines.append("}")
    for table, macro in (("UNARY", "TP_UNARY"), ("BINARY", "TP_BINARY")):
        lines += ["", "# name: (code, what it takes, rule)", f"{table}: dict[str, tuple[int, str, str]] = {{"]
        found = rows("kernels/ops.def", macro)
        lines += [f'    "{n}": ({code}, "{takes}", "{rule}"),' for n, code, takes, rule, _ in found]
        lines.append("}")
    for table, macro in (("REDUCE", "TP_REDUCE"), ("ARG_REDUCE", "TP_ARG_REDUCE"), ("SCAN", "TP_SCAN")):
        lines += ["", "# name: (code, rule)", f"{table}: dict[str, tuple[int, str]] = {{"]
        lines += [f'    "{n}": ({code}, "{rule}"),' for n, code, rule in rows("kernels/ops.def", macro)]
        lines.append("}")
    return "\n".join(lines) + "\n"


def statistics() -> list[str]:
    """Names of what tp_memory_stats tells, in its order."""
    return [
        *(
            f"{name}.{pool}.{figure}"
            for (name,) in rows("src/alloc/stats.def", "TP_STAT_FAMILY")
            for pool in ("all", "large_pool", "small_pool")
            for figure in FIGURES
        ),
        *(f"{name}.{figure}" for (name,) in rows("src/alloc/stats.def", "TP_STAT_OVERSIZE") for figure in FIGURES),
        *(name for (name,) in rows("src/alloc/stats.def", "TP_STAT_SCALAR")),
    ]


def host_statistics() -> list[str]:
    """Names of what tp_pinned_stats tells, in its order."""
    times = ("total", "max", "min", "count", "avg")
    return [
        *(f"{name}.{figure}" for (name,) in rows("src/pinned/stats.def", "TP_HOST_STAT_FAMILY") for figure in FIGURES),
        *(f"{name}.{figure}" for (name,) in rows("src/pinned/stats.def", "TP_HOST_STAT_TIME") for figure in times),
        *(name for (name,) in rows("src/pinned/stats.def", "TP_HOST_STAT_SCALAR")),
    ]


def cuda_tables() -> str:
    """Text of tensorplay/cuda/_tables.py: statuses and statistics."""
    lines = [
        '"""Made by libtensorplay/tables.py from the .def files of libtensorplay. Do not edit."""',
        "",
        "# status: (name, exception class in tensorplay.errors or None, meaning)",
        "STATUSES: dict[int, tuple[str, str | None, str]] = {",
    ]
    for name, value, exception, meaning in rows("src/status.def", "TP_STATUS"):
        raised = "None" if exception == "None" else f'"{exception}"'
        lines.append(f'    {value}: ("{name}", {raised}, {meaning}),')
    lines += ["}", "", "# In the order of tp_memory_stats.", "STATISTICS: list[str] = ["]
    lines += [f'    "{name}",' for name in statistics()]
    lines += ["]", "", "# In the order of tp_pinned_stats.", "HOST_STATISTICS: list[str] = ["]
    lines += [f'    "{name}",' for name in host_statistics()]
    lines += ["]", "", "# Of the history's entries, in the order of their numbers.", "TRACE_ACTIONS: list[str] = ["]
    lines += [f'    "{name}",' for (name,) in rows("src/alloc/trace.def", "TP_TRACE_ACTION")]
    lines.append("]")
    return "\n".join(lines) + "\n"


def functions() -> str:
    """Text of tensorplay/_functions.py: a line for each line of the methods' classes."""
    listed = [re.findall(r"^    ([a-z]\w*)(?:, \w+_)? = ", path.read_text(), re.M) for path in METHODS]
    names = sorted(name for found in listed for name in found)
    lines = [
        '"""Methods as functions. Made by libtensorplay/tables.py from _ops. Do not edit."""',
        "",
        "from ._tensor import Tensor as _Tensor",
        "",
        *(f"{name} = _Tensor.{name}" for name in names),
    ]
    return "\n".join(lines) + "\n"


def with_version(text: str) -> str:
    """The text of a version file with core's version in it."""
    pattern = re.compile(r'^__version__ = "[^"]*"', re.M)
    line = pattern.search(VERSION.read_text())
    assert line, f"{VERSION} gives no __version__"
    return pattern.sub(line[0], text)


if __name__ == "__main__":
    CORE_TABLES.write_text(core_tables())
    CUDA_TABLES.write_text(cuda_tables())
    FUNCTIONS.write_text(functions())
    for copy in VERSION_COPIES:
        copy.write_text(with_version(copy.read_text()))
