"""Random numbers of several distributions, composed of uniform numbers, normal numbers and bits.

Each device has one generator; docs/design/random.md says how its numbers are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _creation, _dispatch, _dtype, _limits, _pinned, _shape
from .._device import DeviceLike
from .._dtype import DType
from ..errors import DTypeError, InvalidArgumentError
from .wide import computed, wide

if TYPE_CHECKING:
    from .._tensor import Tensor

_ALL_BUT_SIGN = 2**63 - 1
#: Bits that numbers of a floating dtype have, so that all integers below two to their power are among them.
_MANTISSA = {_dtype.float16: 11, _dtype.bfloat16: 8, _dtype.float32: 24, _dtype.float64: 53}


def rand(
    *size: int | Sequence[int], dtype: DType | None = None, device: DeviceLike | None = None, pin_memory: bool = False
) -> Tensor:
    """Random numbers, 0 <= x < 1, from the device's generator."""
    shape = _shape.integers("rand", size)
    return uniform_(_creation.empty(shape, dtype=dtype, device=device, pin_memory=pin_memory))


def randn(
    *size: int | Sequence[int], dtype: DType | None = None, device: DeviceLike | None = None, pin_memory: bool = False
) -> Tensor:
    """Random numbers of mean 0 and standard deviation 1, from the device's generator."""
    shape = _shape.integers("randn", size)
    return normal_(_creation.empty(shape, dtype=dtype, device=device, pin_memory=pin_memory))


def rand_like(
    input: Tensor, *, dtype: DType | None = None, device: DeviceLike | None = None, pin_memory: bool = False
) -> Tensor:
    """`rand` of the shape, dtype and device of another tensor."""
    return uniform_(_creation.empty_like(input, dtype=dtype, device=device, pin_memory=pin_memory))


def randn_like(
    input: Tensor, *, dtype: DType | None = None, device: DeviceLike | None = None, pin_memory: bool = False
) -> Tensor:
    """`randn` of the shape, dtype and device of another tensor."""
    return normal_(_creation.empty_like(input, dtype=dtype, device=device, pin_memory=pin_memory))


