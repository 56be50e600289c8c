"""CUDA_VISIBLE_DEVICES: what is counted without the driver."""

from __future__ import annotations

import pytest
from helpers import fresh

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
        ("\u0661", 0),  # a digit, but none of strtol
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


@pytest.mark.parametrize("setting", [None, "", "0", "0,0", "0,99"])
def test_the_driver_counts_alike(gpu: None, setting: str | None) -> None:
    code = """
        from tensorplay.cuda import _select
        from tensorplay.cuda._native import bind, lib
        choice = _select.choose()
        before = _select.count(choice)[0]
        bind(choice.variant)
        print(before - lib.tp_device_count())
    """
    assert fresh.run(code, CUDA_VISIBLE_DEVICES=setting) == "0\n"


def test_what_is_set_after_the_first_use_changes_nothing(gpu: None) -> None:
    code = """
        import os
        import tensorplay as tp
        x = tp.ones(3, device="cuda")
        before = tp.cuda.device_count()
        os.environ |= {"CUDA_VISIBLE_DEVICES": "-1", "TENSORPLAY_EMULATED_DEVICES": "0"}
        print(tp.cuda.device_count() - before, tp.cuda.is_available(), x.sum().item())
    """
    assert fresh.run(code) == "0 True 3.0\n"
