"""What programs written for torch say about gradients. There is no autograd, so it changes nothing."""

from __future__ import annotations

from contextlib import ContextDecorator
from types import TracebackType

from .errors import StateError


class no_grad(ContextDecorator):  # noqa: N801 (torch's name)
    """A context and decorator that changes nothing: nothing is ever recorded."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class inference_mode(no_grad):  # noqa: N801 (torch's name)
    """As `no_grad`.

    Parameters
    ----------
    mode : bool
        Taken for torch's sake.
    """

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode


class set_grad_enabled(no_grad):  # noqa: N801 (torch's name)
    """As `no_grad`, called or as a context.

    Parameters
    ----------
    mode : bool
        False.

    Raises
    ------
    StateError
        `mode` is True.
    """

    def __init__(self, mode: bool) -> None:
        if mode:
            refuse_autograd("set_grad_enabled")


def is_grad_enabled() -> bool:
    """False: there is no autograd."""
    return False


def refuse_autograd(operation: str) -> None:
    """Raises for what only autograd could do.

    Raises
    ------
    StateError
        Always.
    """
    raise StateError(f"{operation}: TensorPlay has no autograd, requires_grad is always False")
