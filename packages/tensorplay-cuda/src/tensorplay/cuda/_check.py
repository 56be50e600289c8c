"""Turns a status of the C library into an exception, or into a second try: the only place that does.

C refuses with a number and keeps a text. Where the host backend would refuse the same arguments, its
explanation (`tensorplay._operands`) is raised instead of C's text, so that both word an error alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplay import _operands, _plugins, errors

from . import _origins, _recovery, _reports, _shortage
from ._library import native, text_of
from ._tables import STATUSES

_CODES = {name: status for status, (name, _, _) in STATUSES.items()}
_EXPLAINED = {_CODES[name] for name in ("INVALID_ARGUMENT", "DTYPE", "SHAPE", "DEVICE", "INDEX", "OVERFLOW", "STATE")}
_OUT_OF_MEMORY, _ORDER = _CODES["OUT_OF_MEMORY"], _CODES["ORDER"]
# A size may fit as it is, but not rounded up to a block; an index may be one of earlier work that a call waits for.
_NOT_THE_ARGUMENTS = {_CODES["STATE"], _CODES["OVERFLOW"], _CODES["INDEX"]}
_Kinds = tuple[type[errors.OutOfMemoryError | errors.HostMemoryError], ...]
_INITIALIZATION_ERROR = 3  # cudaErrorInitializationError
_CAPTURE_ERRORS = range(900, 909)  # cudaErrorStreamCaptureUnsupported to cudaErrorStreamCaptureWrongThread


def failure() -> errors.TensorPlayError:
    """The exception for the thread's last failure in C, with C's text."""
    status = native.tp_error_status()
    _, exception, _ = STATUSES[status]
    if exception is None:
        return errors.InternalError("a function of libtensorplay failed and left no status")
    text = text_of(native.tp_error_text())
    kind: type[errors.TensorPlayError] = getattr(errors, exception)
    if issubclass(kind, errors.AcceleratorError):
        code = native.tp_error_cuda_code()
        if code in _CAPTURE_ERRORS and (frame := _origins.program_frame()):
            native.tp_capture_note_place(f"{frame.f_code.co_filename}:{frame.f_lineno}".encode())
        if native.is_forked and code == _INITIALIZATION_ERROR:
            text += " (CUDA was started before this process was forked: use the start method 'spawn')"
        return kind(text, code, text_of(native.tp_error_cuda_name()), text_of(native.tp_error_operation()))
    if status == _ORDER:
        return _reports.last()
    return _shortage.error_of(text) if status == _OUT_OF_MEMORY else kind(text)


def check(status: int) -> None:
    """Raises when a status, or a count that can be one, is negative."""
    if status < 0:
        raise failure()


def not_null(pointer: Any) -> Any:
    """An object of C; raises where it is NULL. Calls that programs make often ask for themselves."""
    if not pointer:
        raise failure()
    return pointer


def refused(answer: Any, method: str, arguments: tuple[Any, ...]) -> Any:
    """Raises for an operation that cannot be done, or does it once more when memory was short and may no longer be.

    Parameters
    ----------
    answer
        What C answered; None when it was not asked, since an argument does not even convert to C's types.
    method : str
        Name of the method of `tensorplay._backend.Backend`.
    arguments
        Its arguments, as they came.

    Returns
    -------
    object
        What the method returns the second time.

    Raises
    ------
    TensorPlayError
        Core's explanation, C's text where no argument is at fault, or an InternalError that names
        both when core finds nothing wrong.
    """
    if answer is None:
        _explain(method, arguments)
        raise errors.InternalError(f"{method}: an argument does not convert to C, core finds no fault")
    status = native.tp_error_status()
    if status in _EXPLAINED:
        _explain(method, arguments)
        if status not in _NOT_THE_ARGUMENTS:
            raise errors.InternalError(
                f"{method}: C refused with {STATUSES[status][0]}, core finds no fault: {failure()}"
            )
    return failed(method, arguments)


def failed(method: str, arguments: tuple[Any, ...]) -> Any:
    """As `refused`, where C has failed and no argument is at fault."""
    return repeated(getattr(_plugins.get("cuda"), method), arguments)


def repeated(call: Callable[..., Any], arguments: tuple[Any, ...], kinds: _Kinds = (errors.OutOfMemoryError,)) -> Any:
    """What a call returns the second time, which C has refused for want of memory; other refusals are raised.

    The one place that repeats a call. No local name may hold an exception when it leaves: its traceback would hold the
    name's frame, and the frames below it their tensors, until the garbage collector runs.

    Parameters
    ----------
    call, arguments
    kinds
        Errors before which the call has changed nothing.
    """
    error = failure()
    try:
        if isinstance(error, kinds) and _recovery.is_worth_repeating(error):
            with _recovery.repeating():
                return call(*arguments)
        raise error
    finally:
        del error


def _explain(method: str, arguments: tuple[Any, ...]) -> None:
    explanation = getattr(_operands, method, None)  # There is none for methods that take any argument.
    if explanation is not None:
        explanation(*arguments)
