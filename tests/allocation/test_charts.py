"""Charts of plans: what is drawn equals what the plan says, offline, as text, within bounds of size."""

import base64
import json
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pytest
from altair.utils.schemapi import validate_jsonschema

from gpuplan import gantt as drawing
from gpuplan import theme
from gpuplan.allocation import charts
from gpuplan.allocation.charts import data, figures
from gpuplan.allocation.plan import Plan, compare, plan
from gpuplan.allocation.policies import POLICIES
from gpuplan.allocation.schema import from_mapping
from gpuplan.loading import load

SHIPPED = ("mixed-day", "training-rush", "two-apps", "big-day")

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "<!-- <script>",
    "=1+1",
    "../../etc/passwd",
    "👩\u200d🔬",
    "عربي نص",
    "__proto__",
    "a" * 200,
]


def small(**changes: Any) -> Any:
    """4 GPUs x 4 hours, GPU 0 unavailable, one app that peaks at 2 and one training job of 1 GPU x 2 h."""
    mapping: dict[str, Any] = {
        "kind": "allocation",
        "name": "small",
        "cluster": {"gpus": 4, "unavailable": [0]},
        "horizon": {"steps": 4, "step_hours": 1},
        "realtime": [{"name": "chat", "priority": 5, "demand": [0, 1, 2, 1]}],
        "batch": [{"name": "tune", "kind": "training", "gpus": 1, "hours": 2, "priority": 3}],
    }
    return from_mapping(mapping | changes)


def hostile() -> Any:
    jobs = [
        {"name": name, "kind": "quantization", "gpus": 1, "hours": 3, "priority": at + 1}
        for at, name in enumerate(HOSTILE)
    ]
    apps = [
        {
            "name": "<b>chat</b></script>",
            "priority": 5,
            "demand": {"base": 1, "peak": 2, "peak_hour": 9, "width_hours": 8},
        }
    ]
    return small(
        name="<i>day</i>",
        cluster={"gpus": 8},
        horizon={"steps": 12, "step_hours": 1},
        realtime=apps,
        batch=jobs,
    )


@pytest.fixture(scope="module")
def shipped() -> dict[str, tuple[Plan, Plan]]:
    return {
        name: (plan(scenario, "fifo"), plan(scenario, "aware"))
        for name in SHIPPED
        for scenario in [load(name)]
    }


# ----------------------------------------------------------- what a Gantt shows


def test_a_reservation_is_drawn_as_used_and_idle_by_hand() -> None:
    """FIFO reserves the peak, GPUs 2 and 3, all day; tune takes GPU 1; the highest GPUs count as serving.

    GPU 3 serves in hours 1 to 4 (demand at least 1), GPU 2 in hour 2 to 3 (demand 2); the rest is idle.
    """
    fifo = plan(small(), "fifo")
    columns = charts.dashboard_data(fifo, fifo)["left_bars"]
    rows = {
        (job, kind, x, x2, gpus)
        for job, kind, x, x2, gpus in zip(
            *(columns[name] for name in ("job", "kind", "x", "x2", "gpus")), strict=True
        )
    }
    assert rows == {
        ("tune", "training", 0, 2, "1 (1)"),
        ("chat", "reserved-idle", 0, 1, "3 (1)"),
        ("chat", "real-time", 1, 4, "3 (1)"),
        ("chat", "reserved-idle", 0, 2, "2 (1)"),
        ("chat", "real-time", 2, 3, "2 (1)"),
        ("chat", "reserved-idle", 3, 4, "2 (1)"),
        ("", "unavailable", 0, 4, "0 (1)"),
    }


