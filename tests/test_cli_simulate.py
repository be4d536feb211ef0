"""``gpuplan simulate``: what it prints and writes, and with which code it ends."""

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Four GPUs. `b` (4 GPUs) has to wait for `a` (3 GPUs) until 3,600 s; a strict line keeps `=1+1` behind it, EASY starts
# it at 60 s, for it ends (at 660 s) before the promise. Waits under fifo: 0, 3,590, 7,140 (starts as b ends, 7,200).
TINY = """\
kind: fairshare
name: tiny
cluster: {gpus: 4}
window: 1d
contract: {max_min_runtime: 1h}
budget: [{name: red, weight: 1}, {name: blue, weight: 1}]
workload:
  jobs:
    - {job: a, team: red, submit_s: 0, gpus: 3, run_s: 3600, limit_s: 3600}
    - {job: b, team: red, submit_s: 10, gpus: 4, run_s: 3600, limit_s: 3600}
    - {job: "=1+1", team: blue, submit_s: 60, gpus: 1, run_s: 600, limit_s: 600}
    - {job: giant, team: blue, submit_s: 60, gpus: 5, run_s: 600, limit_s: 600}
"""

#: Figures that the contract of files and commands names.
NAMED = (
    "mean_wait_s", "wait_p50_s", "wait_p90_s", "wait_p99_s", "makespan_s", "mean_bounded_slowdown", "occupancy",
    "delivered_share", "unallocated_share", "preemptions", "lost_gpu_hours", "teams", "seconds",
)  # fmt: skip

SWF = """\
; Version: 2.2
; MaxProcs: 4
1 0 -1 3600 3 -1 -1 3 3600 -1 1 1 1 -1 1 -1 -1 -1
2 10 -1 3600 4 -1 -1 4 3600 -1 1 2 1 -1 1 -1 -1 -1
3 60 -1 600 1 -1 -1 1 600 -1 1 3 2 -1 1 -1 -1 -1
"""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY, encoding="utf-8")
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "small.swf"
    path.write_text(SWF, encoding="utf-8")
    return path


def strict_json(text: str) -> Any:
    def refuse(name: str) -> float:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_json_has_the_figures_of_the_contract(run: Run, tiny: Path) -> None:
    status, out, err = run("simulate", tiny, "--policies", "fifo,easy", "--json")
    assert (status, err) == (0, "")
    whole = strict_json(out)
    assert list(whole) == ["scenario", "fingerprint", "policies"]
    assert (whole["scenario"], len(whole["fingerprint"])) == ("tiny", 64)
    assert list(whole["policies"]) == ["fifo", "easy"]
    fifo, easy = whole["policies"]["fifo"], whole["policies"]["easy"]
    assert set(NAMED) <= set(fifo)
    assert fifo["mean_wait_s"] == pytest.approx((0 + 3590 + 7140) / 3)
    assert easy["mean_wait_s"] == pytest.approx((0 + 3590 + 0) / 3)
    assert (fifo["makespan_s"], easy["makespan_s"]) == (7800, 7200)
    assert fifo["occupancy"] == pytest.approx((3 * 3600 + 4 * 3600 + 600) / (4 * 7800))
    assert (fifo["preemptions"], fifo["violations"]) == (0, 0)
    assert set(fifo["teams"]) == {"red", "blue"}


def test_json_repeats_but_for_the_seconds(run: Run) -> None:
    words = ("simulate", "three-programmes", "--policies", "easy", "--json")
    first, second = (strict_json(run(*words)[1]) for _ in range(2))
    for whole in (first, second):
        assert whole["policies"]["easy"].pop("seconds") >= 0
    assert first == second


def test_the_table_has_units_what_was_set_aside_and_notes(run: Run, tiny: Path) -> None:
    status, out, err = run("simulate", tiny, "--policies", "fifo,easy")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "tiny"
    assert next(line for line in lines if line.startswith("figure")).split() == [
        "figure",
        "fifo",
        "easy",
        "unit",
    ]
    assert next(line for line in lines if line.startswith("makespan_s")).split()[1:3] == ["7,800", "7,200"]
    assert "set aside: giant: 5 GPUs wanted, 4 exist" in lines
    assert lines[-1] == "4 of 4 jobs without a minimum run time: min(limit, 1 h)."


