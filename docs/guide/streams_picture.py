"""Draws when copies and work of two streams run on the emulated device, as an SVG file: the picture of streams.md."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorplay as tp

#: Pixels of a microsecond, of a lane's height, of the streams' names, of a timeline's title and around the drawing.
SCALE, HEIGHT, NAMES, TITLE, MARGIN = 50, 26, 80, 24, 16
COPY, WORK, LINE = "#9cc5ee", "#f3c98b", "#555555"

#: Elements of a batch: its copy takes as long as two kernels do.
BATCH = 4096


class Timeline:
    """Pieces of two streams, each between two events, and an event at which both streams begin."""

    def __init__(self) -> None:
        tp.cuda.synchronize()
        self.work, self.copy = tp.cuda.current_stream(), tp.cuda.Stream()
        self.begin = tp.cuda.Event(enable_timing=True)
        self.begin.record()
        self.copy.wait_event(self.begin)
        self.pieces: list[tuple[str, str, tp.cuda.Event, tp.cuda.Event]] = []

    @contextmanager
    def piece(self, name: str, stream: tp.cuda.Stream) -> Iterator[None]:
        start, end = (tp.cuda.Event(enable_timing=True) for _ in range(2))
        with tp.cuda.stream(stream):
            start.record()
            yield
            end.record()
        self.pieces.append((name, "copy" if stream == self.copy else "work", start, end))

    def times(self) -> list[tuple[str, str, float, float]]:
        """Name, lane, start and end in microseconds."""
        tp.cuda.synchronize()
        return [
            (name, lane, 1000 * self.begin.elapsed_time(start), 1000 * self.begin.elapsed_time(end))
            for name, lane, start, end in self.pieces
        ]


def step(source: tp.Tensor, waits: bool) -> list[tuple[str, str, float, float]]:
    target = tp.empty(BATCH, device="cuda")
    line = Timeline()
    with line.piece("copy", line.copy):
        target.copy_(source, non_blocking=True)
    if waits:
        line.work.wait_stream(line.copy)
    with line.piece("compute", line.work):
        target.mul_(2).add_(1)
    return line.times()


def double_buffer(source: tp.Tensor, batches: int) -> list[tuple[str, str, float, float]]:
    buffers = [tp.empty(BATCH, device="cuda") for _ in range(2)]
    used: list[tp.cuda.Event] = []
    line = Timeline()
    for n in range(batches):
        buffer = buffers[n % 2]
        if n >= 2:
            line.copy.wait_event(used[n - 2])
        with line.piece(f"copy {n}", line.copy):
            buffer.copy_(source, non_blocking=True)
        line.work.wait_event(line.copy.record_event())
        with line.piece(f"compute {n}", line.work):
            buffer.mul_(2).add_(1)
        used.append(line.work.record_event())
    return line.times()


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


def draw(lines: list[tuple[str, list[tuple[str, str, float, float]]]]) -> str:
    """The text of the file. All timelines have one scale."""
    longest = max(end for _, pieces in lines for *_, end in pieces)
    width = 2 * MARGIN + NAMES + longest * SCALE
    found: list[str] = []
    y = float(MARGIN)
    for title, pieces in lines:
        found.append(text(MARGIN, y + 12, title))
        y += TITLE
        for lane, colour in (("copy", COPY), ("work", WORK)):
            found.append(text(MARGIN, y + HEIGHT / 2 + 4, "copying" if lane == "copy" else "default"))
            for name, where, start, end in pieces:
                if where == lane:
                    x, wide = MARGIN + NAMES + start * SCALE, (end - start) * SCALE
                    found.append(
                        f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{HEIGHT}" '
                        f'fill="{colour}" stroke="#9aa5b1"/>'
                    )
                    found.append(text(x + wide / 2, y + HEIGHT / 2 + 4, name, "middle"))
            y += HEIGHT + 4
        y += 14
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {y:.0f}" '
        f'font-family="sans-serif" font-size="12" fill="{LINE}">\n'
        f'<rect width="{width:.0f}" height="{y:.0f}" fill="#fff"/>'
    )
    return "\n".join([head, *found, "</svg>\n"])


def timelines() -> list[tuple[str, list[tuple[str, str, float, float]]]]:
    source = tp.ones(BATCH).pin_memory()
    return [
        ("No wait, a race: compute reads what is still being copied", step(source, waits=False)),
        ("default.wait_stream(copying): compute comes behind the copy", step(source, waits=True)),
        ("Two buffers: the copy of the next batch runs beside compute", double_buffer(source, 4)),
    ]


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(draw(timelines()))