def area(plan_: Plan) -> dict[str, float]:
    """GPU-hours under the bars of each kind."""
    bars = data.bars_of(plan_)
    size = (bars.high - bars.low) * (bars.end - bars.start)
    return {kind: float(size[bars.kind == at].sum()) for at, kind in enumerate(bars.kinds)}


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("policy", POLICIES)
def test_bars_hold_the_gpu_hours_of_the_plan(name: str, policy: str) -> None:
    scenario = load(name)
    found = plan(scenario, policy, time_limit_s=1)  # any plan of `exact` will do
    hours = scenario.horizon.step_hours
    drawn = area(found)
    assert drawn["real-time"] == pytest.approx(found.served.sum() * hours)
    assert drawn["reserved-idle"] == pytest.approx((found.held - found.served).sum() * hours)
    batch = sum(drawn[kind] for kind in ("training", "batch-inference", "quantization"))
    assert batch == pytest.approx(((found.grid >= 0) & (found.grid < len(scenario.batch))).sum() * hours)
    assert drawn["unavailable"] == pytest.approx((found.grid == -2).sum() * hours)


@pytest.mark.parametrize("name", SHIPPED)
def test_bars_lie_where_the_grid_says(name: str, shipped: dict[str, tuple[Plan, Plan]]) -> None:
    for found in shipped[name]:
        hours = found.scenario.horizon.step_hours
        bars = data.bars_of(found)
        drawn = np.full(found.grid.shape, -1)
        for low, high, start, end, job in zip(
            bars.low, bars.high, bars.start, bars.end, bars.job, strict=True
        ):
            cells = drawn[low:high, round(start / hours) : round(end / hours)]
            assert (cells == -1).all()
            cells[:] = -2 if job < 0 else job
        assert (drawn == found.grid).all()


def test_a_block_is_one_bar(shipped: dict[str, tuple[Plan, Plan]]) -> None:
    found = shipped["big-day"][0]
    bars = data.bars_of(found)
    batch = bars.job[(bars.job >= 0) & (bars.job < len(found.scenario.batch))]
    assert len(batch) == len(set(batch.tolist())) == int((found.start >= 0).sum())


def test_each_app_is_named_once_per_state(shipped: dict[str, tuple[Plan, Plan]]) -> None:
    for found in shipped["two-apps"]:
        bars = data.bars_of(found)
        named = bars.take(bars.labelled & (bars.job >= len(found.scenario.batch)))
        labels = list(zip(named.job.tolist(), named.kind.tolist(), strict=True))
        assert len(labels) == len(set(labels))
        assert {job - len(found.scenario.batch) for job, _ in labels} == set(
            range(len(found.scenario.realtime))
        )


def test_unmet_demand_is_marked_per_stretch() -> None:
    nobody = plan(small(objective={"shortfall_penalty": 8}, cluster={"gpus": 1}, batch=[]), "aware")
    assert (nobody.demand - nobody.served).tolist() == [[0, 0, 1, 0]]
    columns = charts.dashboard_data(nobody, nobody)["right_bars"]
    strips = [
        (job, x, x2)
        for job, kind, x, x2 in zip(columns["job"], columns["kind"], columns["x"], columns["x2"], strict=True)
        if kind == "unmet"
    ]
    assert strips == [("1 unmet", 2, 3)]


def test_running_jobs_and_jobs_cut_by_the_end_get_a_triangle() -> None:
    batch = [
        {"name": "runs", "kind": "training", "gpus": 1, "hours": 2, "priority": 1, "running_on": 1},
        {"name": "long", "kind": "training", "gpus": 2, "hours": 9, "priority": 1},
    ]
    found = plan(small(batch=batch, realtime=[], rules={"must_finish": False}), "fifo")
    sets = charts.dashboard_data(found, found)
    assert sets["left_marks"]["says"][1:] == ["runs: running at the start", "long: runs past the end"]
    assert sets["left_frame"]["note"] == ["triangles: running already (left), running past the end (right)"]


