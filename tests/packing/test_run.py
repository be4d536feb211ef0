"""Runs as objects, and what must hold of every run of every policy."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import gpuplan
from gpuplan.inputs.errors import InputError
from gpuplan.packing import tables
from gpuplan.packing.figures import COUNTS, UNITS
from gpuplan.packing.ledger import PARTS
from gpuplan.packing.model import SECOND, Draw, Generate, Gpus, PackingScenario, Pieces, ServedModel
from gpuplan.packing.raw import DONE
from gpuplan.packing.run import Comparison, PackRun, compare, pack, shown, warm_up
from gpuplan.packing.tasks import tasks
from packing.by_hand import PIECES, out_of_memory, preempted, run_of
from packing.strategies import PIECES as ANY_PIECES
from packing.strategies import scenarios

SHARES = ("busy", "actual_mean", "useful_mean", "fragmentation", "cold_share")


@pytest.fixture
def run() -> PackRun:
    return run_of(*preempted())


# ------------------------------------------------------------------------------- every policy


@given(scenario=scenarios(), pieces=ANY_PIECES)
@settings(max_examples=60, deadline=None)
def test_the_books_of_every_run_balance(scenario: PackingScenario, pieces: Pieces) -> None:
    run = pack(replace(scenario, policy=pieces))
    books, found = run.ledger, run.figures
    assert (np.stack(books.parts).sum(0) == books.latency).all()
    assert all((part >= 0).all() for part in books.parts)
    left = run.raw.left_us - run.problem.tasks.arrival_us
    assert (books.latency[run.raw.state == DONE] == left[run.raw.state == DONE]).all()
    assert list(found) == list(UNITS)
    json.dumps(run.report(), allow_nan=False)
    assert found["tasks_arrived"] == sum(int(found[name] or 0) for name in COUNTS)
    for name in SHARES:
        assert found[name] is None or -1e-12 <= (found[name] or 0) <= 1 + 1e-9, name
    assert (found["useful_mean"] or 0) <= (found["actual_mean"] or 0) + 1e-12
    if found["latency_mean_s"] is not None:
        assert sum(found[f"{part}_mean_s"] or 0 for part in PARTS) == pytest.approx(found["latency_mean_s"])
    for name in ("latency", "wait"):
        rising = [found[f"{name}_p{q}_s"] or 0 for q in (50, 95, 99)]
        assert rising == sorted(rising)
    for table in (run.tenants, run.priorities, run.models):
        assert int(table.tasks.sum()) == found["tasks_arrived"]
        assert int(table.done.sum()) == found["tasks_done"]


@given(scenario=scenarios(), pieces=ANY_PIECES)
@settings(max_examples=30, deadline=None)
def test_memory_over_time_is_what_each_instant_says(scenario: PackingScenario, pieces: Pieces) -> None:
    """Profiles against all microseconds; the formulas of the means against their sums; empty nodes hold no KV."""
    run = pack(replace(scenario, policy=pieces))
    end = min(run.raw.end_us, 3000)
    sums = dict.fromkeys(("reserved", "actual", "useful"), 0)
    for g in range(scenario.gpus.count):
        now = run.memory.at(g, np.arange(end + 1))
        profile = run.memory.profile(g)
        for side in (profile.first, profile.last):
            inside = side.time_us <= end
            assert (now.actual[side.time_us[inside]] == side.actual[inside]).all()
        assert (run.memory.ceiling(g, np.arange(end + 1)) >= now.actual).all()
        assert (now.actual >= now.useful).all()
        assert now.actual.max() <= scenario.gpus.memory_bytes
        for name in sums:
            sums[name] += int(getattr(now, name)[:-1].sum())
    if end == run.raw.end_us:
        rows, tasks = run.stages, scenario.tasks
        assert tasks is not None
        # a token, or all of a microsecond of service (which is the step in which progress is counted)
        ahead = 1 + -(-tasks.tokens_out // np.maximum(tasks.service_us, 1))
        most = int(((rows.end_us - rows.start_us) * ahead[rows.task]).sum())
        most *= max(m.kv_bytes_per_token for m in scenario.models)
        for name, amount in run.memory.byte_us().items():
            assert sums[name] - 1e-6 <= amount <= sums[name] + most + 1e-6


# ------------------------------------------------------------------------------- the object


def tiny() -> PackingScenario:
    """Two models of 60 of 100 bytes, one GPU, loads of 6 us, memory back after 5; tasks of 10 us at 0, 1 and 2."""
    models = tuple(ServedModel(name, 50, 50, context_bytes=0) for name in ("x", "y"))
    made = tasks([0, 1, 2], [0, 1, 0], service_us=10, tenant=["a", "b", "b"])
    return PackingScenario("tiny", Gpus(1, 100, 10 * SECOND, release_us=5), models, tasks=made)


def test_pack() -> None:
    """Both need 50 x 1.2 = 60 of 100: one model at a time; x loads 0-5 and runs two tasks 5-15, then goes for y."""
    run = pack(tiny(), "best-fit+backfill")
    assert run.check() == []
    # x: 0 runs 5-15; 2 passes 1 (backfill): 2-5 load, 5-15; 1: x goes at 15, gone at 20, y loads 20-25, 25-35
    assert run.tasks.left_s.tolist() == pytest.approx([15e-6, 35e-6, 15e-6])
    assert run.pieces == Pieces("best-fit", "backfill", "lru")
    assert repr(run) == (
        "<PackRun best-fit+backfill of 'tiny': 3 of 3 tasks done, latency mean 0.00 s, wait p95 0.00 s, "
        "0 out of memory, 1 evictions, 0 preemptions>"
    )
    # strictly, 2 comes after 1: y loads 20-25, runs 25-35; x again: gone at 40, loads 40-45, runs 45-55
    strict = pack(tiny(), "first-fit+fifo")
    assert strict.tasks.left_s.tolist() == pytest.approx([15e-6, 35e-6, 55e-6])


def test_the_scenario_names_the_policy_where_nobody_else_does() -> None:
    assert pack(tiny()).policy == "best-fit+fifo+lru"
    assert pack(replace(tiny(), policy=Pieces("worst-fit", "shortest", "lfu"))).policy == (
        "worst-fit+shortest+lfu"
    )


def test_gp_pack() -> None:
    assert gpuplan.pack(tiny(), policy="best-fit").fingerprint == pack(tiny(), "best-fit").fingerprint


def test_unknown_policies_and_scenarios() -> None:
    with pytest.raises(InputError, match=r"did you mean best-fit\?"):
        pack(tiny(), "best-fitt")
    with pytest.raises(InputError, match="must name at least one policy"):
        compare(tiny(), [])
    with pytest.raises(InputError, match="must be a scenario or a mapping"):
        pack(7, "best-fit")


def test_arrays_are_read_only(run: PackRun) -> None:
    for array in (run.stages.task, run.copies.load_us, run.breaches.gpu, run.raw.state, run.raw.left_us):
        with pytest.raises(ValueError, match="read-only"):
            array[:1] = 1


def test_the_tables_are_the_contract(run: PackRun) -> None:
    assert tuple(run.tasks.columns[: len(tables.TASK_COLUMNS)]) == tables.TASK_COLUMNS
    assert tuple(run.to_frame().columns) == (
        "task", "model", "tenant", "priority", "gpu", "stage", "start_s", "end_s", "outcome", "attempt", "gpus"
    )  # fmt: skip
    assert run.tasks.model.tolist() == ["small", "large"]
    assert run.tasks.suspended_s.tolist() == pytest.approx([20e-6, 0])


def test_the_report_is_plain() -> None:
    found = json.loads(json.dumps(run_of(*out_of_memory()).report(), allow_nan=False))
    assert found["violations"] == 0
    assert found["out_of_memory"] == 2
    assert list(found["priorities"]) == ["0"]
    assert found["tenants"][""]["rejected"] == 1


def test_equal_runs_have_equal_fingerprints(run: PackRun) -> None:
    problem, raw = preempted()
    assert run.fingerprint == run_of(problem, raw).fingerprint
    assert len(run.fingerprint) == 64
    assert PackRun(problem, "first-fit", PIECES, raw, 99.0).fingerprint == run.fingerprint
    others = [
        run_of(problem, raw, policy="best-fit"),
        run_of(problem, raw, replace(PIECES, depth=3)),
        run_of(problem, replace(raw, end_us=62)),
        run_of(problem, replace(raw, left_us=np.array([61, 35]))),
        run_of(replace(problem, scenario=replace(problem.scenario, name="other")), raw),
        run_of(replace(problem, tasks=replace(problem.tasks, tenant=np.array(["ab", ""], object))), raw),
    ]
    assert len({run.fingerprint, *(other.fingerprint for other in others)}) == 1 + len(others)


def test_what_is_only_said_is_in_no_fingerprint(run: PackRun) -> None:
    problem, raw = preempted()
    told = replace(problem.scenario, about="something", notes=("a note",))
    assert run_of(replace(problem, scenario=told), raw).fingerprint == run.fingerprint


def test_generated_tasks_repeat() -> None:
    asked = Generate(1e5, 200, Draw(1e-5), tenants=3, tokens_in=Draw(3.0), seed=7)
    scenario = replace(tiny(), tasks=None, generate=asked)
    assert pack(scenario).fingerprint == pack(replace(scenario)).fingerprint
    other = replace(scenario, generate=replace(asked, seed=8))
    assert pack(other).fingerprint != pack(scenario).fingerprint


def test_comparisons() -> None:
    both = compare(tiny(), ["first-fit+fifo", "best-fit+backfill", "first-fit+fifo"])
    assert list(both.runs) == ["first-fit+fifo", "best-fit+backfill"]
    assert both["best-fit+backfill"].policy == "best-fit+backfill"
    assert both.scenario.name == "tiny"
    assert both.table.columns.tolist() == ["policy", "figure", "value", "unit"]
    assert len(both.table) == 2 * len(UNITS)
    assert both.wide.loc["reloads"].tolist() == [1.0, 0.0]
    assert "tiny: 2 runs" in repr(both)
    assert list(compare(tiny(), "round-robin").runs) == ["round-robin"]


def test_hostile_names_are_text() -> None:
    problem, raw = preempted()
    hostile = replace(problem, scenario=replace(problem.scenario, name="<b>x</b>"))
    page = Comparison({"<i>": run_of(hostile, raw)})._repr_html_()
    assert "<b>" not in page
    assert "<i>" not in page
    assert "&lt;b&gt;x&lt;/b&gt;" in page
    assert run_of(hostile, raw)._repr_html_().count("<tr>") == 1 + len(UNITS)


@pytest.mark.parametrize(
    ("figure", "value", "text"),
    [
        ("busy", 0.5, "50.0%"),
        ("evictions", 1234, "1,234"),
        ("latency_mean_s", 0.125, "0.12"),
        ("load", None, "none"),
    ],
)
def test_shown(figure: str, value: Any, text: str) -> None:
    assert shown(figure, value) == text


def test_instants_are_read_in_seconds_and_units() -> None:
    run = run_of(*preempted())
    assert run.instant(61e-6) == 61
    assert run.instant("0.00003") == 30
    # as a float it may lie a hair above the end of the run
    long = run_of(run.problem, replace(run.raw, end_us=33))
    assert long.instant(33 / 1e6 * (1 + 1e-15)) == 33
    assert run.instant("0 s") == 0
    assert run.row_of("1") == 1


def test_warm_up() -> None:
    warm_up()
