"""Interactive pages: every state is computed, repeats, is found out when changed, and asks nobody for anything."""

import json
import math
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import gpuplan as gp
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.packing.arrivals import at_rate
from gpuplan.reports import grid_points, live_page
from gpuplan.reports.grid import Grid, grid
from gpuplan.reports.grid_pack import packed, unpacked
from gpuplan.reports.runs import compared
from gpuplan.side_by_side import as_text
from reports.grids import GRIDS, small

Run = Callable[..., tuple[int, str, str]]

HOSTILE = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> & =1+1 \u202eneercs"

TINY = {
    "kind": "allocation",
    "name": "small",
    "cluster": {"gpus": 4},
    "horizon": {"steps": 4},
    "realtime": [{"name": "chat", "priority": 2, "demand": [0, 1, 2, 1]}],
    "batch": [
        {"name": "tune", "kind": "training", "gpus": 2, "hours": 2, "priority": 1},
        {"name": "quant", "kind": "quantization", "gpus": 1, "hours": 1, "priority": 1},
    ],
}
TEAMS = [{"name": "red", "weight": 3}, {"name": "blue", "weight": 1}, {"name": "green", "weight": 2}]
GENERATED = {
    "kind": "fairshare",
    "name": "generated",
    "cluster": {"gpus": 8},
    "window": "1d",
    "budget": TEAMS,
    "workload": {"generate": {"days": 2, "oversubscription": 1.5, "debug_share": 0.2, "seed": 3}},
}


class Outline(HTMLParser):
    """Elements with their attributes, and what scripts hold."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], list[str]]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs), []))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] == "script":
            self.scripts[-1][1].append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]

    def data(self, place: str) -> Any:
        (found,) = ["".join(text) for attrs, text in self.scripts if attrs.get("id") == place]
        return json.loads(found)


@pytest.fixture(scope="module")
def grids() -> dict[str, Grid]:
    return {kind: small(kind) for kind in GRIDS}


def by_hand(found: Grid, first: float, second: float) -> Any:
    """The scenario of a point, made without the axes' own code."""
    base = gp.load(found.scenario)
    if base.kind == "allocation":
        return base.replace({"objective.shortfall_penalty": first, "cluster.gpus": int(second)})
    if base.kind == "fairshare":  # red and blue: weights are percentages
        changes = {"budget.0.weight": first, "budget.1.weight": 100 - first}
        return base.replace(changes | {"window": f"{round(3600 * second)}s"})
    rows = [  # every arrival divided by hand, in seconds
        {"arrival_s": 20 * k / second, "model": ("chat", "embedder")[k % 2], "service_s": (5, 0.1)[k % 2]}
        for k in range(8)
    ]
    mapping = {**base.to_dict(), "tasks": {"rows": rows}, "until_s": max(200, 200 / second)}
    return gp.load(mapping).replace({"admission.margin": first / 100})


@pytest.mark.parametrize("kind", GRIDS)
def test_every_point_is_what_the_library_computes(kind: str, grids: dict[str, Grid]) -> None:
    found = grids[kind]
    shown = Outline(found.html).data("grid")
    units = [*found.units.values(), "rules"]
    assert [len(axis.values) for axis in found.axes] == [3, 3]
    for place in range(9):
        values = [axis.values[stop] for axis, stop in zip(found.axes, divmod(place, 3), strict=True)]
        results = compared(by_hand(found, *values), found.choices).results
        for k, result in enumerate(results.values()):
            numbers, texts = shown["rows"][shown["at"][place][k]]
            figures = [*result.figures.values(), 0]
            assert numbers == figures
            assert [shown["texts"][n] for n in texts] == list(map(as_text, figures, units))
    assert found.broken == []
    own = compared(found.scenario, found.choices).results
    assert found.points[found.space.own].figures == [list(r.figures.values()) for r in own.values()]


