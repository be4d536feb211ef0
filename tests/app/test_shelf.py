"""Pages of the app: lessons run what their live parts need, and nothing else."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuplan.app import server
from gpuplan.app.kernel_pool import Guest, Kernels
from gpuplan.app.options import Options
from gpuplan.app.shelf import catalogue, explorers, lessons
from gpuplan.app.slices import bound, needed, used


def test_a_live_cell_needs_what_binds_or_changes_its_names() -> None:
    cells = [
        "import gpuplan as gp",
        "",
        "day = gp.load('two-apps')",
        "unrelated = gp.plan(day)",
        "rows = []\nrows.append(1)",
        "day.note = 'x'",
        "gp.explore(day)",
        "last = rows",
    ]
    assert needed(cells, [6]) == [0, 2, 5, 6]
    assert needed(cells, [7]) == [4, 7]
    assert needed(["import gpuplan as gp", "gp.load('x')", "gp.ask('1.1')"], [2]) == [0, 2]
    assert bound("a, b = f()\nc.d = 1\ne[0] = 2\ng.h()\nimport x.y as z") == {"a", "b", "c", "e", "g", "z"}
    assert used("print(len(a.b), c)") == {"a", "c"}


def test_lessons_run_for_their_live_parts_only_and_know_every_name() -> None:
    found = lessons()
    assert len(found) >= 6
    assert sum(page.computes for page in found) >= 6
    for page in found:
        known: set[str] = set()
        for cell in page.cells:
            if cell.fate in ("run", "live"):
                known |= bound(cell.text)
                assert used(cell.text) - known == set(), page.address
        assert any(cell.fate == "kept" for cell in page.cells)


def test_pages_are_found_with_and_without_their_ending() -> None:
    pages = catalogue()
    lesson = "lessons/02-how-good-is-good"
    assert pages[lesson] is pages[f"{lesson}.ipynb"]
    assert not any("real-" in address or "report" in address for address in pages)


def test_home_says_what_each_page_is_about_and_each_page_has_one_heading() -> None:
    for page in (*explorers(), *lessons()):
        assert "next:" not in page.about
        assert len(page.about) > 30
        headings = [
            cell for cell in page.cells if cell.fate == "prose" and cell.text.lstrip().startswith("# ")
        ]
        assert len(headings) == 1, page.address
    first = next(page for page in lessons() if page.title == "Why order is capacity")
    assert "order of the jobs" in first.about


def test_a_message_that_no_widget_sends_does_not_pass() -> None:
    from gpuplan.app.kernel_pool import MESSAGES

    assert not {"execute_request", "inspect_request", "complete_request", "input_reply"} & set(MESSAGES)
    assert all(kind.startswith(("comm_", "kernel_info")) for kind in MESSAGES)


def test_folders_of_dead_servers_are_swept_and_those_of_living_ones_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    hold = "import sys, gpuplan.app.server as s\nwith s.kernel_root() as r: print(r, flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", hold],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        text=True,
    ) as process:
        assert process.stdout is not None
        theirs = Path(process.stdout.readline().strip())
        (theirs / "upload.csv").write_text("theirs", encoding="utf-8")
        with server.kernel_root() as mine:
            assert mine.stat().st_mode & 0o077 == 0
            assert (theirs / "upload.csv").exists()
        assert not mine.exists()
        process.send_signal(signal.SIGKILL)
        process.wait(20)
    assert theirs.exists()
    with server.kernel_root():
        assert not theirs.exists()


def test_kernels_go_when_their_time_is_over(tmp_path: Path) -> None:
    now = 100_000.0
    guests = {
        "old": Guest("v", tmp_path, began=now - 481 * 60, touched=now),
        "idle": Guest("v", tmp_path, began=now - 3600, touched=now - 31 * 60),
        "alone": Guest("v", tmp_path, began=now - 90, touched=now - 61, left=now - 61),
        "starting": Guest("v", tmp_path, began=now - 90, touched=now - 90, left=None),
        "used": Guest("v", tmp_path, began=now - 479 * 60, touched=now - 60),
    }
    assert [name for name, _ in Kernels.due(guests, Options(), now)] == ["old", "idle", "alone"]


def test_bad_options_are_a_sentence(run: Callable[..., tuple[int, str, str]]) -> None:
    for words in (
        ("--port", "0"),
        ("--port", "x"),
        ("--users", "0"),
        ("--idle", "-1"),
        ("--upload", "nan"),
        ("--token", ""),
        ("--behind-proxy", "a b"),
        ("--ip", "no.such.host.invalid"),
    ):
        status, out, said = run("app", "--no-browser", *words)
        assert status == 2, words
        assert out == ""
        assert "Traceback" not in said
        assert said.strip()


def test_a_port_that_is_taken_is_a_sentence(run: Callable[..., tuple[int, str, str]]) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        status, _, said = run("app", "--no-browser", "--port", str(port))
    assert (status, f"port {port}" in said) == (2, True)
