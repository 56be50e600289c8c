"""Every kernel says what it reads and writes, and leaves no pointer of its arguments out."""

from __future__ import annotations

import re
from itertools import chain

import pytest
from tree import LIB, SRC, c_sources, code

STRUCT = re.compile(r"typedef struct \w+ \{([^}]*)\} (\w+);")
TABLE = re.compile(r"static const tp__access_t (\w+)\[\] = \{(.*?)\};", re.S)
ENTRY = re.compile(r"TP_(READS|WRITES)\((\w+), ([\w.\[\]]+)\)")
LIMIT = int(re.findall(r"#define MOST_ACCESSES (\d+)", (SRC / "launch.c").read_text())[0])

# What is written through it is read by the host, under an order of its own.
UNDECLARED = {"fault"}
# Memory that the library keeps in an order of its own.
UNDECLARED_TYPES = {"tp_generator_state_t"}
# Its kernel writes what nodes of a graph test, which is no memory.
READING = {"conditional.accesses"}


def structs() -> dict[str, str]:
    """The members of every argument structure, by its name."""
    headers = (code(path) for path in sorted(LIB.glob("kernels/args*.h")))
    return {name: members for members, name in chain.from_iterable(map(STRUCT.findall, headers))}


def pointers(name: str) -> dict[str, bool]:
    """Pointers in a structure, also in those inside it, as a C expression names them: whether they are const."""
    constants = {"TP_OFFSETS_INDICES": 2}
    found: dict[str, bool] = {}
    for declaration in structs()[name].split(";"):
        words = re.match(r"\s*(const )?(\w+) (.*)", declaration.strip(), re.S)
        if not words:
            continue
        is_const, kind, names = words.groups()
        if kind in UNDECLARED_TYPES:
            continue
        for one in re.split(r",\s*", names.strip()):
            member = one.lstrip("* ")
            base, _, size = member.partition("[")
            count = constants.get(size.rstrip("]"), 0) or int(size.rstrip("]")) if size and "[" not in size[:-1] else 0
            places = [f"{base}[{i}]" for i in range(count)] if count else [base]
            if one.startswith("*") and base not in UNDECLARED:
                found |= dict.fromkeys(places, bool(is_const))
            elif kind == "tp_index_t":
                inner = pointers(kind)
                found |= {f"{place}.{name}": const for place in places for name, const in inner.items()}
    return found


def tables() -> dict[str, list[tuple[str, str, str]]]:
    """Entries of every table of accesses: mode, structure, member."""
    return {
        f"{path.stem}.{name}": ENTRY.findall(body)
        for path in c_sources()
        for name, body in TABLE.findall(path.read_text())
    }


def test_structures_and_tables_are_found() -> None:
    assert pointers("tp_offsets_args_t") == {"out": False, "indices[0].values": True, "indices[1].values": True}
    assert pointers("tp_flat_args_t") == {"out": False, "operands[0]": True, "operands[1]": True}
    assert len(tables()) > 20


@pytest.mark.parametrize("table", tables())
def test_table_ends_fits_and_is_of_one_structure(table: str) -> None:
    entries = tables()[table]
    stem, name = table.split(".")
    source = next(path for path in c_sources() if path.stem == stem).read_text()
    assert dict(TABLE.findall(source))[name].rstrip().endswith("{0}")
    assert 1 <= len(entries) <= LIMIT
    assert len({structure for _, structure, _ in entries}) == 1
    assert any(mode == "WRITES" for mode, _, _ in entries) != (table in READING)


def test_no_pointer_is_left_out() -> None:
    declared = {(structure, member, mode) for entries in tables().values() for mode, structure, member in entries}
    used = {structure for structure, _, _ in declared}
    assert used == {name for name in structs() if name.endswith("_args_t") and pointers(name)}
    written = {(structure, member) for structure, member, mode in declared if mode == "WRITES"}
    for structure in used:
        for member, is_const in pointers(structure).items():
            assert {(structure, member, "READS"), (structure, member, "WRITES")} & declared, f"{structure}.{member}"
            # Buffers that change places between launches are written under the other one's name.
            assert is_const != bool({(structure, member), (structure, f"next_{member}")} & written), (structure, member)


def test_every_kernel_has_a_table() -> None:
    for path in c_sources():
        own = {name for name, _ in TABLE.findall(path.read_text())}
        for arguments in re.findall(r"TP_(?:KERNEL_INIT|FLOAT_KERNELS|SIZE_KERNELS)\(([^()]*)\)", code(path)):
            table = arguments.split(",")[2].strip()
            known = own | {"accesses", "NULL"}  # "accesses" may be a macro's parameter
            assert table in known, f"{path.name}: {arguments}"
