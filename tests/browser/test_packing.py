"""The packing explorer on a real page: sliders, situations and folds answer; nothing leaves a narrow page."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

import gpuplan as gp
from browser.desk import Desk, until
from browser.screen import Screen
from gpuplan.packing.charts.live import headline
from gpuplan.packing.model import PackingScenario
from gpuplan_widgets.packing_gallery import SITUATIONS

EVIL = "<img src=x onerror=alert(1)>"

SMALL = {
    "kind": "packing",
    "name": EVIL,
    "about": EVIL,
    "gpus": {"count": 2, "memory_gib": 40, "max_tasks": 4},
    "models": [
        {"name": EVIL, "declared_gib": 24, "actual_gib": 26, "kv_kib_per_token": 128},
        {"name": "middle", "declared_gib": 12, "actual_gib": 13.5, "popularity": 2},
        {"name": "small", "declared_gib": 6, "actual_gib": 6.5, "popularity": 3},
    ],
    "tasks": {"generate": {"rate_per_s": 0.3, "count": 120, "service_s": {"mean": 5}, "tokens_in": 1000}},
    "contention": {"model": "slowdown"},
}

INJECTED = "img[src=x], .gp-explorer script, [onerror], #vg-tooltip-element img"

OVERFLOW = """
() => {
  const wide = (box) => box.scrollWidth > box.clientWidth + 1;
  const root = document.querySelector(".gp-explorer");
  // The charts are not drawn narrower than people can read them; their own box scrolls.
  const parts = ".gp-controls, .gp-control-row, .gp-control, .gp-pack-about, .gp-summary";
  return [root, ...root.querySelectorAll(parts)]
    .filter((box) => box.clientWidth > 0 && wide(box))
    .map((box) => `${box.className}: ${box.scrollWidth} > ${box.clientWidth}`);
}
"""


@pytest.fixture
def screen(explore: Callable[[str], Screen]) -> Screen:
    return explore(repr(SMALL))


def await_runs(
    screen: Screen, scenario: PackingScenario, left: str = "round-robin", right: str = "best-fit"
) -> None:
    """Wait until the page shows what gpuplan gives in this process for a scenario, in the chart and in words."""
    expected = {side: gp.pack(scenario, policy) for side, policy in (("left", left), ("right", right))}

    def shown() -> bool:
        return all(
            screen.rows(f"{side}_head")[0]["figures"].replace("\n", " ") == headline(run)
            for side, run in expected.items()
        )

    until(shown, "the chart does not show the runs computed here")
    out = [run.figures["out_of_memory"] for run in expected.values()]
    expect(screen.page.locator(".gp-headline")).to_contain_text(f"out of memory {out[0]:,} → {out[1]:,}")


def test_sliders_and_choices_repaint_the_chart_and_names_are_text(screen: Screen) -> None:
    base = gp.load(SMALL)
    await_runs(screen, base)
    handle = screen.handle("pack-margin")
    expect(handle).to_have_attribute("aria-valuenow", "20.0")
    screen.slide("pack-margin", ["Home"])
    tight = base.replace({"admission.margin": 0})
    await_runs(screen, tight)
    screen.choose("pack-right-placement", "worst-fit")
    await_runs(screen, tight, right="worst-fit")
    screen.choose("pack-left-order", "backfill")
    await_runs(screen, tight, "round-robin+backfill", "worst-fit+fifo")
    screen.choose("pack-contention", "sharing")
    screen.slide("pack-rate", ["End"])
    never = tight.replace({"contention.model": "sharing", "tasks.generate.rate_per_s": 0.9})
    await_runs(screen, never, "round-robin+backfill", "worst-fit+fifo")
    # 0.9 per s of 5 s on two GPUs that do one task's work each
    expect(screen.page.locator(".gp-pack-alert")).to_contain_text("at 2.25 times the rate")
    assert screen.page.locator(INJECTED).count() == 0


def test_a_situation_is_chosen_explained_and_its_task_asked_about(screen: Screen) -> None:
    await_runs(screen, gp.load(SMALL))
    situation = SITUATIONS["embedder-evicts-chat"]
    screen.choose("pack-situation", situation.title)
    scenario = gp.load("embedder-evicts-chat")
    await_runs(screen, scenario, *situation.policies)
    expect(screen.page.locator(".gp-pack-about")).to_contain_text("throws out the other")
    assert screen.drawn("left_bars_marks") or screen.rows("left_bars")  # few tasks: a Gantt
    screen.page.get_by_text("Why does this task wait?").click()
    choice = screen.page.locator(".gp-pack-why-task select")
    until(lambda: choice.locator("option").count() > 1, "no task waits")
    choice.select_option(index=1)
    said = screen.page.locator(".gp-pack-why-said")
    expect(said).to_contain_text("left (round-robin): Task ")
    expect(said).to_contain_text("right (best-fit): Task ")
    screen.slide("pack-margin", ["ArrowLeft"] * 10)
    await_runs(screen, scenario.replace({"admission.margin": 0.1}), *situation.policies)


def test_a_model_is_spread_over_more_gpus(screen: Screen) -> None:
    """The slider of a model's GPUs: its tasks stand on each of them, joined, and back on two."""
    situation, scenario = SITUATIONS["no-two-gpus-free"], gp.load("no-two-gpus-free")
    screen.choose("pack-situation", situation.title)
    await_runs(screen, scenario, *situation.policies)
    assert [row["y"] for row in screen.rows("right_joins")] == [4.5, 8.5]  # GPUs 1 and 2, four lanes each
    screen.page.get_by_text("More controls", exact=True).click()
    expect(screen.handle("pack-spread")).to_be_visible()
    screen.slide("pack-spread", ["ArrowRight", "ArrowRight"])
    await_runs(screen, scenario.replace({"models.0.gpus": 4}), *situation.policies)
    assert len(screen.rows("right_joins")) == 4
    screen.slide("pack-spread", ["ArrowLeft", "ArrowLeft"])
    await_runs(screen, scenario, *situation.policies)