@pytest.mark.parametrize("kind", GRIDS)
def test_a_page_is_small_labelled_and_asks_nobody(kind: str, grids: dict[str, Grid], tmp_path: Path) -> None:
    found = grids[kind]
    found.save(tmp_path / "live.html")
    page = (tmp_path / "live.html").read_text(encoding="utf-8")
    assert page == found.html
    assert len(page.encode()) < 5_000_000
    outline = Outline(page)
    assert not [attrs for _, attrs in outline.elements if {"src", "srcset", "action"} & set(attrs)]
    assert all(str(a["href"]).startswith("#") for a in outline.all("a"))
    labelled = {label["for"] for label in outline.all("label")}
    controls = [c["id"] for c in outline.all("input") + outline.all("select")]
    assert sorted(controls) == sorted(labelled, key=str)
    places = [attrs["id"] for _, attrs in outline.elements if "id" in attrs]
    assert len(places) == len(set(places))
    for chart in ("picture-charts", "grid-charts"):
        assert set(outline.data(chart)) == {"wide", "medium", "narrow"}
        assert "http" not in json.dumps(outline.data(chart)).replace("https://vega.github.io/schema/", "")


def test_pictures_are_those_of_the_charts_and_small(grids: dict[str, Grid]) -> None:
    plan = gp.plan(gp.load("two-apps").replace({"cluster.gpus": 24}), "aware")
    found = grids["allocation"]
    place = 2 * 3 + 2
    assert found.space.words(place) == "24 GPUs and a penalty of 8"
    bars = found.points[place].drawn[1]["bars"]
    names = [job.name for job in plan.scenario.batch]
    columns = zip(*(bars[key] for key in ("job", "x", "x2", "y", "y2")), strict=True)
    drawn = {(job, x, x2, y2 - y) for job, x, x2, y, y2 in columns if job in names}
    hours = {
        (names[j], float(plan.start[j]), float(plan.end[j]), float(plan.size[j]))
        for j in range(len(names))
        if plan.start[j] >= 0
    }
    assert drawn == hours
    tops = {tuple(sets["demand_0"]["top"]) for point in found.points for sets in point.drawn}
    assert len({top for column in tops for top in column}) == 1  # one scale at all points
    run = gp.simulate("first-hours", "fair-share")
    own = grids["fairshare"].points[grids["fairshare"].space.own].drawn[1]
    assert own["delivered"]["says"] == [f"{share:.2f}" for share in run.teams["delivered_share"]]
    time = own["over_time"]
    got = sum(g * (b - a) for g, a, b in zip(time["got"], time["x"], time["x2"], strict=True))
    assert got == pytest.approx(run.teams["delivered_gpu_hours"].sum(), abs=0.1)
    packs = gp.pack("embedder-evicts-chat", "best-fit")
    sets = grids["packing"].points[grids["packing"].space.own].drawn[1]
    gib = sum(b - a for a, b in zip(sets["memory"]["x"], sets["memory"]["x2"], strict=True))
    assert gib == pytest.approx(24 * packs.figures["actual_mean"], abs=0.03)
    assert sets["reserved"]["reserved"][0] == pytest.approx(24 * packs.figures["reserved_mean"], abs=0.01)
    assert sets["latency"]["p50"] == pytest.approx(packs.models["latency_p50_s"].tolist(), abs=0.001)


@pytest.mark.parametrize("kind", GRIDS)
def test_pictures_survive_packing(kind: str, grids: dict[str, Grid]) -> None:
    pictures: list[Any] = [(point.shared, point.drawn) for point in grids[kind].points]
    pictures[4] = None
    small_form = json.loads(json.dumps(packed(pictures)))
    assert unpacked(small_form) == pictures
    assert packed(unpacked(small_form)) == small_form


def test_workers_change_no_letter() -> None:
    alone, two = (small("fairshare", workers=n) for n in (1, 2))
    assert alone.html == two.html


