"""Charts of runs: areas are the run's own GPU-time, names stay text, empty runs say so, sizes stay within bounds."""

import json
from dataclasses import replace
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pytest
from altair.utils.schemapi import validate_jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan import gantt as drawing
from gpuplan.fairshare import charts
from gpuplan.fairshare.charts import clock, colours, gantt_data, lanes, live, studies, waits
from gpuplan.fairshare.charts.account import account, account_columns, ratio_columns
from gpuplan.fairshare.hours import integrals
from gpuplan.fairshare.jobs import Jobs, jobs
from gpuplan.fairshare.model import DAY, HOUR, NEVER, BudgetNode, Drain, FairshareScenario, Pool
from gpuplan.fairshare.problem import Problem, compile_problem
from gpuplan.fairshare.ratios import ratios_over
from gpuplan.fairshare.raw import FINISHED, PREEMPTED, RUNNING, RawRun, Stretches
from gpuplan.fairshare.run import Run

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "=1+1",
    "../../etc/passwd",
    "'] + alert(1) + ['",
    '"quoted" \\ back',
    "عربي نص",
    "__proto__",
    "a" * 200,
)

TEAMS = (BudgetNode("a", 3.0), BudgetNode("b", 1.0))


def problem_of(
    rows: Jobs, *, pools: tuple[Pool, ...] = (Pool(2, 4),), budget: Any = TEAMS, **options: Any
) -> Problem:
    scenario = FairshareScenario("small", pools, budget, window_s=DAY, jobs=rows, **options)
    # What the border decides (which jobs can run) is not at stake here.
    return compile_problem(scenario)


def stretches(rows: list[tuple[int, int, int, bool, int, int, list[tuple[int, int]]]]) -> Stretches:
    """Stretches from (job, start, end, allocated, protected until, outcome, [(node, GPUs)])."""
    job, start, end, allocated, until, outcome = ([row[column] for row in rows] for column in range(6))
    places = [(number, node, gpus) for number, row in enumerate(rows) for node, gpus in row[6]]
    columns = np.array(places, np.int64).reshape(-1, 3).T
    length = np.array(end, np.int64) - np.array(start, np.int64)
    return Stretches(
        np.array(job, np.int64),
        np.array(start, np.int64),
        np.array(end, np.int64),
        np.zeros(len(rows), np.int64),
        length,
        np.array(allocated, bool),
        np.array(until, np.int64),
        np.array(outcome, np.int8),
        *(column.copy() for column in columns),
    )


def run_of(
    problem: Problem, rows: Stretches, end_s: int, policy: str = "fair-share", repairs: Any = ()
) -> Run:
    begun, done = (np.array([row[at] for row in repairs], np.int64) for at in (0, 1))
    return Run(problem, policy, RawRun(rows, end_s, begun, done, {}), 0.0)


@pytest.fixture
def small() -> Run:
    """Two nodes of 4 GPUs, teams a (3/4) and b (1/4), 10 hours.

    j0 of a: 4 GPUs on node 0 from 0 to 4 h, protected for 2 h, preempted; again on node 1 from 6 h on.
    j1 of b: 2 GPUs on node 1 from 0 to 3 h, unallocated. j2 of b: 8 GPUs from 4 to 6 h, protected throughout.
    j3 of a waits from 5 h on and never starts. Node 0 is in repair from 7 to 9 h.
    """
    rows = jobs(
        ["j0", "j1", "j2", "j3"],
        [0, 0, 3 * HOUR, 5 * HOUR],
        [4, 2, 8, 1],
        [8 * HOUR, 3 * HOUR, 2 * HOUR, HOUR],
        team=["a", "b", "b", "a"],
        minimum_s=[2 * HOUR, 0, 8 * HOUR, 600],
    )
    problem = problem_of(rows, drains=(Drain(0, 6 * HOUR, 2 * HOUR),), until_s=10 * HOUR)
    h = HOUR
    ran = stretches(
        [
            (0, 0, 4 * h, True, 2 * h, PREEMPTED, [(0, 4)]),
            (1, 0, 3 * h, False, 0, FINISHED, [(1, 2)]),
            (2, 4 * h, 6 * h, True, 12 * h, FINISHED, [(0, 4), (1, 4)]),
            (0, 6 * h, 10 * h, True, 8 * h, RUNNING, [(1, 4)]),
        ]
    )
    return run_of(problem, ran, 10 * h, repairs=[(7 * h, 9 * h)])


