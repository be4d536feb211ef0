"""The Gantt that all slices draw: rectangles, thinning, labels, axes, safe text."""

import heapq
import json
from datetime import datetime
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np
import pytest
import vl_convert
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gpuplan import gantt, theme
from gpuplan.gantt import Frame, Links
from gpuplan.rectangles import MAX_BARS, Bars, rectangles, thin

KINDS = tuple(theme.KIND_COLOURS)


def bars(rows: list[tuple[int, int, float, float, int, str]]) -> Bars:
    """Bars from (low, high, start, end, job, kind)."""
    low, high, start, end, job = (np.array([row[at] for row in rows]) for at in range(5))
    kind = np.array([KINDS.index(row[5]) for row in rows], dtype=np.int64)
    whole = [values.astype(np.int64) for values in (low, high, job)]
    times = [values.astype(np.float64) for values in (start, end)]
    return Bars(whole[0], whole[1], times[0], times[1], whole[2], kind, np.ones(len(rows), bool), KINDS)


# ------------------------------------------------------------------ rectangles


def test_a_block_is_one_rectangle_and_not_one_per_gpu() -> None:
    grid = np.array([[-1, 0, 0], [-1, 0, 0], [1, 1, -1]])
    low, high, start, end, code = rectangles(grid)
    found = set(zip(low.tolist(), high.tolist(), start.tolist(), end.tolist(), code.tolist(), strict=True))
    assert found == {(0, 2, 1, 3, 0), (2, 3, 0, 2, 1)}


def test_a_hill_takes_the_direction_with_fewer_rectangles() -> None:
    # Demand 1, 2, 3, 2, 1 from the bottom: three level bars, but five upright ones.
    hill = np.array([[-1, -1, 0, -1, -1], [-1, 0, 0, 0, -1], [0, 0, 0, 0, 0]])
    assert len(rectangles(hill)[0]) == 3
    assert len(rectangles(hill.T)[0]) == 3


@given(
    hnp.arrays(np.int32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=12), elements=st.integers(-2, 3))
)
def test_rectangles_tile_the_cells_that_are_not_negative(grid: Any) -> None:
    drawn = np.full(grid.shape, -1)
    for low, high, start, end, code in zip(*rectangles(grid), strict=True):
        assert (drawn[low:high, start:end] == -1).all()
        drawn[low:high, start:end] = code
    assert (drawn == np.where(grid < 0, -1, grid)).all()


# -------------------------------------------------------------------- thinning


def month_of_jobs(times: int = 1) -> tuple[list[tuple[int, int, int]], int]:
    """(start, end, gpus) of case nb-many-rows: 6001 jobs, one a minute, `times` over."""
    jobs = []
    for i in range(6001 * times):
        start = 60 * i
        jobs.append((start, start + 600 + (37 * i) % 600, 1 + i % 8))
    return jobs, max(end for _, end, _ in jobs)


def laid_out(jobs: Any) -> tuple[Bars, int]:
    """Each job on the lowest free GPUs, one bar per GPU (they need not be contiguous)."""
    free: list[int] = []
    running: list[tuple[int, int]] = []
    n_gpus, rows = 0, []
    for number, (start, end, gpus) in enumerate(jobs):
        while running and running[0][0] <= start:
            heapq.heappush(free, heapq.heappop(running)[1])
        for _ in range(gpus):
            if not free:
                heapq.heappush(free, n_gpus)
                n_gpus += 1
            gpu = heapq.heappop(free)
            heapq.heappush(running, (end, gpu))
            rows.append((gpu, gpu + 1, start / 3600, end / 3600, number, KINDS[number % 3]))
    return bars(rows), n_gpus


def covered(drawn: Bars, gpus: int, hours: float, slots: int) -> Any:
    """GPUs under a bar at any moment of a slot; bool[gpus, slots]."""
    grid = np.zeros((gpus, slots), dtype=bool)
    first = np.floor(drawn.start * slots / hours + 1e-9).astype(int)
    last = np.ceil(drawn.end * slots / hours - 1e-9).astype(int)
    for low, high, start, end in zip(drawn.low, drawn.high, first, last, strict=True):
        grid[low:high, start:end] = True
    return grid