def test_an_empty_scenario_draws_an_empty_frame_that_says_so() -> None:
    empty = plan(small(batch=[], realtime=[]), "fifo")
    sets = charts.dashboard_data(empty, empty)
    assert sets["left_frame"]["empty"] == ["no jobs"]
    assert charts.gantt(empty).to_dict()["datasets"]["left_frame"][0]["empty"] == "no jobs"
    waiting = plan(small(cluster={"gpus": 1}, batch=[{**_job("big"), "gpus": 2}], realtime=[]), "fifo")
    assert charts.dashboard_data(waiting, waiting)["left_frame"]["empty"] == ["no job has a place"]


def _job(name: str) -> dict[str, Any]:
    return {"name": name, "kind": "training", "gpus": 1, "hours": 1, "priority": 1}


# ------------------------------------------------------- demand, GPUs in use


def test_runs_of_demand_by_hand() -> None:
    fifo = plan(small(), "fifo")
    demand = charts.dashboard_data(fifo, fifo)["left_demand_0"]
    # One run per step, closed by the last values at the end of the horizon; a tenth stays free above the reservation.
    assert demand["x"] == [0, 1, 2, 3, 4]
    assert demand["x2"] == [1, 2, 3, 4, 4]
    assert demand["demand"] == [0, 1, 2, 1, 1]
    assert demand["held"] == [2, 2, 2, 2, 2]
    assert demand["served"] == [0, 1, 2, 1, 1]
    assert demand["top"] == [2.2] * 5
    assert demand["time"][:2] == ["0–1", "1–2"]


def test_gpus_in_use_by_hand() -> None:
    fifo = plan(small(), "fifo")
    assert data.usage(fifo).tolist() == [[1, 1, 0, 0], [0] * 4, [0] * 4, [0, 1, 2, 1], [2, 1, 0, 1]]
    use = charts.dashboard_data(fifo, fifo)["left_usage"]
    assert use["training"] == [1, 1, 0, 0, 0]
    assert use["served"] == [1, 2, 2, 1, 1]
    assert use["held"] == [3, 3, 2, 2, 2]
    assert use["top"] == [3] * 5


@pytest.mark.parametrize("name", SHIPPED)
def test_gpus_in_use_add_up_to_the_figures(name: str, shipped: dict[str, tuple[Plan, Plan]]) -> None:
    for found in shipped[name]:
        used = data.usage(found)
        cells = found.scenario.cluster.n_available * found.scenario.horizon.steps
        assert used[:4].sum() / cells == pytest.approx(found.figures["utilization"])
        assert used.sum() / cells == pytest.approx(found.figures["held"])


def test_both_sides_have_the_same_scales(shipped: dict[str, tuple[Plan, Plan]]) -> None:
    for left, right in shipped.values():
        sets = charts.dashboard_data(left, right)
        for name, columns in sets.items():
            if name.startswith("left_") and "top" in columns:
                assert set(columns["top"]) == set(sets[name.replace("left_", "right_")]["top"])
        assert sets["left_frame"]["y"] == sets["right_frame"]["y"]
        assert sets["left_frame"]["x2"] == sets["right_frame"]["x2"]


def test_a_week_of_ten_minutes_is_drawn_in_groups_that_keep_the_peak() -> None:
    demand = [1] * 1008
    demand[501] = 7
    week = small(
        cluster={"gpus": 8},
        horizon={"steps": 1008, "step_hours": "10min"},
        realtime=[{"name": "chat", "priority": 5, "demand": demand}],
    )
    found = plan(week, "aware")
    columns = charts.dashboard_data(found, found)["left_demand_0"]
    assert max(columns["demand"]) == 7
    at = columns["demand"].index(7)
    # Two steps of ten minutes to a group: 500 and 501.
    assert columns["x"][at] == pytest.approx(500 / 6, abs=1e-3)
    assert columns["x2"][at] == pytest.approx(502 / 6, abs=1e-3)


def test_many_apps_share_the_last_row() -> None:
    apps = [{"name": f"app {at}", "priority": 1, "demand": [at, 0, 0, 0]} for at in range(1, 6)]
    scenario = small(cluster={"gpus": 16}, realtime=apps)
    assert data.app_rows(scenario) == [("app 4", (3,)), ("app 5", (4,)), ("3 other apps together", (0, 1, 2))]
    found = plan(scenario, "aware")
    assert charts.dashboard_data(found, found)["left_demand_2"]["demand"][0] == 1 + 2 + 3


