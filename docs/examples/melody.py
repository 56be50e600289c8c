"""A tune and its sound: the beginning of Beethoven's "Ode to Joy" and two slides, on a simple synthetic instrument."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

#: Notes by their names and their lengths in beats; "-" is a rest, "D4~D5" slides from one note to another.
TUNE = """
E4 1  E4 1  F4 1  G4 1   G4 1  F4 1  E4 1  D4 1   C4 1  C4 1  D4 1  E4 1   E4 1.5  D4 .5  D4 3
- .5  D4~D5 2  D5~G4 1.5  G4 3
"""
#: Seconds.
BEAT = 0.25
#: Strengths of the fundamental and of its overtones.
OVERTONES = (1.0, 0.6, 0.4, 0.2, 0.1)

NAMES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")


class Note(NamedTuple):
    """A note of the tune; `first` and `last` differ where it slides. Numbers are MIDI's: 69 is A4, 440 Hz."""

    start: float
    end: float
    first: int
    last: int


def number(name: str) -> int:
    """MIDI's number of a note such as ``F#4``."""
    return NAMES.index(name[:-1]) + 12 * (int(name[-1]) + 1)


def notes(tune: str = TUNE, beat: float = BEAT) -> list[Note]:
    """The notes of a tune, without its rests."""
    words = tune.split()
    result, start = [], 0.0
    for name, beats in zip(words[::2], words[1::2], strict=True):
        end = start + float(beats) * beat
        if name != "-":
            first, _, last = name.partition("~")
            result.append(Note(start, end, number(first), number(last or first)))
        start = end
    return result


def pitch(note: Note, seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The pitch of a note at times after its start, as a MIDI number with fractions; long notes have a vibrato."""
    length = note.end - note.start
    slide = (note.last - note.first) * (1 - np.cos(np.pi * np.minimum(seconds / length, 1))) / 2
    depth = 0.35 * np.clip((seconds - 0.15) / 0.15, 0, 1) if length > 0.5 and note.first == note.last else 0
    return note.first + slide + depth * np.sin(2 * np.pi * 5.5 * seconds)


def play(tune: list[Note], rate: int) -> npt.NDArray[np.float32]:
    """The sound of a tune, with so many samples a second."""
    sound = np.zeros(round(tune[-1].end * rate))
    for note in tune:
        begin, end = round(note.start * rate), round(note.end * rate)
        seconds = np.arange(end - begin) / rate
        phase = 2 * np.pi * np.cumsum(440 * 2 ** ((pitch(note, seconds) - 69) / 12)) / rate
        wave: Any = sum(strength * np.sin(k * phase) for k, strength in enumerate(OVERTONES, 1))
        # It swells in 20 ms, fades in 40 ms, and gets softer in between.
        length = note.end - note.start
        loudness = np.minimum(np.minimum(seconds / 0.02, (length - seconds) / 0.04), 1) * np.exp(-seconds)
        sound[begin:end] = 0.3 * loudness * wave
    return sound.astype(np.float32)
