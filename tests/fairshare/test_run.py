"""Runs as objects, and what must hold of every run of every policy."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from fairshare.by_hand import HALVES, changed, problem_of, raw_of, run_of, two_teams
from fairshare.strategies import scenarios
from gpuplan.fairshare import ledger as books
from gpuplan.fairshare.figures import UNITS
from gpuplan.fairshare.jobs import jobs
from gpuplan.fairshare.model import NEVER, FairshareScenario, Pool
from gpuplan.fairshare.policies import POLICIES
from gpuplan.fairshare.run import Comparison, Run, compare, shown, simulate
from gpuplan.fairshare.tables import STRETCH_COLUMNS
from gpuplan.inputs.errors import InputError


@pytest.fixture
def run() -> Run:
    return run_of(*two_teams())


def tiny() -> FairshareScenario:
    made = jobs(["x", "y", "z"], [0, 0, 5], [4, 4, 2], [100, 50, 20], team=["a", "b", "a"], minimum_s=10)
    return FairshareScenario("tiny", (Pool(1, 4),), HALVES, jobs=made)


# ------------------------------------------------------------------------------- every policy


@pytest.mark.parametrize("policy", POLICIES)
@given(scenario=scenarios())
@settings(max_examples=40, deadline=None)
def test_every_run_is_legal_and_its_books_balance(policy: str, scenario: FairshareScenario) -> None:
    run = simulate(scenario, policy)
    assert run.check() == []
    kept = run.ledger
    held = books.occupied(run.problem, run.raw, kept)
    assert held["occupied"] == held["useful"] + held["lost"]
    asked = books.requested(run.problem, run.raw, kept)
    assert asked["requested"] == asked["useful"] + asked["outstanding"]
    # per job: what is finished is all done, of nothing more is done than was asked
    done = kept.state == books.S_FINISHED
    assert (kept.kept_s[done] == run.problem.jobs.run_s[done]).all()
    assert (kept.kept_s <= run.problem.jobs.run_s).all()
    _figures_hold(run)


def _figures_hold(run: Run) -> None:
    found = run.figures
    assert list(found) == list(UNITS)
    json.dumps(run.report(), allow_nan=False)
    counts = {name: int(value or 0) for name, value in found.items() if name.startswith("jobs_")}
    parts = ("jobs_finished", "jobs_outstanding", "jobs_set_aside")
    assert counts["jobs_submitted"] == sum(counts[part] for part in parts)
    waits = [found[f"wait_p{q}_s"] for q in (50, 90, 99)]
    assert waits == sorted(waits, key=lambda wait: -1 if wait is None else wait)
    for share in (
        "availability",
        "occupancy",
        "impact",
        "delivered_share",
        "unallocated_share",
        "lost_share",
        "jain",
    ):
        assert found[share] is None or 0 <= found[share] <= 1 + 1e-12, share
    if found["occupancy"] is not None:
        assert found["goodput"] <= found["occupancy"]
    assert found["mean_bounded_slowdown"] is None or found["mean_bounded_slowdown"] >= 1
    table = run.teams
    assert int(table.jobs.sum()) == counts["jobs_submitted"]
    assert int(table.preemptions.sum()) == int(found["preemptions"] or 0) + int(
        found["shut_downs_by_hand"] or 0
    )
    rows = run.stretches
    held = int((run.problem.jobs.gpus[rows.job] * (rows.end_s - rows.start_s)).sum())
    assert int(run.hours.allocated.sum() + run.hours.unallocated.sum()) == held
    assert (run.hours.allocated <= run.hours.wanted).all()


@pytest.mark.parametrize("policy", POLICIES)
@given(scenario=scenarios())
@settings(max_examples=15, deadline=None)
def test_there_is_a_sentence_for_every_job_at_every_time(policy: str, scenario: FairshareScenario) -> None:
    run = simulate(scenario, policy)
    for t in {0, run.end_s // 3, run.end_s // 2, run.end_s}:
        assert int(run.shares_at(t).running_gpus.sum()) <= run.problem.gpus
        for name in run.problem.jobs.name:
            said = run.why(name, t)
            assert said.startswith(name)
            assert said.endswith(".")


# ------------------------------------------------------------------------------- the object


def test_simulate() -> None:
    """Strict: x 0-100, y 100-150, z 150-170; waits 0, 100, 145."""
    run = simulate(tiny(), "fifo")
    assert run.jobs.wait_s.tolist() == [0, 100, 145]
    # held 4 x 150 + 2 x 20 = 640 of 680; each is owed 2 x 170 = 340; a had 440, b 200: (340 + 200) / 680
    assert repr(run) == (
        "<Run fifo of 'tiny': 3 of 3 jobs finished, wait p90 145 s, occupancy 94.1%, goodput 94.1%, "
        "delivered 79.4%>"
    )


def test_unknown_policies_and_scenarios() -> None:
    with pytest.raises(InputError, match=r"must be one of .*; did you mean fifo\?"):
        simulate(tiny(), "fifoo")
    with pytest.raises(InputError, match="must name at least one policy"):
        compare(tiny(), [])
    with pytest.raises(InputError, match="must be a scenario or a mapping"):
        simulate(7, "fifo")


def test_the_table_of_stretches_is_the_contract(run: Run) -> None:
    table = run.to_frame()
    assert tuple(table.columns[: len(STRETCH_COLUMNS)]) == STRETCH_COLUMNS
    assert table.job.tolist() == ["long", "fill", "quick", "next", "long", "fill"]
    assert table.state.tolist() == ["preempted", "preempted", "finished", "finished", "finished", "running"]
    assert table.start_s.tolist() == [0, 50, 300, 310, 500, 600]
    assert table.end_s.tolist() == [300, 310, 500, 600, 810, 1000]
    assert table.node.tolist() == [0, 1, 0, 1, 0, 1]
    assert table.nodes.tolist() == [1] * 6


def test_arrays_are_read_only(run: Run) -> None:
    for name in ("job", "start_s", "outcome", "place_gpus"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(run.stretches, name)[0] = 1


def test_the_report_is_plain(run: Run) -> None:
    found = json.loads(json.dumps(run.report(), allow_nan=False))
    assert list(found["teams"]) == ["a", "b"]
    assert found["teams"]["a"]["delivered_share"] == 0.755
    assert found["violations"] == 0
    assert found["preemptions"] == 2


def test_equal_runs_have_equal_fingerprints(run: Run) -> None:
    problem, raw = two_teams()
    assert run.fingerprint == run_of(problem, raw).fingerprint
    assert len(run.fingerprint) == 64
    others = [
        run_of(problem, raw, "easy"),
        run_of(problem, changed(raw, kept_s=lambda kept: kept - (kept == 390))),
        run_of(problem, replace(raw, end_s=1001)),
        run_of(problem, replace(raw, set_aside={4: "a reason"})),
    ]
    assert len({run.fingerprint, *(other.fingerprint for other in others)}) == 5


def test_seconds_are_in_no_fingerprint(run: Run) -> None:
    problem, raw = two_teams()
    assert Run(problem, "fair-share", raw, 99.0).fingerprint == run.fingerprint


def test_comparisons(run: Run) -> None:
    both = compare(tiny(), ["fifo", "easy", "fifo"])
    assert list(both.runs) == ["fifo", "easy"]
    assert both["easy"].policy == "easy"
    assert both.scenario.name == "tiny"
    assert len(both.table) == 2 * len(UNITS)
    assert both.table.columns.tolist() == ["policy", "figure", "value", "unit"]
    assert both.wide.loc["wait_p90_s"].tolist() == [145.0, 145.0]
    assert "tiny: 2 runs" in repr(both)
    assert list(compare(tiny(), "fifo").runs) == ["fifo"]


def test_hostile_names_are_text() -> None:
    problem = problem_of(jobs(["<script>"], [0], [1], [1], team="a"), name="<b>x</b>")
    page = Comparison({"fifo": run_of(problem, raw_of(problem, [], 0), "fifo")})._repr_html_()
    assert "<b>" not in page
    assert "&lt;b&gt;x&lt;/b&gt;" in page


@pytest.mark.parametrize(
    ("figure", "value", "text"),
    [
        ("occupancy", 0.5, "50.0%"),
        ("preemptions", 1234, "1,234"),
        ("mean_wait_s", 0.125, "0.12"),
        ("jain", None, "none"),
    ],
)
def test_shown(figure: str, value: Any, text: str) -> None:
    assert shown(figure, value) == text


def test_work_without_an_end() -> None:
    """Outstanding work beyond all horizons is counted, and does not wrap."""
    problem = problem_of(jobs(["x"], [0], [4], [NEVER // 4], team="a", minimum_s=1), until_s=100)
    run = run_of(problem, raw_of(problem, [(0, 0, 100, 3, {0: 4}, 0, 100, True, 1)], 100))
    assert run.check() == []
    assert run.figures["jobs_outstanding"] == 1
    assert books.requested(problem, run.raw, run.ledger)["outstanding"] == 4 * (NEVER // 4 - 100)
    assert np.isfinite(run.figures["mean_bounded_slowdown"] or 0)