def randint(
    low: int,
    high: Any = None,
    size: Sequence[int] | None = None,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """Random integers, low <= x < high, all equally likely: ``randint(high, size)`` or ``randint(low, high, size)``.

    Parameters
    ----------
    dtype : DType, optional
        Of the result, int64 by default; it may be a floating one.
    """
    if size is None or high is None:
        low, high, size = 0, low, high if size is None else size
    shape = _shape.integers("randint", (size,))
    kind = _dtype.int64 if dtype is None else dtype
    made = _creation.empty(shape, dtype=kind, device=device, pin_memory=pin_memory)
    return _fill_integers("randint", made, _shape.integer("randint", low), _shape.integer("randint", high))


def randint_like(
    input: Tensor,
    low: int,
    high: int | None = None,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """`randint` of the shape, dtype and device of another tensor; with one number, from 0 up to it."""
    first, last = (0, low) if high is None else (low, high)
    made = _creation.empty_like(input, dtype=dtype, device=device, pin_memory=pin_memory)
    return _fill_integers("randint", made, _shape.integer("randint", first), _shape.integer("randint", last))


def random_(self: Tensor, low: int | None = None, high: int | None = None, /) -> Tensor:
    """Random integers, low <= x < high; with one number, from 0 up to it.

    Without a number: all that the dtype has from 0 on, of floating dtypes those below which it has every integer.
    """
    if low is None:
        return _fill_integers("random_", self, 0, _largest(self.dtype) + 1)
    first, last = (0, low) if high is None else (low, high)
    return _fill_integers("random_", self, _shape.integer("random_", first), _shape.integer("random_", last))


def _largest(dtype: DType) -> int:
    """The largest of the integers from 0 on that a dtype has without gaps."""
    if dtype is _dtype.bool:
        return 1
    return _limits.iinfo(dtype).max if dtype.category == _dtype.INT else 2 ** _MANTISSA[dtype]


def _fill_integers(operation: str, target: Tensor, low: int, high: int) -> Tensor:
    """Random integers into a tensor of any dtype, of 63 bits each: no value is noticeably likelier than another."""
    dtype = target.dtype
    if dtype.is_complex:
        raise DTypeError(f"{operation}: got dtype {dtype.name}, expected bool, an integer or a floating dtype")
    if low >= high:
        raise InvalidArgumentError(f"{operation}: got {low} to {high}, expected a lower limit below the upper one")
    if dtype.is_floating_point:
        lowest, highest = -int(_limits.finfo(dtype).max), int(_limits.finfo(dtype).max)
    else:
        lowest = _limits.iinfo(dtype).min if dtype.category == _dtype.INT else 0
        highest = _largest(dtype)
    if low < max(lowest, -(2**63)) or high - 1 > min(highest, 2**63 - 1) or high - low > 2**63:
        raise InvalidArgumentError(
            f"{operation}: got {low} to {high}, expected limits that {dtype.name} holds, at most 2**63 apart"
        )
    bits = target if dtype is _dtype.int64 else _creation.empty(target.shape, dtype=_dtype.int64, device=target.device)
    bits._backend.random_bits_(bits)
    bits.bitwise_and_(_ALL_BUT_SIGN)
    if high - low < 2**63:
        bits.remainder_(high - low)
    if low:
        bits.add_(low)
    if bits is not target:
        _dispatch.copy_(target, bits)
    return target


def randperm(
    n: int, *, dtype: DType | None = None, device: DeviceLike | None = None, pin_memory: bool = False
) -> Tensor:
    """The integers from 0 to n - 1 in random order, int64 by default."""
    count = _shape.integer("randperm", n)
    kind = _dtype.int64 if dtype is None else _dtype.check("randperm", dtype)
    if not kind.is_complex and count - 1 > _largest(kind):
        raise InvalidArgumentError(f"randperm: got n={count}, expected numbers that {kind.name} holds")
    keys = _creation.empty(count, dtype=_dtype.int64, device=device)
    keys._backend.random_bits_(keys)
    return _pinned.pinned(keys._backend.argsort(keys, 0).to(kind), pin_memory)


def bernoulli(input: Tensor, p: float | None = None) -> Tensor:
    """1 with the probability that the element is, else 0; with `p`, with that probability everywhere.

    Probabilities outside 0 and 1 count as the nearer of both.
    """
    _dispatch.check_tensor("bernoulli", input)
    if p is None and not input.dtype.is_floating_point:
        raise DTypeError(f"bernoulli: got probabilities of dtype {input.dtype.name}, expected a floating dtype")
    return bernoulli_(_creation.empty_like(input), input if p is None else p)


def bernoulli_(self: Tensor, p: Tensor | float = 0.5) -> Tensor:
    """1 with probability p, else 0; `p` is a number or a tensor of probabilities."""
    if _dispatch.is_tensor(p):
        if not p.dtype.is_floating_point:
            raise DTypeError(f"bernoulli_: got probabilities of dtype {p.dtype.name}, expected a floating dtype")
        share: Tensor | float = p
    else:
        share = _dispatch.real("bernoulli_", p)
        if not 0 <= share <= 1:
            raise InvalidArgumentError(f"bernoulli_: got probability {share}, expected 0 to 1")
    precise = _dispatch.is_tensor(p) and p.dtype is not _dtype.float64
    draws = rand(self.shape, dtype=_dtype.float32 if precise else _dtype.float64, device=self.device)
    _dispatch.copy_(self, draws < share)
    return self


def multinomial(input: Tensor, num_samples: int, replacement: bool = False) -> Tensor:
    """Indices drawn with the probabilities of the elements of each row, which need not add up to 1; int64.

    Parameters
    ----------
    input : Tensor
        One row, or a matrix of rows; floating, no element negative.
    replacement : bool
        Whether an index may be drawn again.
    """
    _dispatch.check_tensor("multinomial", input)
    count = _shape.integer("multinomial", num_samples)
    _dispatch.flag("multinomial", "replacement", replacement)
    if input.ndim not in (1, 2) or not input.shape[-1]:
        raise InvalidArgumentError(f"multinomial: got shape {input.shape}, expected one or two dimensions of elements")
    _dtype.check_floating("multinomial", input.dtype)
    if count < 1 or (count > input.shape[-1] and not replacement):
        raise InvalidArgumentError(
            f"multinomial: got {count} samples of {input.shape[-1]} elements, expected at least one, "
            "and without replacement no more than elements"
        )
    weights = input.to(_dtype.float64)
    if replacement and count > 1:
        return _with_replacement(weights, count)
    # Of clocks that ring at random, with these rates, the first ones: an element of 0 never rings.
    waits = exponential_(_creation.empty_like(weights))
    order = input._backend.argsort(weights / waits, -1, True)
    return order.narrow(-1, 0, count).contiguous()


def _with_replacement(weights: Tensor, count: int) -> Tensor:
    """For each draw, how many sums of the elements so far it reaches: by halving, in all rows at once."""
    backend, size = weights._backend, weights.shape[-1]
    sums = backend.scan("cumsum", weights, -1)
    shape = (*weights.shape[:-1], count)
    draws = rand(shape, dtype=_dtype.float64, device=weights.device) * sums.narrow(-1, size - 1, 1)
    found = _creation.zeros(draws.shape, dtype=_dtype.int64, device=weights.device)
    for bit in reversed(range((size - 1).bit_length())):
        further = found + 2**bit
        reached = backend.gather(sums, -1, (further - 1).clamp_max(size - 1)) <= draws
        found = found + (reached & (further < size)).to(_dtype.int64) * 2**bit
    return found


def normal(
    mean: Tensor | float,
    std: Tensor | float = 1.0,
    size: Sequence[int] | None = None,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Random numbers of the normal distribution.

    Parameters
    ----------
    mean, std : Tensor or float
        Tensors broadcast together, and each element has a distribution of its own; the dtype is that of the first.
    size : sequence of int, optional
        The shape, for two numbers.
    """
    tensors = [operand for operand in (mean, std) if _dispatch.is_tensor(operand)]
    if not tensors:
        if size is None:
            raise InvalidArgumentError("normal: got two numbers and no size, expected a size")
        made = _creation.empty(size, dtype=dtype, device=device)
        return normal_(made, _dispatch.real("normal", mean), _dispatch.real("normal", std))
    kind = _dtype.check_floating("normal", tensors[0].dtype)
    if not _dispatch.is_tensor(std) and not _dispatch.real("normal", std) >= 0:
        raise InvalidArgumentError(f"normal: got a standard deviation of {std}, expected 0 or more")
    shape = _shape.broadcast("normal", *(operand.shape for operand in tensors))
    draws = randn(shape, dtype=computed(kind), device=tensors[0].device)
    return (draws * wide(std, kind) + wide(mean, kind)).to(kind)


def uniform_(self: Tensor, low: float = 0.0, high: float = 1.0) -> Tensor:
    """Random numbers, low <= x < high; floating dtypes."""
    self._backend.uniform_(self, _dispatch.real("uniform_", low), _dispatch.real("uniform_", high))
    return self


def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Random numbers of the normal distribution; floating dtypes."""
    self._backend.normal_(self, _dispatch.real("normal_", mean), _dispatch.real("normal_", std))
    return self


def exponential_(self: Tensor, lambd: float = 1.0) -> Tensor:
    """Random numbers above 0, each with the density lambd * exp(-lambd * x); floating dtypes."""
    rate = _dispatch.real("exponential_", lambd)
    if not rate > 0:
        raise InvalidArgumentError(f"exponential_: got a rate of {rate}, expected more than 0")
    kind = computed(_dtype.check_floating("exponential_", self.dtype))
    draws = _creation.empty(self.shape, dtype=kind, device=self.device)
    # Never 0, nor 1: the logarithm is finite and not 0.
    uniform_(draws, 2.0 ** -_MANTISSA[kind], 1.0)
    _dispatch.copy_(self, draws.log_().mul_(-1 / rate))
    return self