def test_a_worker_that_dies_loses_no_point(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = small("allocation")
    monkeypatch.setattr(grid_points, "_from_pool", lambda *_: iter([[whole.points[0]]]))
    assert small("allocation", workers=2).points == whole.points


def test_jobs_stay_while_shares_move() -> None:
    found = grid(GENERATED, ["fifo"], team="green", shares=[10, 50], windows=["12h"])
    own = found.points[found.space.own].figures[0]
    assert own == list(gp.simulate(GENERATED, "fifo").figures.values())
    jobs = {tuple(found.space.at(place).jobs.submit_s.tolist()) for place in range(found.space.size)}
    assert len(jobs) == 1
    weights = {}
    for place in range(found.space.size):
        first, _ = found.space.stops(place)
        budget = found.space.at(place).budget
        weights[found.axes[0].values[first]] = [node.weight for node in budget]
    # a third of the way: 10 % beside 3 : 1 is 10 : 67.5 : 22.5, as whole multiples of the weights
    assert weights[10] == [270, 90, 40]
    assert weights[50] == [150, 50, 200]
    assert list(weights) == [10, pytest.approx(100 / 3), 50]
    assert "Jobs generated for the shares as they were" in " ".join(found.notes)


def test_tasks_come_faster_or_slower_and_stay_the_same() -> None:
    rows = [{"arrival_s": 2 * k, "model": "m", "service_s": 1, "deadline_s": 2 * k + 9} for k in range(3)]
    scenario = gp.load(
        {
            "kind": "packing", "name": "p", "gpus": {"count": 1, "memory_gib": 8}, "until_s": 10,
            "models": [{"name": "m", "declared_gib": 1}], "tasks": {"rows": rows},
        }
    )  # fmt: skip
    slow, fast = at_rate(scenario, 0.5), at_rate(scenario, 2)
    assert (slow.tasks.arrival_us / 1e6).tolist() == [0, 4, 8]
    assert (fast.tasks.arrival_us / 1e6).tolist() == [0, 1, 2]
    assert slow.tasks.deadline_us.tolist() == (slow.tasks.arrival_us + 9_000_000).tolist()
    assert (slow.until_us, fast.until_us) == (20_000_000, 10_000_000)
    assert at_rate(scenario, 1) is scenario
    four = gp.load("four-gpus")
    assert at_rate(four, 0.5).generate.rate_per_s == 0.6
    for wrong in (0, -1, math.nan, math.inf):
        with pytest.raises(InputError, match="must be a number above 0"):
            at_rate(scenario, wrong)
    with pytest.raises(InputError, match="later than any run"):
        at_rate(scenario, 1e-9)


def test_what_a_scenario_refuses_is_said_and_the_rest_stands(tmp_path: Path, run: Run) -> None:
    nodes = {**TINY, "cluster": {"gpus": 4, "gpus_per_node": 2, "unavailable": [3]}}
    found = grid(nodes, ["fifo"], penalties=[], gpus=[2, 4])
    assert found.axes[1].values == (4,)
    assert "Left out: 2 GPUs: cluster.unavailable" in found.html
    found.save(tmp_path / "live.html")
    assert run("verify", tmp_path / "live.html")[0] == 0
    page = found.html.replace("Left out: 2 GPUs", "Left out: 3 GPUs")
    (tmp_path / "live.html").write_text(page, encoding="utf-8")
    assert run("verify", tmp_path / "live.html")[0] == 2


def test_windows_that_a_contract_does_not_allow_are_left_out() -> None:
    contract = {"max_min_runtime": "5h"}
    found = grid({**GENERATED, "window": "6h", "contract": contract}, ["fifo"], shares=[])
    assert found.axes[1].values == (6, 12, 24, 48)  # of 1, 3, 6, 12, 24, 48
    assert any(
        note.startswith("Left out: a window of 3h: contract.max_min_runtime must not") for note in found.notes
    )


def test_a_point_without_results_stays_in_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    task = grid_points.Task.point

    def refuses(self: Any, place: int) -> Any:
        point = task(self, place)
        return point if place else grid_points.Point([], [], [], {}, [], "must not be")

    monkeypatch.setattr(grid_points.Task, "point", refuses)
    found = small("packing")
    assert found.errors == {0: "must not be"}
    data = Outline(found.html).data("grid")
    assert data["at"][0] == "must not be"
    assert "Not computed: arrivals × 0.5 and a margin of 0 %: must not be" in found.html


def test_broken_rules_are_told_and_end_with_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: Run
) -> None:
    from gpuplan.allocation.plan import Plan

    monkeypatch.setattr(Plan, "check", lambda plan: ["job 1 is cut"] if plan.policy == "fifo" else [])
    words = ("--over", "penalties=1", "--over", "gpus=16", "--policies", "fifo,aware")
    status, _, err = run("report", "two-apps", "--interactive", "-o", tmp_path / "live.html", *words)
    assert status == 1
    assert err.count("fifo: job 1 is cut: a fault of gpuplan") == 2  # penalties 1 and 8
    page = (tmp_path / "live.html").read_text(encoding="utf-8")
    assert "Broken rule (a fault of gpuplan): 16 GPUs and a penalty of 1: fifo: job 1 is cut" in page
    last = len(Outline(page).data("grid")["figures"]) - 1
    cells = [f'<td data-policy="{k}" data-figure="{last}">{count}</td>' for k, count in ((0, 1), (1, 0))]
    assert "".join(cells) in page


