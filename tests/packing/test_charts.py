"""Charts of packing runs: their numbers are the run's own figures, names stay text, sizes stay within bounds."""

import json
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pytest
from altair.utils.schemapi import validate_jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan import gantt as drawing
from gpuplan.loading import load
from gpuplan.packing import charts
from gpuplan.packing.charts import clock, colours, fit_data, gantt_data, memory_data, split, throughput
from gpuplan.packing.ledger import PARTS
from gpuplan.packing.model import GIB, SECOND, Contention, Gpus, Int64, PackingScenario, Pieces, ServedModel
from gpuplan.packing.problem import compile_problem
from gpuplan.packing.raw import LOAD, OUT_OF_MEMORY, RESTORE, RUN, SAVE
from gpuplan.packing.run import PackRun, pack
from gpuplan.packing.tasks import tasks
from packing.by_hand import out_of_memory, preempted, problem_of, raw_of, run_of
from packing.strategies import PIECES, scenarios

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "=1+1",
    "'] + alert(1) + ['",
    '"quoted" \\ back',
    "عربي نص",
    "__proto__",
    "R run (plain)",
    "a" * 200,
)


def run_by(scenario: PackingScenario, pieces: Pieces) -> PackRun:
    from gpuplan.packing.engine import run

    problem = compile_problem(scenario)
    return run_of(problem, run(problem, pieces), pieces, pieces.placement)


@cache
def shipped(count: int, policy: str = "best-fit", **changes: Any) -> PackRun:
    """So many tasks of the shipped node with four GPUs."""
    scenario = load("four-gpus").replace({"tasks.generate.count": count, **changes})
    return pack(scenario, policy)


def rows_of(columns: dict[str, list[Any]], *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(columns[name] for name in names), strict=True))


def palette_of(run: PackRun) -> colours.Palette:
    return colours.palette_of(run.problem)


# ------------------------------------------------------------------------------- memory


def test_memory_by_hand() -> None:
    """The run of `preempted`: bytes, not GiB.

    Small takes 45 and 10 tokens of KV, from 4 us on; at 10 us 6 of 20 us are done: 3 more tokens, frozen until 16;
    gone at 21, when 3 bytes are left asleep and 70 of large begin to load. At 41 large is gone, small loads.
    """
    run = run_of(*preempted())
    (panel,) = memory_data.memory_picture(run, palette_of(run), panels=8, exact=100, bin_us=1).panels
    actual = dict(zip(panel.time_us[::2].tolist(), (panel.actual[::2] * GIB).round().tolist(), strict=True))
    assert {t: actual[t] for t in (0, 4, 10, 16, 21, 28, 41)} == {
        0: 45, 4: 55, 10: 58, 16: 45, 21: 73, 28: 73, 41: 45,
    }  # fmt: skip
    at = panel.time_us.tolist().index(16) + 1  # the step at 16: its second row
    assert round(panel.reserved[at] * GIB) == 40 + 70
    weights = (panel.weights * GIB).round()
    assert weights[:, panel.time_us.tolist().index(21) + 1].tolist() == [0, 70]
    assert round(panel.peak.max() * GIB) == run.memory.profile(0).peak


def lengths(panel: memory_data.Panel) -> Int64:
    return np.diff(panel.time_us)