def test_the_numbers_on_screen_are_those_of_a_chart_drawn_from_nothing(screen: Screen) -> None:
    """A slider only swaps numbers into the rows that Vega has."""
    await_runs(screen, gp.load(SMALL))
    screen.slide("pack-burst", ["ArrowRight"] * 3)
    await_runs(screen, gp.load(SMALL).replace({"tasks.generate.arrival_cv": 1.3}))
    until(lambda: screen.chart.get_attribute("aria-busy") == "false", "still computing")
    before, after = screen.page.evaluate(REDRAWN)
    assert before == after


# Draws the payload on screen again from nothing, by another page colour and back; the pictures before and after.
REDRAWN = """
async () => {
  const chart = document.querySelector(".gp-chart");
  const picture = () => chart.querySelector("canvas").toDataURL();
  const before = picture();
  const shown = Number(chart.dataset.paints);
  for (const [turn, light] of [[1, "false"], [2, "true"]]) {
    document.body.dataset.jpThemeLight = light;
    while (Number(chart.dataset.paints) < shown + turn) await new Promise((next) => setTimeout(next, 20));
  }
  return [before, picture()];
}
"""


@pytest.fixture
def narrow(desk: Desk) -> Iterator[Desk]:
    """A page with 340 pixels for the explorer; JupyterLab's own bars are not made for a window of that width."""
    style = desk.page.add_style_tag(content=".jp-OutputArea-output { flex: none; width: 340px; padding: 0; }")
    yield desk
    style.evaluate("(element) => element.remove()")


def test_nothing_reaches_out_of_a_narrow_page_light_or_dark(narrow: Desk) -> None:
    narrow.run_all("import gpuplan as gp", "explorer = gp.explore('four-gpus')\nexplorer")
    Screen(narrow.page).ready()
    until(lambda: narrow.page.evaluate(OVERFLOW) == [], "something reaches out of the page")
    narrow.dark(True)
    try:
        until(lambda: narrow.page.evaluate(OVERFLOW) == [], "something reaches out of the dark page")
    finally:
        narrow.dark(False)
