"""History of memory: switched on and off, read, and written for the visualisers."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterable
from os import PathLike
from typing import Any

from tensorplay.errors import DTypeError, InvalidArgumentError

from . import _origins, _reading
from . import _settings as _allocator_settings
from ._check import check
from ._library import native, text_of
from ._tables import TRACE_ACTIONS
from .device import DeviceArgument, device_index

_ORIGINS, _ENTRIES, _FREES = 1, 2, 4  # TP_HISTORY_ORIGINS, TP_HISTORY_ENTRIES, TP_HISTORY_FREES
_WITHOUT = 256  # TP_HISTORY_WITHOUT
_ENABLED = {None: 0, "state": _ORIGINS, "all": _ORIGINS | _ENTRIES | _FREES}
_CONTEXTS = {None: _ENTRIES, "state": _ENTRIES | _ORIGINS, "alloc": _ENTRIES | _ORIGINS, "all": _ENABLED["all"]}

_lock = threading.Lock()


def memory_snapshot(mempool_id: tuple[int, int] | None = None, include_traces: bool = True) -> list[dict[str, Any]]:
    """Every segment that the allocator holds on any device, with its blocks (`tp_memory_snapshot_take`).

    Works before first use and starts nothing. What it costs depends on the number of blocks, not on the history.

    Parameters
    ----------
    mempool_id : pair of int, optional
        Only segments of this pool.
    include_traces : bool
        Torch's. Nothing depends on it: the history is in `_snapshot`.

    Returns
    -------
    list of dict
        Segments by device and address: ``device``, ``address``, ``total_size``, ``allocated_size``, ``active_size``,
        ``requested_size``, ``stream``, ``segment_type`` (``"small"`` or ``"large"``), ``segment_pool_id``,
        ``is_expandable``, ``frames`` and ``blocks``. Blocks by address, which cover the segment exactly:
        ``address``, ``size``, ``requested_size``, ``stream``, ``frames`` and ``state``: ``"active_allocated"``,
        ``"active_pending_free"`` (given back, but other streams still use it) or ``"inactive"``. Of one device it is
        one consistent reading. ``frames`` (``filename``, ``line``, ``name``, innermost first) tell where an active
        block, or a segment, was asked for; where that is not known, a single frame says why.
    """
    if mempool_id is not None and not isinstance(mempool_id, Iterable):
        raise DTypeError(f"memory_snapshot: got pool {mempool_id!r}, expected a pair of numbers, or None")
    found, _ = _read(with_entries=False)
    wanted = None if mempool_id is None else tuple(mempool_id)
    return [segment for segment in found if wanted in (None, segment["segment_pool_id"])]


def _record_memory_history(
    enabled: str | None = "all",
    context: str | None = "all",
    stacks: str = "all",
    max_entries: int = 100_000,
    device: DeviceArgument = None,
    clear_history: bool = False,
    compile_context: bool = False,
    global_record_annotations: bool = False,
    skip_actions: Iterable[str] | None = None,
) -> None:
    """Starts to record what happens to memory on all devices, or ends it (`tp_memory_record_history`).

    Each call starts anew: earlier entries are dropped, blocks that live keep their stack. While it is on, every
    allocation looks at the caller's stack, and threads have no caches of their own.

    Parameters
    ----------
    enabled : {"all", "state", None}
        ``"all"``: the stacks of live blocks, and an entry for every event. ``"state"``: only the stacks of live blocks.
        None ends it.
    context : {"all", "alloc", "state", None}
        Which events get their stack: all; allocations (``"alloc"`` and ``"state"``, which agree here); none.
    stacks : {"python", "all"}
        The stacks are Python's in both cases: there is nothing to see of C below a call of this package.
    max_entries : int
        Entries that are kept for each device, the latest ones; each takes 64 bytes. The ring grows up to it as needed.
        Stacks are kept once each, 65,536 different ones at most.
    device : device, str or int, optional
        As in torch, the history is that of all devices, whichever is given.
    clear_history : bool
        Nothing depends on it: each call starts anew.
    compile_context, global_record_annotations : bool
        Torch's compiler and profiler have no counterpart here: only False.
    skip_actions : iterable of str, optional
        Of these actions (see `_snapshot`) no entries are kept.

    Raises
    ------
    InvalidArgumentError
        A value that is none of these, or a device that does not exist.
    DTypeError
        An argument of another type.
    """
    if device is not None:
        device_index(device)
    _check_choice("compile_context", compile_context, (False,))
    _check_choice("global_record_annotations", global_record_annotations, (False,))
    skipped = _mode_without(skip_actions)
    _check_choice("enabled", enabled, tuple(_ENABLED))
    _check_choice("context", context, tuple(_CONTEXTS))
    _check_choice("stacks", stacks, ("python", "all"))
    _check_entries(max_entries)
    mode = _ENABLED[enabled] & _CONTEXTS[context]
    if mode & _ENTRIES:
        mode |= skipped
    with _lock:
        if not mode and not native.is_started:
            return
        check(native.tp_memory_record_history(0, max_entries))
        _origins.keep(
            __name__, {origin for index in range(native.tp_device_count()) for origin in _reading.origins(index)}
        )
        _origins.listen(__name__, bool(mode & _ORIGINS))
        if mode:
            check(native.tp_memory_record_history(mode, max_entries))


def _snapshot(device: DeviceArgument = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """Segments and history of all devices, as torch's snapshots have them (`tp_memory_snapshot_take`).

    Parameters
    ----------
    device : device, str or int, optional
        Only what is of this device; torch gives what is of all.
    augment_with_fx_traces : bool
        There is no FX here: only False.

    Returns
    -------
    dict
        ``segments``: as `memory_snapshot` gives them. ``device_traces``: for each device its entries, oldest first,
        with ``action`` (``"alloc"``, ``"free_requested"``, ``"free_completed"``, ``"segment_alloc"``,
        ``"segment_free"``, ``"segment_map"``, ``"segment_unmap"``, ``"snapshot"``, ``"oom"``), ``time_us`` since 1970,
        ``addr``, ``size``, ``stream``, ``pool_id`` and ``frames``. The size of blocks is what the program asked for;
        ``"oom"`` has ``device_free`` in place of ``addr``. ``allocator_settings`` and ``external_annotations``.
    """
    _check_choice("augment_with_fx_traces", augment_with_fx_traces, (False,), "_snapshot")
    wanted = None if device is None else device_index(device)
    found, traces = _read(with_entries=True)
    if wanted is not None:
        found = [segment for segment in found if segment["device"] == wanted]
        traces = [entries if index == wanted else [] for index, entries in enumerate(traces)]
    return {
        "segments": found,
        "device_traces": traces,
        "allocator_settings": _settings() if native.is_started else {},
        "external_annotations": [],
    }


def _dump_snapshot(
    filename: str | PathLike[str] = "dump_snapshot.pickle", augment_with_fx_traces: bool = False
) -> None:
    """Writes `_snapshot` as a pickle, which https://pytorch.org/memory_viz opens.

    So does ``python -m tensorplay.cuda.memory_viz FILE -o PAGE.html``, without a network.

    Parameters
    ----------
    filename : str or path
    augment_with_fx_traces : bool
        Only False, as for `_snapshot`.
    """
    taken = _snapshot(augment_with_fx_traces=augment_with_fx_traces)
    with open(filename, "wb") as file:
        pickle.dump(taken, file, protocol=4)


def _settings() -> dict[str, Any]:
    """Under torch's names, of which the first is that of its variable."""
    found = _allocator_settings.current()
    *below, rest = found.roundup_power2_divisions
    return {
        "PYTORCH_CUDA_ALLOC_CONF": text_of(found.text),
        "max_split_size": _limit(found.max_split_size),
        "garbage_collection_threshold": found.garbage_collection_threshold,
        "expandable_segments": bool(found.expandable_segments),
        "pinned_max_cached_size": _limit(found.pinned_max_cached_size),
        "release_lock_on_cudamalloc": bool(found.release_lock_on_cudamalloc),
        "roundup_power2_divisions": {**{str(2**i): value for i, value in enumerate(below)}, ">": rest},
    }