@settings(deadline=None, max_examples=30)
@given(scenarios(), PIECES, st.integers(1, 3), st.sampled_from([1, 7, 20]))
def test_memory_over_bins_holds_what_the_figures_hold(
    scenario: PackingScenario, pieces: Pieces, panels: int, bin_us: int
) -> None:
    run = run_by(scenario, pieces)
    if run.raw.end_us == 0:
        return
    drawn = memory_data.memory_picture(run, palette_of(run), panels=panels, exact=0, bin_us=bin_us)
    gpus = run.scenario.gpus
    whole = gpus.count * gpus.memory_bytes * run.raw.end_us
    summed = {"reserved": 0.0, "actual": 0.0}
    for panel in drawn.panels:
        n = panel.last - panel.first + 1
        for name in summed:
            values = getattr(panel, name)[::2] * GIB
            summed[name] += n * float((values * np.diff(panel.time_us)[::2]).sum())
    # lines are straight where tokens are whole and count from the next whole microsecond on: a served stage may differ
    # by one token while it lasts, and by all its tokens for one microsecond
    stages, tasks = run.raw.stages, run.problem.tasks
    served = np.flatnonzero(stages.kind == RUN)
    per_token = np.array([model.kv_bytes_per_token for model in run.scenario.models])
    lasted = (np.minimum(stages.end_us, run.raw.end_us) - stages.start_us)[served]
    of = stages.task[served]
    slack = (per_token[tasks.model[of]] * (lasted + tasks.tokens_out[of])).sum() / whole
    for name, value in summed.items():
        free = slack if name == "actual" else 0.0
        assert value / whole == pytest.approx(
            run.figures[f"{name}_mean"], rel=1e-6, abs=1 / gpus.memory_bytes + free
        )


@settings(deadline=None, max_examples=30)
@given(scenarios(), PIECES)
def test_kv_without_pairs_is_kv_up_to_a_token(scenario: PackingScenario, pieces: Pieces) -> None:
    run = run_by(scenario, pieces)
    memory = run.memory
    for gpu in range(run.scenario.gpus.count):
        t = memory.changes(gpu)
        t = t[t < run.raw.end_us]
        if not len(t):
            continue
        first, _ = memory_data.kv_levels(memory, gpu, t, np.append(t[1:], run.raw.end_us))
        exact = memory.at(gpu, t).kv
        # a token of 2 bytes at most of each of 15 tasks at most; at an end of the same us KV is there no more
        assert (np.abs(first - exact) <= 2 * 15 + 1e-6).all()


def test_out_of_memory_is_marked_by_hand() -> None:
    run = run_of(*out_of_memory())
    found = memory_data.event_columns(run, 0, 0, clock.Clock(52))
    assert found["x"] == [pytest.approx(12e-6), pytest.approx(22e-6)]
    assert found["says"] == ["GPU 0 out of memory after 0 s: task 2 of small failed"] * 2
    assert memory_data.event_columns(run, 1, 3, clock.Clock(52))["x"] == []


def test_many_out_of_memory_events_are_counted() -> None:
    problem, raw = out_of_memory()
    many = [(t, 0, 2, 0) for t in range(0, 50) for _ in range(10)]
    more = raw_of([], [], raw.state.tolist(), raw.left_us.tolist(), 52, breaches=many)
    found = memory_data.event_columns(run_of(problem, replace(more)), 0, 0, clock.Clock(52))
    assert len(found["x"]) <= memory_data._MARKS
    assert sum(int(said.split()[0]) for said in found["says"]) == len(many)


@given(st.integers(1, 60), st.integers(1, 9))
def test_panels_hold_every_gpu_once(count: int, most: int) -> None:
    found = memory_data.panels_of(count, most)
    assert len(found) <= most
    assert [g for low, high in found for g in range(low, high + 1)] == list(range(count))


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(0, 60), st.integers(0, 1)), max_size=12),
    st.integers(1, 40),
)
def test_means_over_bins_are_exact(spans: list[tuple[int, int, int]], length: int) -> None:
    edges = clock.edges_of(90, length)
    start, long, group = (np.array([row[k] for row in spans], np.int64) for k in range(3))
    end = start + long
    found = memory_data.binned_spans(start, end, np.full(len(spans), 3.0), group, 2, edges)
    for g in range(2):
        for b, (low, high) in enumerate(pairwise(edges.tolist())):
            mine = group == g
            over = np.clip(np.minimum(end[mine], high) - np.maximum(start[mine], low), 0, None).sum()
            assert found[g, b] == pytest.approx(3 * over / (high - low), abs=1e-9)


