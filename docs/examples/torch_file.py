"""Reads what `torch.save` wrote of a `state_dict`, without torch.

Such a file is a ZIP archive of a pickle, which tells names, shapes and strides, and of one member with the numbers of
each tensor. A pickle may call whatever it names, so here it may name only what a `state_dict` consists of.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

#: The types of numbers by torch's names of their storages. The byte order is that of the machines that write files.
STORAGES = {
    "DoubleStorage": np.dtype("<f8"),
    "FloatStorage": np.dtype("<f4"),
    "HalfStorage": np.dtype("<f2"),
    "LongStorage": np.dtype("<i8"),
    "IntStorage": np.dtype("<i4"),
    "BoolStorage": np.dtype("?"),
}


def load(path: Path) -> dict[str, Array]:
    """The arrays of a file by their names.

    Raises
    ------
    ValueError
        If the file is something else than the `state_dict` of a module.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            pickles = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            if len(pickles) != 1:
                raise ValueError(f"got {len(pickles)} members data.pkl, expected one")
            state = _Unpickler(archive, pickles[0]).load()
    except (
        zipfile.BadZipFile, pickle.UnpicklingError, AttributeError, EOFError, KeyError, TypeError, ValueError
    ) as error:  # Whatever a damaged pickle makes of itself.
        raise ValueError(f"{path} is no state_dict that torch has saved: {error}") from None
    if not isinstance(state, dict) or not all(isinstance(array, np.ndarray) for array in state.values()):
        raise ValueError(f"{path} is no state_dict that torch has saved: expected tensors by their names")
    return dict(state)


def _tensor(
    storage: Array, offset: int, shape: Sequence[int], strides: Sequence[int], gradient: bool, hooks: object
) -> Array:
    """A view of a storage; it has to lie inside, which NumPy checks."""
    size = storage.itemsize
    view: Array = np.ndarray(shape, storage.dtype, storage.data, offset * size, [stride * size for stride in strides])
    return view


class _Unpickler(pickle.Unpickler):
    """Names mean what stands here; all others are refused."""

    def __init__(self, archive: zipfile.ZipFile, member: str) -> None:
        super().__init__(io.BytesIO(archive.read(member)))
        self.archive = archive
        self.folder = member.removesuffix("data.pkl") + "data/"

    def find_class(self, module: str, name: str) -> Any:
        """What a name of the pickle stands for."""
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        if module == "torch" and name in STORAGES:
            return STORAGES[name]
        raise pickle.UnpicklingError(f"{module}.{name} is not allowed")

    def persistent_load(self, pid: Any) -> Array:
        """The storage of a tensor, as the pickle names it."""
        _, dtype, key, _device, _count = pid
        # A bytearray can be written to, and so can the tensors that share its memory.
        return np.frombuffer(bytearray(self.archive.read(self.folder + key)), dtype)
