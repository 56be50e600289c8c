"""CUDA_VISIBLE_DEVICES: what is counted without the driver."""

from __future__ import annotations

import pytest

from tensorplay.cuda._visible import visible

UUIDS = ["GPU-11aa", "GPU-11bb", "GPU-2222"]


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (None, 3),
        ("", 0),
        ("-1", 0),
        ("0", 1),
        ("0,1", 2),
        ("2,1,0", 3),
        ("0,0", 0),
        ("0,1,0", 0),
        ("0,-1,1", 1),
        ("0,99,1", 1),
        ("3", 0),
        ("x", 0),
        ("0,x", 1),
        (" 0", 1),
        ("0 , 1", 2),
        ("1gpu2,2ampere", 2),
        ("+1", 1),
        (",0", 0),
        ("GPU-11aa", 1),
        ("GPU-2", 1),
        ("GPU-11", 0),
        ("GPU-2222,GPU-11aa", 2),
        ("GPU-2222,GPU-22", 0),
        ("GPU-2222,0", 1),
        ("GPU-ffff,GPU-2222", 0),
    ],
)
def test_visible_follows_the_drivers_rules(setting: str | None, expected: int) -> None:
    assert visible(setting, UUIDS) == expected


def test_visible_leaves_mig_slices_to_the_driver() -> None:
    assert visible("MIG-11aa", UUIDS) is None