# ------------------------------------------------------------------ comparison


@pytest.mark.parametrize(
    ("value", "first", "share", "text"),
    [
        (0.87, 0.536, True, "+33.4 points"),
        (0.5, 0.6, True, "-10.0 points"),
        (205.1, 100.0, False, "+105.1 %"),
        (50.0, 100.0, False, "-50.0 %"),
        (12.5, 0.0, False, "+12.5"),
        (-5.0, -20.0, False, "+15.0"),
        (None, 1.0, False, ""),
        (1.0, None, False, ""),
    ],
)
def test_changes_are_points_per_cent_or_differences(
    value: float | None, first: float | None, share: bool, text: str
) -> None:
    assert figures.change(value, first, share) == text


def test_the_comparison_states_absolute_figures_changes_and_the_bound() -> None:
    first = {
        "utilization": 0.536,
        "coverage": 1.0,
        "value": 100.0,
        "penalty": 0.0,
        "objective": 100.0,
        "bound": 220.0,
    }
    second = first | {"utilization": 0.870, "value": 205.1, "penalty": 4.0, "objective": 201.1}
    sets = figures.comparison_data(["fifo", "aware"], [first, second])
    assert sets["shares"]["row"][:2] == ["utilization: fifo", "utilization: aware"]
    assert sets["shares"]["says"] == ["53.6 %", "87.0 %  (+33.4 points)", "100.0 %", "100.0 %  (+0.0 points)"]
    assert sets["shares"]["value"] == pytest.approx([53.6, 87.0, 100, 100])
    assert sets["amounts"]["says"][:4] == ["100.0", "205.1  (+105.1 %)", "0.0", "4.0  (+4.0)"]
    # The bound's line goes through both objectives down to a row with its words.
    assert sets["amounts"]["bound"] == [None, None, None, None, 220, 220, 220]
    assert sets["amounts"]["row"][4:] == ["objective: fifo", "objective: aware", "best possible, at most"]
    assert sets["amounts"]["says"][-1] == "bound 220.0"
    # Texts of objectives stand right of the bound, so the line never crosses them.
    assert sets["amounts"]["at"][4:] == [220, 220, 220]
    assert set(sets["amounts"]["top"]) == {round(1.9 * 220, 4)}


def test_a_negative_objective_is_drawn_to_the_left_of_zero() -> None:
    entry = {
        "utilization": 0.0,
        "coverage": 0.0,
        "value": 0.0,
        "penalty": 9.0,
        "objective": -9.0,
        "bound": None,
    }
    rows = figures.comparison_data(["a", "b"], [entry, entry])["amounts"]
    assert rows["value"][4:] == [-9, -9]
    assert rows["at"][4:] == [0, 0]
    assert rows["bound"] == [None] * 6


@pytest.mark.parametrize(
    ("objective", "bound", "words"),
    [
        (917.0, 1000.0, "at most 8.3 % below the best possible"),
        (
            916.9,
            1000.0,
            "at most 8.4 % below the best possible",
        ),  # 8.31: rounding down would promise too much
        (999.99, 1000.0, "at most 0.1 % below the best possible"),
        (1000.0, 1000.0, "the best possible, as it reaches the bound"),
        (-50.0, 1000.0, "at most 1,050.0 below the best possible"),
        (-50.0, -20.0, "at most 30.0 below the best possible"),
        (0.0, 0.0, "the best possible, as it reaches the bound"),
        (1.0, None, "of unknown distance from the best possible"),
    ],
)
def test_the_distance_from_the_bound_is_never_understated(
    objective: float, bound: float | None, words: str
) -> None:
    assert figures.below_bound({"objective": objective, "bound": bound}) == words