@pytest.mark.parametrize("times", [1, 10])
def test_many_jobs_are_thinned_with_a_note_and_peaks_survive(times: int) -> None:
    jobs, last_end = month_of_jobs(times)
    everything, gpus = laid_out(jobs)
    if times == 1:
        assert (last_end, gpus, len(jobs)) == (361103, 87, 6001)
        assert sum((end - start) * n for start, end, n in jobs) == 24294600
    hours = last_end / 3600
    drawn, note = thin(everything, gpus, hours)
    assert len(drawn) <= MAX_BARS
    assert f"{len(everything):,} bars" in note
    assert f"{MAX_BARS // 2:,} largest drawn singly" in note
    assert "wherever one is busy" in note
    # Whatever GPU is busy in a slot of the raster is still under a bar: no peak gets lower.
    before, after = covered(everything, gpus, hours, 192), covered(drawn, gpus, hours, 192)
    assert (after | ~before).all()
    assert after.sum(axis=0).max() >= before.sum(axis=0).max()


def test_the_output_of_a_thinned_chart_is_below_a_megabyte_and_altairs_limit_is_untouched() -> None:
    jobs, last_end = month_of_jobs()
    everything, gpus = laid_out(jobs)
    frame = Frame(gpus, last_end / 3600, 8)
    drawn, note = thin(everything, gpus, frame.hours)
    columns = gantt.bar_columns(drawn, frame, [f"job {number}" for number in range(len(jobs))])
    columns["detail"] = [""] * len(drawn)
    data = {
        "left_bars": columns,
        "left_frame": gantt.frame_columns(frame, "a month", note),
        "left_marks": gantt.mark_columns(frame, []),
        "rows": gantt.row_columns(frame),
    }
    linked = Links(("left_bars",))
    spec = gantt.spec(frame, linked) | {"params": [*linked.params(), *theme.fill_params()]}
    assert len(json.dumps(gantt.inline(spec, data))) < 1_000_000
    assert alt.data_transformers.active == "default"
    assert alt.data_transformers.options == {}


@pytest.mark.parametrize("number", [0, 1, MAX_BARS])
def test_few_bars_are_drawn_one_by_one(number: int) -> None:
    few = bars([(at % 7, at % 7 + 1, at, at + 1.0, at, "training") for at in range(number)])
    drawn, note = thin(few, 7, number + 1.0)
    assert drawn is few
    assert note == ""


@given(
    st.lists(
        st.tuples(st.integers(0, 19), st.integers(1, 5), st.integers(0, 40), st.integers(1, 9)), min_size=9
    )
)
def test_thinning_never_exceeds_its_limit_nor_uncovers_a_busy_gpu(
    blocks: list[tuple[int, int, int, int]],
) -> None:
    many = bars(
        [
            (low, min(20, low + n), start, min(48, start + span), at, KINDS[at % 4])
            for at, (low, n, start, span) in enumerate(blocks)
        ]
    )
    drawn, note = thin(many, 20, 48.0, limit=8)
    assert len(drawn) <= 8
    assert note
    assert (drawn.high <= 20).all()
    assert (covered(drawn, 20, 48.0, 48) | ~covered(many, 20, 48.0, 48)).all()


# --------------------------------------------------------------------- columns


def test_columns_of_a_bar_are_rows_hours_and_words() -> None:
    frame = Frame(8, 24, 8, start=datetime(2026, 3, 2, 6))
    two = bars([(0, 4, 0, 6.5, 0, "training"), (7, 8, 2, 24, 1, "quantization")])
    columns = gantt.bar_columns(two, frame, ["tune-a", "quant-b"])
    assert columns == {
        "job": ["tune-a", "quant-b"],
        "kind": ["training", "quantization"],
        "x": [0, 2],
        "x2": [6.5, 24],
        "y": [-0.5, 6.5],
        "y2": [3.5, 7.5],
        "mid": [1.5, 7],
        "tall": [1, 1],
        "gpus": ["0–3 (4)", "7 (1)"],
        "time": ["06:00–12:30", "08:00–06:00"],
    }


def test_thin_rows_carry_no_names() -> None:
    frame = Frame(512, 24, 8)
    assert frame.px_per_gpu < 1
    two = bars([(0, 8, 0, 6, 0, "training"), (8, 40, 0, 6, 1, "training")])
    assert gantt.bar_columns(two, frame, ["a", "b"])["tall"] == [0, 1]