def nothing(n_jobs: int = 0, gpus: int = 1) -> Run:
    """No jobs, or so many that are all too large."""
    names = [f"j{i}" for i in range(n_jobs)]
    rows = jobs(names, [0] * n_jobs, [gpus] * n_jobs, [60] * n_jobs, team="a")
    return run_of(problem_of(rows), stretches([]), 0)


def rows_of(columns: dict[str, list[Any]], *names: str) -> set[tuple[Any, ...]]:
    return set(zip(*(columns[name] for name in names), strict=True))


# ------------------------------------------------------------------------------- Gantt


def test_a_gantt_cuts_bars_where_protection_ends_by_hand(small: Run) -> None:
    palette, axis = colours.palette_of(small.problem), clock.clock_of(small)
    bars = gantt_data.picture(small, palette, axis).bars
    assert rows_of(bars, "job", "state", "x", "x2", "y", "y2", "cut") == {
        ("j0", lanes.PROTECTED, 0, 2, 0, 4, 0),
        ("j0", lanes.PAST_MINIMUM, 2, 4, 0, 4, 1),  # the edge: preempted after 4 h
        ("j1", lanes.UNALLOCATED, 0, 3, 4, 6, 0),
        ("j2", lanes.PROTECTED, 4, 6, 0, 8, 0),  # two whole nodes are one bar
        ("j0", lanes.PROTECTED, 6, 8, 4, 8, 0),
        ("j0", lanes.PAST_MINIMUM, 8, 10, 4, 8, 0),
        ("repair", lanes.IN_REPAIR, 7, 9, 0, 4, 0),
    }


def test_a_policy_that_never_interrupts_draws_no_stripes(small: Run) -> None:
    raw = small.raw
    plain = replace(
        raw.stretches,
        allocated=np.ones(4, bool),
        protected_until_s=raw.stretches.start_s,
        outcome=np.array([FINISHED, FINISHED, FINISHED, RUNNING], np.int8),
    )
    run = Run(small.problem, "fifo", replace(raw, stretches=plain), 0.0)
    bars = gantt_data.picture(run, colours.palette_of(run.problem), clock.clock_of(run)).bars
    assert set(bars["state"]) == {lanes.PROTECTED, lanes.IN_REPAIR}


@st.composite
def random_runs(draw: st.DrawFn) -> Run:
    """Jobs of whole nodes and parts of them, first fit by hand, on three nodes of 4 GPUs."""
    free_at = np.zeros((3, 4), np.int64)
    found, names, submit, gpus, run_s, team, minimum = [], [], [], [], [], [], []
    for number in range(draw(st.integers(0, 12))):
        size = draw(st.integers(1, 4))
        node = draw(st.integers(0, 2))
        length = draw(st.integers(1, 50_000))
        start = int(np.sort(free_at[node])[size - 1])
        taken = np.argsort(free_at[node], kind="stable")[:size]
        free_at[node, taken] = start + length
        protected = draw(st.integers(0, 20_000))
        end = start + length
        found.append((number, start, end, protected > 0, start + protected, FINISHED, [(node, size)]))
        names.append(f"j{number}")
        submit.append(0)
        gpus.append(size)
        run_s.append(length)
        team.append(draw(st.sampled_from(["a", "b"])))
        minimum.append(protected)
    found.sort(key=lambda row: (row[1], row[0]))
    rows = jobs(names, submit, gpus, run_s, team=team, minimum_s=minimum)
    return run_of(problem_of(rows, pools=(Pool(3, 4),)), stretches(found), int(free_at.max()))


def area(columns: dict[str, list[Any]], unit_s: int) -> float:
    """GPU-seconds under bars, repairs left out."""
    return sum(
        (x2 - x) * (y2 - y) * unit_s
        for x, x2, y, y2, state in zip(*(columns[k] for k in ("x", "x2", "y", "y2", "state")), strict=True)
        if state != lanes.IN_REPAIR
    )