def test_the_same_policy_twice_is_told_apart() -> None:
    assert figures.labels(["fifo", "aware"]) == ["fifo", "aware"]
    assert figures.labels(["aware", "aware"]) == ["aware (left)", "aware (right)"]
    assert figures.labels(["a", "a", "b"]) == ["a (1)", "a (2)", "b (3)"]
    found = plan(small(), "fifo")
    rows = charts.dashboard_data(found, found)["shares"]["row"]
    assert len(set(rows)) == len(rows)


# --------------------------------------------------------------- the live page


def named(spec: Any) -> Iterator[str]:
    """Names of data sets that a spec draws."""
    if isinstance(spec, dict):
        if isinstance(spec.get("data"), dict) and "values" not in spec["data"]:
            yield spec["data"]["name"]
        for value in spec.values():
            yield from named(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from named(value)


@pytest.mark.parametrize("layout", ["side", "stacked"])
@pytest.mark.parametrize("name", SHIPPED)
def test_spec_and_data_name_the_same_sets(
    name: str, layout: Any, shipped: dict[str, tuple[Plan, Plan]]
) -> None:
    left, right = shipped[name]
    sets = charts.dashboard_data(left, right, layout=layout)
    assert set(named(charts.dashboard_spec(left.scenario, layout=layout))) == set(sets)
    for columns in sets.values():
        assert len({len(values) for values in columns.values()}) == 1


def fields(spec: Any) -> Iterator[tuple[str, str]]:
    """(data set, column) of every encoding of a spec, expressions of marks and tests included."""
    if isinstance(spec, dict):
        if "data" in spec:
            encoding, marked = json.dumps(spec["encoding"]), json.dumps(spec["mark"])
            columns = re.findall(r'"field": "(\w+)"', encoding)
            columns += re.findall(r'"test": "datum\.(\w+)', encoding)
            columns += re.findall(r"datum\.(\w+)", marked)
            yield from ((spec["data"]["name"], column) for column in columns)
        for value in spec.values():
            yield from fields(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from fields(value)


def test_every_column_that_is_drawn_is_there_and_every_column_is_drawn(
    shipped: dict[str, tuple[Plan, Plan]],
) -> None:
    left, right = shipped["big-day"]
    sets = charts.dashboard_data(left, right)
    used = set(fields(charts.dashboard_spec(left.scenario)))
    there = {(name, column) for name, columns in sets.items() for column in columns}
    assert used - there == set()
    assert there - used == set()


@pytest.mark.parametrize("name", SHIPPED)
def test_the_payload_is_small_and_plain_json(name: str, shipped: dict[str, tuple[Plan, Plan]]) -> None:
    sets = charts.dashboard_data(*shipped[name])
    text = json.dumps(sets, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    assert len(text.encode()) < 60_000


def test_the_spec_depends_on_the_frame_and_not_on_what_is_in_it() -> None:
    base = charts.dashboard_spec(small())
    assert charts.dashboard_spec(small()) == base
    assert charts.dashboard_spec(small(batch=[], cluster={"gpus": 3})) == base
    assert charts.dashboard_spec(small(objective={"shortfall_penalty": 3})) == base
    assert charts.dashboard_spec(small(cluster={"gpus": 12})) != base
    assert charts.dashboard_spec(small(), width=700) != base
    assert (
        charts.dashboard_spec(small(horizon={"steps": 4, "step_hours": 1, "start": "2026-03-02T06"})) != base
    )


def schema_errors(spec: dict[str, Any]) -> None:
    root = alt.TopLevelMixin.__subclasses__()[0]._rootschema
    validate_jsonschema(spec, {"$ref": "#/definitions/TopLevelSpec"}, rootschema=root)


def test_every_spec_is_valid_vega_lite(shipped: dict[str, tuple[Plan, Plan]]) -> None:
    left, right = shipped["two-apps"]
    schema_errors(charts.dashboard_spec(left.scenario))
    both = compare(left.scenario, ("fifo", "curve-fifo", "aware"))
    for chart in (
        charts.gantt(left),
        charts.gantt_pair(left, right),
        charts.demand_chart(left, right),
        charts.utilization_chart(left),
        charts.comparison_chart(both),
    ):
        schema_errors(chart.to_dict())
    with pytest.raises(Exception, match="barr"):
        schema_errors({"mark": "barr"})


def test_sides_are_below_each_other_when_stacked() -> None:
    beside = charts.dashboard_spec(small(), layout="side")
    below = charts.dashboard_spec(small(), layout="stacked")
    assert (beside["columns"], below["columns"]) == (2, 1)
    assert len(beside["concat"]) == len(below["concat"]) == 8
    # Plan by plan, then the comparison under both.
    assert [cell["layer"][0]["data"]["name"] for cell in below["concat"]] == [
        "left_frame",
        "left_demand_0",
        "left_usage",
        "right_frame",
        "right_demand_0",
        "right_usage",
        "shares",
        "amounts",
    ]
    assert below["concat"][0]["width"] > 1.8 * beside["concat"][0]["width"]


# ------------------------------------------------------------- alone, offline


def test_charts_are_altair_charts_that_stay_as_they_are(shipped: dict[str, tuple[Plan, Plan]]) -> None:
    chart = charts.gantt(shipped["mixed-day"][0])
    assert isinstance(chart, alt.Chart)
    spec = chart.to_dict()
    spec["layer"].clear()
    assert chart.to_dict()["layer"]
    titled = chart.properties(title="Monday")
    assert titled.to_dict()["title"] == "Monday"
    assert "title" not in chart.to_dict()
    assert titled.to_dict()["layer"] == chart.to_dict()["layer"]
    with pytest.raises(TypeError, match="complete"):
        chart | chart
    assert json.loads(chart.to_json()) == chart.to_dict()
    assert chart.to_dict(format="vega")["$schema"].endswith("vega/v6.json")


def test_a_notebook_shows_a_picture_and_words_and_stays_small(shipped: dict[str, tuple[Plan, Plan]]) -> None:
    left, right = shipped["big-day"]
    bundle = charts.dashboard(left, right)._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "image/png"}
    picture = base64.b64decode(bundle["image/png"])
    assert picture.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", picture[16:24])
    assert 1.4 * 980 < width < 1.6 * 980
    assert height > 1000
    assert len(bundle["image/png"]) < 1_000_000
    assert f"utilization {100 * right.figures['utilization']:.1f} %" in bundle["text/plain"]


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_idle_reservations_have_the_tone_of_the_page(
    mode: theme.Mode, shipped: dict[str, tuple[Plan, Plan]], tmp_path: Path
) -> None:
    charts.gantt(shipped["mixed-day"][0], mode=mode).save(tmp_path / "chart.svg")
    picture = (tmp_path / "chart.svg").read_text(encoding="utf-8").upper()
    assert (theme.DARK_COLOURS["reserved-idle"] in picture) == (mode == "dark")
    assert (theme.KIND_COLOURS["reserved-idle"] in picture) == (mode == "light")


def test_pictures_do_not_ask_to_be_dragged_and_pages_do(
    shipped: dict[str, tuple[Plan, Plan]], tmp_path: Path
) -> None:
    chart = charts.gantt_pair(*shipped["mixed-day"])
    texts = {}
    for suffix in ("svg", "html"):
        chart.save(tmp_path / f"chart.{suffix}")
        texts[suffix] = (tmp_path / f"chart.{suffix}").read_text(encoding="utf-8")
    assert "GPUs in use, by kind of work</text>" in texts["svg"]
    assert "drag to zoom" not in texts["svg"]
    assert "drag to zoom, double-click to reset" in texts["html"]
    assert '"name": "still", "value": false' in texts["html"]


OUTSIDE = re.compile(r"<[a-z]+[^>]*\b(?:src|href|srcset|data|poster)\s*=|@import|url\(", re.I)


def tags_only(page: str) -> str:
    """A page without what is between its script tags."""
    return re.sub(r"(<script[^>]*>).*?(</script>)", r"\1\2", page, flags=re.S)


@pytest.mark.parametrize("make", ["gantt", "dashboard", "comparison"])
def test_a_page_needs_no_address(make: str) -> None:
    left, right = plan(hostile(), "fifo"), plan(hostile(), "aware")
    chart = {
        "gantt": lambda: charts.gantt(left),
        "dashboard": lambda: charts.dashboard(left, right),
        "comparison": lambda: charts.comparison_chart(compare(hostile(), ("fifo", "aware"))),
    }[make]()
    page = charts.to_html(chart, charts.table(left, right))
    assert OUTSIDE.search(tags_only(page)) is None
    assert OUTSIDE.search(tags_only('<script src="https://example.org/vega.js">let a</script>'))
    assert tags_only(page).count("<script") == 2
    assert re.search(r"\b(?:import|importScripts)\s*\(?\s*['\"]https?:", page) is None
    # The spec is the last script: no address in it but the name of its language, and no tag from a name.
    spec = page[page.index("const spec = ") : page.index("const embedOpt")]
    assert re.findall(r"https?://[^\"]+", spec) == ["https://vega.github.io/schema/vega-lite/v6.json"]
    assert "</script" not in spec
    assert "<!--" not in spec
    assert ('"utilization: aware"' in page) == (make != "gantt")


@pytest.mark.browser
def test_in_a_browser_names_stay_text_and_a_job_stands_out_on_both_sides(
    chromium: str, tmp_path: Path
) -> None:
    from playwright.sync_api import sync_playwright

    left, right = plan(hostile(), "fifo"), plan(hostile(), "aware")
    page_file = tmp_path / "page.html"
    page_file.write_text(
        charts.to_html(charts.dashboard(left, right), charts.table(left, right)), encoding="utf-8"
    )
    wrong: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 1300})
        page.on("request", lambda request: request.url.startswith("file:") or wrong.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append("dialog"), dialog.dismiss()))
        page.on("console", lambda message: wrong.append(message.text))
        page.goto(page_file.as_uri())
        page.wait_for_selector("svg.marks")
        texts = page.locator("svg.marks text", has_text="<img src=x")
        assert texts.count() >= 1
        first = texts.first
        first.hover(force=True, position={"x": 2, "y": 2})
        page.wait_for_function(
            "document.querySelector('#vg-tooltip-element')?.innerText.includes('<img src=x')"
        )
        faded = page.evaluate(
            """() => ['left', 'right'].map(side => [...document.querySelectorAll(`.${side}_bars_marks path`)]
                 .map(path => Number(path.getAttribute('opacity') ?? 1)))"""
        )
        for side in faded:
            assert len(side) > len(HOSTILE) - 3
            assert side.count(1) == 1
            assert side.count(0.2) == len(side) - 1
        assert page.locator("svg.marks img, svg.marks b, table img, table b").count() == 0
        browser.close()
    assert wrong == []


