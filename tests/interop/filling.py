"""What goes into the gaps of expressions, and the tensors that programs begin with.

The first tensor of an expression is its subject, which later gaps fit.
"""

from __future__ import annotations

import math
import random
import re
from typing import Any

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
    "complex128",
]  # fmt: skip

NUMBERS = [
    "0", "1", "2", "3", "-1", "-2", "5", "100", "0.5", "2.0", "-1.5", "3.0", "0.1", "True", "False", "inf", "-inf",
    "nan", "-0.0", "300", "-200", "1j", "(2-1j)",
]  # fmt: skip


class Filler:
    """Fills the gaps of an expression.

    Parameters
    ----------
    values : dict
        Tensors of torch by their names.
    given : list of str
        Those among them that were given, whose strides are the same everywhere.
    """

    def __init__(self, rng: random.Random, values: dict[str, Any], given: list[str]) -> None:
        self.rng, self.values, self.given_names = rng, values, given
        self._first: str | None = rng.choice(list(values))
        self.subject = values[self._first]

    def fill(self, phrase: str) -> str:
        """The expression."""
        return re.sub(r"\{(\w+)\}", lambda gap: str(getattr(self, gap.group(1))()), phrase)

    def _chance(self, share: float) -> bool:
        return self.rng.random() < share

    def x(self) -> str:
        """The subject, and after it any tensor."""
        name, self._first = self._first or self.rng.choice(list(self.values)), None
        return name

    def given(self) -> str:
        """A given tensor, which becomes the subject."""
        name = self.rng.choice(self.given_names)
        self.subject = self.values[name]
        return name

    def y(self) -> str:
        """A tensor that broadcasts to the subject, mostly."""
        if self._chance(0.05):
            return self.x()
        fitting = [name for name, value in self.values.items() if self._broadcasts(value)]
        return self.rng.choice(fitting) if fitting else self.x()

    def _broadcasts(self, value: Any) -> bool:
        pairs = zip(reversed(value.shape), reversed(self.subject.shape), strict=False)
        return value.ndim <= self.subject.ndim and all(a in (1, b) for a, b in pairs)

    def number(self) -> str:
        return self.rng.choice(NUMBERS[:12] if self._chance(0.8) else NUMBERS)

    def finite(self) -> str:
        return self.rng.choice(NUMBERS[:13])

    def operand(self) -> str:
        return self.number() if self._chance(0.4) else self.y()

    def scalar(self) -> str:
        """A tensor without dimensions of the subject's dtype."""
        return f"lib.tensor(1, dtype=lib.{name_of(self.subject.dtype)}, device=device)"

    def out(self) -> str:
        shape = tuple(self.subject.shape)
        return f"lib.ones({shape}, dtype=lib.{self.dtype()}, device=device)"

    def dtype(self) -> str:
        return self.rng.choice(DTYPES)

    def flag(self) -> bool:
        return self._chance(0.5)

    def small(self) -> int:
        return self.rng.choice([-2, -1, 0, 0, 1, 1, 2, 3])

    def positive(self) -> int:
        return self.rng.choice([1, 1, 2, 2, 3, 4, 0])

    def order(self) -> str:
        return self.rng.choice(["1", "2", "0", "inf", "-inf", "3", "0.5", "'fro'"])

    def dim(self) -> int:
        ndim = max(self.subject.ndim, 1)
        return self.rng.randrange(-ndim, ndim) if self._chance(0.93) else self.rng.choice([-ndim - 1, ndim])

    def dim_tuple(self) -> tuple[int, ...]:
        ndim = self.subject.ndim
        chosen = [d for d in range(ndim) if self._chance(0.5)]
        return tuple(d - ndim if self._chance(0.3) else d for d in chosen)

    def dims(self) -> str:
        return repr(self.rng.choice([self.dim_tuple, self.dim, self.dim_tuple])()) if self._chance(0.9) else "None"

    def order_of(self) -> tuple[int, ...]:
        order = list(range(self.subject.ndim))
        self.rng.shuffle(order)
        return tuple(order)

    def shape(self) -> tuple[int, ...]:
        """A shape with the subject's number of elements, perhaps with -1."""
        rest, sizes = self.subject.numel(), []
        while rest > 1 and self._chance(0.8):
            factor = self.rng.choice([n for n in range(1, rest + 1) if rest % n == 0])
            sizes.append(factor)
            rest //= factor
        sizes.append(-1 if self._chance(0.3) else rest if self._chance(0.95) else rest + 1)
        return tuple(sizes)

    def larger(self) -> tuple[int, ...]:
        """A shape that the subject expands to, mostly."""
        grown = [
            self.rng.choice([2, 3, 0, -1]) if size == 1 and self._chance(0.6) else size for size in self.subject.shape
        ]
        return (self.rng.choice([1, 2]), *grown) if self._chance(0.5) else tuple(grown)

    def padding(self) -> tuple[int, ...]:
        least = [-1] if all(size > 1 for size in self.subject.shape) else [0]
        return tuple(
            self.rng.choice([0, 1, 2, *least]) for _ in range(2 * self.rng.randint(0, max(self.subject.ndim, 1)))
        )

    def mask(self) -> str:
        """A bool tensor that broadcasts to the subject."""
        name = self.y()
        return name if self.values[name].dtype.itemsize == 1 and self._chance(0.2) else f"({name} != 0)"

    def near_mask(self) -> str:
        """A mask of the subject's first dimension."""
        size = self.subject.shape[0] if self.subject.ndim else 1
        return f"lib.tensor({[self.flag() for _ in range(size)]}, dtype=lib.bool, device=device)"

    def _index(self, shape: tuple[int, ...], size: int, least: int) -> str:
        def part(sizes: tuple[int, ...]) -> Any:
            if not sizes:
                return self.rng.randrange(least, max(size, 1)) if self._chance(0.995) else size
            return [part(sizes[1:]) for _ in range(sizes[0])]

        kind = self.rng.choice(["int64", "int64", "int32"])
        return f"lib.tensor({part(shape)}, dtype=lib.{kind}, device=device)"

    def index(self) -> str:
        """Indices that all of the subject's dimensions have, mostly."""
        size = min(self.subject.shape, default=1)
        shape = self.rng.choice([(2,), (3,), (1,), (), (2, 2), (0,)])
        return self._index(shape, size, -size if self._chance(0.2) else 0)

    def index_like(self) -> str:
        """Indices for gather and its like: the subject's shape or smaller."""
        shape = tuple(size - (size > 1 and self._chance(0.2)) for size in self.subject.shape)
        return self._index(shape, min(self.subject.shape, default=1), 0)

    def key(self) -> str:
        """What goes between brackets."""
        parts: list[str] = []
        for size in self.subject.shape:
            roll = self.rng.random()
            if roll < 0.15:
                break
            if roll < 0.25:
                parts.append("None")
            if roll < 0.45 and size:
                parts.append(str(self.rng.randrange(-size, size)))
            elif roll < 0.75:
                ends = [self.rng.choice(["", "0", "1", "-1", "2", "5", "-7"]) for _ in range(2)]
                parts.append(":".join(ends) + self.rng.choice(["", "", ":2", ":3"]))
            elif roll < 0.85:
                parts.append(self._index(self.rng.choice([(2,), (1,), (2, 1)]), size, -size))
            elif roll < 0.9:
                parts.append(str([self.rng.randrange(-max(size, 1), max(size, 1)) for _ in range(2)]))
            else:
                parts.append(":")
        if self._chance(0.2):
            parts.insert(self.rng.randint(0, len(parts)), "...")
        return ", ".join(parts) or "..."

    def key_of(self) -> str:
        """A key as an expression of its own."""
        return f"key[{self.key()}]"


