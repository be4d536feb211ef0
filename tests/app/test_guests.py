"""What a guest may not do in a kernel: files elsewhere, uploads too large, computations without an end."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import gpuplan as gp
from gpuplan.inputs import folders
from gpuplan_widgets import AllocationExplorer, FairShareExplorer, guest, messages
from gpuplan_widgets.answering import PLANNING
from gpuplan_widgets.guest import Guest

NOW = datetime(2026, 1, 1, tzinfo=UTC)

FAIR = """\
kind: fairshare
name: theirs
cluster: {{gpus: 8}}
budget: [{{name: a, weight: 1}}]
workload: {{file: {file}}}
"""


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[Guest]:
    """This process serves a guest for the length of a test."""
    made = Guest(upload_bytes=2_000, seconds=60)
    guest.receive(made)
    monkeypatch.setattr(folders, "_confined", True)
    yield made
    guest.receive(None)


def upload(explorer: Any, *files: tuple[str, str]) -> str:
    """What is said about files that are uploaded together."""
    opener = explorer.file
    opener.upload.value = [
        {"name": n, "type": "", "size": len(c), "content": memoryview(c.encode()), "last_modified": NOW}
        for n, c in files
    ]
    return messages.said(opener.said)


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../jobs.csv", "~/jobs.csv", "a/b.csv", "/proc/self/environ"]
)
def test_an_uploaded_scenario_names_files_beside_it_only(limits: Guest, name: str) -> None:
    explorer = FairShareExplorer("first-hours")
    said = upload(explorer, ("theirs.yaml", FAIR.format(file=f"'{name}'")))
    assert "must be the name of a file that was uploaded with the scenario" in said
    assert "root" not in said
    assert "gpuplan-upload" not in said
    assert explorer.scenario.name == "first-hours"


def test_a_link_among_the_uploads_leads_nowhere(limits: Guest, tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").symlink_to("/etc/passwd")
    (tmp_path / "theirs.yaml").write_text(FAIR.format(file="jobs.csv"), encoding="utf-8")
    with pytest.raises(gp.InputError, match="uploaded with the scenario"):
        gp.load(tmp_path / "theirs.yaml")


def test_scenario_and_table_uploaded_together_are_read(limits: Guest) -> None:
    explorer = FairShareExplorer("first-hours")
    table = "job,team,submit_s,gpus,run_s\n1,a,0,2,600\n2,a,60,2,600\n"
    assert upload(explorer, ("../../theirs.yaml", FAIR.format(file="jobs.csv")), ("jobs.csv", table)) == ""
    explorer.wait()
    assert explorer.scenario.name == "theirs"
    assert explorer.state().scenario is None  # it is in no address


def test_uploads_are_limited_all_together_and_there_is_no_path_to_write(limits: Guest) -> None:
    explorer = AllocationExplorer("two-apps")
    assert "at most 0.002 MB" in upload(explorer, ("a.csv", "x" * 2_001))
    assert upload(explorer, ("a.csv", "x" * 1_500)) != ""  # no table, but read
    assert "at most 0.002 MB" in upload(explorer, ("b.csv", "x" * 600))
    assert "at most" not in upload(explorer, ("a.csv", "x" * 1_900))  # in place of the first one
    shown = list(explorer.file.fold.children)
    for widget in shown:
        shown += getattr(widget, "children", ())
    assert explorer.file.path not in shown
    explorer.file.path.value = "/etc/passwd"  # what a page could send all the same
    assert "passwd" not in messages.said(explorer.file.said)


ENDLESS = """
from gpuplan_widgets.answering import PLANNING
from gpuplan_widgets.guest import Guest, receive
receive(Guest(1000, 0.2))
with PLANNING:
    pass
import time
time.sleep(0.4)  # between two computations no time is counted
print("rested", flush=True)
with PLANNING:
    while True:
        pass
"""


def test_a_computation_without_an_end_is_ended_by_an_alarm() -> None:
    made = subprocess.run([sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=60)
    assert made.stdout == "rested\n"
    assert made.returncode == -signal.SIGALRM


def test_without_limits_nothing_is_watched() -> None:
    with PLANNING:
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