def test_jobs_are_a_row_per_stretch_of_running(run: Run, tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "jobs"
    assert run("simulate", tiny, "--policies", "fifo,easy", "--jobs", folder)[0] == 0
    assert sorted(path.name for path in folder.iterdir()) == ["easy.csv", "fifo.csv"]
    with (folder / "easy.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["job", "team", "gpus", "submit_s", "start_s", "end_s", "state"]
    assert rows == [
        ["a", "red", "3", "0", "0", "3600", "finished"],
        [
            "'=1+1",
            "blue",
            "1",
            "60",
            "60",
            "660",
            "finished",
        ],  # a spreadsheet shows the text and computes nothing
        ["b", "red", "4", "10", "3600", "7200", "finished"],
    ]


def test_jobs_that_cannot_be_written_are_the_callers_fault(run: Run, tiny: Path) -> None:
    status, out, err = run("simulate", tiny, "--policies", "fifo", "--jobs", tiny)
    assert (status, out) == (2, "")
    assert f"cannot write jobs to {tiny}" in err


def test_a_workload_log_runs_on_the_gpus_asked_for_or_those_of_its_header(run: Run, log: Path) -> None:
    status, out, err = run("simulate", log, "--policies", "fifo,easy", "--json")
    assert (status, err) == (0, "")
    whole = strict_json(out)
    assert whole["scenario"] == "small"
    assert whole["policies"]["fifo"]["makespan_s"] == 7800
    assert set(whole["policies"]["easy"]["teams"]) == {"group-1/user-1", "group-1/user-2", "group-2/user-3"}
    wide = strict_json(run("simulate", log, "--policies", "fifo", "--gpus", "8", "--json")[1])
    assert wide["policies"]["fifo"]["mean_wait_s"] == 0
    assert wide["fingerprint"] != whole["fingerprint"]


def test_equal_weights_over_group_then_user_and_an_hour_of_protection(log: Path) -> None:
    from gpuplan.fairshare.tree import tree_of
    from gpuplan.loading import load_swf

    scenario = load_swf(log, 4)
    tree = tree_of(scenario.budget)
    share = dict(zip(tree.path, tree.share.tolist(), strict=True))
    assert (share["group-1/user-1"], share["group-2/user-3"]) == (0.25, 0.5)
    assert scenario.jobs is not None
    assert scenario.jobs.minimum_s.tolist() == [3600, 3600, 600]
    assert any("3 jobs read, 3 used" in note for note in scenario.notes)


def test_a_log_without_processors_needs_gpus(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bare.swf").write_text(SWF.replace("; MaxProcs: 4\n", ""))
    status, _, err = run("simulate", tmp_path / "bare.swf", "--policies", "fifo")
    assert status == 2
    assert "gpus: must be told: the header of the log has no MaxProcs" in err
    for gpus in ("0", "1000001"):
        status, _, err = run("simulate", tmp_path / "bare.swf", "--policies", "fifo", "--gpus", gpus)
        assert status == 2
        assert f"gpus: must be from 1 to 1,000,000 (got {gpus})" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["three-programmes", "--policies", "eazy"], "did you mean easy? (got 'eazy')"),
        (["three-programmes", "--policies", " , "], "must name at least one policy"),
        (["three-programmes", "--policies", "fifo,\x1b[31m"], r"(got '\x1b[31m')"),
        (
            ["three-programmes", "--gpus", "8"],
            "--gpus is for workload logs (.swf): a scenario says its cluster itself",
        ),
        (["three-programmes", "--gpus", "many"], "must be a whole number of at least 0 (got many)"),
        (["three-programes"], "did you mean three-programmes?"),
        (["absent.swf"], "absent.swf"),
        (
            ["mixed-day"],
            "mixed-day: 1 mistake\n  kind: must be fairshare here; allocation scenarios are planned by",
        ),
    ],
)
def test_what_cannot_be_exits_with_two(run: Run, words: list[str], message: str) -> None:
    status, out, err = run("simulate", *words)
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
    assert "\x1b" not in err


def test_compare_says_that_simulate_runs_fair_share_scenarios(run: Run) -> None:
    status, out, err = run("compare", "three-programmes")
    assert (status, out) == (2, "")
    assert "kind: must be allocation here; fairshare scenarios are run by simulate (got 'fairshare')" in err