# -------------------------------------------------------------- words, tables


def test_a_description_states_the_numbers() -> None:
    left, right = plan(small(), "fifo"), plan(small(), "aware")
    words = charts.describe(left, right)
    # FIFO: tune 2 + served 4 = 6 of 3 x 4 GPU-hours; value 3 x (1 + 0.5 ** (1 / 24)).
    assert "small: 4 GPUs over 4 hours." in words
    assert (
        "fifo: utilization 50.0 %, coverage 100.0 %, value 5.9, penalty 0.0, objective 5.9, 1 of 1" in words
    )
    assert "aware: utilization 50.0 % (+0.0 points)" in words
    # Nothing can be better than what serves all demand and starts the one job at once.
    assert "objective the best possible, as it reaches the bound" in words
    assert "Bound of this scenario as set: 5.9; no plan of this scenario has a larger objective." in words
    assert charts.gantt(left).to_dict()["description"] == charts.describe(left)
    assert charts.dashboard(left, right).to_dict()["description"] == words


def test_tables_have_captions_scopes_and_escaped_names() -> None:
    left, right = plan(hostile(), "fifo"), plan(hostile(), "aware")
    text = charts.table(left, right)
    assert text.count("<table") == text.count("<caption>") == 4
    assert "<img" not in text
    assert "<script" not in text
    assert "<b>" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
    assert "<bdi>عربي نص</bdi>" in text
    assert '<th scope="col">kind</th>' in text
    assert '<th scope="row">=1+1</th>' in text
    tags = set(re.findall(r"</?(\w+)", text))
    assert tags == {"table", "caption", "thead", "tbody", "tr", "th", "td", "bdi"}


