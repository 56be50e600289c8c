"""The host backend: tensors as NumPy arrays, and the same results as on a device within rounding."""
