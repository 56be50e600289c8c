"""The C library's layers, includes and names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tree import LIB, ROOT, SRC, c_sources, calls, code, definitions

HEADERS_OF_ABI = {"<stddef.h>", "<stdint.h>"}


def layers() -> dict[str, int]:
    """Word of internal.h's opening list: its layer. Folders end in a slash."""
    opening = (SRC / "internal.h").read_text().partition("*/")[0]
    lines = re.findall(r"^ \*\s+(\d)\s\s(.*)$", opening, re.M)
    return {word: int(number) for number, text in lines for word in re.findall(r"[a-z_]+/?", text)}


def layer(path: Path) -> int:
    """The layer of a file: its folder's, else its own."""
    parts = path.relative_to(SRC).parts
    word = f"{parts[0]}/" if len(parts) > 1 else path.stem
    known = layers()
    assert word in known, f"{word} stands in no layer at the top of internal.h"
    return known[word]


def test_layers_are_read_from_internal_h() -> None:
    found = layers()
    assert found["error"] == 1
    assert found["alloc/"] < found["tensor"] < found["ops/"]


@pytest.mark.parametrize("path", c_sources(), ids=lambda path: str(path.relative_to(SRC)))
def test_calls_go_downwards(path: Path) -> None:
    home = {name: source for source in c_sources() for name in definitions(source)}
    upwards = {
        f"{name} of {home[name].relative_to(SRC)}"
        for name in calls(path)
        if name in home and layer(home[name]) > layer(path)
    }
    assert not upwards, f"{path.relative_to(SRC)} calls upwards: {sorted(upwards)}"


@pytest.mark.parametrize("path", c_sources(), ids=lambda path: str(path.relative_to(SRC)))
def test_functions_with_external_linkage_have_a_prefix(path: Path) -> None:
    bare = [name for name in definitions(path) if not name.startswith("tp_")]
    assert not bare, f"{path.relative_to(SRC)}: static is missing, or a prefix: {bare}"


def test_functions_that_one_file_uses_are_static() -> None:
    users: dict[str, set[Path]] = {}
    for path in c_sources():
        for name in set(re.findall(r"\btp__\w+", code(path))):
            users.setdefault(name, set()).add(path)
    alone = [name for path in c_sources() for name in definitions(path) if users.get(name) == {path}]
    assert not alone, f"used only where they are defined: {alone}"


def test_public_functions_are_declared_in_the_public_header() -> None:
    declared = set(re.findall(r"\b(tp_[a-z]\w*)\(", code(LIB / "include" / "tensorplay.h")))
    defined = {name for path in c_sources() for name in definitions(path) if not name.startswith("tp__")}
    assert defined == declared, f"not declared: {defined - declared}; not defined: {declared - defined}"


def test_shared_functions_are_declared_once_under_their_file() -> None:
    found: list[str] = []
    for header in sorted(SRC.glob("**/*.h")):
        found += re.findall(r"^(?!static)[a-z][\w *]*\b(tp__[a-z]\w*)\([^;{}]*\)[^;{}]*;", code(header), re.M)
    assert len(set(found)) == len(found), sorted({name for name in found if found.count(name) > 1})
    defined = {name for path in c_sources() for name in definitions(path) if name.startswith("tp__")}
    assert set(found) == defined, f"not defined: {set(found) - defined}; not declared: {defined - set(found)}"


def test_public_header_includes_only_the_compilers_own() -> None:
    includes = re.findall(r"#include\s+(\S+)", (LIB / "include" / "tensorplay.h").read_text())
    assert set(includes) == HEADERS_OF_ABI


def test_only_cuda_api_includes_cuda() -> None:
    for path in sorted([*SRC.glob("**/*.c"), *SRC.glob("**/*.h")]):
        includes = re.findall(r'#include\s+[<"](cu\w*|nv\w*|crt/\w*|driver_types|vector_types)\.h', path.read_text())
        expected = [] if path.name != "cuda_api.h" else includes
        assert [name for name in includes if name != "cuda_api"] == expected, path


def test_only_cuda_api_depends_on_the_toolkits_version() -> None:
    # Two more tell it: tp_cuda_version, and the emulated driver.
    expected = {SRC / "cuda_api.h", SRC / "library.c", LIB / "emulated" / "device.c"}
    places = [*LIB.glob("**/*.[ch]"), *LIB.glob("**/*.cu"), *(ROOT / "tests" / "native").glob("*.[ch]")]
    assert {path for path in places if re.search(r"\bCUDA(RT)?_VERSION\b", code(path))} == expected


def test_only_captured_c_begins_and_ends_captures_and_asks_about_them() -> None:
    names = ("cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaStreamIsCapturing", "cudaStreamGetCaptureInfo")
    call = re.compile(rf"\b(?:{'|'.join(names)})\w*\(")
    assert [path.name for path in c_sources() if call.search(code(path))] == ["captured.c"]


def test_sources_never_name_the_emulated_device() -> None:
    named = [path.name for path in sorted(SRC.glob("**/*.*")) if "emulat" in path.read_text().lower()]
    assert not named


def test_emulated_device_uses_nothing_of_the_library() -> None:
    for path in sorted(LIB.glob("emulated/**/*.[ch]")):
        used = set(re.findall(r'#include\s+"\.*/*(?:src/)?(\w+\.h)"', path.read_text())) & {"internal.h", "types.h"}
        assert not used, f"{path.name} includes {used}"
        assert not {name for name in calls(path) if name.startswith("tp__")}, path.name
