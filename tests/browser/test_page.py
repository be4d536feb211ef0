"""The page around the explorer: nothing leaves the machine, dark mode, scroll position, zoom."""

from playwright.sync_api import Browser

import gpuplan as gp
from browser.desk import Desk, desk_of, until
from browser.screen import Screen
from browser.server import Server

PAPER = """
() => [...document.querySelector(".gp-chart canvas").getContext("2d").getImageData(1, 1, 1, 1).data].slice(0, 3)
"""

SCROLLED = "() => document.querySelector('.gp-explorer').getBoundingClientRect().top"

LEAVE = """
async () => {
  const outcomes = [];
  await fetch("http://outside.invalid/data").catch((error) => outcomes.push(error.name));
  await new Promise((done) => { const i = new Image(); i.onerror = done; i.src = "http://outside.invalid/i.png"; });
  const socket = new WebSocket("ws://outside.invalid/socket");
  await new Promise((done) => { socket.onerror = done; });
  return outcomes;
}
"""


def test_whatever_leaves_the_machine_or_goes_wrong_is_noticed(browser: Browser, lab: Server) -> None:
    with desk_of(browser, lab) as desk:
        desk.page.goto("about:blank")
        assert desk.faults() == []
        assert desk.page.evaluate(LEAVE) == ["TypeError"]
        desk.faults()
        assert desk.outside == [
            "http://outside.invalid/data",
            "http://outside.invalid/i.png",
            "ws://outside.invalid/socket",
        ]
        desk.errors.clear()
        desk.page.evaluate("() => { console.error('wrong'); alert('hello'); }")
        desk.page.evaluate("() => { setTimeout(() => { throw new Error('thrown'); }); }")
        desk.faults()
        assert [error.split(" (")[0] for error in desk.errors] == [
            "console: wrong",
            "dialog: hello",
            "script: thrown",
        ]


def test_a_dark_page_gets_a_dark_picture_of_the_same_plans(desk: Desk, screen: Screen) -> None:
    base = gp.load("two-apps")
    assert desk.page.evaluate(PAPER) == [255, 255, 255]
    screen.slide("penalty", ["Home"])
    free = base.replace({"objective.shortfall_penalty": 0})
    screen.await_scenario(free)
    try:
        desk.dark(True)
        until(lambda: max(desk.page.evaluate(PAPER)) < 40, "the picture stays light on a dark page")
        screen.await_scenario(free)
        screen.slide("penalty", ["End"])  # and it goes on living
        screen.await_scenario(base.replace({"objective.shortfall_penalty": 20}))
        assert max(desk.page.evaluate(PAPER)) < 40
    finally:
        desk.dark(False)
    until(lambda: desk.page.evaluate(PAPER) == [255, 255, 255], "the picture stays dark on a light page")


def test_the_page_stays_where_it_was_scrolled_to(desk: Desk, screen: Screen) -> None:
    cell = screen.cell("cpt-7b-domain", "priority")
    cell.scroll_into_view_if_needed()
    desk.page.mouse.move(700, 500)
    cell.focus()
    before = desk.page.evaluate(SCROLLED)
    assert before < -100  # the first controls are out of sight
    cell.press("ArrowUp")
    screen.await_scenario(gp.load("two-apps").replace({"batch.2.priority": 6}))
    assert desk.page.evaluate(SCROLLED) == before


def test_a_zoom_is_kept_while_plans_change(desk: Desk, screen: Screen) -> None:
    desk.page.locator(".gp-chart canvas").scroll_into_view_if_needed()
    panes = [pane["box"] for pane in screen.drawn("right_usage_marks")]
    left, right = min(box[0] for box in panes), max(box[0] + box[2] for box in panes)
    y = min(box[1] for box in panes) + 20
    mouse = desk.page.mouse
    mouse.move(left + (right - left) * 0.25, y)
    mouse.down()
    mouse.move(left + (right - left) * 0.75, y, steps=5)
    mouse.up()

    def stretch() -> list[float]:
        found = desk.page.evaluate(
            "() => document.querySelector('.gp-chart-host').vegaView.signal('brush').x ?? []"
        )
        return [round(edge, 3) for edge in found]

    until(lambda: len(stretch()) == 2, "dragging over the GPUs in use picks no stretch of time")
    zoomed = stretch()
    assert abs(zoomed[0] - 6) < 0.5
    assert abs(zoomed[1] - 18) < 0.5
    before = {bar["x"]: bar["box"][0] for bar in screen.bars("right")}
    screen.slide("penalty", ["Home"])
    screen.await_scenario(gp.load("two-apps").replace({"objective.shortfall_penalty": 0}))
    assert stretch() == zoomed
    after = {bar["x"]: bar["box"][0] for bar in screen.bars("right")}
    common = set(before) & set(after)
    assert len(common) >= 3
    shift = {round(after[x] - before[x]) for x in common}  # the page may have moved, all bars alike
    assert len(shift) == 1


def test_the_explorer_fits_a_narrow_page(desk: Desk, screen: Screen) -> None:
    try:
        desk.page.set_viewport_size({"width": 800, "height": 1100})
        explorer = desk.page.locator(".gp-explorer")
        until(lambda: (box := explorer.bounding_box()) and box["width"] < 480, "the page keeps its width")
        screen.await_scenario(gp.load("two-apps"))
        box = explorer.bounding_box()
        assert box is not None
        for readout in desk.page.locator(".gp-controls .widget-readout").all():
            place = readout.bounding_box()
            assert place is not None
            assert place["x"] + place["width"] <= box["x"] + box["width"] + 4, readout.inner_text()
        until(
            lambda: (
                (canvas := desk.page.locator(".gp-chart canvas").bounding_box())
                and canvas["width"] <= box["width"] + 8
            ),
            "the picture does not fit the narrow page",
        )
    finally:
        desk.page.set_viewport_size({"width": 1300, "height": 1100})
