"""Every kernel is declared by the macros of kernel.h, which see to how it begins."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tree import LIB, code

KERNELS = LIB / "kernels"
HOME = KERNELS / "kernel.h"
OTHERS = [path for path in sorted([*KERNELS.glob("*.cu"), *KERNELS.glob("*.h")]) if path != HOME]


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.name)
def test_kernels_are_declared_by_the_macros(path: Path) -> None:
    text = code(path)
    assert "__global__" not in text, f"{path.name}: TP_KERNEL declares kernels"
    assert "griddepcontrol" not in path.read_text(), f"{path.name}: kernel.h has what waits for other kernels"
    if path.suffix == ".cu":
        assert re.search(r"\bTP_KERNEL(_COOPERATIVE|_RESIDENT)?\(", text), f"{path.name} has no kernel"


def test_the_macros_declare_in_one_place_where_a_kernel_waits_first() -> None:
    text = code(HOME)
    assert text.count("__global__") == 1
    body = re.search(r"__global__ [^{]*\{(.*?)\}", text, re.S)
    assert body
    assert re.findall(r"(\w+)\(", body[1]) == ["tp_begin_kernel", "_body"]
    begin = re.search(r"void tp_begin_kernel\(\) \{(.*?)\n\}", HOME.read_text(), re.S)
    assert begin
    assert re.findall(r"griddepcontrol\.(\w+)", begin[1]) == ["launch_dependents", "wait"]