@settings(deadline=None, max_examples=60)
@given(random_runs())
def test_bars_hold_the_gpu_time_of_the_run_and_never_overlap(run: Run) -> None:
    palette, axis = colours.palette_of(run.problem), clock.clock_of(run)
    rows = run.raw.stretches
    occupied = int((run.problem.jobs.gpus[rows.job] * (rows.end_s - rows.start_s)).sum())
    assert area(gantt_data.picture(run, palette, axis).bars, axis.unit_s) == pytest.approx(occupied, abs=5)
    stretch, low, high = lanes.lanes(run)
    edges = sorted({*rows.start_s.tolist(), *rows.end_s.tolist()})
    for instant in edges:
        on = (rows.start_s[stretch] <= instant) & (instant < rows.end_s[stretch])
        lanes_now = [lane for a, b in zip(low[on], high[on], strict=True) for lane in range(a, b)]
        assert len(lanes_now) == len(set(lanes_now)) <= 12


@settings(deadline=None, max_examples=60)
@given(random_runs(), st.sampled_from([0, 1, 2, 3]), st.integers(1, 40))
def test_cells_are_exact_integrals(run: Run, rows: int, most: int) -> None:
    palette = colours.palette_of(run.problem)
    edges = clock.edges_of(run.end_s, most)
    amounts, heights = gantt_data.cell_seconds(run, palette, edges, gantt_data.rows_of_nodes(run, rows))
    assert heights.sum() == run.problem.gpus
    assert amounts.min(initial=0) >= 0
    assert (amounts.sum(axis=1) <= heights[:, None] * np.diff(edges)).all()
    ran = run.raw.stretches
    for team in range(2):
        mine = run.problem.team[ran.job] == team
        gpus = run.problem.jobs.gpus[ran.job[mine]]
        expected = int((gpus * (ran.end_s - ran.start_s)[mine]).sum())
        assert amounts[:, team:-1:2].sum() == expected
    free = ~ran.allocated
    expected = int((run.problem.jobs.gpus[ran.job] * (ran.end_s - ran.start_s))[free].sum())
    assert amounts[:, 4:6].sum() == expected  # groups 2, states 3: the last two slices before the repairs


def test_repairs_are_cells_too(small: Run) -> None:
    palette = colours.palette_of(small.problem)
    edges = clock.edges_of(small.end_s, 10)
    amounts, _ = gantt_data.cell_seconds(small, palette, edges, gantt_data.rows_of_nodes(small, 2))
    assert amounts[0, -1].tolist() == [0] * 7 + [4 * HOUR] * 2 + [0]
    assert amounts[1, -1].sum() == 0


