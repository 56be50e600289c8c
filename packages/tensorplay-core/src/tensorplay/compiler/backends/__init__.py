"""Compiler backends, one module each. Other distributions add theirs to this package."""

import pkgutil

__path__ = pkgutil.extend_path(__path__, __name__)
