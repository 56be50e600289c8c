"""What may differ from torch is told on one page."""

from __future__ import annotations

import re
from pathlib import Path

from interop.differences import DIFFERENCES

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "coming-from-torch.md"


def rows() -> list[str]:
    """The first column of the page's table."""
    return re.findall(r"^\| (.+?) \| .+ \| .+ \| .*\|$", PAGE.read_text(), re.M)[1:]


def test_every_difference_is_a_row() -> None:
    assert {difference.row for difference in DIFFERENCES} <= set(rows())


def test_the_page_is_short() -> None:
    assert 0 < len(rows()) <= 32