def many(n: int) -> Run:
    """So many jobs of 15 teams, one after the other on each of 512 GPUs."""
    rng = np.random.default_rng(0)
    budget = tuple(
        BudgetNode(f"programme {p}", 1.0 + p, tuple(BudgetNode(f"team {t}") for t in range(5)))
        for p in range(3)
    )
    teams = [f"programme {p}/team {t}" for p in range(3) for t in range(5)]
    per = n // 512
    length = rng.integers(600, 20_000, (512, per))
    end = length.cumsum(axis=1)
    start = end - length
    order = np.argsort(start.ravel(), kind="stable")
    rows = jobs(
        np.arange(512 * per).astype(str).tolist(),
        start.ravel()[order].tolist(),
        [1] * (512 * per),
        length.ravel()[order].tolist(),
        team=[teams[t] for t in rng.integers(0, 15, 512 * per)],
        minimum_s=np.where(rng.random(512 * per) < 0.2, 0, 3600).tolist(),
    )
    problem = problem_of(rows, pools=(Pool(64, 8),), budget=budget)
    node = np.repeat(np.arange(512) // 8, per)[order]
    s = rows.submit_s
    made = Stretches(
        np.arange(len(rows)),
        s,
        s + rows.run_s,
        np.zeros(len(rows), np.int64),
        rows.run_s,
        rows.minimum_s > 0,
        s + rows.minimum_s,
        np.zeros(len(rows), np.int8),
        np.arange(len(rows)),
        node,
        np.ones(len(rows), np.int64),
    )
    return run_of(problem, made, int(end.max()))


def test_100_000_jobs_are_drawn_below_a_megabyte_and_say_how() -> None:
    run = many(100_352)
    chart = charts.gantt_chart(run).to_dict()
    assert len(json.dumps(chart)) < 1_000_000
    bars = chart["datasets"]["run_bars"]
    assert 500 < len(bars) <= gantt_data.MAX_CELLS
    said = " ".join(chart["title"]["subtitle"])
    assert "100,352 jobs in 100,352 stretches" in said
    assert "exact means" in said
    drawn = sum((bar["x2"] - bar["x"]) * (bar["y2"] - bar["y"]) for bar in bars) * DAY
    assert drawn == pytest.approx(run.problem.jobs.run_s.sum(), rel=1e-3)
    assert len(json.dumps(charts.allocation_chart(run).to_dict())) < 1_000_000
    data = charts.live_data(run, run)
    assert len(json.dumps(data, separators=(",", ":"))) < 200_000


# ------------------------------------------------------------------------------- account


def test_allocation_and_owed_by_hand(small: Run) -> None:
    """Team a is entitled to 6 of 8 GPUs, b to 2.

    a runs 4 GPUs in hours 0-3 and 6-9 and always wants j0 (4 GPUs); j3 (1 GPU) from hour 5 on: owed 4 and then 5.
    b runs j1 (unallocated, so not owed) in hours 0-2 and j2 (8 GPUs) in hours 4-5, wanted from hour 3 on: owed 2 in
    hours 3, 4, 5.
    """
    palette, axis = colours.palette_of(small.problem), clock.clock_of(small)
    columns = account_columns(account(small, palette, 100), axis)
    assert columns["a0"][:10] == [4, 4, 4, 4, 0, 0, 4, 4, 4, 4]
    assert columns["o0"][:10] == [4, 4, 4, 4, 4, 5, 5, 5, 5, 5]
    assert columns["a1"][:10] == [0, 0, 0, 0, 8, 8, 0, 0, 0, 0]
    assert columns["b1"][:10] == [2, 2, 2, 0, 8, 8, 0, 0, 0, 0]
    assert columns["o1"][:10] == [0, 0, 0, 2, 2, 2, 0, 0, 0, 0]


@settings(deadline=None, max_examples=40)
@given(random_runs(), st.integers(1, 30))
def test_the_account_adds_up_to_the_figures(run: Run, most: int) -> None:
    palette = colours.palette_of(run.problem)
    found = account(run, palette, most)
    assert found.allocated.sum(axis=1).tolist() == run.owed.delivered
    assert found.owed.sum(axis=1) == pytest.approx([float(value) for value in run.owed.owed])
    assert len(found.edges) - 1 <= max(1, most)


def test_ratios_are_those_that_sort_the_queue(small: Run) -> None:
    palette = colours.palette_of(small.problem)
    edges = np.array([0, 5 * HOUR, 10 * HOUR])
    columns = ratio_columns(small, palette, edges, clock.clock_of(small))
    expected = ratios_over(small, edges)[small.problem.tree.leaves]
    assert [columns["r0"], columns["r1"]] == [pytest.approx(row, abs=6e-4) for row in expected.tolist()]
    assert columns["r0"][1] > 0


# ------------------------------------------------------------------------------- waits


def test_a_curve_of_waits_bounds_what_is_not_known(small: Run) -> None:
    """Waits: j0 0, j1 0, j2 1 h, j3 5 h so far: half start at once, 3 of 4 within 1 h, 4 of 4 if j3 does now."""
    columns = waits.curve_columns([small], ["p"], debug=False)
    at = dict(zip(columns["x"], zip(columns["high"], columns["low"], strict=True), strict=True))
    assert at[waits.ZERO_AT] == (50, 50)
    assert at[3600] == (75, 75)
    assert at[5 * 3600] == (100, 75)
    debug = waits.curve_columns([small], ["p"], debug=True)
    assert (debug["high"][-1], debug["low"][-1]) == (100, 0)


def test_a_percentile_is_hollow_where_a_wait_had_not_ended(small: Run) -> None:
    columns = waits.group_columns([small], ["p"], "debug")
    assert rows_of(columns, "group", "p50", "p50_bound", "jobs") == {
        ("debug jobs", 5 * HOUR, 1, 1),
        ("other jobs", waits.ZERO_AT, 0, 3),  # p50 of 0, 0, 1 h by index floor(.5 x 3) = 1
    }


def test_long_curves_stay_exact_at_fewer_points() -> None:
    values = np.sort(np.random.default_rng(1).integers(0, 10**6, 5000))
    at = waits.places(values, 10**6)
    assert len(at) <= waits.MAX_POINTS + 2
    assert at[0] == 0
    assert at[-1] == 10**6


# ------------------------------------------------------------------------------- studies


def test_intervals_by_hand() -> None:
    """1, 2, 3: mean 2, s = 1, t(2) = 4.303: 2 ± 4.303 / sqrt(3) = ± 2.4844; one value has no interval.

    A wait cannot be negative, so its interval ends at 0; a change can.
    """
    table = pd.DataFrame({"cap": [1, 1, 1, 2], "policy": "p", "wait": [1.0, 2.0, 3.0, 7.0]})
    table["change"] = table["wait"] - 2
    columns = studies.intervals(table, "cap", "wait", by="policy")
    assert columns["mean"] == [2, 7]
    assert columns["low"] == [0, 7]
    assert studies.intervals(table, "cap", "change")["low"] == [pytest.approx(-2.4844, abs=1e-3), 5]
    assert columns["high"] == [pytest.approx(2 + 2.4844, abs=1e-3), 7]
    assert studies.intervals(table, "cap", "wait", interval="range")["low"] == [1, 7]


def test_a_study_is_drawn_for_numbers_and_words() -> None:
    table = pd.DataFrame({"cap": [1, 2] * 3, "rule": ["x", HOSTILE[1]] * 3, "policy": "p", "wait": range(6)})
    for x in ("cap", "rule"):
        check(charts.study_chart(table, x, "wait", log_y=x == "cap", title="Waits"))


# ------------------------------------------------------------------------------- all of them


def check(chart: Any, *, valid: bool = False) -> str:
    """The picture of a chart: Vega-Lite compiles it, and it has no outside address but the name of the language."""
    vl_convert = pytest.importorskip("vl_convert", reason="vl-convert is not installed")
    found = chart.to_dict()
    if valid:
        root = alt.TopLevelMixin.__subclasses__()[0]._rootschema
        validate_jsonschema(found, {"$ref": "#/definitions/TopLevelSpec"}, rootschema=root)
    text = json.dumps(found, ensure_ascii=False)
    assert text.count("://") == text.count(drawing.SCHEMA)
    return str(vl_convert.vegalite_to_svg(found))


def everything(left: Run, right: Run) -> dict[str, Any]:
    spec, data = charts.live_spec(left.problem), charts.live_data(left, right)
    from gpuplan.gantt.offline import OfflineChart

    return {
        "gantt": charts.gantt_chart(left),
        "dark": charts.gantt_chart(left, mode="dark"),
        "allocation": charts.allocation_chart(left),
        "waits": charts.wait_chart([left, right]),
        "by team": charts.wait_chart([left, right], "team"),
        "by size": charts.wait_chart([left, right], "size"),
        "by kind": charts.wait_chart(left, "debug"),
        "delivered": charts.delivered_chart([left, right]),
        "pyramid": charts.pyramid_chart([left, right]),
        "live": OfflineChart(drawing.inline(spec, data)),
    }


#: Charts of the left run alone.
SINGLE = ("gantt", "dark", "allocation", "by kind")


def test_every_chart_is_valid_and_says_what_it_is_of(small: Run) -> None:
    right = Run(small.problem, "easy", small.raw, 0.0)
    for name, chart in everything(small, right).items():
        # One of each kind against the schema, which takes seconds; Vega-Lite compiles them all.
        valid = name in ("gantt", "by team", "pyramid", "allocation")
        assert "easy" in check(chart, valid=valid) or name in SINGLE, name
        if name != "live":
            title = chart.to_dict()["title"]
            assert "small: 8 GPUs on 2 nodes of 4, 2 teams" in " ".join(title["subtitle"]), name


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (nothing(), "no jobs"),
        (nothing(1, gpus=9), "the job is set aside: 9 GPUs wanted, 8 exist"),
        (nothing(3, gpus=9), "all 3 jobs are set aside: 9 GPUs wanted, 8 exist"),
        (nothing(2), "none of 2 jobs started"),
    ],
)
def test_an_empty_run_says_why(run: Run, says: str) -> None:
    for name, chart in everything(run, run).items():
        if name in ("gantt", "waits", "live"):
            check(chart)
        assert says in json.dumps(chart.to_dict()), name


