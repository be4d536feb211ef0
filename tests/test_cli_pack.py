"""``gpuplan pack``: what it prints and writes, and with which code it ends."""

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuplan.packing.run import PackRun

# One GPU of 24 GiB whose link and disk carry 1 GiB a second. `chat` needs 16 x 1.2 + 0.5 = 19.7 GiB and loads for 16 s;
# `giant` needs 36.5. Under both policies the first task waits for 16 s, and the second, at 1 s, for 15.
TINY = """\
kind: packing
name: tiny
gpus: {count: 1, memory_gib: 24, host_gb_per_s: 1GiB/s, disk_gb_per_s: 1GiB/s}
models:
  - {name: chat, declared_gib: 16}
  - {name: giant, declared_gib: 30}
tasks:
  rows:
    - {arrival_s: 0, model: chat, tenant: "=1+1", service_s: 4}
    - {arrival_s: 1, model: chat, priority: 1, service_s: 2}
    - {arrival_s: 2, model: giant, service_s: 2}
    - {arrival_s: 3, model: giant, service_s: 2}
"""

#: Figures that the contract of files and commands and the design name.
NAMED = (
    "latency_mean_s",
    "latency_p99_s",
    "throughput_per_s",
    "out_of_memory",
    "preemptions",
    "evictions",
    "seconds",
)

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY, encoding="utf-8")
    return path


def strict_json(text: str) -> Any:
    def refuse(name: str) -> float:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_json_has_the_figures_of_the_contract(run: Run, tiny: Path) -> None:
    status, out, err = run("pack", tiny, "--policies", "round-robin,best-fit+backfill", "--json")
    assert (status, err) == (0, "")
    whole = strict_json(out)
    assert list(whole) == ["scenario", "fingerprint", "policies"]
    assert (whole["scenario"], len(whole["fingerprint"])) == ("tiny", 64)
    assert list(whole["policies"]) == ["round-robin", "best-fit+backfill"]
    for figures in whole["policies"].values():
        assert set(NAMED) <= set(figures)
        assert figures["latency_mean_s"] == pytest.approx((16 + 4 + 15 + 2) / 2)
        assert (figures["tasks_done"], figures["tasks_rejected"], figures["violations"]) == (2, 2, 0)
        assert set(figures["priorities"]) == {"0", "1"}


def test_json_repeats_but_for_the_seconds(run: Run) -> None:
    words = ("pack", "embedder-evicts-chat", "--policies", "best-fit", "--json")
    first, second = (strict_json(run(*words)[1]) for _ in range(2))
    for whole in (first, second):
        assert whole["policies"]["best-fit"].pop("seconds") >= 0
    assert first == second


def test_the_table_has_units_reasons_and_notes(run: Run, tiny: Path) -> None:
    status, out, err = run("pack", tiny)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "tiny"
    assert lines[2].split() == ["figure", "round-robin", "best-fit", "unit"]
    assert next(line for line in lines if line.startswith("latency_mean_s")).split()[1:] == [
        "18.50",
        "18.50",
        "seconds",
    ]
    assert next(line for line in lines if line.startswith("rejected: 2 tasks: giant "))
    assert lines[-1] == "giant needs 36.5 GiB and no GPU has more than 24 GiB: its tasks are rejected."


def test_a_load_that_can_never_drain_is_said(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "over.yaml"
    head = TINY[: TINY.index("  - {name: giant")]
    generate = "tasks: {generate: {rate_per_s: 2, count: 20, service_s: 1}}\ncontention: {model: sharing}\n"
    path.write_text(head + generate)
    status, out, _ = run("pack", path, "--policies", "best-fit")
    assert status == 0
    assert out.splitlines()[-1].startswith("Load 2.00: tasks come at 2.00 times the rate")


def test_tasks_are_a_row_each(run: Run, tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "tasks"
    assert run("pack", tiny, "--policies", "best-fit+backfill,round-robin", "--tasks", folder)[0] == 0
    assert sorted(path.name for path in folder.iterdir()) == ["best-fit+backfill.csv", "round-robin.csv"]
    with (folder / "round-robin.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[:9] == [
        "task", "model", "tenant", "priority", "arrival_s", "state", "left_s", "latency_s", "wait_s",
    ]  # fmt: skip
    assert [row["state"] for row in rows] == ["done", "done", "rejected", "rejected"]
    assert [row["tenant"] for row in rows] == ["'=1+1", *["everyone"] * 3]  # a spreadsheet computes nothing
    parts = ("queue_s", "load_s", "service_s", "save_s", "suspended_s", "restore_s", "retry_s")
    for row in rows:
        assert sum(float(row[part]) for part in parts) == pytest.approx(float(row["latency_s"]))


def test_tasks_that_cannot_be_written_are_the_callers_fault(run: Run, tiny: Path) -> None:
    status, out, err = run("pack", tiny, "--policies", "best-fit", "--tasks", tiny)
    assert (status, out) == (2, "")
    assert f"cannot write tasks to {tiny}" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["four-gpus", "--policies", "bestfit"], "did you mean best-fit? (got 'bestfit')"),
        (["four-gpus", "--policies", "best-fit+first-fit"], "must name one placement, not also best-fit"),
        (["four-gpus", "--policies", " , "], "must name at least one policy"),
        (["four-gpus", "--policies", "fgd,\x1b[31m"], r"(got '\x1b[31m')"),
        (["four-gpu"], "did you mean four-gpus?"),
        (["absent.yaml"], "absent.yaml: 1 mistake\n  there is no such file"),
        (["mixed-day"], "kind: must be packing here; allocation scenarios are planned by plan and compare"),
    ],
)
def test_what_cannot_be_exits_with_two(run: Run, words: list[str], message: str) -> None:
    status, out, err = run("pack", *words)
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
    assert "\x1b" not in err


def test_other_commands_name_pack(run: Run) -> None:
    for command in ("compare", "simulate"):
        status, _, err = run(command, "four-gpus")
        assert status == 2
        assert "packing scenarios are run by pack (got 'packing')" in err


def test_a_run_that_breaks_rules_is_our_fault(run: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PackRun, "check", lambda self: ["one", "two"])
    status, out, err = run("pack", tiny, "--policies", "best-fit")
    assert status == 1
    assert out
    assert err == "gpuplan: the run of best-fit breaks 2 rules: a fault of gpuplan, please report it\n"


def test_the_command_runs_as_a_process(tiny: Path) -> None:
    words = [sys.executable, "-m", "gpuplan", "pack", str(tiny), "--policies", "best-fit", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert strict_json(done.stdout)["policies"]["best-fit"]["tasks_done"] == 2


@pytest.mark.parametrize("name", ["four-gpus", "evicted-but-wanted"])
def test_loading_a_packing_scenario_needs_neither_numba_nor_pandas(name: str) -> None:
    code = f"import sys, gpuplan; gpuplan.load({name!r});"
    code += "print(*(m for m in ('numba', 'pandas', 'altair', 'ipywidgets') if m in sys.modules), 'end')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["end"]


def test_explore_has_no_explorer_that_does_not_exist() -> None:
    import gpuplan as gp
    import gpuplan_widgets

    if "PackingExplorer" in gpuplan_widgets.__all__:
        assert type(gp.explore("four-gpus")).__name__ == "PackingExplorer"
    else:
        with pytest.raises(gp.InputError, match=r"gpuplan.pack runs this one \(got 'packing'\)"):
            gp.explore("four-gpus")
