"""What `tensorplay.doctor` tells of CUDA: libraries, devices, and what is wrong with them.

Devices are started, and libraries loaded, in a process of their own, by `tensorplay.cuda._probe`.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from typing import Any

from tensorplay._fault import Fault

from . import _select
from ._library import native

_COMMAND = ("-m", "tensorplay.cuda._probe")
LIMIT_S = 120.0


def diagnose() -> tuple[dict[str, Any], list[Fault]]:
    """Facts in the order to show, and faults; see `tensorplay._backend.Backend.diagnose`."""
    choice = native.choice()
    count, fault = _select.count(choice)
    fault = fault or _cut(choice, count)
    faults = [] if fault is None else [fault]
    if fault is not None and fault.code == _select.MODULE_MISSING:
        return {}, faults
    try:
        facts, found = _ask()
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        advice = f"type `{' '.join(('python', '-X', 'faulthandler', *_COMMAND))}` to see where it ends"
        facts, found = {}, [Fault("probe-failed", f"the process that starts the devices failed: {error}", advice)]
    return facts, faults + found


def _cut(choice: _select.Choice, count: int) -> Fault | None:
    """Where CUDA ignores the rest of its list, since an entry is no device."""
    setting = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    named = setting.split(",")
    if choice.variant == "emulated" or not 0 < count < len(named):
        return None
    problem = f"CUDA_VISIBLE_DEVICES={setting!r} names {len(named)} devices and shows {count}: {named[count]} is none"
    shown = shlex.quote(",".join(named[:count]))
    return Fault("device-hidden", problem, f"type `export CUDA_VISIBLE_DEVICES={shown}`, or mend it")


def _ask() -> tuple[dict[str, Any], list[Fault]]:
    """What the other process prints.

    Raises
    ------
    OSError, ValueError, subprocess.TimeoutExpired
        It does not start, ends early or hangs.
    """
    command = [sys.executable, *_COMMAND]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=LIMIT_S, check=False)
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        raise ValueError(f"exit status {done.returncode}, {last or 'without a word'}")
    facts = json.loads(done.stdout.strip().rpartition("\n")[2])  # whatever is imported may print before
    return facts, [Fault(**fault) for fault in facts.pop("faults")]
