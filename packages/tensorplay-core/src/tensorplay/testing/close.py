"""The comparison that tests end with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import _dispatch, _dtype
from .._data import tensor
from .._dtype import DType
from .._tensor import Tensor
from ..errors import DTypeError, InvalidArgumentError

Array = np.ndarray[Any, Any]

# Relative and absolute errors that are allowed, torch's; dtypes that are not listed are exact.
_TOLERANCES: dict[DType, tuple[float, float]] = {
    _dtype.float16: (1e-3, 1e-5),
    _dtype.bfloat16: (1.6e-2, 1e-5),
    _dtype.float32: (1.3e-6, 1e-5),
    _dtype.float64: (1e-7, 1e-7),
    _dtype.complex64: (1.3e-6, 1e-5),
    _dtype.complex128: (1e-7, 1e-7),
}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_stride: bool = False,
    msg: str | None = None,
) -> None:
    """Raises unless both are alike: ``|actual - expected| <= atol + rtol * |expected|`` everywhere.

    Parameters
    ----------
    actual, expected
        Tensors, numbers or arrays, or sequences and mappings of these, nested alike. A tensor is compared with
        tensors only.
    rtol, atol : float, optional
        Both or none. By default by dtype, as in torch: 1.3e-6 and 1e-5 for float32; 0 for integers and bool.
    equal_nan : bool
        Whether nan is close to nan.
    check_device, check_dtype, check_stride : bool
        Whether these have to be the same.
    msg : str, optional
        The text of the error.

    Raises
    ------
    AssertionError
        They differ; the text says where, and by how much.
    DTypeError
        Something that is neither tensor, number, array, sequence nor mapping.
    InvalidArgumentError
        Only one of `rtol` and `atol`.
    """
    if (rtol is None) != (atol is None):
        raise InvalidArgumentError(f"assert_close: got rtol={rtol} and atol={atol}, expected both or none")
    found = _difference(actual, expected, rtol, atol, equal_nan, (check_device, check_dtype, check_stride), "")
    if found is not None:
        raise AssertionError(found if msg is None else msg)


def _difference(
    actual: Any,
    expected: Any,
    rtol: float | None,
    atol: float | None,
    equal_nan: bool,
    checks: tuple[bool, bool, bool],
    where: str,
) -> str | None:
    """What differs, as a sentence; None for nothing."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            missing, more = (sorted(a.keys() - b.keys(), key=str) for a, b in ((expected, actual), (actual, expected)))
            return f"assert_close{where}: missing keys {missing}, additional {more}"
        pairs = [(key, actual[key], expected[key]) for key in expected]
    elif _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"assert_close{where}: got {len(actual)} items, expected {len(expected)}"
        pairs = list(zip(range(len(expected)), actual, expected, strict=True))
    else:
        return _of_tensors(actual, expected, rtol, atol, equal_nan, checks, where)
    for key, one, other in pairs:
        found = _difference(one, other, rtol, atol, equal_nan, checks, f"{where}[{key!r}]")
        if found is not None:
            return found
    return None


def _of_tensors(
    actual: Any,
    expected: Any,
    rtol: float | None,
    atol: float | None,
    equal_nan: bool,
    checks: tuple[bool, bool, bool],
    where: str,
) -> str | None:
    if isinstance(actual, Tensor) != isinstance(expected, Tensor):
        return f"assert_close{where}: got {type(actual).__name__}, expected {type(expected).__name__}"
    a, b = _tensor(actual), _tensor(expected)
    attributes = [("shape", a.shape, b.shape, True), *zip(
        ("device", "dtype", "stride"), (a.device, a.dtype, a.stride()), (b.device, b.dtype, b.stride()), checks,
        strict=True,
    )]  # fmt: skip
    for name, got, wanted, is_checked in attributes:
        if is_checked and got != wanted:
            return f"assert_close{where}: got {name} {got}, expected {wanted}"
    if rtol is None or atol is None:
        rtol, atol = map(max, *(_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in (a.dtype, b.dtype)))
    return _of_arrays(_array(a), _array(b), rtol, atol, equal_nan, where)


def _of_arrays(a: Array, b: Array, rtol: float, atol: float, equal_nan: bool, where: str) -> str | None:
    with np.errstate(all="ignore"):
        error = np.abs(np.subtract(a, b, dtype=np.result_type(a, b, np.float64)))
        close = np.asarray(a == b)
        if rtol or atol:  # Large integers may differ by an error that is lost in float64.
            close |= np.isfinite(error) & (error <= atol + rtol * np.abs(b))
        if equal_nan:
            close |= (a != a) & (b != b)
        if close.all():
            return None
        error = np.where(close, 0, error)
        relative = np.where(close, 0, error / np.abs(b))
    # np.argmax takes the first nan for the largest.
    worst = tuple(map(int, np.unravel_index(np.argmax(error), error.shape)))
    wrong = int(close.size - np.count_nonzero(close))
    return (
        f"assert_close{where}: {wrong} of {close.size} elements differ ({wrong / close.size:.1%}); the greatest "
        f"absolute difference is {error.max()}, at index {worst}: got {a[worst]}, expected {b[worst]} "
        f"(up to {atol} allowed); the greatest relative difference is {relative.max()} (up to {rtol} allowed)"
    )


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _tensor(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    plain = _dispatch.number(value) if not isinstance(value, np.ndarray) else value
    if plain is None:
        raise DTypeError(f"assert_close: got {type(value).__name__}, expected tensors, numbers, sequences or mappings")
    # Python's fractions are compared as exactly as they are.
    return tensor(plain, dtype=_dtype.float64 if isinstance(plain, float) else None)


def _array(value: Tensor) -> Array:
    """The elements, where half types become what NumPy subtracts."""
    elements = value.detach().cpu()
    return (elements.double() if elements.dtype in (_dtype.float16, _dtype.bfloat16) else elements).numpy()