# ------------------------------------------------------------------------------- Gantt


def test_a_gantt_by_hand() -> None:
    """Task 0 of `preempted` is saved while task 1 is placed already: two lanes of one GPU."""
    run = run_of(*preempted())
    drawn = gantt_data.picture(run, palette_of(run), clock.Clock(61_000_000))
    bars = rows_of(drawn.bars, "task", "stage", "y")
    assert drawn.lanes == 2
    assert bars == [
        (0, LOAD, 0), (0, RUN, 0), (1, LOAD, 1), (0, SAVE, 0), (1, RUN, 1), (0, RESTORE, 0), (0, RUN, 0),
    ]  # fmt: skip


@settings(deadline=None, max_examples=30)
@given(scenarios(), PIECES)
def test_bars_hold_the_time_of_the_stages_and_never_overlap(
    scenario: PackingScenario, pieces: Pieces
) -> None:
    run = run_by(scenario, pieces)
    rows = run.raw.stages
    axis = clock.clock_of(run)
    drawn = gantt_data.picture(run, palette_of(run), axis)
    assert drawn.single
    spans = rows_of(drawn.bars, "y", "x", "x2")
    total = sum(x2 - x for _, x, x2 in spans) * axis.unit_us
    # a task of a model over several GPUs has a bar on each of them
    lasted = (rows.end_us - rows.start_us) * run.problem.spread[run.problem.tasks.model[rows.task]]
    assert total == pytest.approx(int(lasted.sum()), rel=1e-3)
    spans.sort()
    for (y, _, end), (other, start, _) in pairwise(spans):
        assert y != other or start >= end
    assert len(drawn.failures["x"]) == int((rows.outcome == OUT_OF_MEMORY).sum())
    edges = clock.edges_of(run.raw.end_us, 9)
    cells = gantt_data.cell_means(run, palette_of(run), edges, [(0, run.scenario.gpus.count - 1)])
    summed = float((cells * np.diff(edges)).sum())
    assert summed == pytest.approx(int(lasted.sum()), abs=1e-6)


def test_many_tasks_are_drawn_below_a_megabyte_and_say_how() -> None:
    run = shipped(100_000)
    chart = charts.gantt_chart(run).to_dict()
    assert len(json.dumps(chart)) < 1_000_000
    bars = chart["datasets"]["run_bars"]
    assert 500 < len(bars) <= gantt_data.MAX_CELLS
    said = " ".join(chart["title"]["subtitle"])
    assert "100,000 tasks in" in said
    assert "mean numbers of tasks on a GPU" in said
    height = float(said.partition("a row is ")[2].split()[0])
    unit = clock.clock_of(run).unit_us
    drawn = sum((bar["x2"] - bar["x"]) * (bar["y2"] - bar["y"]) for bar in bars) * unit * height
    rows = run.raw.stages
    assert drawn == pytest.approx(float((rows.end_us - rows.start_us).sum()), rel=5e-3)
    other = shipped(100_000, "worst-fit")
    for chart in (charts.memory_chart(run), charts.fit_chart(run), charts.split_chart([run, other])):
        assert len(json.dumps(chart.to_dict())) < 400_000
    assert "means over" in " ".join(charts.memory_chart(run).to_dict()["title"]["subtitle"])
    data = charts.live_data(run, other)
    assert len(json.dumps(data, separators=(",", ":"))) < 200_000


# ------------------------------------------------------------------------------- split, fit, throughput


