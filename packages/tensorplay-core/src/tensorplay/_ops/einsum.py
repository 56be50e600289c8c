"""Sums of products by Einstein's notation."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _dispatch
from ..errors import DTypeError, InvalidArgumentError
from .contraction import Labels, contract, ordered, summed
from .views import diagonal

if TYPE_CHECKING:
    from .._tensor import Tensor

# Labels of the dimensions that "..." stands for, counted from the last one; so they broadcast.
_REST = range(64)


def einsum(equation: str, *operands: Any) -> Tensor:
    """Products of tensors' elements, summed over the dimensions that the result does not have.

    Parameters
    ----------
    equation : str
        A letter for each dimension, ``"bij,bjk->bik"``; ``...`` stands for dimensions that broadcast, and a letter
        twice in one operand for its diagonal. Without ``->`` the result has ``...`` and then the letters that occur
        once, in their order (capitals first).
    *operands : Tensor
        Taken together from the left to the right, each pair as one product of matrices. In the other form of a call,
        each tensor is followed by a list of numbers below 52 and ``...``, and a last list may tell the result's.

    Raises
    ------
    InvalidArgumentError
        The equation does not fit the operands.

    Examples
    --------
    >>> a, b = tp.ones(2, 3), tp.arange(6).reshape(3, 2)
    >>> tp.einsum("ij,jk->ik", a, b.float())
    tensor([[6., 9.],
            [6., 9.]])
    >>> tp.einsum("ii->", tp.eye(3)).item()
    3.0
    """
    if not isinstance(equation, str):
        equation, operands = _from_lists((equation, *operands))
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = tuple(operands[0])
    if not operands:
        raise InvalidArgumentError("einsum: got no tensors, expected at least one")
    _dispatch.common("einsum", *operands)
    terms, arrow, result = equation.replace(" ", "").partition("->")
    inputs = terms.split(",")
    if len(inputs) != len(operands):
        raise InvalidArgumentError(
            f"einsum: got {len(operands)} tensors, expected {len(inputs)} for the equation {equation!r}"
        )
    parts = [_labelled(equation, *part) for part in zip(inputs, operands, strict=True)]
    rest = max((sum(isinstance(label, int) for label in labels) for _, labels in parts), default=0)
    letters = "".join(terms).replace(",", "").replace(".", "")
    if arrow:
        wanted = _labels(equation, result, rest)
    else:
        once = sorted(letter for letter in set(letters) if letters.count(letter) == 1)
        wanted = (*reversed(_REST[:rest]), *once)
    for label in wanted:
        if wanted.count(label) > 1 or (isinstance(label, str) and label not in letters):
            raise InvalidArgumentError(
                f"einsum: got {label!r} in the result of {equation!r}, expected letters of the operands, each once"
            )
    x, labels = parts[0]
    for place, (y, more) in enumerate(parts[1:], 2):
        needed = {*wanted, *(label for _, later in parts[place:] for label in later)}
        x, labels = contract("einsum", x, labels, y, more, needed)
    x, labels = summed(x, labels, wanted)
    return ordered(x, labels, wanted)


def _labels(equation: str, term: str, rest: int) -> Labels:
    """The labels of a term, in which "..." stands for `rest` dimensions."""
    before, dots, after = term.partition("...")
    for letter in before + after:
        if letter not in string.ascii_letters:
            raise InvalidArgumentError(f"einsum: got {letter!r} in {equation!r}, expected letters, ',', '...' and '->'")
    return (*before, *reversed(_REST[: rest if dots else 0]), *after)


def _labelled(equation: str, term: str, operand: Tensor) -> tuple[Tensor, Labels]:
    """An operand whose dimensions each have another label: diagonals where a letter occurs twice."""
    named = len(term.replace("...", ""))
    rest = operand.ndim - named
    if rest < 0 or (rest and "..." not in term):
        raise InvalidArgumentError(
            f"einsum: got a tensor of shape {operand.shape} for {term!r} in {equation!r}, expected {named} dimensions"
        )
    labels = list(_labels(equation, term, rest))
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            sizes = operand.shape[first], operand.shape[second]
            if sizes[0] != sizes[1]:
                raise InvalidArgumentError(
                    f"einsum: got sizes {sizes[0]} and {sizes[1]} for {label!r} in {term!r}, expected equal ones"
                )
            operand = diagonal(operand, 0, first, second)
            labels = [*labels[:first], *labels[first + 1 : second], *labels[second + 1 :], label]
    return operand, tuple(labels)


def _from_lists(arguments: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """The equation and the operands of a call with lists of numbers."""
    operands, lists = arguments[: len(arguments) // 2 * 2 : 2], arguments[1::2]
    terms = [_term(numbers) for numbers in lists]
    equation = ",".join(terms)
    return (f"{equation}->{_term(arguments[-1])}" if len(arguments) % 2 else equation), tuple(operands)


def _term(numbers: Any) -> str:
    if not isinstance(numbers, (tuple, list)):
        raise DTypeError(f"einsum: got {type(numbers).__name__}, expected an equation, or lists of numbers and '...'")
    for number in numbers:
        if number is not ... and not (type(number) is int and 0 <= number < len(string.ascii_letters)):
            raise InvalidArgumentError(f"einsum: got {number!r} in a list, expected numbers from 0 to 51 and '...'")
    # torch's order of the numbers is that of the letters when capitals come first.
    letters = string.ascii_uppercase + string.ascii_lowercase
    return "".join("..." if number is ... else letters[number] for number in numbers)
