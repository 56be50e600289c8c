"""Element types. The list, its codes and the promotion table come from libtensorplay's .def files."""

from __future__ import annotations

import builtins
from typing import Any

import ml_dtypes
import numpy as np

from . import _tables
from .errors import DTypeError

# Categories in the order of promotion between kinds of numbers.
BOOL, INT, FLOAT, COMPLEX = range(4)
_CATEGORIES = {"BOOL": BOOL, "INT": INT, "FLOAT": FLOAT, "COMPLEX": COMPLEX}


class DType:
    """An element type, such as `tensorplay.float32`. There is one object for each; compare with ``is``.

    Attributes
    ----------
    name : str
        ``"float32"``.
    code : int
        The number that libtensorplay knows it by.
    itemsize : int
        Bytes of one element.
    category : int
        0 for bool, 1 for integers, 2 for floating point, 3 for complex: the order of promotion.
    is_floating_point : bool
        Whether it holds fractions; complex dtypes are not floating.
    is_complex : bool
        Whether it holds complex numbers.
    is_signed : bool
        Whether it holds negative numbers.
    numpy : numpy.dtype
        The same type in NumPy (bfloat16 comes from `ml_dtypes`).
    """

    __slots__ = ("category", "code", "is_complex", "is_floating_point", "is_signed", "itemsize", "name", "numpy")

    def __init__(self, name: str, code: builtins.int, itemsize: builtins.int, category: str) -> None:
        self.name = name
        self.code = code
        self.itemsize = itemsize
        self.category = _CATEGORIES[category]
        self.is_floating_point = self.category == FLOAT
        self.is_complex = self.category == COMPLEX
        self.is_signed = name not in ("bool", "uint8")
        self.numpy: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)

    def __repr__(self) -> str:
        return f"tensorplay.{self.name}"

    def to_real(self) -> DType:
        """The dtype of the parts of a complex one; itself when it is none."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    def to_complex(self) -> DType:
        """The complex dtype that holds the elements of a floating one; itself when it is complex."""
        if self.is_complex:
            return self
        return complex128 if self is float64 else complex64

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return _by_name, (self.name,)


DTYPES: dict[str, DType] = {name: DType(name, *row) for name, row in _tables.DTYPES.items()}
BY_CODE: list[DType] = sorted(DTYPES.values(), key=lambda dtype: dtype.code)
#: The DType of each NumPy dtype that has one.
NUMPY: dict[np.dtype[Any], DType] = {dtype.numpy: dtype for dtype in DTYPES.values()}
_PROMOTION: dict[DType, dict[DType, DType]] = {
    DTYPES[left]: {DTYPES[right]: DTYPES[result] for right, result in row.items()}
    for left, row in _tables.PROMOTION.items()
}

bool = DTYPES["bool"]
uint8 = DTYPES["uint8"]
int8 = DTYPES["int8"]
int16 = short = DTYPES["int16"]
int32 = int = DTYPES["int32"]
int64 = long = DTYPES["int64"]
float16 = half = DTYPES["float16"]
bfloat16 = DTYPES["bfloat16"]
float32 = float = DTYPES["float32"]
float64 = double = DTYPES["float64"]
complex64 = cfloat = DTYPES["complex64"]
complex128 = cdouble = DTYPES["complex128"]

#: The dtype of numbers of each category that come without one; `set_default_dtype` changes the last two.
DEFAULTS = {BOOL: bool, INT: int64, FLOAT: float32, COMPLEX: complex64}


def _by_name(name: str) -> DType:
    return DTYPES[name]


def from_numpy(operation: str, dtype: np.dtype[Any]) -> DType:
    """The DType of a NumPy dtype.

    Raises
    ------
    DTypeError
        There is none, float64 for example; the text lists those that exist.
    """
    # A foreign byte order is another NumPy dtype and is refused like one.
    found = NUMPY.get(dtype)
    if found is None:
        raise DTypeError(f"{operation}: got NumPy dtype {dtype}, expected one of {', '.join(DTYPES)}")
    return found


def check(operation: str, dtype: object) -> DType:
    """The argument itself when it is a DType.

    Raises
    ------
    DTypeError
        It is something else.
    """
    if not isinstance(dtype, DType):
        raise DTypeError(f"{operation}: got dtype {dtype!r}, expected a tensorplay dtype: {', '.join(DTYPES)}")
    return dtype


def check_floating(operation: str, dtype: DType) -> DType:
    """The dtype itself when it is floating.

    Raises
    ------
    DTypeError
        It is another one.
    """
    if not dtype.is_floating_point:
        raise DTypeError(f"{operation}: got dtype {dtype.name}, expected a floating dtype")
    return dtype


def promote(left: DType, right: DType) -> DType:
    """The dtype that holds both, torch's rule for two tensors with dimensions."""
    return _PROMOTION[left][right]


def promote_weak(strong: DType, weak: DType) -> DType:
    """As `promote`, where the weak operand takes part only when its category is the higher one.

    Between fractions and complex numbers only the category does: float32 and a weak complex128 give complex64.
    """
    if strong.category >= weak.category:
        return strong
    return strong.to_complex() if strong.is_floating_point else promote(strong, weak)


def can_cast(source: DType, target: DType) -> builtins.bool:
    """Whether a result may be written into `target`: within or above its category."""
    return source.category <= target.category
