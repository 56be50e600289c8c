"""Disagreements with torch that are meant: the rows of docs/guide/coming-from-torch.md, with what tells them."""

from __future__ import annotations

import re
from typing import NamedTuple


class Difference(NamedTuple):
    """A row of the page: the kind of disagreement, and patterns of the expression and of both answers."""

    row: str
    kind: str
    expression: str = ""
    ours: str = ""
    theirs: str = ""


DIFFERENCES = [
    Difference("Numbers are operands", "torch refuses", theirs=r"must be Tensor, not (int|float|bool|complex)"),
    Difference("Numbers are operands", "another exception", theirs=r"must be Tensor, not (int|float|bool|complex)"),
    Difference("Integer division by 0", "torch refuses", theirs="ZeroDivisionError"),
    Difference("`out=` of another dtype", "torch refuses", "out=", theirs=r"Found dtype|non-boolean outputs"),
    Difference("`out=` of another shape", "we refuse", "out=", ours="got out of shape"),
    Difference("Targets that share memory", "we refuse", ours="whose elements share memory"),
    Difference("`any` and `all` of uint8", "dtype", r"\b(any|all)\(", ours=" bool", theirs=" uint8"),
    Difference("Reductions over no dimension", "shape", r"\(\)"),
    Difference("Functions of complex numbers", "we refuse", ours=r"got (dtype )?complex"),
    Difference("Dtypes of assigned values", "torch refuses", theirs="source and destination dtypes match"),
    Difference("`isclose` of two dtypes", "torch refuses", r"close\(", theirs="did not match"),
    Difference("Casts that leave the range", "values", r"inf|nan|60000", theirs=r"-2147483648|-9223372036854775808"),
]


def explained(expression: str, kind: str, ours: str, theirs: str) -> str | None:
    """The row that explains a disagreement; None where it is a mistake."""
    for row in DIFFERENCES:
        patterns = ((row.expression, expression), (row.ours, ours), (row.theirs, theirs))
        if row.kind == kind and all(re.search(pattern, text) for pattern, text in patterns):
            return row.row
    return None