def test_tables_say_where_each_job_is_put() -> None:
    batch = [
        _job("first"),
        {**_job("pair"), "gpus": 2},
        {**_job("late"), "hours": 4},
        {**_job("huge"), "gpus": 8},
    ]
    found = plan(small(batch=batch, realtime=[]), "fifo")
    text = charts.table(found)
    rows = dict(re.findall(r'<tr><th scope="row">(\w+)</th>.*<td>([^<]*)</td></tr>', text))
    assert rows["first"] == "0–1, GPU 1"
    assert rows["pair"] == "0–1, GPUs 2–3"
    assert rows["late"] == "no place"
    assert rows["huge"] == "set aside"


def test_the_table_of_steps_has_a_row_per_stretch() -> None:
    found = plan(small(), "fifo")
    text = charts.table(found)
    demand = text[text.index("Demand of chat") :]
    assert re.findall(r"<td>(\d+)</td><td>(\d+)</td><td>(\d+)</td>", demand) == [
        ("0", "2", "0"),
        ("1", "2", "1"),
        ("2", "2", "2"),
        ("1", "2", "1"),
    ]
    steady = small(realtime=[{"name": "chat", "priority": 1, "demand": [1, 1, 1, 1]}])
    again = charts.table(plan(steady, "fifo"))
    assert again[again.index("Demand of chat") :].count("<tr>") == 2


