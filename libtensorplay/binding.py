"""The C source of the cffi module: one module for every variant of the library.

The functions of tensorplay.h are called through a table of pointers that ``tp_table_bind`` fills once, from
the variant that the process chose. So one module, made from one header, serves all three libraries.
"""

from __future__ import annotations

import re
from pathlib import Path

import cffi

HERE = Path(__file__).resolve().parent
MODULE = "tensorplay.cuda._native.lib._tensorplay"
# What is written by hand: files of binding/, in one unit with what cffi makes, whose functions and types they use.
PARTS = ("table.c", "objects.c", "arrays.c", "launches.c", "origins.c")

# What Python calls of them, and the one function of Python that C calls.
HELPERS = """
const char *tp_table_bind(const char *path);
int32_t tp_table_has_emulated(void);
tp_release_t tp_object_release(void);
uintptr_t tp_capsule_end(void);
tp_origin_hook_t tp_origin_tables(void *numbers, void *stacks, int64_t room);
void *tp_array_maker(void *capsule);
void *tp_launch_functions(void *slot, void *tensors, void *graph, void *stream, void *tensor);
extern "Python" int32_t wait_hook(const char *operation);
"""


def declarations(header: Path) -> str:
    """The part of a header between the cffi markers, without comments and TP_API."""
    text = header.read_text()
    found = re.search(r"/\* cffi begin.*?\*/(.*?)/\* cffi end", text, re.S)
    if not found:
        raise ValueError(f"{header}: no part between 'cffi begin' and 'cffi end'")
    return re.sub(r"\bTP_API\s+", "", re.sub(r"/\*.*?\*/", "", found[1], flags=re.S))


def functions(text: str) -> list[str]:
    """Names of the functions that these declarations declare."""
    return re.findall(r"\b(tp_\w+)\s*\([^;]*?\)\s*;", text)


def _pointer(name: str) -> str:
    """A pointer of the function's own type, which takes the function's name from here on."""
    return f"static __typeof__({name}) *table_{name};\n#define {name} table_{name}\n"


def _list(macro: str, names: list[str]) -> str:
    """A macro that applies another one to each of these names."""
    return f"#define {macro}(FIND) {' '.join(f'FIND({name})' for name in names)}\n"


def write_source(target: Path) -> None:
    """Writes the module's C source."""
    public = declarations(HERE / "include" / "tensorplay.h")
    control = declarations(HERE / "emulated" / "include" / "tp_emulated.h")
    required, optional = functions(public), functions(control)
    source = '#include "tensorplay.h"\n#include "tp_emulated.h"\n'
    source += "".join(map(_pointer, required + optional))
    source += _list("TABLE_REQUIRED", required) + _list("TABLE_OPTIONAL", optional)
    source += "".join(f'#include "{part}"\n' for part in PARTS)
    ffi = cffi.FFI()
    ffi.cdef(public + control + HELPERS)
    ffi.set_source(MODULE, source)
    ffi.emit_c_code(str(target))
