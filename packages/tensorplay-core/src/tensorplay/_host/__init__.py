"""The host backend: tensors as NumPy arrays, and the same results as on a device within rounding."""

from .backend import backend

__all__ = ["backend"]
