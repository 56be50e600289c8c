"""The page that shows a snapshot of memory."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import tensorplay as tp
from tensorplay import cuda
from tensorplay.cuda import memory, memory_viz

MiB = 2**20


class Page(HTMLParser):
    """What a browser finds: the text of each element that has an id, and every attribute."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        self.attributes: list[tuple[str, str | None]] = []
        self._id = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        self._id = dict(attrs).get("id") or ""

    def handle_endtag(self, tag: str) -> None:
        self._id = ""

    def handle_data(self, data: str) -> None:
        self.texts[self._id] = self.texts.get(self._id, "") + data

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.texts["data"])
        return found


def data_of(snapshot: dict[str, Any]) -> dict[str, Any]:
    return Page(memory_viz.page(snapshot)).data


def entry(action: str, address: int, size: int, name: str = "f", **more: Any) -> dict[str, Any]:
    """As torch writes one."""
    frames = [{"name": name, "filename": f"{name}.py", "line": 1}]
    return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": 10, "frames": frames, **more}


def segment(*blocks: tuple[int, str], **more: Any) -> dict[str, Any]:
    """At address 0, with blocks of these sizes and states, and only the keys that every version of torch writes."""
    described = [{"size": size, "requested_size": size - 1, "state": state} for size, state in blocks]
    total = sum(size for size, _ in blocks)
    return {"device": 0, "address": 0, "total_size": total, "stream": 0, "blocks": described, **more}


# ---- its data ----


def test_page_has_the_snapshot(history: None) -> None:
    def make() -> list[tp.Tensor]:
        return [tp.ones(MiB // 4, device="cuda") for _ in range(3)]

    made = make()
    del made[1]
    snapshot = memory._snapshot()
    data = data_of(snapshot)
    device = data["devices"][0]
    assert device["events"] == len(snapshot["device_traces"][0])
    assert device["reserved"][-1][1] == sum(s["size"] for s in device["segments"]) == cuda.memory_reserved()
    assert [len(s["blocks"]) for s in device["segments"]] == [
        len(s["blocks"]) for s in snapshot["segments"] if s["device"] == 0
    ]
    held = {block["address"]: block for s in snapshot["segments"] for block in s["blocks"]}
    lives = list(zip(*device["lives"].values(), strict=True))
    alive = [(size, address) for _, end, size, address, _ in lives if end == device["events"]]
    active = [(b["requested_size"], b["address"]) for b in held.values() if b["state"] != "inactive"]
    assert sorted(alive) == sorted(active)
    own = [figures for frame, *figures in device["sites"] if data["frames"][frame][1] == __file__]
    assert [2 * MiB, 2, 3 * MiB, 3] in own


def test_lives_and_reserved_bytes_of_a_history_that_begins_late() -> None:
    trace = [
        entry("free_requested", 512, 100),
        entry("free_completed", 512, 100),
        entry("segment_alloc", 4096, 2048),
        entry("alloc", 4096, 300, "g"),
        entry("oom", 0, 9, device_free=7),
        entry("segment_free", 8192, 5000),
        entry("alloc", 4608, 50, "g"),
        entry("free_completed", 4608, 50, "g"),
    ]
    found = segment((512, "active_allocated"), (512, "inactive"))
    data = data_of({"segments": [found, segment((2048, "inactive"), address=4096)], "device_traces": [trace]})
    (device,) = data["devices"]
    names = [data["frames"][stack[0]][0] for stack in data["stacks"]]
    columns = zip(*device["lives"].values(), strict=True)
    lives = [(start, end, size, address, names[stack]) for start, end, size, address, stack in columns]
    assert lives == [
        (-1, 1, 100, 512, "(allocated before the history begins)"),
        (-1, 8, 511, 0, "(no stack recorded)"),
        (3, 8, 300, 4096, "g"),
        (6, 7, 50, 4608, "g"),
    ]
    assert device["reserved"] == [[0, 6024], [2, 8072], [5, 3072]]
    assert [mark[:4] for mark in device["marks"]] == [[4, "oom", 9, 7]]
    sites = {data["frames"][frame][0]: figures for frame, *figures in device["sites"]}
    assert sites["g"] == [300, 1, 350, 2]
    assert sites["(allocated before the history begins)"] == [0, 0, 100, 1]


def test_snapshots_without_history_or_of_nothing_have_a_page() -> None:
    (device,) = data_of({"segments": [segment((512, "active_awaiting_free"))]})["devices"]
    assert (device["events"], device["segments"][0]["blocks"][0][2]) == (0, 1)
    assert data_of({"segments": [], "device_traces": [[], []]})["devices"] == []


def test_names_of_call_sites_cannot_end_the_script() -> None:
    name = "</script><script>alert(1)</script><!-- & \u2028 \ud800 ünï"
    text = memory_viz.page({"segments": [], "device_traces": [[entry("alloc", 0, 1, name)]]}, title=name)
    assert text.encode()
    page = Page(text)
    assert page.data["frames"][0][0] == page.data["title"] == name
    assert text.count("<script") == text.count("</script>") == 2


def test_page_refers_to_nothing_outside() -> None:
    page = memory_viz.page({"segments": [], "device_traces": []})
    assert not [name for name, _ in Page(page).attributes if name in ("src", "href", "action", "integrity")]
    assert not re.findall(r"https?:|//\w|url\(|@import|fetch\(|XMLHttp|innerHTML", page)
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'") in Page(
        page
    ).attributes


def test_page_of_100000_events_is_made_in_seconds() -> None:
    trace = []
    for i in range(50_000):
        trace += [entry("alloc", 512 * i, 500), entry("free_completed", 512 * i, 500)]
    page = memory_viz.page({"segments": [], "device_traces": [trace]})
    assert Page(page).data["devices"][0]["events"] == 100_000
    assert len(page) < 5 * MiB


# ---- the command ----


def test_command_writes_a_page(history: None, tmp_path: Path) -> None:
    held = tp.ones(1000, device="cuda")
    taken, out = tmp_path / "snapshot.pickle", tmp_path / "out.html"
    memory._dump_snapshot(taken)
    command = [sys.executable, "-W", "error", "-m", "tensorplay.cuda.memory_viz", str(taken)]
    done = subprocess.run([*command, "-o", str(out)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{out}\n", "")
    page = Page(out.read_text())
    assert page.data["title"] == "snapshot.pickle"
    assert held.data_ptr() in page.data["devices"][0]["lives"]["address"]
    assert memory_viz.main([str(taken)]) == 0
    assert (tmp_path / "snapshot.html").read_text() == out.read_text()


class Harmful:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("harmed"),)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (pickle.dumps(Harmful()), "expected plain objects"),
        (pickle.dumps([1]), "expected a dictionary with 'segments'"),
        (b"", "is no snapshot"),
        (b"some text\n", "is no snapshot"),
        (pickle.dumps({"segments": []})[:-3], "is no snapshot"),
        (None, "No such file"),
    ],
)
def test_what_is_no_snapshot_is_refused(
    content: bytes | None,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("snapshot.pickle").write_bytes(content)
    assert memory_viz.main(["snapshot.pickle"]) == 1
    assert words in capsys.readouterr().err
    assert not Path("harmed").exists()
    assert not Path("snapshot.html").exists()
