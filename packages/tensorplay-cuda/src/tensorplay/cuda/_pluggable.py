"""A program's own source of device memory, for private pools."""

from __future__ import annotations

import ctypes
from os import PathLike, fspath

from tensorplay.errors import DTypeError, InvalidArgumentError


class CUDAPluggableAllocator:
    """Two functions of a shared library that give device memory and take it back: a source for `MemPool`.

    Parameters
    ----------
    path_to_so_file : str or path
    alloc_fn_name : str
        ``void *(ssize_t size, int device, cudaStream_t stream)``; NULL where there is no room.
    free_fn_name : str
        ``void (void *pointer, ssize_t size, int device, cudaStream_t stream)``.

    Notes
    -----
    The functions are called with the device current and a lock of the allocator held: they must not call back.
    The library stays loaded.

    Raises
    ------
    InvalidArgumentError
        No such library, or no such function in it.
    """

    __slots__ = ("_functions",)

    def __init__(self, path_to_so_file: str | PathLike[str], alloc_fn_name: str, free_fn_name: str) -> None:
        names = alloc_fn_name, free_fn_name
        if not isinstance(path_to_so_file, (str, PathLike)) or not all(isinstance(name, str) for name in names):
            raise DTypeError(f"CUDAPluggableAllocator: got {path_to_so_file!r}, {names}, expected a path and two names")
        path = fspath(path_to_so_file)
        try:
            library = ctypes.CDLL(path)
            found = [library[name] for name in names]
        except (OSError, AttributeError, ValueError) as error:
            raise InvalidArgumentError(f"CUDAPluggableAllocator: {path}: {error}") from None
        self._functions = tuple(ctypes.cast(function, ctypes.c_void_p).value for function in found)

    def allocator(self) -> CUDAPluggableAllocator:
        """What `MemPool` takes: the object itself."""
        return self
