"""What random programs are made of: expressions with gaps, and what goes into the gaps.

An expression is Python in which `lib` is torch or tensorplay. A gap `{name}` is filled by the method of that name of
`Filler`; the first tensor of an expression is its subject, which later gaps fit.
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

UNARY = """neg abs sign sqrt rsqrt square exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh
asinh acosh atanh erf erfc sigmoid logit relu floor ceil round trunc frac reciprocal isnan isinf isfinite logical_not
bitwise_not signbit conj""".split()
BINARY = """add sub mul div floor_divide remainder fmod pow atan2 hypot copysign maximum minimum fmax fmin eq ne lt le gt
ge logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift
bitwise_right_shift""".split()
OPERATORS = "+ - * / // % ** & | ^ << >> == != < <= > >=".split()
REDUCE = "sum mean prod amax amin argmax argmin any all var std logsumexp count_nonzero".split()
# Without an out= in torch, or with a mask that leaves nothing to write.
NOT_INTO_OUT = {"isnan", "isinf", "isfinite", "relu", "conj", "logit"}
NOT_IN_PLACE = {"isnan", "isinf", "isfinite", "signbit", "conj", "maximum", "minimum", "fmax", "fmin"}

#: By what is responsible: the owner of a disagreement.
PHRASES: dict[str, list[str]] = {
    "elementwise": [
        *(f"lib.{op}({{x}})" for op in UNARY),
        *(f"{{x}}.{op}()" for op in UNARY),
        *(f"{{x}}.{op}_()" for op in UNARY if op not in NOT_IN_PLACE),
        *(f"lib.{op}({{x}}, out={{out}})" for op in UNARY if op not in NOT_INTO_OUT),
        "lib.nn.functional.gelu({x})", "lib.nn.functional.gelu({x}, approximate='tanh')",
        "lib.nn.functional.silu({x})", "lib.nn.functional.softplus({x})", "lib.round({x}, decimals={small})",
        "lib.clamp({x}, {number}, {number})", "lib.clamp({x}, min={operand})", "{x}.clamp(max={number})",
        "lib.logit({x}, 0.1)", "{x}.real", "{x}.imag", "-{x}", "~{x}", "abs({x})",
    ],
    "binary": [
        *(f"lib.{op}({{x}}, {{operand}})" for op in BINARY),
        *(f"{{x}}.{op}({{operand}})" for op in BINARY),
        *(f"{{x}}.{op}_({{operand}})" for op in BINARY if op not in NOT_IN_PLACE and op != "hypot"),
        *(f"lib.{op}({{x}}, {{y}}, out={{out}})" for op in BINARY),
        *(f"{{x}} {op} {{operand}}" for op in OPERATORS),
        *(f"{{number}} {op} {{x}}" for op in OPERATORS),
        "lib.div({x}, {operand}, rounding_mode='floor')", "lib.div({x}, {operand}, rounding_mode='trunc')",
        "lib.lerp({x}, {y}, {number})", "lib.addcmul({x}, {y}, {y}, value={number})",
        "lib.addcdiv({x}, {y}, {y}, value={number})", "lib.where({mask}, {x}, {operand})",
        "lib.add({x}, {operand}, alpha={number})", "lib.sub({x}, {operand}, alpha={number})",
        "{x}.masked_fill({mask}, {number})", "{x}.masked_fill_({mask}, {number})", "lib.isclose({x}, {y})",
        "lib.allclose({x}, {y})", "lib.equal({x}, {y})", "lib.result_type({x}, {operand})",
        "lib.can_cast(lib.{dtype}, lib.{dtype})", "lib.promote_types(lib.{dtype}, lib.{dtype})",
    ],
    "reductions": [
        *(f"lib.{op}({{x}})" for op in REDUCE if op != "logsumexp"),
        *(f"{{x}}.{op}({{dim}})" for op in REDUCE),
        *(f"{{x}}.{op}({{dim}}, keepdim={{flag}})" for op in REDUCE if op != "count_nonzero"),
        *(f"lib.{op}({{x}}, {{dims}})" for op in REDUCE if op not in ("argmax", "argmin", "prod")),
        *(f"lib.{op}({{x}}, {{dims}}, keepdim={{flag}})" for op in ("sum", "mean", "amax", "amin", "var", "std")),
        *(f"lib.{op}({{x}}, {{dim}}, dtype=lib.{{dtype}})" for op in ("sum", "mean", "prod", "cumsum", "cumprod")),
        "lib.max({x})", "lib.min({x})", "lib.max({x}, {dim})", "lib.min({x}, {dim}, keepdim={flag})",
        "lib.var({x}, {dims}, correction={small})", "lib.norm({x})", "lib.norm({x}, {order}, {dims})",
        "{x}.norm({order})", "lib.softmax({x}, {dim})", "lib.log_softmax({x}, {dim})", "{x}.cumsum({dim})",
        "{x}.cumprod({dim})", "lib.sort({x}, dim={dim}, stable=True)", "lib.sort({x}, descending={flag}, stable=True)",
        "lib.argsort({x}, dim={dim}, stable=True)", "lib.topk({x}, {small}, dim={dim})[0]",
        "lib.topk({x}, 1, largest={flag})[0]", "lib.unique({x})", "lib.unique({x}, return_counts=True)",
        "lib.unique({x}, return_inverse=True)", "lib.unique({x}, dim={dim})", "lib.nonzero({x})",
        "lib.nonzero({x}, as_tuple=True)", "lib.argwhere({x})", "lib.where({x})",
    ],
    "shape": [
        "{x}.view({shape})", "{x}.reshape({shape})", "lib.reshape({x}, {shape})", "{x}.permute({order_of})",
        "{x}.transpose({dim}, {dim})", "{x}.t()", "{x}.T", "{x}.mT", "{x}.squeeze()", "{x}.squeeze({dim})",
        "{x}.unsqueeze({dim})", "{x}.expand({larger})", "lib.broadcast_to({x}, {larger})", "{x}.flatten({dim}, {dim})",
        "{x}.flatten()", "{x}.unflatten({dim}, (-1, 1))", "lib.movedim({x}, {dim}, {dim})",
        "{x}.narrow({dim}, {small}, {small})", "{x}.select({dim}, {small})", "{x}.chunk({positive}, {dim})",
        "{x}.split({positive}, {dim})", "{x}.unbind({dim})", "lib.cat([{x}, {y}], {dim})", "lib.cat([{x}, {x}])",
        "lib.stack([{x}, {y}], {dim})", "lib.stack([{x}, {x}], {dim})", "{x}.flip({dim})", "lib.flip({x}, {dim_tuple})",
        "lib.roll({x}, {small}, {dim})", "lib.roll({x}, {small})", "{x}.repeat({larger})", "lib.tile({x}, {larger})",
        "lib.nn.functional.pad({x}, {padding})", "lib.nn.functional.pad({x}, {padding}, value={number})",
        "{x}.contiguous()", "{x}.clone()", "{x}.tril({small})", "lib.triu({x}, {small})", "lib.tril({x})",
        "{x}.is_contiguous()", "{given}.transpose({dim}, {dim}).stride()", "{given}.reshape({shape}).stride()",
        "{given}.permute({order_of}).storage_offset()", "{given}[{key}].stride()", "{given}[{key}].storage_offset()",
        "{x}.to(lib.{dtype})", "{x}.type_as({y})", "{x}.float()", "{x}.int()", "{x}.bool()", "{x}.half()", "{x}.double()",
        "{x}.long()", "{x}.copy_({y})", "{x}.fill_({number})", "{x}.zero_()", "{x}.expand_as({y})", "{x}.size({dim})",
        "{x}.numel()", "{x}.tolist()", "repr({x})", "len({x})", "bool({x})", "int({x})", "float({x})", "{x}.item()",
        "lib.squeeze({x}, {dim})", "lib.swapaxes({x}, {dim}, {dim})", "{x}.view(lib.{dtype})",
        "[row for row in {x}]", "{x}.element_size()", "{x}.as_strided((2, 2), (1, 1))", "lib.narrow({x}, {dim}, 0, 1)",
    ],
    "index": [
        "{x}[{key}]", "{x}[{key}]", "{x}[{key}]", "{x}[{mask}]", "{x}[{near_mask}]", "{x}[{index}]", "{x}[{index}, {index}]",
        "{x}[..., {index}]", "put({x}, {key_of}, {number})", "put({x}, {key_of}, {number})", "put({x}, {mask}, {number})",
        "put({x}, {near_mask}, {number})", "put({x}, {index}, {y})", "put({x}, {key_of}, {y})",
        "{x}.gather({dim}, {index_like})", "lib.gather({x}, {dim}, {index_like})",
        "{x}.scatter({dim}, {index_like}, {number})", "{x}.scatter({dim}, {index_like}, {x})",
        "{x}.scatter_add({dim}, {index_like}, {x})", "{x}.scatter_({dim}, {index_like}, {number})",
        "{x}.index_select({dim}, {index})", "{x}.index_add({dim}, {index}, {y})", "{x}.index_add_({dim}, {index}, {x})",
        "{x}.index_put(({index},), {y})", "{x}.index_put_(({index},), {scalar}, accumulate=True)",
        "{x}.index_put(({index}, {index}), {scalar}, accumulate={flag})", "lib.take_along_dim({x}, {index_like}, {dim})",
        "lib.masked_select({x}, {mask})", "{x}.index_fill({dim}, {index}, {number})", "{x}.masked_scatter({mask}, {x})",
    ],
    "creation": [
        "lib.zeros({larger}, dtype=lib.{dtype}, device=device)", "lib.ones({larger}, device=device)",
        "lib.full({larger}, {number}, device=device)", "lib.full({larger}, {number}, dtype=lib.{dtype}, device=device)",
        "lib.zeros_like({x})", "lib.ones_like({x}, dtype=lib.{dtype})", "lib.full_like({x}, {number})",
        "{x}.new_zeros({larger})", "{x}.new_full({larger}, {number})", "{x}.new_ones({larger}, dtype=lib.{dtype})",
        "lib.arange({number}, device=device)", "lib.arange({number}, {number}, device=device)",
        "lib.arange({number}, {number}, {number}, device=device)", "{x}.new_tensor([1, 2])",
        "lib.arange({number}, {number}, dtype=lib.{dtype}, device=device)",
        "lib.linspace({number}, {number}, {positive}, device=device)",
        "lib.linspace({number}, {number}, {positive}, dtype=lib.{dtype}, device=device)",
        "lib.eye({positive}, device=device)", "lib.eye({positive}, {positive}, dtype=lib.{dtype}, device=device)",
        "lib.meshgrid({x}, {y}, indexing='ij')", "lib.meshgrid({x}, {x}, indexing='xy')",
        "lib.tensor([[{number}, {number}], [1, {number}]], device=device)",
        "lib.tensor({number}, dtype=lib.{dtype}, device=device)", "lib.asarray([{number}, {number}], device=device)",
        "lib.finfo(lib.{dtype}).max", "lib.finfo(lib.{dtype}).eps", "lib.iinfo(lib.{dtype}).min",
    ],
}  # fmt: skip

NUMBERS = [
    "0", "1", "2", "3", "-1", "-2", "5", "100", "0.5", "2.0", "-1.5", "3.0", "0.1", "True", "False", "inf", "-inf", "nan",
    "-0.0", "300", "-200", "1j", "(2-1j)",
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
        self.subject: Any = None

    def fill(self, phrase: str) -> str:
        """The expression."""
        return re.sub(r"\{(\w+)\}", lambda gap: str(getattr(self, gap.group(1))()), phrase)

    def _chance(self, share: float) -> bool:
        return self.rng.random() < share

    def x(self) -> str:
        """Any tensor; the first becomes the subject."""
        name = self.rng.choice(list(self.values))
        if self.subject is None:
            self.subject = self.values[name]
        return name

    def given(self) -> str:
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
        ndim = max(self.subject.ndim, 1) if self.subject is not None else 1
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
        sizes = [] if self.subject is None else list(self.subject.shape)
        grown = [self.rng.choice([2, 3, 0, -1]) if size == 1 and self._chance(0.6) else size for size in sizes]
        return (self.rng.choice([1, 2]), *grown) if self._chance(0.5) else tuple(grown)

    def padding(self) -> tuple[int, ...]:
        return tuple(self.rng.choice([0, 1, 2, -1]) for _ in range(2 * self.rng.randint(0, max(self.subject.ndim, 1))))

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
        parts, used = [], 0
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
            used += 1
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