def test_unmet_demand_stands_in_the_strip_above_the_first_gpu() -> None:
    frame = Frame(4, 4, 4)
    columns = gantt.bar_columns(bars([]), frame, [])
    gantt.add_unmet(columns, frame, [(1.0, 3.0, 2)])
    assert (columns["job"], columns["kind"], columns["x"], columns["x2"]) == (
        ["2 unmet"],
        ["unmet"],
        [1],
        [3],
    )
    assert -0.5 - frame.strip - 1e-3 <= columns["y"][0] < columns["y2"][0] < -0.5
    top = gantt.frame_columns(frame, "t")["y"][0]
    assert top == pytest.approx(-0.5 - frame.strip, abs=1e-3)


def test_a_short_stretch_of_unmet_demand_has_no_bare_number() -> None:
    # 640 pixels for 8 hours: 0.4 hours are 32 pixels, 3 hours are 240.
    frame = Frame(4, 8, 4, width=640)
    columns = gantt.bar_columns(bars([]), frame, [])
    gantt.add_unmet(columns, frame, [(0.5, 0.9, 77), (2.0, 5.0, 88)])
    columns["detail"] = [""] * 2
    data = {
        "left_bars": columns,
        "left_frame": gantt.frame_columns(frame, "t"),
        "left_marks": gantt.mark_columns(frame, []),
        "rows": gantt.row_columns(frame),
    }
    linked = Links(("left_bars",))
    spec = gantt.spec(frame, linked) | {"params": [*linked.params(), *theme.fill_params()]}
    picture = vl_convert.vegalite_to_svg(gantt.inline(spec, data))
    assert ">88 unmet</text>" in picture
    assert ">77" not in picture


@pytest.mark.parametrize(
    ("gpus", "node", "labels", "borders"),
    [
        (1, 1, ["0"], []),
        (8, 8, [str(gpu) for gpu in range(8)], []),
        (16, 8, [str(gpu) for gpu in range(16)], [7.5]),
        (64, 8, [str(gpu) for gpu in range(0, 64, 4)], [7.5, 15.5, 23.5, 31.5, 39.5, 47.5, 55.5]),
    ],
)
def test_rows_are_labelled_and_nodes_bordered(
    gpus: int, node: int, labels: list[str], borders: list[float]
) -> None:
    rows = gantt.row_columns(Frame(gpus, 24, node))
    assert [label for label in rows["label"] if label] == labels
    assert [y for y, border in zip(rows["y"], rows["border"], strict=True) if border] == borders


@pytest.mark.parametrize(("gpus", "node"), [(512, 8), (1000, 7), (16384, 8), (16384, 16384), (513, 1)])
def test_large_clusters_get_few_labels_and_borders(gpus: int, node: int) -> None:
    frame = Frame(gpus, 24, node)
    rows = gantt.row_columns(frame)
    labels = [y for y, label in zip(rows["y"], rows["label"], strict=True) if label]
    borders = [y for y, border in zip(rows["y"], rows["border"], strict=True) if border]
    assert 2 <= len(labels) <= 36
    assert len(borders) <= 32
    for marks in (labels, borders):
        assert all((after - before) * frame.px_per_gpu >= 12 for before, after in pairwise(marks))


@pytest.mark.parametrize(("hours", "every"), [(24, 1), (48, 1), (168, 6), (12.5, 1), (5 / 6, 1), (8064, 168)])
def test_ticks_are_round_hours_and_few(hours: float, every: int) -> None:
    values = gantt.time_axis(Frame(8, hours, 8))["values"]
    assert values[0] == 0
    assert len(values) <= 51
    assert values[-1] <= hours
    assert all(value == every * at for at, value in enumerate(values))


def test_the_time_axis_says_hours_or_clock_times() -> None:
    assert gantt.time_axis(Frame(8, 24, 8))["title"] == "hour of the horizon"
    clock = gantt.time_axis(Frame(8, 24, 8, start=datetime(2026, 3, 2, 6, 30)))
    assert clock["title"] == "time (from 2026-03-02 06:30)"
    assert clock["labelExpr"] == "utcFormat(utc(2026,2,2,6,30)+datum.value*3600000,'%H:%M')"
    assert Frame(8, 24, 8, start=datetime(2026, 3, 2, 6, 30)).clock(18.5) == "01:00"
    assert Frame(8, 48, 8, start=datetime(2026, 3, 2, 6, 30)).clock(18.5) == "Tue 01:00"
    assert Frame(8, 24, 8).clock(3.5) == "3.5"
    assert Frame(8, 24, 8).clock(1 / 3) == "0.33"