def test_what_does_not_fit_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = small("allocation", penalties=[0, 1, 2, 3], gpus=[8, 16, 24])
    whole = len(found.html.encode())
    assert "left-out" not in found.html
    monkeypatch.setattr(live_page, "MOST_BYTES", whole - 1)
    cut = live_page.live_page(found)
    at = Outline(cut).data("grid-pictures")["at"]
    assert 0 < sum(one is None for one in at) < len(at) == 15
    assert at[found.space.own] is not None
    assert f"Pictures stand at {sum(one is not None for one in at)} of 15 points" in cut
    assert Outline(cut).data("grid")["at"] == Outline(found.html).data("grid")["at"]
    path = tmp_path / "live.html"
    path.write_text(cut, encoding="utf-8")
    assert gp.verify_report(path).holds
    monkeypatch.setattr(live_page, "MOST_BYTES", 1000)
    with pytest.raises(InputError, match="name fewer values"):
        live_page.live_page(found)


def named(name: str) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """A tiny scenario of every kind in which everything has a name, and axes."""
    jobs = [{"job": name, "team": name, "submit_s": 0, "gpus": 1, "run_s": 3600, "min_runtime_s": 600}]
    models = [{"name": name, "declared_gib": 4}]
    rows = [{"arrival_s": 0, "model": name, "service_s": 5}]
    head = {"name": name, "about": name}
    work = {"realtime": [{"name": name, "priority": 2, "demand": [0, 1, 2, 1]}], "batch": []}
    budget = [{"name": name}, {"name": "other"}]
    return {
        "allocation": ({**TINY, **head, **work}, {"penalties": [1], "gpus": [4]}),
        "fairshare": (
            {**GENERATED, **head, "budget": budget, "workload": {"jobs": jobs}},
            {"shares": [20], "windows": ["3d"]},
        ),
        "packing": (
            {**head, "kind": "packing", "gpus": {"count": 1, "memory_gib": 8}, "models": models,
             "tasks": {"rows": rows}},
            {"margins": [0.1], "loads": [2]},
        ),
    }  # fmt: skip


@pytest.mark.parametrize("kind", GRIDS)
def test_names_in_a_page_stay_text(kind: str, tmp_path: Path) -> None:
    pages = []
    for name in (HOSTILE.replace("/", "|") if kind == "fairshare" else HOSTILE, "plain"):
        mapping, axes = named(name)[kind]
        pages.append(grid(mapping, **axes).html)
    tags = [[tag for tag, _ in Outline(page).elements if tag not in ("bdi", "p", "li")] for page in pages]
    assert tags[0] == tags[1]
    assert "<script>alert" not in pages[0]
    assert "<img src=x" not in pages[0]
    (tmp_path / "live.html").write_text(pages[0], encoding="utf-8")
    assert gp.verify_report(tmp_path / "live.html").holds


# ------------------------------------------------------------------ verification