def test_a_long_table_of_jobs_says_what_it_leaves_out() -> None:
    many = small(batch=[_job(f"job {at}") for at in range(501)], realtime=[])
    text = charts.table(plan(many, "fifo"))
    assert "(the first 500 of 501)" in text
    assert "job 499<" in text
    assert "job 500<" not in text


def test_a_large_cluster_is_thinned_with_a_note() -> None:
    jobs = [{**_job(f"job {at}"), "hours": 1 + at % 3, "kind": "quantization"} for at in range(1500)]
    large = small(cluster={"gpus": 512}, horizon={"steps": 24, "step_hours": 1}, realtime=[], batch=jobs)
    found = plan(large, "fifo")
    sets = charts.dashboard_data(found, found)
    assert len(sets["left_bars"]["x"]) <= drawing_limit()
    assert sets["left_frame"]["note"][0].startswith("1,500 bars: the 500 largest drawn singly, 1,000 smaller")
    assert len(charts.gantt(found).to_json()) < 1_000_000


def drawing_limit() -> int:
    from gpuplan.rectangles import MAX_BARS

    return MAX_BARS


def test_frames_take_the_scenarios_clock() -> None:
    scenario = small(horizon={"steps": 4, "step_hours": 0.5, "start": "2026-03-02T06:30"})
    frame = data.frame_of(scenario, 300)
    assert frame.hours == 2
    assert frame.clock(0.5) == "07:00"
    assert isinstance(frame, drawing.Frame)


def test_the_live_page_does_not_wait_for_altair() -> None:
    code = (
        "import sys; from gpuplan.allocation.charts import dashboard_data, dashboard_spec; "
        "assert 'altair' not in sys.modules; from gpuplan.allocation import charts; charts.gantt; "
        "assert 'altair' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'gant'"):
        charts.gant  # noqa: B018
