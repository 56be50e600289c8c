"""Draws a tune as bars, and what was heard of it as dots, in an SVG file."""

from __future__ import annotations

from collections.abc import Iterable

import melody
import numpy as np

#: Pixels of a second, of a semitone, and around the drawing.
SECOND, SEMITONE, MARGIN = 180, 16, 44


def draw(tune: list[melody.Note], heard: Iterable[tuple[float, float, float]]) -> str:
    """The text of the file.

    Parameters
    ----------
    tune : list
        The notes that were played.
    heard : iterable
        Of each dot: time in seconds, pitch as a MIDI number with fractions, and how opaque it is.
    """
    low = min(min(note.first, note.last) for note in tune) - 2
    high = max(max(note.first, note.last) for note in tune) + 2
    width, height = tune[-1].end * SECOND + 2 * MARGIN, (high - low) * SEMITONE + 2 * MARGIN

    def place(seconds: float, pitch: float) -> str:
        return f"{MARGIN + seconds * SECOND:.1f},{MARGIN + (high - pitch) * SEMITONE:.1f}"

    def text(where: str, anchor: str, words: str) -> str:
        x, y = where.split(",")
        return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{words}</text>'

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        'font-family="sans-serif" font-size="12" fill="#555">',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>',
    ]
    for number in range(low + 1, high):
        name = melody.NAMES[number % 12]
        if "#" not in name:
            lines.append(f'<path d="M{place(0, number)} L{place(tune[-1].end, number)}" stroke="#eee"/>')
            lines.append(text(place(-0.04, number - 0.25), "end", f"{name}{number // 12 - 1}"))
    lines += [text(place(second, low - 0.5), "middle", f"{second} s") for second in range(int(tune[-1].end) + 1)]
    for note in tune:
        # A little short, so that equal notes that follow each other are two bars.
        inside = np.linspace(0, note.end - note.start - 0.015, 50)
        points = zip(note.start + inside, melody.pitch(note, inside), strict=True)
        path = " ".join(place(*point) for point in points)
        lines.append(f'<polyline points="{path}" fill="none" stroke="#9cc5ee" stroke-width="9"/>')
    for seconds, pitch, opacity in heard:
        x, y = place(seconds, pitch).split(",")
        lines.append(f'<circle cx="{x}" cy="{y}" r="2.2" fill="#c2410c" opacity="{opacity:.2f}"/>')
    return "\n".join([*lines, "</svg>\n"])
