"""Callables that a backend makes faster."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import MethodType
from typing import Any

from .._tensor import Tensor
from ..errors import DTypeError
from .registry import CompilerBackend, lookup_backend


class Compiled:
    """A callable with what a backend has made of it, at the first call. Other attributes are those of the callable.

    Attributes
    ----------
    compiled : callable or None
        What the backend has made; None before the first call.
    """

    def __init__(self, model: Callable[..., Any], backend: CompilerBackend, options: Mapping[str, Any]) -> None:
        self.__wrapped__, self.__doc__ = model, model.__doc__
        self.compiled: Any = None
        self._backend, self._options = backend, dict(options)
        self._lock = threading.Lock()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.compiled is None:
            with self._lock:
                if self.compiled is None:
                    examples = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
                    self.compiled = self._backend(self.__wrapped__, examples, **self._options)
        return self.compiled(*args, **kwargs)

    def __get__(self, instance: Any, owner: type) -> Any:
        """A compiled function in a class is a method."""
        return self if instance is None else MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name == "__wrapped__":  # not set yet, while a copy is made
            raise AttributeError(name)
        return getattr(self.__wrapped__, name)

    def __repr__(self) -> str:
        return f"<compiled {self.__wrapped__!r}>"


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    backend: str | CompilerBackend = "cudagraphs",
    options: Mapping[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """A faster form of a function or module, with the same results; also a decorator.

    Parameters
    ----------
    model : callable, optional
        A function, a method or a module; left out, the result is a decorator.
    fullgraph : bool
        Whether a call that the backend cannot serve raises, instead of running as it is. Given on as an option.
    backend : str or callable
        Takes the callable, the tensors of the first call and the options. ``"cudagraphs"``, the default, captures CUDA
        graphs: `tensorplay.compiler.backends.cudagraphs.CudaGraphManager` has its options and its rules.
    options : mapping of str, optional
        The backend's options.
    disable : bool
        Whether the callable is returned as it is.

    Returns
    -------
    Compiled
        Its attribute ``compiled`` is what the backend made, once it was called.

    Raises
    ------
    InvalidArgumentError
        There is no such backend.
    """
    if model is None:
        return lambda function: compile(
            function, fullgraph=fullgraph, backend=backend, options=options, disable=disable
        )
    if not callable(model):
        raise DTypeError(f"compile: got {model!r}, expected a callable")
    if disable:
        return model
    chosen = {**(options or {}), **({"fullgraph": True} if fullgraph else {})}
    return Compiled(model, lookup_backend(backend), chosen)
