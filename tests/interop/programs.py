"""Random programs in torch and in TensorPlay: shapes, dtypes, values, and what is refused must be the same.

    python tests/interop/programs.py [--count PROGRAMS] [--seed SEED] [--device cpu|cuda] [--only OWNER]

Needs torch. A program is a few tensors and one to six operations on them. Of each kind of disagreement the shortest
program is printed, with both answers; the status is 1 where there is one that `differences` does not explain.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import sys
import warnings
from collections import Counter
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from differences import explained
from filling import Filler, name_of, tensor
from phrases import PHRASES

import tensorplay

#: Relative errors that are allowed, by dtype; absolute ones are these times the largest element.
PRECISION = {
    "float16": 4e-3,
    "bfloat16": 3e-2,
    "float32": 2e-5,
    "float64": 1e-11,
    "complex64": 2e-5,
    "complex128": 1e-11,
}
CANNOT = ("not implemented", "Could not run")


class Statement(NamedTuple):
    """``name = expression``, made from a phrase of an owner."""

    name: str
    expression: str
    owner: str
    phrase: str


class Verdict(NamedTuple):
    """What both libraries say to the last statement of a program: kind "" where they agree."""

    kind: str
    ours: str = ""
    theirs: str = ""


class _Key:
    def __getitem__(self, key: Any) -> Any:
        return key


def layout(tensor: Any) -> tuple[int | None, ...] | None:
    """Strides and offset; those of single elements and of nothing mean nothing."""
    strides = (stride if size > 1 else None for stride, size in zip(tensor.stride(), tensor.shape, strict=True))
    return (*strides, tensor.storage_offset()) if tensor.numel() else None


def put(target: Any, key: Any, value: Any) -> Any:
    """``target[key] = value`` as an expression."""
    target[key] = value
    return target


class Pair:
    """One program, run statement by statement in both libraries."""

    def __init__(self, torch: ModuleType, device: str) -> None:
        common = {"nan": math.nan, "inf": math.inf, "put": put, "key": _Key(), "layout": layout}
        self.torch = torch
        self.theirs: dict[str, Any] = {"lib": torch, "device": "cpu", **common}
        self.ours: dict[str, Any] = {"lib": tensorplay, "device": device, **common}
        self.names: list[str] = []
        self.coarsest = 0.0

    def run(self, statement: Statement) -> Verdict:
        """Both answers to a statement. Where they agree, ours continue with torch's elements: errors do not add up."""
        theirs, ours = _answer(statement, self.theirs), _answer(statement, self.ours)
        if isinstance(theirs, Exception):
            if isinstance(theirs, NotImplementedError) or any(words in str(theirs) for words in CANNOT):
                return Verdict("end")
            if not isinstance(ours, Exception):
                return Verdict("torch refuses", _show(ours), _show(theirs))
            if isinstance(ours, AttributeError):
                return Verdict("missing", _show(ours), _show(theirs))
            if not isinstance(ours, tensorplay.errors.TensorPlayError | type(theirs)) or (
                not isinstance(ours, type(theirs)) and type(theirs) in (IndexError, TypeError, ValueError)
            ):
                return Verdict("another exception", _show(ours), _show(theirs))
            return Verdict("end")
        if isinstance(ours, (AttributeError, NotImplementedError)):
            return Verdict("missing", _show(ours), _show(theirs))
        if isinstance(ours, Exception):
            return Verdict("we refuse", _show(ours), _show(theirs))
        # Integers are computed in float32.
        self.coarsest = max(PRECISION.get(dtype, PRECISION["float32"]) for dtype in self._dtypes(statement.expression))
        difference = self._difference(ours, theirs)
        if difference:
            difference = (
                "range" if difference == "values" and self._leaves_range(statement.expression, theirs) else difference
            )
            return Verdict(difference, _show(ours), _show(theirs))
        for name in self.names:
            difference = self._difference(self.ours[name], self.theirs[name])
            if difference:
                return Verdict(f"{difference} of an operand", _show(self.ours[name]), _show(self.theirs[name]))
        self._keep(statement.name, ours, theirs)
        return Verdict("")

    def _dtypes(self, expression: str) -> list[str]:
        """Those of the operands, and those that an expression names: the coarsest rounds."""
        operands = [name_of(self.theirs[name].dtype) for name in self.names if re.search(rf"\b{name}\b", expression)]
        return [*operands, *re.findall(r"dtype=lib\.(\w+)", expression), "float64"]

    def _leaves_range(self, expression: str, result: Any) -> bool:
        """Whether an operand has elements that the integers of the result do not hold."""
        if not isinstance(result, self.torch.Tensor) or result.is_floating_point() or result.is_complex():
            return False
        arrays = [_array(self.theirs[name]) for name in self.names if re.search(rf"\b{name}\b", expression)]
        limit = 2.0 ** (8 * result.element_size() - 1)
        return any(array.dtype.kind in "fc" and not (np.abs(array.astype(complex)) < limit).all() for array in arrays)

    def _keep(self, name: str, ours: Any, theirs: Any) -> None:
        if isinstance(theirs, (tuple, list)) and theirs:
            ours, theirs = ours[0], theirs[0]
        if isinstance(theirs, self.torch.Tensor) and theirs.numel() <= 300 and theirs.ndim <= 6:
            self.ours[name], self.theirs[name] = ours, theirs
            self.names.append(name)
        for name in self.names:
            mine, right = self.ours[name], self.theirs[name]
            if _array(mine).tobytes() != _array(right).tobytes():
                exact = tensorplay.tensor(_array(right), dtype=mine.dtype, device=mine.device)
                try:
                    mine.copy_(exact)
                except tensorplay.errors.InvalidArgumentError:  # Its elements share memory.
                    self.ours[name] = exact

    def _difference(self, ours: Any, theirs: Any) -> str:
        """What differs, or nothing."""
        if isinstance(theirs, self.torch.Tensor):
            if not isinstance(ours, tensorplay.Tensor):
                return "type"
            if tuple(ours.shape) != tuple(theirs.shape):
                return "shape"
            if name_of(ours.dtype) != name_of(theirs.dtype):
                return "dtype"
            precision = PRECISION.get(name_of(theirs.dtype))
            if precision is None:
                return "" if np.array_equal(_array(ours), _array(theirs)) else "values"
            return "" if _close(_array(ours), _array(theirs), max(precision, self.coarsest)) else "values"
        if isinstance(theirs, (tuple, list)) and not isinstance(theirs, self.torch.Size):
            if not isinstance(ours, (tuple, list)) or len(ours) != len(theirs):
                return "length"
            return next(filter(None, (self._difference(a, b) for a, b in zip(ours, theirs, strict=True))), "")
        if isinstance(theirs, self.torch.dtype):
            return "" if name_of(ours) == name_of(theirs) else "dtype"
        if isinstance(theirs, float | complex) and type(ours) is type(theirs):
            return "" if np.allclose(ours, theirs, rtol=1e-5, equal_nan=True) else "values"
        if isinstance(theirs, str):
            return "" if _plain(ours) == _plain(theirs) else "text"
        return "" if ours == theirs and type(ours) in (type(theirs), tuple) else "values"