def test_the_split_is_that_of_the_figures() -> None:
    run = shipped(400)
    found = split.split_columns([run], ["p"])
    words = [look[2] for look in split.PART_LOOKS.values()]
    means = {
        part: mean for group, part, mean in rows_of(found["split"], "group", "part", "mean")
        if group == "all tasks"
    }  # fmt: skip
    for part, word in zip(PARTS, words, strict=True):
        assert means[word] == pytest.approx(run.figures[f"{part}_mean_s"], abs=1e-5)
    totals = dict(rows_of(found["totals"], "group", "x"))
    assert totals["all tasks"] == pytest.approx(run.figures["latency_mean_s"], abs=1e-5)
    table = run.priorities.set_index("priority")["latency_mean_s"]
    for priority in (0, 1):
        assert totals[f"priority {priority}"] == pytest.approx(table[priority], abs=1e-5)
    stacked = rows_of(found["split"], "group", "x", "x2")
    for (group, _, end), (other, start, _) in pairwise(stacked):
        assert start == (end if group == other else 0)


def test_the_split_by_hand() -> None:
    """`preempted`: 0 of 61 us: load 4, service 20, save 6, suspended 20, restore 11; 1 of 26: load 18, service 8."""
    run = run_of(*preempted())
    found = split.split_columns([run], ["p"])["split"]
    mine = {
        part: mean * SECOND for group, part, mean in rows_of(found, "group", "part", "mean")
        if group == "priority 0"
    }  # fmt: skip
    words = {part: look[2] for part, look in split.PART_LOOKS.items()}
    for part, us in {"queue": 0, "load": 4, "service": 20, "save": 6, "suspended": 20, "restore": 11}.items():
        assert mine[words[part]] == pytest.approx(us, abs=6)  # rounded to 0.01 ms


@settings(deadline=None, max_examples=30)
@given(scenarios(), PIECES, st.booleans())
def test_what_fits_is_that_of_the_figures(scenario: PackingScenario, pieces: Pieces, binned: bool) -> None:
    run = run_by(scenario, pieces)
    if run.raw.end_us == 0:
        return
    when, values = fit_data.free_levels(run, 0 if binned else 10**6, 7)[:2]
    length = np.diff(when)
    whole = run.scenario.gpus.count * run.scenario.gpus.memory_bytes
    mean = {name: float((level * length).sum()) / run.raw.end_us for name, level in values.items()}
    assert mean["free"] / GIB == pytest.approx(run.figures["largest_free_gib"], rel=1e-9, abs=1e-15)
    fragments = (mean["all"] - mean["usable"]) / whole
    assert fragments == pytest.approx(run.figures["fragmentation"], rel=1e-9, abs=1e-9)
    assert (values["low"] <= values["free"] + 1e-6).all()
    assert (values["free"] <= values["high"] + 1e-6).all()


def test_names_at_rules_keep_clear_of_each_other() -> None:
    run = shipped(50)
    columns = fit_data.need_columns(run.problem, 220)
    places = [at for at, label in rows_of(columns, "at", "label") if label]
    gap = 13 * run.scenario.gpus.memory_bytes / GIB / 220
    assert len(places) == 7
    assert all(a - b >= gap - 1e-3 for a, b in pairwise(places))
    assert columns["need"] == pytest.approx(sorted(run.problem.needed / GIB, reverse=True), abs=1e-4)


def test_points_are_the_figures_of_runs_and_of_tables() -> None:
    runs = [shipped(200), shipped(200, "worst-fit")]
    chart = charts.latency_throughput_chart(runs).to_dict()
    drawn = [(row["policy"], row["x"], row["y"]) for row in chart["datasets"]["points"]]
    figures = [(run.policy, run.figures["latency_mean_s"], run.figures["throughput_per_s"]) for run in runs]
    assert drawn == [(name, pytest.approx(x, abs=1e-5), pytest.approx(y, abs=1e-6)) for name, x, y in figures]
    table = pd.DataFrame([{"policy": run.policy, "margin": 0.2, **run.figures} for run in runs])
    again = charts.latency_throughput_chart(table, scenario=runs[0].scenario, label="margin")
    same = [(row["policy"], row["x"], row["y"]) for row in again.to_dict()["datasets"]["points"]]
    assert same == drawn
    assert {row["label"] for row in again.to_dict()["datasets"]["points"]} <= {"0.2", ""}
    with pytest.raises(ValueError, match="contention"):
        charts.latency_throughput_chart(table)
    with pytest.raises(ValueError, match="columns policy"):
        charts.latency_throughput_chart(table.drop(columns="policy"), scenario=runs[0].scenario)
    with pytest.raises(ValueError, match="no task was done"):
        charts.latency_throughput_chart(table.assign(latency_mean_s=np.nan), scenario=runs[0].scenario)
    with pytest.raises(ValueError, match="at least one run"):
        charts.latency_throughput_chart([])


