"""The version of all three distributions. Their builds read this file."""

__version__ = "0.1.0"