def _limit(nbytes: int) -> int:
    """-1 where there is none, as torch writes it."""
    return -1 if nbytes >= 2**63 - 1 else int(nbytes)


def _check_choice(
    name: str, value: object, valid: tuple[object, ...], function: str = "_record_memory_history"
) -> None:
    if value not in valid:
        expected = f"one of {valid}" if len(valid) > 1 else repr(valid[0])
        raise InvalidArgumentError(f"{function}: got {name}={value!r}, expected {expected}")


def _mode_without(actions: Iterable[str] | None) -> int:
    """TP_HISTORY_WITHOUT for each of them."""
    if isinstance(actions, str):
        raise DTypeError(f"_record_memory_history: got skip_actions={actions!r}, expected a list of names")
    mode = 0
    for action in actions or ():
        _check_choice("skip_actions", action, tuple(TRACE_ACTIONS))
        mode |= _WITHOUT << TRACE_ACTIONS.index(action)
    return mode


def _check_entries(max_entries: object) -> None:
    if isinstance(max_entries, bool) or not isinstance(max_entries, int):
        raise DTypeError(f"_record_memory_history: got max_entries={max_entries!r}, expected an integer")
    if not 1 <= max_entries < 2**63:
        raise InvalidArgumentError(f"_record_memory_history: got max_entries={max_entries}, expected 1 to 2**63 - 1")


def _read(with_entries: bool) -> tuple[list[dict[str, Any]], list[list[dict[str, Any]]]]:
    """Segments of all devices, and a list of entries for each."""
    if not native.is_started:
        return [], []
    frames = _origins.Frames()
    read = [_reading.take(index, frames, with_entries) for index in range(native.tp_device_count())]
    return [segment for found, _ in read for segment in found], [entries for _, entries in read]