def test_one_job_alone() -> None:
    rows = jobs(["only"], [0], [1], [60], team="b", minimum_s=60)
    ran = stretches([(0, 0, 60, True, 60, FINISHED, [(1, 1)])])
    run = run_of(problem_of(rows), ran, 60)
    for name, chart in everything(run, run).items():
        if name in ("gantt", "by size", "live"):
            assert "only" in check(chart) or name != "gantt"


def test_hostile_names_stay_text() -> None:
    budget = tuple(BudgetNode(name) for name in HOSTILE)
    n = len(HOSTILE)
    rows = jobs(list(HOSTILE), range(n), [8] * n, [7200] * n, team=list(HOSTILE), minimum_s=[600] * n)
    problem = problem_of(rows, budget=budget)
    ran = stretches(
        [(k, 7200 * k, 7200 * (k + 1), True, 7200 * k + 600, FINISHED, [(0, 4), (1, 4)]) for k in range(n)]
    )
    run = run_of(problem, ran, 7200 * n)
    for name, chart in everything(run, run).items():
        if name in ("gantt", "allocation", "delivered", "live"):
            picture = check(chart)
            assert "<script" not in picture, name
            assert "<img" not in picture, name
        text = json.dumps(chart.to_dict())
        assert "</script" not in text, name
    page = charts.gantt_chart(run).to_html(inline=True)
    assert "</script><script>alert" not in page


