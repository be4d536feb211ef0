"""Words in and above charts: folded to their room, in a bar only where they fit, for axes as long as the run."""

import re

import pytest
import vl_convert

import gpuplan as gp
from gpuplan import gantt as drawing
from gpuplan.fairshare.charts import live as fairshare_live
from gpuplan.gantt import titles
from gpuplan.packing.charts import live as packing_live


def test_notes_are_folded_behind_commas_and_keep_every_word() -> None:
    said = "2,000 of 2,000 tasks done, latency 2.67 min, wait p95 8.86 min, 12 OOM"
    assert titles.folded(said, 0) == said
    assert titles.folded(said, 600) == said
    assert titles.folded(said, 300) == (
        "2,000 of 2,000 tasks done, latency 2.67 min,\nwait p95 8.86 min, 12 OOM"
    )
    assert titles.folded("no comma anywhere in this note", 120) == "no comma anywhere in\nthis note"
    assert titles.fitting(("a long wording", "short"), 40) == "short"
    assert titles.panel_title("largest memory of one GPU", 90)["text"] == ["largest memory of one", "GPU"]


def test_labels_of_a_live_gantt_fit_their_bars_where_the_run_outlasts_the_arrivals() -> None:
    scenario = gp.load("no-two-gpus-free")
    run = gp.pack(scenario, policy="round-robin")
    spec = packing_live.live_spec(run.problem, width=868)
    data = packing_live.live_data(run, run, width=868)
    bars, frame = data["left_bars"], data["left_frame"]
    assert bars["span"] == [max(frame["x2"])] * len(bars["x"])
    assert frame["x2"][0] > packing_live.live_clock(run.problem).span
    px = (868 // 2 - 70) / frame["x2"][0]
    room = {
        f"{'LRSE'[stage]} {task}": (x2 - x) * px
        for x, x2, task, stage in zip(bars["x"], bars["x2"], bars["task"], bars["stage"], strict=True)
    }
    drawn = set(
        re.findall(r">([LR] \d)<", vl_convert.vegalite_to_svg(drawing.still(drawing.inline(spec, data))))
    )
    assert drawn
    assert all(room[label] >= 20 for label in drawn)
    # loads take a few pixels here
    assert any(label.startswith("L") and width < 20 for label, width in room.items())


@pytest.mark.parametrize("width", [868, 700])
def test_words_of_the_live_pages_are_not_cut(width: int) -> None:
    fair = [gp.simulate("two-types", policy=name) for name in ("easy", "fair-share")]
    packed = [gp.pack("four-gpus", policy=name) for name in ("round-robin", "best-fit")]
    for page, runs in ((fairshare_live, fair), (packing_live, packed)):
        spec = page.live_spec(runs[0].problem, width=width)
        svg = vl_convert.vegalite_to_svg(
            drawing.still(drawing.inline(spec, page.live_data(*runs, width=width)))
        )
        texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
        assert [text for text in texts if text.endswith("…")] == []


def test_both_sides_of_a_live_page_have_one_axis() -> None:
    runs = [gp.simulate("first-hours", policy=name) for name in ("easy", "fair-share")]
    assert runs[0].end_s != runs[1].end_s
    data = fairshare_live.live_data(*runs)
    assert data["left_frame"]["x2"] == data["right_frame"]["x2"] == data["left_head"]["x2"]
