"""Charts of models over several GPUs, against a run worked out by hand."""

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from gpuplan.packing import charts
from gpuplan.packing.charts import fit_data, gantt_data, heads, memory_data
from gpuplan.packing.charts.clock import clock_of
from gpuplan.packing.charts.colours import palette_of
from gpuplan.packing.charts.live import live_data, live_spec
from gpuplan.packing.memory import Memory
from gpuplan.packing.model import GIB
from gpuplan.packing.progress import SCALE
from gpuplan.packing.raw import OUT_OF_MEMORY, Breaches
from gpuplan.packing.run import PackRun
from gpuplan.packing.tasks import tasks
from packing.by_hand import SMALL, preempted, problem_of, run_of
from packing.over_two import HUGE, WIDE, over_two
from packing.test_charts import check


@pytest.fixture
def run() -> PackRun:
    return run_of(*over_two())


def test_a_task_has_a_bar_on_each_of_its_gpus_at_the_same_height(run: PackRun) -> None:
    drawn = gantt_data.picture(run, palette_of(run.problem), clock_of(run))
    assert (drawn.single, drawn.lanes) == (True, 2)
    bars = drawn.bars
    # the wide task has lane 0 of both GPUs, so that the small one beside it has lane 1 of GPU 1
    rows = sorted(zip(bars["task"], bars["stage"], bars["y"], strict=True))
    assert rows == [
        (0, 0, 0), (0, 0, 2), (0, 1, 0), (0, 1, 2), (1, 0, 3), (1, 1, 3), (2, 0, 0), (2, 1, 0),
        (3, 0, 0), (3, 0, 2), (3, 1, 0), (3, 1, 2),
    ]  # fmt: skip
    said = {task: says for task, says in zip(bars["task"], bars["says"], strict=True)}
    assert said[0].startswith("run on GPUs 0 and 1, ")
    assert said[1].startswith("run, ")
    joins = drawn.joins
    assert list(zip(joins["task"], joins["y"], joins["y2"], strict=True)) == (
        [(0, 0.5, 2.5), (0, 2.5, 2.5), (3, 0.5, 2.5), (3, 2.5, 2.5)]
    )
    assert joins["x"][0] == 0
    assert "joined: one task on several GPUs" in drawn.note
    assert (
        gantt_data.picture(run_of(*preempted()), palette_of(preempted()[0]), clock_of(run)).joins["x"] == []
    )


def test_lanes_of_a_task_are_free_on_all_its_gpus(run: PackRun) -> None:
    """If the small task began first, on lane 0 of GPU 1, the wide one has lane 1 on both."""
    stages = run.raw.stages
    start, end = stages.start_us.copy(), stages.end_us.copy()
    start[2:4], end[2:4] = [0, 0], [0, 26]
    order = [2, 3, 0, 1, 4, 5, 6, 7]
    moved = {name: getattr(stages, name)[order] for name in type(stages).__slots__}
    moved |= {"start_us": start[order], "end_us": end[order]}
    other = run_of(run.problem, replace(run.raw, stages=replace(stages, **moved)))
    lane, lanes = gantt_data.lanes_of(other, *gantt_data.visits(other))
    assert (lane[0], lane[2], lanes) == (0, 1, 2)


def test_a_failure_is_marked_on_the_gpu_whose_memory_ran_out(run: PackRun) -> None:
    stages = run.raw.stages
    outcome = stages.outcome.copy()
    outcome[1] = OUT_OF_MEMORY
    one = np.array([1])
    breaches = Breaches(np.array([30]), one, np.array([0]), np.array([2]))
    raw = replace(run.raw, stages=replace(stages, outcome=outcome), breaches=breaches)
    drawn = gantt_data.picture(run_of(run.problem, raw), palette_of(run.problem), clock_of(run))
    assert drawn.failures["y"] == [2.5]  # lane 0 of GPU 1


def test_cells_count_a_task_on_each_of_its_gpus(run: PackRun) -> None:
    edges = np.array([0, 30, 71])
    cells = gantt_data.cell_means(run, palette_of(run.problem), edges, [(0, 0), (1, 1)])
    whole = (cells * np.diff(edges)).sum(axis=(1, 2))
    # GPU 0: 0-30, 32-52, 60-71; GPU 1: 0-30, 10-26, 60-71
    assert whole.tolist() == pytest.approx([30 + 20 + 11, 30 + 16 + 11])
    assert gantt_data.picture(run, palette_of(run.problem), clock_of(run), most=0).joins["x"] == []


