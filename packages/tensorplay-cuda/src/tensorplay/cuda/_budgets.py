"""Budgets: what a part of the program holds of all devices, and may hold."""

from __future__ import annotations

from types import TracebackType
from typing import Any, NamedTuple, SupportsIndex

from tensorplay.errors import DTypeError, InvalidArgumentError, StateError

from ._check import check, not_null
from ._library import native, text_of
from ._limit import checked
from ._owner import Owner
from ._shortage import NO_LIMIT


class BudgetFigures(NamedTuple):
    """What `memory_budgets` tells of a budget, in bytes.

    Attributes
    ----------
    live : int
        Blocks that live tensors occupy: requests rounded up to 512 bytes.
    peak : int
        The most that it was.
    requested : int
        What the program asked for, of the live blocks.
    limit : int or None
    """

    live: int
    peak: int
    requested: int
    limit: int | None


class memory_budget(Owner):  # noqa: N801 (used as a function)
    """Context manager that counts the device memory which this thread allocates inside of it.

    A block counts in its budget until it is freed, wherever and whenever that is. Inside of another budget's block it
    counts in both. The figures are those of all devices together; `memory_budgets` reads them. A request that
    exceeds the limit of one of the budgets is refused before the driver is asked, with an OutOfMemoryError that has
    its name. Nothing is inherited: other threads count only what they allocate in blocks of their own, and a
    generator or coroutine that yields inside of the block leaves it in force for the thread.

    Parameters
    ----------
    name : str
        1 to 63 bytes of UTF-8. Budgets of one name are one budget.
    limit : int, optional
        Bytes; from now on, wherever the budget is used. Left out, the limit stays as it is: at first there is none.

    Notes
    -----
    A budget, its peak and its limit included, lives as long as an object of this class with its name, or a block.

    Raises
    ------
    InvalidArgumentError, DTypeError
        A name or a limit that is none.
    StateError
        Entering an object a second time before it was left.
    """

    __slots__ = ("_budget", "_leave", "_name", "_release", "_scope")

    def __init__(self, name: str, limit: SupportsIndex | None = None) -> None:
        self._budget: Any = None
        if not isinstance(name, str):
            raise DTypeError(f"memory_budget: got name {name!r}, expected a text")
        if "\0" in name:
            raise InvalidArgumentError(f"memory_budget: got name {name!r}, expected one without zero bytes")
        nbytes = NO_LIMIT if limit is None else checked("memory_budget", limit)
        self._name = name
        self._scope: Any = None
        self._leave, self._release = native.tp_budget_leave, native.tp_budget_release
        self._budget = not_null(native.tp_budget_create(name.encode(), nbytes))

    def __enter__(self) -> memory_budget:
        if self._scope is not None:
            raise StateError(
                f"memory_budget: {self._name!r} is entered already; make another object for a second block"
            )
        self._scope = not_null(native.tp_budget_enter(self._budget))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        scope, self._scope = self._scope, None
        if scope is not None:
            self._leave(scope)

    def __del__(self) -> None:
        if getattr(self, "_budget", None) is not None:  # not there when __init__ was called wrongly
            if self._scope is not None:
                self._leave(self._scope)  # or nobody could
            self._release(self._budget)

    def __repr__(self) -> str:
        return f"memory_budget({self._name!r})"


def memory_budgets() -> dict[str, BudgetFigures]:
    """The figures of all budgets that there are, by name (`tp_budget_list`)."""
    if not native.is_started:
        return {}
    room, count = 0, 16
    while count > room:  # Other threads may make some meanwhile.
        room = count
        figures = native.ffi.new("tp_budget_figures_t[]", room)
        count = native.tp_budget_list(room, figures)
    check(count)
    return {text_of(one.name): _figures_of(one) for one in native.ffi.unpack(figures, count)}


def _figures_of(one: Any) -> BudgetFigures:
    limit = None if one.limit == NO_LIMIT else int(one.limit)
    return BudgetFigures(int(one.live), int(one.peak), int(one.requested), limit)
