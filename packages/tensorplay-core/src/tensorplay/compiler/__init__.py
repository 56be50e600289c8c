"""The registry of compiler backends: functions that make a faster form of a callable.

A distribution adds backends by shipping a module ``tensorplay/compiler/backends/<name>.py`` that calls
`register_backend` when it is imported; it is imported when its name is first asked for.
"""

from .registry import CompilerBackend, list_backends, lookup_backend, register_backend

__all__ = ["CompilerBackend", "list_backends", "lookup_backend", "register_backend"]