def _answer(statement: Statement, names: dict[str, Any]) -> Any:
    """The value, or the exception; a device's fault counts as one."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            value = eval(statement.expression, names)
            for part in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(part, tensorplay.Tensor):
                    part.cpu()
            return value
    except Exception as error:
        return error


def _array(value: Any) -> Any:
    """The elements of a tensor of either library."""
    if name_of(value.dtype) == "bfloat16":
        value = value.float()
    value = value.detach().cpu() if isinstance(value, tensorplay.Tensor) else value.detach().resolve_conj()
    return np.asarray(value.numpy(), order="C")


def _plain(text: str) -> str:
    """A text without what may differ: the library's name, the device, and breaks that follow from their lengths."""
    return re.sub(r"\s", "", text).replace(",device='cuda:0'", "").replace("tensorplay.", "torch.")


def _close(ours: Any, theirs: Any, precision: float) -> bool:
    finite = np.abs(theirs[np.isfinite(theirs)])
    size = max(1.0, float(finite.max())) if finite.size else 1.0
    return bool(np.allclose(ours, theirs, rtol=precision, atol=precision * size, equal_nan=True))


def _show(value: Any) -> str:
    if isinstance(value, Exception):
        return f"{type(value).__name__}: {str(value).splitlines()[0] if str(value) else ''}"[:200]
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(map(_show, value)) + ")"
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return f"{value.tolist()} {name_of(value.dtype)} {tuple(value.shape)}"[:300]
    return repr(value)[:300]


