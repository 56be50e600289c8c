"""Compiling: a backend makes a faster form of a callable.

A distribution adds backends by shipping a module ``tensorplay/compiler/backends/<name>.py`` that calls
`register_backend` when it is imported; it is imported when its name is first asked for.
"""

import pkgutil

# Other distributions put backends below, perhaps from another folder.
__path__ = pkgutil.extend_path(__path__, __name__)

from .compiled import Compiled, compile
from .registry import CompilerBackend, list_backends, lookup_backend, register_backend

__all__ = ["Compiled", "CompilerBackend", "compile", "list_backends", "lookup_backend", "register_backend"]
