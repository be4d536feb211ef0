"""The rolling explorer on a real page: it shows a moment, steps, plays, follows its sliders, fits a narrow page."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

import gpuplan as gp
from browser.desk import Desk, until
from browser.screen import Screen
from gpuplan.allocation.charts.rolling_moment import moment_words
from gpuplan.allocation.rolling_run import RollingRun

ERRORS = {"traffic_bias": -0.2, "traffic_noise": 0.3, "duration_noise": 0.4}

SOURCE = f"explorer = RollingExplorer('two-apps', days=2, errors={ERRORS})\nexplorer"

OVERFLOW = """
() => {
  const wide = (box) => box.scrollWidth > box.clientWidth + 1;
  const root = document.querySelector(".gp-explorer");
  return [root, ...root.querySelectorAll(".gp-chart-scroll, .gp-controls, .gp-control-row, .widget-hbox")]
    .filter((box) => box.clientWidth > 0 && wide(box))
    .map((box) => `${box.className}: ${box.scrollWidth} > ${box.clientWidth}`);
}
"""


# The page reports its width, and what is drawn for it comes back a moment later.
FITS = """
() => {
  const box = document.querySelector(".gp-chart-scroll");
  const width = box.querySelector("canvas")?.clientWidth ?? 0;
  return width > 0.8 * box.clientWidth && width <= box.clientWidth;
}
"""


@pytest.fixture
def screen(desk: Desk) -> Screen:
    desk.run_all("from gpuplan_widgets import RollingExplorer", SOURCE)
    return Screen(desk.page).ready()


@pytest.fixture
def narrow(desk: Desk) -> Iterator[Desk]:
    """A page of 760 pixels, its left side folded away."""
    size = desk.page.viewport_size
    toggle = "() => window.jupyterapp.commands.execute('application:toggle-left-area')"
    desk.page.evaluate(toggle)
    desk.page.set_viewport_size({"width": 760, "height": 1100})
    yield desk
    assert size is not None
    desk.page.set_viewport_size(size)
    desk.page.evaluate(toggle)


def run_here(**changed: float) -> RollingRun:
    return gp.roll("two-apps", "aware", days=2, errors=ERRORS | changed)


def title(screen: Screen) -> str:
    return str(screen.rows("moment_frame")[0]["title"])


def where(screen: Screen) -> Locator:
    return screen.page.locator(".gp-roll-where")


def cells(screen: Screen, planned: int) -> int:
    """GPU-hours of the bars that are drawn on one side of now."""
    bars = [bar for bar in screen.drawn("moment_bars_marks") if bar["kind"] != "unmet"]
    areas = [
        (bar["y2"] - bar["y"]) * (bar["x2"] - bar["x"]) for bar in bars if int(bar["planned"]) == planned
    ]
    return round(sum(areas))


def test_a_moment_is_drawn_and_each_step_draws_the_next(screen: Screen) -> None:
    run, buttons = run_here(), screen.page.locator
    rev = screen.rev
    expect(where(screen)).to_have_text(f"{moment_words(run.days, 0)}: plan 1 of 48")
    assert cells(screen, 0) == 0
    assert cells(screen, 1) == (run.grid_of(run.promises[0]) >= 0).sum()
    buttons(".gp-roll-forward").click()
    until(lambda: screen.rev > rev, "no new picture")
    expect(where(screen)).to_have_text(f"{moment_words(run.days, 1)}: plan 2 of 48")
    rev = screen.rev
    buttons(".gp-roll-last").click()
    until(lambda: screen.rev > rev, "no new picture")
    until(lambda: title(screen).startswith("aware: plan 48 of 48"), "not the last plan")
    assert cells(screen, 0) == (run.plan.grid[:, 23:47] >= 0).sum()
    assert cells(screen, 1) == (run.grid_of(run.promises[47]) >= 0).sum()
    assert not screen.page.locator(".gp-roll-figures", has_text="not known").is_visible()


def settled(screen: Screen, moment: Locator) -> int:
    """The moment when it has stood still for a second: a tick of the player may be under way when it is paused."""
    before = -1

    def still() -> bool:
        nonlocal before
        now = int(float(moment.get_attribute("aria-valuenow") or 0))
        same, before = now == before, now
        if not same:
            screen.page.wait_for_timeout(1_000)
        return same

    until(still, "it does not pause")
    return before


def test_the_days_play_and_pause_and_the_keyboard_moves_the_moment(screen: Screen) -> None:
    play = screen.page.locator(".gp-roll-play").get_by_role("button", name="Play")
    screen.page.locator(".gp-roll-speed select").select_option(label="fast (8 a second)")
    play.click()
    moment = screen.handle("roll-moment")
    until(lambda: int(float(moment.get_attribute("aria-valuenow") or 0)) >= 4, "it does not play")
    screen.page.locator(".gp-roll-play").get_by_role("button", name="Pause").click()
    expect(play).to_be_visible()
    shown = settled(screen, moment)
    until(lambda: f"plan {shown + 1} of 48" in title(screen), "the picture does not follow")
    screen.slide("roll-moment", ["Home", "ArrowRight", "ArrowRight", "ArrowLeft"])
    until(lambda: "plan 2 of 48" in title(screen), "the picture does not follow the keys")
    assert moment.get_attribute("aria-label") == "Moment (plan number)"


def test_a_slider_runs_again_and_what_cannot_be_is_a_sentence(screen: Screen, desk: Desk) -> None:
    screen.slide("roll-traffic-noise", ["End"])
    utilization = run_here(traffic_noise=1.0).figures["utilization"]
    words = f"{100 * float(utilization or 0):.1f}\N{NO-BREAK SPACE}%"
    row = screen.page.locator(".gp-roll-figures tr", has_text="useful work")
    expect(row.locator("td").last).to_have_text(words)
    screen.slide("roll-replan", ["End"])
    expect(where(screen)).to_contain_text("plan 1 of 2")
    screen.slide("roll-horizon", ["Home"])
    expect(screen.message("roll-horizon")).to_contain_text("must not be longer than the horizon")
    expect(screen.page.locator(".gp-chart.gp-old")).to_have_count(1)
    screen.slide("roll-replan", ["Home"])
    expect(screen.message("roll-replan")).to_contain_text("whole number of steps")


def test_nothing_reaches_out_of_a_narrow_page_light_or_dark(narrow: Desk) -> None:
    narrow.run_all("from gpuplan_widgets import RollingExplorer", SOURCE)
    Screen(narrow.page).ready()
    until(lambda: narrow.page.evaluate(FITS), "the chart is not drawn for this width")
    # A chart that is drawn anew lies beside the old one, out of sight, until it is exchanged.
    until(lambda: narrow.page.evaluate(OVERFLOW) == [], "something reaches out of the page")
    narrow.dark(True)
    try:
        until(lambda: narrow.page.evaluate(FITS), "the chart is not drawn for this width")
        until(lambda: narrow.page.evaluate(OVERFLOW) == [], "something reaches out of the dark page")
    finally:
        narrow.dark(False)