def edited(page: str, place: str, change: Callable[[Any], None]) -> str:
    """A page with the data of one of its scripts changed."""
    from gpuplan.reports.page import in_script

    data = Outline(page).data(place)
    change(data)
    found = re.sub(
        rf'(<script type="application/json" id="{place}">).*?(</script>)',
        lambda match: match[1] + in_script(data) + match[2],
        page,
        flags=re.DOTALL,
    )
    assert found != page
    return found


def _number(data: Any) -> None:
    data["rows"][data["at"][3][1]][0][2] += 1


def _text(data: Any) -> None:
    data["texts"][data["rows"][data["at"][3][1]][1][2]] += "0"


def _bar(data: Any) -> None:
    table = data["at"][3][1][1][data["own"].index("bars")]
    data["tables"][table][2] = data["tables"][table][3]  # every bar begins where it ends


EDITS: dict[str, tuple[str, Callable[[Any], None]]] = {
    "another value": ("grid", _number),
    "shown otherwise than it is recorded": ("grid", _text),
    "another picture": ("grid-pictures", _bar),
}


@pytest.mark.parametrize("kind", GRIDS)
def test_a_page_verifies_all_of_it_or_some(
    kind: str, grids: dict[str, Grid], tmp_path: Path, run: Run
) -> None:
    path = tmp_path / "live.html"
    path.write_bytes(grids[kind].html.replace("\n", "\r\n").encode())
    status, out, err = run("verify", path)
    n = 9 * 2 * (len(grids[kind].units) + 1)
    assert (status, err) == (0, "")
    assert f"{n:,} of {n:,} figures hold." in out
    assert "All 9 points were computed anew" in out
    assert "letter for letter" in out
    status, out, _ = run("verify", path, "--sample", "2")
    assert status == 0
    assert "2 of 9 points were computed anew" in out
    assert "letter for letter" in out
    assert json.loads(run("verify", path, "--json")[1])["holds"] is True


@pytest.mark.parametrize("reason", EDITS)
def test_what_was_changed_is_named(reason: str, grids: dict[str, Grid], tmp_path: Path, run: Run) -> None:
    path = tmp_path / "live.html"
    path.write_text(edited(grids["allocation"].html, *EDITS[reason]), encoding="utf-8")
    status, out, _ = run("verify", path)
    assert status == 2
    lines = [line for line in out.splitlines() if "does not hold" in line]
    assert lines
    assert all(line.endswith(f"does not hold: {reason}") for line in lines)
    assert any("at 8 GPUs and a penalty of 2" in line for line in lines)
    assert "Something else in the page" in out


def test_a_changed_script_sentence_or_scenario_is_noticed(
    grids: dict[str, Grid], tmp_path: Path, run: Run
) -> None:
    page, path = grids["packing"].html, tmp_path / "live.html"
    for old, new in (
        ("function words() {", "function words() { return;"),
        ("All points meet the same tasks", "All points meet other tasks"),
        ("service_s: 5", "service_s: 6"),
        ('{"name":"loads","short"', '{"name":"loads","shorts"'),
    ):
        assert old in page
        path.write_text(page.replace(old, new, 1), encoding="utf-8")
        for more in ((), ("--sample", "1")):
            status, out, _ = run("verify", path, *more)
            assert status == 2
            assert "is not" in out


