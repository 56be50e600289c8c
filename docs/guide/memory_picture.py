"""Draws the segments that the allocator holds, as an SVG file: the picture of memory.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tensorplay as tp

MiB = 2**20

#: Pixels of the widest segment of a pool, of a segment's height, of a pool's title and around the drawing.
WIDTH, HEIGHT, TITLE, MARGIN = 640, 34, 30, 16
FREE, LIVE, LINE = "#ffffff", "#9cc5ee", "#555555"


def tensor(kib: int) -> tp.Tensor:
    return tp.empty(kib * 1024, dtype=tp.uint8, device="cuda")


def pools() -> list[tuple[str, list[dict[str, Any]]]]:
    """A name and the segments of each pool, while some tensors live and others were dropped."""
    held = [tensor(kib) for kib in (300, 500, 200, 6 * 1024, 4 * 1024, 3 * 1024, 13 * 1024)]
    del held[4], held[1]
    pool = tp.cuda.MemPool()
    with tp.cuda.use_mem_pool(pool):
        held.append(tensor(700))
    private = pool.snapshot()
    found = [segment for segment in tp.cuda.memory_snapshot() if segment["segment_pool_id"] == (0, 0)]
    kinds = {kind: [one for one in found if one["segment_type"] == kind] for kind in ("small", "large")}
    return [
        ("Small pool: blocks of up to 1 MiB", kinds["small"]),
        ("Large pool: the others", sorted(kinds["large"], key=lambda one: -int(one["total_size"]))),
        ("A private pool has segments of its own", private),
    ]


def size(nbytes: int) -> str:
    return f"{nbytes / MiB:g} MiB" if nbytes % (MiB // 4) == 0 else f"{nbytes / 1024:g} KiB"


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


def draw(found: list[tuple[str, list[dict[str, Any]]]]) -> str:
    """The text of the file. Segments of one pool are drawn to scale."""
    lines: list[str] = []
    y = MARGIN + 4.0
    for name, segments in found:
        lines.append(text(MARGIN, y + 14, name))
        y += TITLE - 8
        scale = WIDTH / max(segment["total_size"] for segment in segments)
        for segment in segments:
            x = float(MARGIN)
            for block in segment["blocks"]:
                live = block["state"] == "active_allocated"
                width = block["size"] * scale
                lines.append(
                    f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{HEIGHT}" '
                    f'fill="{LIVE if live else FREE}" stroke="#9aa5b1"/>'
                )
                words = size(block["size"]) + ("" if live else " free")
                lines.append(text(x + width / 2, y + HEIGHT / 2 + 4, words, "middle"))
                x += width
            total = segment["total_size"]
            lines.append(
                f'<rect x="{MARGIN}" y="{y:.1f}" width="{total * scale:.1f}" height="{HEIGHT}" '
                f'fill="none" stroke="{LINE}" stroke-width="2"/>'
            )
            lines.append(text(x + 10, y + HEIGHT / 2 + 4, f"segment, {size(total)}"))
            y += HEIGHT + 10
        y += 8
    width, height = WIDTH + 2 * MARGIN + 120, y - 8
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" '
        f'font-family="sans-serif" font-size="12" fill="{LINE}">\n'
        f'<rect width="{width}" height="{height:.0f}" fill="#fff"/>'
    )
    return "\n".join([head, *lines, "</svg>\n"])


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(draw(pools()))
