"""Another C ABI has another number: what is declared is kept as a digest beside the header."""

from __future__ import annotations

import hashlib
import re

import headers
import pytest
from tree import LIB, bare

HEADER = (LIB / "include" / "tensorplay.h").read_text()
CODES = headers.codes()
PINNED = LIB / "include" / "abi.txt"
VERSION = re.compile(r"#define TP_ABI_VERSION (\d+)")


def digest(header: str, codes: str) -> str:
    """Of declarations and numbers; comments, spaces and the version itself do not count."""
    words = bare(VERSION.sub("", header) + codes).split()
    return hashlib.sha256(" ".join(words).encode()).hexdigest()


def test_other_declarations_have_another_version() -> None:
    found = VERSION.findall(HEADER)
    assert len(found) == 1
    version, (kept_version, kept) = int(found[0]), PINNED.read_text().split()
    now = digest(HEADER, CODES)
    right = version + 1 if version == int(kept_version) and now != kept else version
    assert (version, int(kept_version), kept) == (right, right, now), (
        f"the C ABI is no longer that of version {kept_version}: TP_ABI_VERSION has to be {right} in tensorplay.h, and "
        f"include/abi.txt has to say\n{right} {now}\nBefore the first release the digest alone changes."
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int32_t tp_device_count(void);", "int64_t tp_device_count(void);"),
        ("size_t total_memory;", "uint64_t total_memory;"),
        ("#define TP_ORDER_ERROR 1", "#define TP_ORDER_ERROR 3"),
        ("TP_DTYPE_float32 =", "TP_DTYPE_float32 = 1 +"),
        ("TP_API int32_t tp_cuda_version(void);", ""),
    ],
)
def test_a_change_is_noticed(old: str, new: str) -> None:
    assert (HEADER + CODES).count(old) == 1
    assert digest(HEADER.replace(old, new), CODES.replace(old, new)) != digest(HEADER, CODES)


def test_what_says_the_same_is_no_change() -> None:
    said_otherwise = HEADER.replace("\n\n", "\n/* another comment */\n")
    assert digest(said_otherwise, CODES) == digest(HEADER, CODES)