def test_teams_have_colours_of_their_own_up_to_a_number() -> None:
    budget = tuple(BudgetNode(f"user{k}") for k in range(60))
    rows = jobs(["x", "y"], [0, 0], [8, 1], [60, 60], team=["user41", "user7"])
    palette = colours.palette_of(problem_of(rows, budget=budget))
    assert len(palette) == colours.MAX_TEAMS
    assert {"user41", "user7", f"{60 - colours.MAX_TEAMS + 1} other teams"} <= set(palette.labels)
    assert sum(palette.members) == 60
    few = colours.palette_of(problem_of(rows, budget=tuple(BudgetNode(f"user{k}") for k in (7, 41))))
    assert len(set(few.colours)) == 2


@given(st.integers(1, 3 * 365 * DAY), st.integers(1, 300))
def test_bins_are_few_and_reach_the_end(end_s: int, most: int) -> None:
    edges = clock.edges_of(end_s, most)
    assert edges[0] == 0
    assert edges[-1] == end_s
    assert len(edges) - 1 <= most
    assert (np.diff(edges) > 0).all()


def test_the_live_spec_stays_when_shares_and_policies_change(small: Run) -> None:
    scenario = replace(small.scenario, budget=(BudgetNode("a", 1.0), BudgetNode("b", 9.0)), window_s=2 * DAY)
    other = compile_problem(scenario)
    assert charts.live_spec(other) == charts.live_spec(small.problem)
    right = Run(other, "easy", small.raw, 0.0)
    data = charts.live_data(small, right)
    wanted = {name for name in _named(charts.live_spec(small.problem))}
    assert wanted <= set(data)
    for name, columns in data.items():
        assert len({len(values) for values in columns.values()}) == 1, name


def _named(spec: Any) -> set[str]:
    """Names of the data sets that a spec refers to."""
    if isinstance(spec, dict):
        data = spec.get("data")
        mine = {data["name"]} if isinstance(data, dict) and "name" in data else set()
        return mine.union(*(_named(entry) for entry in spec.values()))
    if isinstance(spec, list):
        return set().union(*(_named(entry) for entry in spec))
    return set()


def test_a_run_without_an_end_has_an_axis(small: Run) -> None:
    assert small.problem.until_s < NEVER
    rows = jobs(["x"], [0], [1], [60], team="a")
    assert live.live_clock(problem_of(rows)).unit == "hours"


def test_integrals_of_hours_are_what_bins_are_made_of(small: Run) -> None:
    rows = small.raw.stretches
    gpus = small.problem.jobs.gpus[rows.job]
    found = integrals(rows.start_s, rows.end_s, gpus, np.zeros(4, np.int64), 1, small.end_s, HOUR)
    palette = colours.palette_of(small.problem)
    both = account(small, palette, 100)
    assert (both.allocated + both.unallocated).sum(axis=0).tolist() == found[0].tolist()
