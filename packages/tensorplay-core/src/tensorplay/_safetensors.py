"""The safetensors format: the length of the header in 8 bytes, the header in JSON, the elements of all tensors.

The header gives each tensor's dtype, shape and place among the elements, which fill the file without gaps.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, NamedTuple

from . import _dtype, _shape
from ._dtype import DType
from .errors import DTypeError

#: The format's names of the dtypes that it has; complex128 is none of them.
NAMES = {
    _dtype.bool: "BOOL",
    _dtype.uint8: "U8",
    _dtype.int8: "I8",
    _dtype.int16: "I16",
    _dtype.int32: "I32",
    _dtype.int64: "I64",
    _dtype.float16: "F16",
    _dtype.bfloat16: "BF16",
    _dtype.float32: "F32",
    _dtype.float64: "F64",
    _dtype.complex64: "C64",
}
_DTYPES = {name: dtype for dtype, name in NAMES.items()}
#: Key of the texts that a header may hold beside the tensors.
METADATA = "__metadata__"
#: Bytes in which the header's length stands.
PREFIX = 8
#: Longer headers are refused, as by the library of that name.
_MOST = 100_000_000


class Entry(NamedTuple):
    """One tensor of a file; start and stop count its bytes from the file's beginning."""

    dtype: DType
    shape: tuple[int, ...]
    start: int
    stop: int


class DamagedError(ValueError):
    """What stands in the file does not follow the format."""


def read_header(contents: bytes | memoryview) -> dict[str, Entry]:
    """The tensors of a file, in the header's order, once all of it fits the file's length.

    Raises
    ------
    DamagedError
        It does not; the text says what is wrong.
    DTypeError
        A tensor has a dtype that TensorPlay lacks; the text names both.
    """
    length = int.from_bytes(contents[:PREFIX], "little")
    if len(contents) < PREFIX or length > min(_MOST, len(contents) - PREFIX):
        if contents[:4] == b"PK\3\4":
            raise DamagedError("it is a ZIP archive, as torch.save writes: write it with safetensors.torch.save_file")
        raise DamagedError(f"its {len(contents)} bytes do not hold the header that they announce")
    try:
        header = json.loads(bytes(contents[PREFIX : PREFIX + length]), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"its header is not in JSON: {error}") from None
    if not isinstance(header, dict):
        raise DamagedError("its header does not name tensors")
    header.pop(METADATA, None)
    entries = {name: _entry(name, value, PREFIX + length) for name, value in header.items()}
    end = PREFIX + length
    for entry in sorted(entries.values(), key=lambda entry: (entry.start, entry.stop)):
        if entry.start != end:
            raise DamagedError(f"a tensor starts at byte {entry.start}, expected {end}")
        end = entry.stop
    if end != len(contents):
        raise DamagedError(f"it has {len(contents)} bytes, expected {end}")
    return entries


def make_header(
    tensors: Mapping[str, tuple[DType, tuple[int, ...]]], metadata: Mapping[str, str] | None
) -> tuple[bytes, list[str]]:
    """What stands before the elements, and the order of the tensors behind it.

    Each tensor starts at a multiple of its dtype's size.
    """
    order = sorted(tensors, key=lambda name: -tensors[name][0].itemsize)
    sizes = [tensors[name][0].itemsize * math.prod(tensors[name][1]) for name in order]
    stops = dict(zip(order, zip(accumulate(sizes), sizes, strict=True), strict=True))
    header: dict[str, Any] = {} if metadata is None else {METADATA: dict(metadata)}
    for name, (dtype, shape) in tensors.items():
        stop, nbytes = stops[name]
        header[name] = {"dtype": NAMES[dtype], "shape": list(shape), "data_offsets": [stop - nbytes, stop]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % PREFIX)
    return len(text).to_bytes(PREFIX, "little") + text, order


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands there twice")
    return found


def _entry(name: str, value: Any, data: int) -> Entry:
    """One entry of the header; the elements of the file start at byte `data`."""
    try:
        kind, shape, (start, stop) = value["dtype"], value["shape"], value["data_offsets"]
        good = all(type(number) is int and number >= 0 for number in (*shape, start, stop))
    except (KeyError, TypeError, ValueError):
        good = False
    if not good or not isinstance(kind, str):
        raise DamagedError(f"its header does not say what tensor {name!r} is")
    dtype = _DTYPES.get(kind)
    if dtype is None:
        raise DTypeError(f"load: tensor {name!r}: got dtype {kind}, expected one of {', '.join(_DTYPES)}")
    if stop - start != dtype.itemsize * math.prod(shape):
        raise DamagedError(f"tensor {name!r} of {kind} and shape {shape} has {stop - start} bytes")
    return Entry(dtype, _shape.check_sizes(f"load: tensor {name!r}", shape, dtype.itemsize), data + start, data + stop)
