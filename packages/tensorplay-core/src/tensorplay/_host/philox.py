"""Philox4x32-10 and what is made of its words; docs/design/random.md is the rule for every backend.

Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MASK = 2**32 - 1


def words(seed: int, offset: int, numel: int) -> Array:
    """The 32-bit words of elements 0 to numel - 1, as uint32; `offset` is a multiple of 4."""
    groups = np.arange(-(-numel // 4), dtype=np.uint64) + np.uint64(offset // 4)
    zeros = np.zeros_like(groups)
    # Each word in 64 bits, so that products of two words fit.
    c0, c1, c2, c3 = groups & _LOW, groups >> _HALF, zeros, zeros
    k0, k1 = seed & _MASK, seed >> 32 & _MASK
    for _ in range(_ROUNDS):
        product0, product1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c2 = (product1 >> _HALF) ^ c1 ^ np.uint64(k0), (product0 >> _HALF) ^ c3 ^ np.uint64(k1)
        c1, c3 = product1 & _LOW, product0 & _LOW
        k0, k1 = (k0 + _KEY_STEPS[0]) & _MASK, (k1 + _KEY_STEPS[1]) & _MASK
    result: Array = np.stack([c0, c1, c2, c3], axis=-1).reshape(-1)[:numel].astype(np.uint32)
    return result


def pairs(bits: Array) -> Array:
    """Words two by two as uint64, the first of each pair in the low half."""
    wide = bits.astype(np.uint64)
    result: Array = wide[0::2] | wide[1::2] << _HALF
    return result


def uniform(bits: Array, low: float, high: float, dtype: np.dtype[Any]) -> Array:
    """low <= x < high in `dtype`; uint32 bits make float32 and the half types, uint64 bits float64."""
    low_t, high_t = dtype.type(low), dtype.type(high)
    # ml_dtypes has its own nextafter for its own types.
    below = max(np.nextafter(high_t, dtype.type(-np.inf)), low_t)
    wide = np.float32 if bits.dtype == np.uint32 else np.float64
    span = wide(np.float64(high_t) - np.float64(low_t))
    values: Array = np.minimum(_fractions(bits) * span + wide(low_t), wide(below))
    return values.astype(dtype)


def normal(bits: Array, mean: float, std: float) -> Array:
    """Mean and standard deviation by Box and Muller; an even number of bits, uint32 for float32, uint64 for float64."""
    first, second = bits[0::2], bits[1::2]
    wide: type[Any]
    if bits.dtype == np.uint32:
        wide = np.float32
        u = first.astype(np.float32) * np.float32(2.0**-32) + np.float32(2.0**-33)
    else:
        wide = np.float64
        u = _fractions(first) + 2.0**-54
    turns = _fractions(second).astype(np.float64)
    radius = np.sqrt(-2.0 * np.log(u.astype(np.float64)))
    z = np.stack([radius * _cos_turns(turns), radius * _cos_turns(turns - 0.25)], axis=-1).reshape(-1)
    result: Array = wide(mean) + wide(std) * z.astype(wide)
    return result


def _fractions(bits: Array) -> Array:
    """0 <= u < 1, exact: 24 bits in float32, 53 in float64."""
    result: Array
    if bits.dtype == np.uint32:
        result = (bits >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
    else:
        result = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return result


def _cos_turns(turns: Array) -> Array:
    """cos(2 pi turns), accurate near its zeros: the angle is reduced before pi comes in."""
    turns = np.abs(turns - np.round(turns))
    # cos(2 pi t) = sin(2 pi (1/4 - t)), exact reduction to at most an eighth of a turn where it matters.
    cosine: Array = np.sin(2 * np.pi * (0.25 - turns))
    return cosine