def test_memory_panels_hold_a_part_on_each_gpu(run: PackRun) -> None:
    palette = palette_of(run.problem)
    exact = memory_data.memory_picture(run, palette, panels=8, exact=1000, bin_us=10)
    binned = memory_data.memory_picture(run, palette, panels=8, exact=0, bin_us=10)
    for g in range(2):
        now = Memory(run.problem, run.raw).at(g, np.arange(72))
        panel = exact.panels[g]
        assert np.rint(panel.actual * GIB)[::2].tolist() == now.actual[panel.time_us[::2]].tolist()
        at = np.searchsorted(panel.time_us, 20, "right") - 1
        assert panel.weights[2][at] * GIB == pytest.approx(45)  # the wide model's part
        means = (binned.panels[g].weights.sum(axis=0) * GIB)[::2]
        held = (now.actual - now.kv - now.asleep)[:-1]
        edges = [*range(0, 71, 10), 71]
        assert means.tolist() == pytest.approx([held[a:b].mean() for a, b in pairwise(edges)])


def test_kv_without_steps_at_the_speed_of_each_task(run: PackRun) -> None:
    """10 tokens and half of what is done, within a token of what is there."""
    memory = Memory(run.problem, run.raw)
    done = memory.progress.at(np.full(27, 1), np.arange(4, 31)) / SCALE
    for g in range(2):
        t = np.arange(4, 30)
        first, last = memory_data.kv_levels(memory, g, t, t + 1)
        assert first == pytest.approx(10 + done[:-1] / 2)
        assert last == pytest.approx(10 + done[1:] / 2)


def test_what_several_gpus_have_each(run: PackRun) -> None:
    columns, _ = fit_data.free_columns(run, clock_of(run))
    assert "free2" in columns
    when, levels, _ = fit_data.free_levels(run, 1000, None)
    at = np.searchsorted(when, [5, 31, 33, 50], "right") - 1
    # 85 and 85; 85 and 45; -5 (none) and 45; 35 and 85
    assert levels["free"][at].tolist() == [85, 85, 45, 85]
    assert levels["free2"][at].tolist() == [85, 45, 0, 35]
    sets = fit_data.fit_sets(run, columns, clock_of(run), "run", 200)
    assert "free2" not in sets["run_free"]
    assert sets["run_wide"]["over"] == [2] * len(columns["x"])
    assert sets["run_wide"]["label"][-1] == "2 GPUs, each"


def test_needs_of_parts_have_rules_of_their_own() -> None:
    """A part of 80 GiB is as large as the small model: two rules at 40 GiB, one of them dashed."""
    models = (
        replace(SMALL, declared_bytes=40 * GIB),
        replace(HUGE, declared_bytes=70 * GIB),
        replace(WIDE, declared_bytes=80 * GIB),
    )
    needs = fit_data.need_columns(problem_of(tasks([0]), count=2, memory=80 * GIB, models=models), 220)
    assert (needs["need"], needs["over"]) == ([70, 40, 40], [1, 2, 1])
    assert needs["label"] == ["huge (70)", "wide (40 on each of 2)", "small (40)"]


def texts(value: Any) -> list[str]:
    """All text in a value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for part in value.values() for text in texts(part)]
    return [text for part in value for text in texts(part)] if isinstance(value, list) else []


@pytest.mark.parametrize("make", [charts.gantt_chart, charts.memory_chart, charts.fit_chart])
def test_charts_are_drawn_and_say_that_models_are_over_several_gpus(run: PackRun, make: Any) -> None:
    check(make(run, mode="light"), valid=True)
    assert "3 models (1 over several GPUs)" in check(make(run, mode="dark"))


def test_the_live_page_has_joins_and_lines_for_several_gpus_where_there_are_any(run: PackRun) -> None:
    spec, data = live_spec(run.problem), live_data(run, run)
    named = {text for text in texts(spec) if text.startswith(("left_", "right_"))}
    assert {"left_joins", "right_joins", "left_wide", "right_wide"} <= named
    assert {"left_joins", "right_joins", "left_wide", "right_wide"} <= set(data)
    json.dumps(data, allow_nan=False)
    plain, narrow = run_of(*preempted()), preempted()[0]
    assert not {name for name in live_data(plain, plain) if name.endswith(("_joins", "_wide"))}
    assert not {t for t in texts(live_spec(narrow)) if t.endswith(("_joins", "_wide"))}
    assert heads.has_wide(run.scenario)
    assert not heads.has_wide(narrow.scenario)