def test_words_beside_points_never_cover_each_other() -> None:
    n = 40
    columns: dict[str, list[Any]] = {"x": [1.0] * n, "y": [k / n for k in range(n)], "label": ["0.25"] * n}
    found = throughput.label_columns(columns, 400, 100)
    kept = [(y, dx, dy) for y, dx, dy in zip(columns["y"], found["dx"], found["dy"], strict=True) if dx]
    assert 0 < len(kept) < n
    places = [((1 - y / columns["y"][-1]) * 100 + dy, dx) for y, dx, dy in kept]
    for a, (y, side) in enumerate(places):
        assert all(abs(y - other) >= 12 for other, there in places[:a] if there == side)


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


def live(left: PackRun, right: PackRun, **options: Any) -> Any:
    from gpuplan.gantt.offline import OfflineChart

    spec = charts.live_spec(left.problem, **options)
    return OfflineChart(drawing.inline(spec, charts.live_data(left, right, **options)))


def everything(left: PackRun, right: PackRun) -> dict[str, Any]:
    return {
        "memory": charts.memory_chart(left),
        "dark": charts.memory_chart(left, mode="dark"),
        "gantt": charts.gantt_chart(left),
        "split": charts.split_chart([left, right]),
        "fit": charts.fit_chart(left),
        "live": live(left, right),
        "stacked": live(left, right, layout="stacked", picture="areas"),
    }


def test_every_chart_is_valid_and_names_its_contention() -> None:
    left, right = shipped(60), shipped(60, "round-robin")
    found = everything(left, right) | {"throughput": charts.latency_throughput_chart([left, right])}
    for name, chart in found.items():
        # Two of them against the schema, which takes seconds; Vega-Lite compiles them all.
        picture = check(chart, valid=name in ("memory", "gantt"))
        assert "contention: slowdown" in picture, name
        if name not in ("live", "stacked"):
            title = chart.to_dict()["title"]
            assert "four-gpus: 4 GPUs of 79.3 GiB, 7 models" in " ".join(title["subtitle"]), name
            assert "contention: slowdown" in chart.to_dict()["description"], name


@pytest.mark.parametrize("kind", ["none", "sharing", "slowdown"])
def test_every_contention_has_words(kind: Any) -> None:
    problem, raw = preempted()
    run = run_of(replace(problem, scenario=replace(problem.scenario, contention=Contention(kind))), raw)
    said = json.dumps(charts.gantt_chart(run).to_dict())
    assert {"none": "contention: none", "sharing": "processor sharing", "slowdown": "1 + 0.15 (n - 1)"}[
        kind
    ] in said


def test_a_run_in_which_nothing_was_placed_says_why() -> None:
    empty = problem_of(tasks([], []))
    for problem, says in (
        (empty, "no tasks"),
        (problem_of(tasks([0], [1]), memory=60), "the task is rejected"),
    ):
        state = [1] * len(problem.tasks)
        run = run_of(problem, raw_of([], [], state, [0] * len(state), 0))
        for name, chart in everything(run, run).items():
            if name in ("memory", "gantt") and says == "no tasks":
                check(chart)
            assert says in json.dumps(chart.to_dict()), name