def name_of(dtype: Any) -> str:
    """The name of a dtype of either library."""
    return str(dtype).rpartition(".")[2]


def tensor(rng: random.Random) -> str:
    """An expression that makes a tensor: any dtype, shape and layout."""
    dtype = rng.choice(DTYPES)
    sizes = [1, 1, 2, 2, 3, 3, 4, 0 if rng.random() < 0.2 else 2]
    shape = tuple(rng.choice(sizes) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4])))
    strange = rng.random() < 0.25

    def element() -> str:
        if dtype == "bool":
            return str(rng.random() < 0.5)
        if "int" in dtype:
            signed = -1 if dtype != "uint8" and rng.random() < 0.4 else 1
            bits = 8 * (8 if dtype == "int64" else int(re.sub(r"\D", "", dtype)) // 8) - (dtype != "uint8")
            return str(2**bits - 1 if strange and rng.random() < 0.2 else signed * rng.choice([0, 1, 2, 3, 5, 11, 100]))
        if strange and rng.random() < 0.3 and not dtype.startswith("complex"):
            return rng.choice(["nan", "inf", "-inf", "-0.0", "60000.0", "1e-6"])
        plain = str(rng.choice([0.0, 1.0, -1.0]) if rng.random() < 0.2 else rng.randrange(-40, 41) / 16)
        return f"({plain}{rng.randrange(-40, 41) / 16:+}j)" if dtype.startswith("complex") else plain

    def elements(sizes: tuple[int, ...]) -> str:
        return element() if not sizes else "[" + ", ".join(elements(sizes[1:]) for _ in range(sizes[0])) + "]"

    layout = rng.choice(["", "", "", "turned", "stepped", "expanded"]) if math.prod(shape) and shape else ""
    made, behind = shape, ""
    if layout == "turned":
        made, behind = shape[::-1], f".permute({tuple(reversed(range(len(shape))))})"
    elif layout == "stepped":
        made, behind = (*shape[:-1], 2 * shape[-1]), "[..., ::2]"
    elif layout == "expanded":
        made, behind = (1, *shape[1:]), f".expand({shape})"
    if 0 in made:
        return f"lib.zeros({made}, dtype=lib.{dtype}, device=device)"
    return f"lib.tensor({elements(made)}, dtype=lib.{dtype}, device=device){behind}"
