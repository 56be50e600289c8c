"""Disagreements with torch that are meant: the rows of docs/guide/coming-from-torch.md, with what tells them."""

from __future__ import annotations

import re
from typing import NamedTuple


class Difference(NamedTuple):
    """A row of the page: the kind of disagreement, and patterns of what was said and answered."""

    row: str
    kind: str
    expression: str = ""
    ours: str = ""
    theirs: str = ""
    before: str = ""


DIFFERENCES = [
    Difference("Numbers as operands", "torch refuses", theirs=r"must be (Tensor|float), not (int|float|bool|complex)"),
    Difference("Numbers as operands", "another exception", theirs=r"must be Tensor, not (int|float|bool|complex)"),
    Difference("Integer division by 0", "torch refuses", theirs="ZeroDivisionError"),
    Difference("Negative powers of integers", "torch refuses", theirs="Integers to negative integer powers"),
    Difference("`out=` of another shape or dtype", "torch refuses", "out=", theirs=r"Found dtype|non-boolean outputs"),
    Difference("`out=` of another shape or dtype", "we refuse", "out=", ours="got out of shape"),
    Difference("Targets that share memory", "we refuse", ours="whose elements share memory"),
    Difference("Casts that leave the range", "range"),
    Difference("Casts that leave the range", "values", r"linspace\(.*-.*uint8"),
    Difference("Numbers as operands", "torch refuses", theirs="Boolean alpha|argument alpha must not"),
    Difference("Reductions over no dimension", "shape", r"\(\)"),
    Difference("Reductions over no dimension", "torch refuses", r"\(\)|None", theirs="not NoneType|broadcast shape"),
    Difference("Reductions over no dimension", "torch refuses", "logsumexp", theirs="look up dimensions by name"),
    Difference("Repeated indices", "values", r"\.(scatter|index_put)\("),
    Difference("Functions of complex numbers", "we refuse", ours=r"got (dtype )?complex"),
    Difference("Functions of complex numbers", "another exception", ours=r"got (dtype )?complex"),
    Difference("`conj` and complex32", "dtype", ours="complex64", theirs="complex32"),
    Difference("Functions of complex numbers", "torch refuses", theirs="not supported for complex"),
    Difference("Infinite elements", "values", "gelu|pow|\\*\\*", ours="inf", theirs="nan"),
    Difference("Targets that share memory", "another exception", ours="whose elements share memory"),
    Difference("Empty tensors, tensors without dimensions", "torch refuses", theirs="axis dim should be positive"),
    Difference("Operands that overlap the target", "torch refuses", theirs="input tensor and the written-to tensor"),
    Difference("Targets that share memory", "torch refuses", theirs="of the written-to tensor refers to a single"),
    Difference("Infinite elements", "values", theirs=r"nanj|\(nan"),
    Difference("Dtypes of assigned values", "torch refuses", theirs="source and destination dtypes match"),
    Difference("Index tensors", "torch refuses", theirs="Expected dtype int64 for index"),
    Difference("Index tensors", "another exception", theirs="Expected dtype int64 for index"),
    Difference("Index tensors", "torch refuses", theirs="indices should be Long"),
    Difference("`isclose` of two dtypes", "torch refuses", r"close\(", theirs="did not match"),
    Difference(
        "Numbers that leave the range",
        "torch refuses",
        theirs=r"Converting complex Scalar|cannot be converted to type \w*int\w* without",
    ),
    Difference("Empty tensors, tensors without dimensions", "we refuse", theirs=r"^\[[\[\], ]*\] "),
    Difference("Empty tensors, tensors without dimensions", "torch refuses", theirs="but tensor has no dimensions"),
    Difference("Empty tensors, tensors without dimensions", "another exception", theirs="but tensor has no dimensions"),
    Difference(
        "Empty tensors, tensors without dimensions", "we refuse", r"topk|mT", ours="without dimensions|dimension -2"
    ),
    Difference("Empty tensors, tensors without dimensions", "torch refuses", "index_add", theirs=r"self\.shape = \[\]"),
    Difference("Index tensors", "torch refuses", "index_add", theirs="index out of range in self|is out of bounds"),
    Difference("Index tensors", "we refuse", ours=r"Tensor of shape \(\) as an index"),
    Difference("Infinite elements", "values", "prod", theirs="inf", before="float16"),
    Difference("Infinite elements", "values", r"clamp.*nan", ours="nan", before="float16"),
    Difference("Arithmetic of bool", "we refuse", r"pow|\*\*", ours="pow: got dtype bool"),
    Difference("Arithmetic of bool", "torch refuses", theirs="with a bool tensor is not supported"),
    Difference("Empty tensors, tensors without dimensions", "torch refuses", "unique", theirs="zero sized dimensions"),
    Difference("Numbers as operands", "another exception", theirs="must be float, not complex"),
    Difference("Empty tensors, tensors without dimensions", "we refuse", "scatter", ours=r"shape \(\)"),
    Difference("uint8 is no mask", "we refuse", ours="uint8 Tensor of shape"),
    Difference("uint8 is no mask", "we refuse", ours="condition of dtype uint8|expected at most 0 for shape"),
    Difference("Classes of errors", "another exception", theirs="Dimension out of range|supposed to be a vector"),
    Difference(
        "bool in order and in totals", "torch refuses", "argm|topk", theirs="does not support bool|not support bool"
    ),
    Difference("nan in `unique`", "values", r"unique\("),
    Difference("Results are contiguous", "values", r"is_contiguous|as_strided|layout\(.*lib\.tensor"),
    Difference("Results are contiguous", "values of an operand", before=r"reshape|flatten|contiguous"),
    Difference("Results are contiguous", "we refuse", r"\.view\(", ours="which no view of shape"),
    Difference("Numbers as operands", "values", r"%|//|remainder|fmod|floor_divide|rounding_mode", before="float16"),
    Difference("Results are contiguous", "torch refuses", r"\.view\(", theirs="view size is not compatible|stride"),
    Difference("bool in order and in totals", "we refuse", r"linspace|cumsum|cumprod", ours="got dtype bool"),
    Difference("`take_along_dim`", "we refuse", "take_along_dim", ours="out of range"),
]


def explained(before: str, expression: str, kind: str, ours: str, theirs: str) -> str | None:
    """The row that explains what the last expression of a program disagrees in; None where it is a mistake."""
    for row in DIFFERENCES:
        patterns = ((row.before, before), (row.expression, expression), (row.ours, ours), (row.theirs, theirs))
        if row.kind == kind and all(re.search(pattern, text) for pattern, text in patterns):
            return row.row
    return None