def test_hostile_names_stay_text() -> None:
    models = tuple(ServedModel(name, GIB, GIB, kv_bytes_per_token=1024) for name in HOSTILE)
    n = len(models)
    made = tasks(
        [k * SECOND for k in range(n)],
        range(n),
        list(HOSTILE),
        [k % 2 for k in range(n)],
        service_us=20 * SECOND,
    )
    scenario = PackingScenario(HOSTILE[1], Gpus(1, 16 * GIB), models, tasks=made)
    run = pack(scenario, "first-fit")
    named = PackRun(run.problem, HOSTILE[1], run.pieces, run.raw, 0.0)
    points = charts.latency_throughput_chart([named, run])
    for name, chart in (everything(named, run) | {"throughput": points}).items():
        if name in ("memory", "gantt", "split", "throughput"):
            picture = check(chart)
            assert "<script" not in picture, name
            assert "<img" not in picture, name
        assert "</script" not in json.dumps(chart.to_dict()), name
    palette = colours.palette_of(run.problem)
    assert len(set(palette.labels) | set(colours.LEGEND_WORDS)) == n + len(colours.LEGEND_WORDS)
    assert "</script><script>alert" not in charts.gantt_chart(named).to_html(inline=True)


def test_models_have_colours_of_their_own_up_to_a_number() -> None:
    models = tuple(ServedModel(f"m{k}", (k + 1) * GIB, (k + 1) * GIB) for k in range(40))
    scenario = PackingScenario("many", Gpus(1, 80 * GIB), models, tasks=tasks([0], [39], service_us=1))
    palette = colours.palette_of(compile_problem(scenario))
    assert len(set(palette.labels)) == len(set(palette.colours)) == colours.MAX_MODELS
    assert palette.labels[-1] == f"{40 - colours.MAX_MODELS + 1} other models"
    assert palette.labels[-2] == "m39"


@given(st.integers(0, 10 * 366 * 86_400 * SECOND), st.integers(1, 300))
def test_bins_are_few_and_reach_the_end(end_us: int, most: int) -> None:
    edges = clock.edges_of(end_us, clock.bin_of(end_us, most))
    assert edges[0] == 0
    assert edges[-1] == max(1, end_us)
    assert len(edges) - 1 <= most
    assert (np.diff(edges) > 0).all()


@pytest.mark.parametrize("picture", ["gantt", "areas", "auto"])
def test_the_live_spec_stays_when_settings_and_policies_change(picture: Any) -> None:
    left = shipped(150)
    changes = {
        "admission.margin": 0.05,
        "preemption.threshold_s": 9,
        "contention.beta": 0.5,
        "gpus.memory_gib": 90,
    }
    other = shipped(150, "worst-fit+backfill", **changes)
    spec = charts.live_spec(left.problem, picture=picture)
    assert charts.live_spec(other.problem, picture=picture) == spec
    data = charts.live_data(left, other, picture=picture)
    assert _named(spec) <= set(data)
    for name, columns in data.items():
        assert len({len(values) for values in columns.values()}) == 1, name
    assert ("left_bars" in data) == (picture != "areas")
    assert data["left_head"]["title"] == [left.policy]
    assert data["right_node0"]["cap"] == [90]


def _named(spec: Any) -> set[str]:
    """Names of the data sets that a spec refers to."""
    if isinstance(spec, dict):
        data = spec.get("data")
        mine = {data["name"]} if isinstance(data, dict) and "name" in data else set()
        return mine.union(*(_named(entry) for entry in spec.values()))
    if isinstance(spec, list):
        return set().union(*(_named(entry) for entry in spec))
    return set()


def test_both_sides_have_one_axis_and_one_length_of_bins() -> None:
    left, right = shipped(2000), shipped(2000, "round-robin")
    data = charts.live_data(left, right)
    widths = {
        round(data[f"{side}_gpu0"]["x2"][0] - data[f"{side}_gpu0"]["x"][0], 4) for side in ("left", "right")
    }
    assert len(widths) == 1
    assert data["left_node0"]["x2"] == data["right_node0"]["x2"]
    assert data["left_node0"]["top"] == data["right_node3"]["top"]
