"""Parts of the host backend that have answers of their own."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorplay
from tensorplay import _plugins
from tensorplay._host import arrays, philox
from tensorplay._host.erf import erf, erfc
from tensorplay.errors import DTypeError, InvalidArgumentError


def test_erf_is_accurate_in_float64() -> None:
    x = np.concatenate([np.linspace(-7, 7, 20_001), [0.46875, -0.46875, 4.0, -4.0, 1e-300, -0.0, 0.0, np.inf, -np.inf]])
    expected = np.array([math.erf(value) for value in x])
    np.testing.assert_allclose(erf(x), expected, rtol=1e-15, atol=0)
    assert np.isnan(erf(np.array([np.nan]))).all()
    assert np.signbit(erf(np.array([-0.0]))).all()
    assert erf(np.float64(0.5)).shape == ()


def test_erfc_is_accurate_in_its_tail() -> None:
    x = np.concatenate([np.linspace(-7, 27, 20_001), [0.46875, -0.46875, 4.0, -0.0, 0.0, np.inf, -np.inf]])
    expected = np.array([math.erfc(value) for value in x])
    np.testing.assert_allclose(erfc(x), expected, rtol=2e-15, atol=1e-307)
    assert np.isnan(erfc(np.array([np.nan]))).all()


# Known answers of the authors of Random123: counter, key, four words. The third word of the counter is 0 here.
@pytest.mark.parametrize(("seed", "offset", "words"), [(0, 0, "6627e8d5 e169c58d bc57ac4c 9b00dbd8")])
def test_philox_known_answer(seed: int, offset: int, words: str) -> None:
    assert " ".join(f"{word:08x}" for word in philox.words(seed, offset, 4)) == words


def scalar_philox(seed: int, offset: int, i: int) -> int:
    """docs/design/random.md in Python's integers."""
    group = (offset // 4 + i // 4) % 2**64
    c = [group % 2**32, group >> 32, 0, 0]
    k = [seed % 2**32, seed >> 32]
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k[0], q % 2**32, (p >> 32) ^ c[3] ^ k[1], p % 2**32]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return c[i % 4]


@pytest.mark.parametrize("seed", [0, 1, 67280421310721, 2**64 - 1])
@pytest.mark.parametrize("offset", [0, 4, 2**34 - 4, 2**64 - 8])
def test_philox_is_the_written_rule(seed: int, offset: int) -> None:
    assert philox.words(seed, offset, 11).tolist() == [scalar_philox(seed, offset, i) for i in range(11)]


def test_an_element_does_not_depend_on_how_many_are_drawn() -> None:
    long = philox.words(3, 8, 1000)
    assert philox.words(3, 8, 7).tolist() == long[:7].tolist()
    assert philox.words(3, 12, 7).tolist() == long[4:11].tolist()


def test_elements_of_eight_bytes_have_two_words() -> None:
    host = _plugins.get("cpu")
    words = [scalar_philox(5, 0, i) for i in range(14)]
    bits = [low + (high << 32) for low, high in zip(words[::2], words[1::2], strict=True)]
    x = tensorplay.empty(7, dtype=tensorplay.int64)
    host.seed(0, 5)
    host.random_bits_(x)
    assert host.get_rng_state(0) == (5, 16)
    assert [value % 2**64 for value in x.tolist()] == bits
    host.seed(0, 5)
    y = tensorplay.empty(7, dtype=tensorplay.float64).uniform_(-1, 3)
    assert y.tolist() == [(value >> 11) * 2.0**-53 * 4 - 1 for value in bits]
    with pytest.raises(DTypeError, match="random_bits_: got dtype int32, expected int64"):
        host.random_bits_(tensorplay.empty(7, dtype=tensorplay.int32))


def test_normal_numbers_of_float64() -> None:
    host = _plugins.get("cpu")
    words = [scalar_philox(5, 0, i) for i in range(4)]
    first, second = (words[i] + (words[i + 1] << 32) for i in (0, 2))
    radius = math.sqrt(-2 * math.log((first >> 11) * 2.0**-53 + 2.0**-54))
    angle = 2 * math.pi * (second >> 11) * 2.0**-53
    host.seed(0, 5)
    x = tensorplay.empty(2, dtype=tensorplay.float64).normal_(1.0, 2.0)
    expected = [1 + 2 * radius * math.cos(angle), 1 + 2 * radius * math.sin(angle)]
    assert x.tolist() == pytest.approx(expected, rel=1e-13)
    many = tensorplay.empty(100_001, dtype=tensorplay.float64).normal_().numpy()
    assert abs(many.mean()) < 0.02
    assert abs(many.std() - 1) < 0.02


def test_generator_state_moves_in_fours() -> None:
    host = _plugins.get("cpu")
    host.seed(0, 9)
    tensorplay.rand(5)
    assert host.get_rng_state(0) == (9, 8)
    tensorplay.rand(0)
    assert host.get_rng_state(0) == (9, 8)
    host.set_rng_state(0, 9, 4)
    assert host.get_rng_state(0) == (9, 4)
    with pytest.raises(InvalidArgumentError, match="got offset 3, expected a multiple of 4"):
        host.set_rng_state(0, 9, 3)


def test_the_first_seed_is_torchs() -> None:
    from helpers.fresh import run

    assert run("import tensorplay; print(tensorplay.initial_seed())").strip() == "67280421310721"


def test_views_keep_the_storage_of_the_array() -> None:
    array = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    x = tensorplay.from_numpy(array[1].T)
    assert x.storage_offset() == 12
    assert x.stride() == (1, 4)
    assert x.as_strided((24,), (1,), 0).tolist() == list(range(24))
    # Owners in other orders, and of other dtypes, have the same bytes.
    turned = tensorplay.from_numpy(np.array(array.transpose(2, 0, 1), order="K")[1:])
    assert turned.as_strided((24,), (1,), 0).tolist() == list(range(24))
    halves = tensorplay.from_numpy(np.zeros(3, np.float32).view(np.float16)[2:])
    assert halves.storage_offset() == 2
    assert halves.as_strided((6,), (1,), 0).shape == (6,)
    assert arrays.extent(np.empty((0, 3))) == 0


def test_strides_that_no_tensor_has_are_copied() -> None:
    array = np.arange(6, dtype=np.float32)
    with pytest.raises(InvalidArgumentError, match="from_numpy: got strides of"):
        tensorplay.from_numpy(array[::-1])
    assert tensorplay.asarray(array[::-1]).tolist() == array[::-1].tolist()
    fields = np.zeros(3, dtype=[("a", np.int8), ("b", np.float32)])["b"]
    with pytest.raises(InvalidArgumentError, match="from_numpy: got strides of"):
        tensorplay.from_numpy(fields)
    assert tensorplay.asarray(fields).tolist() == [0, 0, 0]