def test_an_illegal_run_is_our_fault(run: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuplan.fairshare.run.Run.violations", 2)
    status, out, err = run("simulate", tiny, "--policies", "fifo", "--json")
    assert status == 1
    assert strict_json(out)["policies"]["fifo"]["violations"] == 2
    assert "the run of fifo breaks 2 rules" in err


def test_by_default_backfill_stands_beside_budgets(run: Run, tiny: Path) -> None:
    status, out, err = run("simulate", tiny, "--json")
    assert (status, err) == (0, "")
    assert list(strict_json(out)["policies"]) == ["easy", "fair-share"]


@pytest.mark.parametrize("number", range(4))
def test_a_damaged_file_ends_in_a_table_or_in_sentences(number: int, tmp_path: Path) -> None:
    from allocation.test_schema_mutations import mutant

    (tmp_path / "damaged.yaml").write_bytes(mutant(number, [TINY.encode()]))
    command = [sys.executable, "-m", "gpuplan", "simulate", "damaged.yaml", "--policies", "fifo"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120)
    out, err = ended.stdout.decode(), ended.stderr.decode()
    if ended.returncode == 0:
        assert "occupancy" in out
        assert err == ""
    else:
        assert (ended.returncode, out) == (2, ""), err
        assert "mistake" in err
    assert "Traceback" not in err


# ---------------------------------------------------------------------- Python


def test_python_takes_what_load_takes(tiny: Path) -> None:
    import gpuplan as gp

    scenario = gp.load(tiny)
    run = gp.simulate(tiny, policy="fifo")
    assert type(scenario) is gp.FairshareScenario
    assert type(run) is gp.Run
    assert run.fingerprint == gp.simulate(scenario, "fifo").fingerprint
    assert run.fingerprint == gp.simulate(scenario.to_dict(), "fifo").fingerprint
    assert run.check() == []
    assert "easy" in gp.FAIRSHARE_POLICIES


@pytest.mark.parametrize("function", ["plan", "compare", "certify", "roll", "take_apart", "sensitivity"])
def test_functions_for_allocation_name_simulate(function: str) -> None:
    import gpuplan as gp

    with pytest.raises(gp.InputError, match="fairshare scenarios are run by simulate"):
        getattr(gp, function)("first-hours")
    with pytest.raises(gp.InputError, match="allocation scenarios are planned by plan and compare"):
        gp.simulate("mixed-day")


def test_kinds_are_told_apart_and_an_unknown_one_is_a_sentence() -> None:
    import gpuplan as gp

    with pytest.raises(
        gp.InputError, match=r"kind: must be one of allocation, fairshare, packing \(got 'zzz'\)"
    ):
        gp.load({"kind": "zzz", "name": "x"})
    with pytest.raises(gp.InputError, match="kind: must be fairshare; did you mean fairshare"):
        gp.load({"kind": "fair-share", "name": "x", "cluster": {"gpus": 1}, "workload": {"generate": {}}})
    with pytest.raises(gp.InputError, match="kind: must be given"):
        gp.load({"name": "x", "cluster": {"gpus": 1}, "workload": {"generate": {}}})


def test_explore_goes_by_kind() -> None:
    import gpuplan as gp
    import gpuplan_widgets

    if "FairShareExplorer" in gpuplan_widgets.__all__:
        assert type(gp.explore("first-hours")).__name__ == "FairShareExplorer"
    else:
        with pytest.raises(gp.InputError, match=r"gpuplan.simulate runs this one"):
            gp.explore("first-hours")


def test_loading_a_fair_share_scenario_needs_neither_numba_nor_pandas() -> None:
    code = "import sys, gpuplan; gpuplan.load('first-hours');"
    code += "print(*(m for m in ('numba', 'pandas', 'altair', 'ipywidgets') if m in sys.modules), 'end')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["end"]


def test_what_only_one_policy_sets_aside_is_named_by_policy(run: Run, tmp_path: Path) -> None:
    """4 GPUs: 2 and 2 as monopolies; 3 GPUs fit the cluster, not the team's part."""
    path = tmp_path / "parts.yaml"
    path.write_text(
        "kind: fairshare\nname: parts\ncluster: {gpus: 4}\nbudget: [{name: a}, {name: b}]\n"
        "workload:\n  jobs: [{job: wide, team: a, submit_s: 0, gpus: 3, run_s: 60}]\n",
        encoding="utf-8",
    )
    status, out, err = run("simulate", path, "--policies", "fifo,static-partitions")
    assert (status, err) == (0, "")
    assert "set aside by static-partitions: wide: 3 GPUs wanted, the team's part is 2" in out
    assert "set aside: wide" not in out


def test_a_run_that_was_stopped_says_so(run: Run, tmp_path: Path) -> None:
    """Two jobs that start over after every preemption, and no hysteresis: neither ever gets on."""
    path = tmp_path / "rivals.yaml"
    row = "submit_s: 0, gpus: 1, run_s: 1000, min_runtime_s: 1, resumable: false"
    path.write_text(
        "kind: fairshare\nname: rivals\ncluster: {gpus: 1}\ncontract: {hysteresis: 0}\n"
        "budget: [{name: a, weight: 1000}, {name: b, weight: 999}]\n"
        f"workload:\n  jobs: [{{job: a1, team: a, {row}}}, {{job: b1, team: b, {row}}}]\n",
        encoding="utf-8",
    )
    status, out, err = run("simulate", path, "--policies", "fair-share")
    assert (status, err) == (0, "")
    assert "fair-share: Stopped here: work is preempted again and again" in out