def generate(torch: ModuleType, rng: random.Random, device: str, only: str | None) -> tuple[list[Statement], Verdict]:
    """A program up to its first disagreement, or to its end."""
    pair = Pair(torch, device)
    program = [Statement(f"v{i}", tensor(rng), "creation", "tensor") for i in range(rng.randint(1, 3))]
    for statement in program:
        verdict = pair.run(statement)
        if verdict.kind:
            return [statement], verdict
    given = list(pair.names)
    for _ in range(rng.randint(1, 6)):
        owner = only or rng.choice(list(PHRASES))
        phrase = rng.choice(PHRASES[owner])
        filler = Filler(rng, {name: pair.theirs[name] for name in pair.names}, given)
        statement = Statement(f"v{len(program)}", filler.fill(phrase), owner, phrase)
        program.append(statement)
        verdict = pair.run(statement)
        if verdict.kind:
            return program, verdict
    return program, Verdict("")


def smallest(
    torch: ModuleType, program: list[Statement], verdict: Verdict, device: str
) -> tuple[list[Statement], Verdict]:
    """The program without the statements that its disagreement does not need."""

    def last(shorter: list[Statement]) -> Verdict:
        pair = Pair(torch, device)
        for statement in shorter[:-1]:
            if pair.run(statement).kind:
                return Verdict("")
        return pair.run(shorter[-1])

    for statement in program[-2::-1]:
        shorter = [kept for kept in program if kept is not statement]
        found = last(shorter)
        if found.kind == verdict.kind:
            program, verdict = shorter, found
    return program, verdict


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000, help="programs to run (default: 2000)")
    parser.add_argument("--seed", type=int, default=None, help="of the programs (default: another one each time)")
    parser.add_argument("--device", default="cpu", help="where ours run (default: cpu)")
    parser.add_argument("--only", choices=list(PHRASES), help="operations of one owner")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    seed = random.SystemRandom().randrange(2**31) if options.seed is None else options.seed
    rng = random.Random(seed)
    counts: Counter[str] = Counter()
    found: dict[tuple[str, str, str], tuple[list[Statement], Verdict]] = {}
    for _ in range(options.count):
        program, verdict = generate(torch, rng, options.device, options.only)
        reason = (
            "agreement"
            if verdict.kind in ("", "end")
            else explained(str(program[:-1]), program[-1].expression, *verdict)
        )
        counts[reason or "disagreement"] += 1
        if reason is None:
            program, verdict = smallest(torch, program, verdict, options.device)
            key = (program[-1].owner, program[-1].phrase, verdict.kind)
            if key not in found or len(str(program)) < len(str(found[key][0])):
                found[key] = program, verdict
    for (owner, phrase, kind), (program, verdict) in sorted(found.items()):
        print(f"\n## {owner}: {phrase}: {kind}")
        for statement in program:
            print(f"{statement.name} = {statement.expression}")
        print(f"# ours:  {verdict.ours}\n# torch: {verdict.theirs}")
    print(f"\n{options.count} programs, seed {seed}, device {options.device}: {dict(counts)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