@pytest.mark.parametrize(
    ("place", "change", "words"),
    [
        ("grid-record", lambda r: r.update(policies=["exact"]), "must repeat in a report"),
        ("grid-record", lambda r: r.update(policies=["fifo"]), "data are not those"),
        ("grid-record", lambda r: r.update(kind="packing"), "do not fit each other"),
        ("grid-record", lambda r: r["axes"].update(gpus=[8, 16]), "points do not fit its axes"),
        ("grid-record", lambda r: r["axes"].update(gpus="x"), "must be a list of values"),
        ("grid-record", lambda r: r["asked"].update(gpus=list(range(1, 500)), penalties=list(range(300))), "10,000"),
        ("grid-record", lambda r: r.pop("axes"), "data are not those"),
        ("grid-record", lambda r: r.update(pictures_every=0), "points do not fit its axes"),
        ("grid", lambda d: d["at"].pop(), "data are not those"),
        ("grid", lambda d: d["rows"][0][0].__setitem__(0, "x"), "data are not those"),
        ("grid-pictures", lambda d: d["columns"].__setitem__(0, {"c": 1, "n": 10**12}), "data are not those"),
    ],
)  # fmt: skip
def test_a_damaged_page_is_a_sentence(
    place: str, change: Callable[[Any], None], words: str, grids: dict[str, Grid], tmp_path: Path
) -> None:
    path = tmp_path / "live.html"
    path.write_text(edited(grids["allocation"].html, place, change), encoding="utf-8")
    with pytest.raises(InputError, match=words):
        gp.verify_report(path)


def test_pages_of_another_form_and_samples_of_reports_are_refused(
    grids: dict[str, Grid], tmp_path: Path
) -> None:
    path = tmp_path / "live.html"
    path.write_text(
        grids["packing"].html.replace("gpuplan-interactive 2", "gpuplan-interactive 1"), encoding="utf-8"
    )
    with pytest.raises(InputError, match="in form 1, and this gpuplan reads form 2"):
        gp.verify_report(path)
    gp.report("one-gpu-idles").save(path)
    with pytest.raises(InputError, match="a sample is for pages with live controls"):
        gp.verify_report(path, sample=3)


# ------------------------------------------------------------------ bad input


def mistakes_of(scenario: Any, **wishes: Any) -> list[Mistake]:
    with pytest.raises(InputError) as caught:
        grid(scenario, **wishes)
    return list(caught.value.mistakes)


def test_everything_that_is_wrong_is_told_at_once() -> None:
    found = mistakes_of(
        TINY, penalties=[-1, math.nan, "x", True, math.inf], gpus=[2.5, 0, "8"], team="red", workers=0
    )
    assert [m.path for m in found] == ["team", "workers", *["penalties"] * 5, *["gpus"] * 3]
    found = mistakes_of(GENERATED, team="rad", shares=[101, None], windows=["x", "-1d", -3, math.nan])
    assert [m.path for m in found] == ["team", "shares", "shares", *["windows"] * 4]
    assert "did you mean red" in found[0].rule
    found = mistakes_of("embedder-evicts-chat", margins=0.2, loads=[0, -1, 1e9])
    assert [m.path for m in found] == ["margins", "loads", "loads", "loads"]


def test_a_grid_that_is_too_large_is_refused_before_it_is_computed() -> None:
    (found,) = mistakes_of(TINY, policies=["fifo"], penalties=range(400), gpus=range(1, 100))
    assert "at most 10,000 results" in found.rule
    (found,) = mistakes_of(TINY, policies=["fifo"], penalties=iter(lambda: 1, 2))
    assert "at most 500 values" in found.rule


def test_what_the_command_refuses(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "live.html"
    for words, says in (
        (("--interactive", "-o", tmp_path / "live.pdf"), "a PDF has no controls"),
        (("--interactive", "-o", tmp_path / "none" / "live.html"), "there is no folder"),
        (("-o", page, "--over", "gpus=8"), "goes with --interactive"),
        (("--interactive", "-o", page, "--over", "gpu=8"), "--over wants AXIS=A,B"),
        (("--interactive", "-o", page, "--over", "gpus=8", "--over", "gpus=9"), "more than once"),
        (("--interactive", "-o", page, "--over", "gpus=8,x"), "gpus: must be numbers (got 'x')"),
        (("--interactive", "-o", page, "--over", "loads=1"), "is no axis of a scenario of kind allocation"),
    ):
        status, out, err = run("report", "two-apps", *words)
        assert (status, out) == (2, "")
        assert says in err
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_leaves_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: Run) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(grid_points.Task, "point", stop)
    assert run("report", "two-apps", "--interactive", "-o", tmp_path / "live.html")[0] == 130
    assert list(tmp_path.iterdir()) == []