def test_triangles_stand_inside_the_edge_that_a_job_crosses() -> None:
    frame = Frame(8, 24, 8, width=240)
    columns = gantt.mark_columns(frame, [(True, 0, 4, "a"), (False, 6, 1, "b")])
    # The first, without a size, keeps the data set from being empty. Ten pixels an hour, six pixels inside.
    assert columns["size"][0] == 0
    assert columns["x"][1:] == [0.6, 23.4]
    assert columns["y"][1:] == [1.5, 6]
    assert columns["shape"][1:] == ["triangle-left", "triangle-right"]


# ------------------------------------------------------------------- safe text


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines\x00", "two lines "),
        ("\u202eevil", " evil"),
        ("👩\u200d🔬", "👩\u200d🔬"),
        ("عربي", "عربي"),
        ("<b>&amp;", "<b>&amp;"),
        ("a" * 201, "a" * 199 + "…"),
    ],
)
def test_names_become_one_line_of_text(name: str, shown: str) -> None:
    assert gantt.safe_text(name) == shown


def test_no_text_ends_the_script_that_carries_it() -> None:
    hostile = "</script><script>alert(1)</script><!-- <script>"
    whole = gantt.inline({"title": hostile, "layer": [{"x": hostile}]}, {"d": {"job": [hostile], "n": [1]}})
    text = json.dumps(whole, ensure_ascii=False)
    assert "</" not in text
    assert "<!" not in text
    # What is seen is the same: only an invisible sign was added.
    assert whole["datasets"]["d"][0]["job"].replace("\u2060", "") == hostile
    assert whole["datasets"]["d"][0]["n"] == 1


# ------------------------------------------------------------------------ spec


def test_the_same_frame_gives_the_same_spec() -> None:
    linked = Links(("left_bars", "right_bars"), ("left_usage",))
    assert gantt.spec(Frame(8, 24, 8), linked) == gantt.spec(Frame(5, 24, 2), linked)
    assert gantt.spec(Frame(8, 24, 8), linked) != gantt.spec(Frame(9, 24, 8), linked)
    assert gantt.spec(Frame(8, 24, 8), linked) != gantt.spec(Frame(8, 12, 8), linked)
    assert gantt.spec(Frame(8, 24, 8), linked) != gantt.spec(Frame(8, 24, 8, width=500), linked)


def test_links_name_their_views() -> None:
    params = {param["name"]: param for param in Links(("a", "b"), ("c",)).params()}
    assert set(params) == {"hover", "kinds", "brush"}
    assert params["hover"]["views"] == params["kinds"]["views"] == ["a", "b"]
    assert params["brush"]["views"] == ["c"]
    assert params["hover"]["select"]["fields"] == ["job"]
    assert [param["name"] for param in Links(("a",)).params()] == ["hover", "kinds"]


def test_a_halo_lies_below_every_name_in_a_bar() -> None:
    layers = gantt.spec(Frame(8, 24, 8), Links(("left_bars",)))["layer"]
    halo, name = (
        layer for layer in layers if layer["mark"]["type"] == "text" and "opacity" in layer["encoding"]
    )
    assert halo["mark"]["stroke"]["expr"] == halo["mark"]["fill"]["expr"] == theme.halo_of("datum.kind")
    assert "stroke" not in name["mark"]
    assert name["mark"]["text"]["expr"] in halo["mark"]["text"]["expr"]
    for place in ("dx", "limit", "fontSize", "clip", "align"):
        assert halo["mark"][place] == name["mark"][place]


def test_a_still_picture_asks_for_no_gesture() -> None:
    live = {"params": [{"name": "brush"}, gantt.still_param()], "width": 3}
    assert gantt.still(live) == {"params": [{"name": "brush"}, {"name": "still", "value": True}], "width": 3}
    assert live["params"][1] == {"name": "still", "value": False}
    assert gantt.still({"width": 3}) == {"width": 3}
