"""What keeps a device from working, said so that people can act on it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """Something that is wrong with a machine or an installation.

    Attributes
    ----------
    code : str
        For programs: ``"driver-missing"``. A kind of fault keeps its code.
    problem : str
        What was found where, and what was expected.
    advice : str
        What to do, with what to type between backticks.
    """

    code: str
    problem: str
    advice: str

    def __str__(self) -> str:
        return f"{self.problem}; {self.advice}"
