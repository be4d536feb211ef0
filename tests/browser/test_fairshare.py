"""The fair-share explorer on a real page: shares are dragged, the chart follows, nothing leaves a narrow page."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Locator, expect

import gpuplan as gp
from browser.desk import Desk, until
from browser.screen import Screen
from gpuplan.fairshare.charts.live import headline
from gpuplan.fairshare.keep_jobs import keep_jobs
from gpuplan.fairshare.model import FairshareScenario

EVIL = "<img src=x onerror=alert(1)>"

SMALL = {
    "kind": "fairshare",
    "name": "small",
    "cluster": {"nodes": 10, "gpus_per_node": 8},
    "window": "1d",
    "contract": {"max_min_runtime": "2h"},
    "budget": [
        {
            "name": "language",
            "weight": 60,
            "children": [{"name": "a", "weight": 70}, {"name": EVIL, "weight": 30}],
        },
        {"name": "robotics", "weight": 40},
    ],
    "workload": {"generate": {"days": 2, "oversubscription": 1.5, "debug_share": 0.2, "seed": 1}},
}

INJECTED = "img[src=x], .gp-explorer script, [onerror], #vg-tooltip-element img"

OVERFLOW = """
() => {
  const wide = (box) => box.scrollWidth > box.clientWidth + 1;
  const root = document.querySelector(".gp-explorer");
  // The charts are not drawn narrower than people can read them; their own box scrolls.
  const parts = ".gp-controls, .gp-control-row, .gp-control, .gp-budgets-list, .gp-budget-card";
  return [root, ...root.querySelectorAll(parts)]
    .filter((box) => box.clientWidth > 0 && wide(box))
    .map((box) => `${box.className}: ${box.scrollWidth} > ${box.clientWidth}`);
}
"""


@pytest.fixture
def screen(explore: Callable[[str], Screen]) -> Screen:
    return explore(repr(SMALL))


def slider(screen: Screen, row: int) -> Locator:
    return screen.page.locator(f".gp-budget-slider[data-row='{row}']")


def await_runs(
    screen: Screen, scenario: FairshareScenario, left: str = "easy", right: str = "fair-share"
) -> None:
    """Wait until the page shows what gpuplan gives in this process for a scenario, in the chart and in words."""
    expected = {side: gp.simulate(scenario, policy) for side, policy in (("left", left), ("right", right))}

    def shown() -> bool:
        return all(
            screen.rows(f"{side}_head")[0]["figures"].replace("\n", " ") == headline(run)
            for side, run in expected.items()
        )

    until(shown, "the chart does not show the runs computed here")
    used = [100 * float(run.figures["goodput"] or 0) for run in expected.values()]
    expect(screen.page.locator(".gp-headline")).to_contain_text(f"goodput {used[0]:.1f} % → {used[1]:.1f} %")


def test_a_share_is_dragged_and_the_chart_repaints_with_the_others_share(screen: Screen) -> None:
    base = gp.load(SMALL)
    await_runs(screen, base)
    rev = screen.rev
    handle = slider(screen, 3)
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    screen.page.mouse.move(box["x"] + 0.4 * box["width"], middle)
    screen.page.mouse.down()
    for part in range(45, 90, 5):
        screen.page.mouse.move(box["x"] + part / 100 * box["width"], middle)
    screen.page.mouse.up()
    until(lambda: screen.rev > rev, "no new picture")
    share = float(handle.input_value())
    assert 70 < share < 98
    expect(screen.page.locator(".gp-budget-share").nth(3)).to_have_text(f"{share:.1f}\N{NO-BREAK SPACE}%")
    expect(screen.page.locator(".gp-budget-share").nth(0)).to_have_text(
        f"{100 - share:.1f}\N{NO-BREAK SPACE}%"
    )
    weight = float(f"{share / (100 - share) * 60:.5g}")
    await_runs(screen, keep_jobs(base).replace({"budget.1.weight": weight}))


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


def test_what_moves_leave_on_screen_is_what_a_fresh_chart_draws(screen: Screen) -> None:
    """Moves write new numbers into the rows that Vega has."""
    base = gp.load(SMALL)
    await_runs(screen, base)
    first = screen.page.evaluate(REDRAWN)
    assert first[0] == first[1]
    screen.handle("fair-load").focus()
    for load in (1.55, 1.6, 1.65):
        screen.page.keyboard.press("ArrowRight")
        await_runs(screen, base.replace({"workload.generate.oversubscription": load}))
    until(lambda: screen.chart.get_attribute("aria-busy") == "false", "still computing")
    before, after = screen.page.evaluate(REDRAWN)
    assert before == after
    assert before != first[0]


def test_keys_and_buttons_move_shares_and_names_are_text(screen: Screen) -> None:
    base = keep_jobs(gp.load(SMALL))
    handle = slider(screen, 1)
    handle.focus()
    for key in ("PageUp", "ArrowRight", "ArrowLeft", "ArrowLeft"):
        screen.page.keyboard.press(key)
    # 79 of 100 beside 30: 112.86
    await_runs(screen, base.replace({"budget.0.children.0.weight": 112.86}))
    expect(handle).to_have_attribute("aria-label", "Share of language/a among its siblings")
    mute = screen.page.get_by_role("button", name=f"Mute language/{EVIL}")
    mute.focus()
    screen.page.keyboard.press("Enter")
    await_runs(screen, base.replace({"budget.0.children.0.weight": 112.86, "budget.0.children.1.weight": 0}))
    expect(mute).to_have_attribute("aria-pressed", "true")
    expect(handle).to_be_disabled()  # the only one left
    expect(screen.page.locator(".gp-summary")).to_contain_text(f"Muted: language/{EVIL}")
    assert screen.page.locator(INJECTED).count() == 0


def test_hysteresis_off_shows_what_is_lost_and_why_a_job_waits(screen: Screen) -> None:
    base = gp.load(SMALL)
    screen.page.locator(".gp-fair-hysteresis input").uncheck()
    await_runs(screen, base.replace({"contract.hysteresis": 0}))
    screen.choose("fair-left", "priority-tiers")
    await_runs(screen, base.replace({"contract.hysteresis": 0}), "priority-tiers")
    screen.page.get_by_text("Why does this job wait?").click()
    choice = screen.page.locator(".gp-fair-why-job select")
    until(lambda: choice.locator("option").count() > 1, "no job waits")
    choice.select_option(index=1)
    said = screen.page.locator(".gp-fair-why-said")
    expect(said).to_contain_text("left (priority-tiers): ")
    expect(said).to_contain_text("right (fair-share): ")


def test_a_stretch_of_time_that_is_dragged_zooms_the_teams(screen: Screen) -> None:
    await_runs(screen, gp.load(SMALL))
    screen.chart.evaluate("(chart) => chart.scrollIntoView({ block: 'start' })")
    (pane, *_others) = screen.drawn("left_areas_marks")
    left, top, _width, height = pane["box"]
    screen.page.mouse.move(left + 20, top + height / 2)
    screen.page.mouse.down()
    screen.page.mouse.move(left + 80, top + height / 2)
    screen.page.mouse.up()
    brushed = "() => document.querySelector('.gp-chart .gp-chart-host').vegaView.signal('brush')?.x?.length"
    until(lambda: screen.page.evaluate(brushed) == 2, "nothing is chosen")
    screen.slide("fair-load", ["ArrowRight"])
    await_runs(screen, gp.load(SMALL).replace({"workload.generate.oversubscription": 1.55}))
    assert screen.page.evaluate(brushed) == 2  # it stays while the numbers change


@pytest.fixture
def narrow(desk: Desk) -> Iterator[Desk]:
    """A page with 340 pixels for the explorer; JupyterLab's own bars are not made for a window of that width."""
    style = desk.page.add_style_tag(content=".jp-OutputArea-output { flex: none; width: 340px; padding: 0; }")
    yield desk
    style.evaluate("(element) => element.remove()")


def test_nothing_reaches_out_of_a_narrow_page_light_or_dark(narrow: Desk) -> None:
    narrow.run_all("import gpuplan as gp", "explorer = gp.explore('fifteen-teams')\nexplorer")
    Screen(narrow.page).ready()
    until(lambda: narrow.page.evaluate(OVERFLOW) == [], "something reaches out of the page")
    narrow.dark(True)
    try:
        until(lambda: narrow.page.evaluate(OVERFLOW) == [], "something reaches out of the dark page")
    finally:
        narrow.dark(False)
