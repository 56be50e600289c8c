"""DLPack's capsules: Python objects that hold a description of memory until somebody takes it.

The structures are those of https://dmlc.github.io/dlpack/latest/c_api.html.
"""

from __future__ import annotations

import ctypes

from .errors import ExchangeError


class DLTensor(ctypes.Structure):
    """DLTensor: strides in elements, NULL for C order."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Unversioned(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


#: The version that these structures are of; a newer minor one has the same.
VERSION = (1, 1)

_NAMES = (b"dltensor", b"dltensor_versioned")
_USED = (b"used_dltensor", b"used_dltensor_versioned")
for _name in (*_NAMES, *_USED):
    # A capsule keeps the address of its name, and may outlive this module.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_name))

_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_set_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))


def new(managed: int, is_versioned: bool, end: int) -> object:
    """A capsule that nobody has taken; `end` is the address of the C function that ends one."""
    made: object = _new(managed, _NAMES[is_versioned], end)
    return made


def is_capsule(value: object) -> bool:
    """Whether it is a capsule, of whatever kind."""
    return type(value).__name__ == "PyCapsule"


def content(capsule: object) -> tuple[int, bool]:
    """The address of what a capsule holds, and whether it has a version.

    Raises
    ------
    ExchangeError
        It is no capsule of DLPack, or what it held was taken before.
    """
    for is_versioned in (True, False):
        try:
            return _pointer(capsule, _NAMES[is_versioned]), is_versioned
        except ValueError:  # another name
            continue
    raise ExchangeError(f"from_dlpack: got {capsule!r}, expected a capsule of DLPack that nobody has taken yet")


def read(managed: int, is_versioned: bool) -> tuple[Versioned | Unversioned, int]:
    """The structure and its flags.

    Raises
    ------
    ExchangeError
        Another major version, whose structure is not known.
    """
    if not is_versioned:
        return Unversioned.from_address(managed), 0
    found = Versioned.from_address(managed)
    if found.major != VERSION[0]:
        raise ExchangeError(f"from_dlpack: got DLPack {found.major}.{found.minor}, expected {VERSION[0]}")
    return found, found.flags


def device_type(capsule: object) -> int:
    """DLPack's number of the device type; raises as `content` and `read`."""
    found, _ = read(*content(capsule))
    number: int = found.tensor.device_type
    return number


def mark_taken(capsule: object, is_versioned: bool) -> None:
    """Says that what the capsule held is somebody's, who calls the deleter."""
    _set_name(capsule, _USED[is_versioned])
