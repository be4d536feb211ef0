"""Pages with live controls in a real browser: by keyboard, on wide and narrow, light and dark pages, from a file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from reports.grids import GRIDS, small

from browser.pages import WIDTHS, page_of
from gpuplan.reports.grid import Grid
from gpuplan.reports.runs import compared
from gpuplan.side_by_side import as_text

#: Texts of the axis, names and titles in a picture.
TEXTS = "(place) => [...document.querySelectorAll(`#${place} svg text`)].map((one) => one.textContent)"

#: Marks of the charts of one figure: places and whether they are large, from left to right.
MARKS = """
() => document.querySelectorAll("#grid-picture .mark-symbol.role-mark path").length
"""

#: Shapes in the picture: bars, areas, rules.
SHAPES = """
() => [...document.querySelectorAll("#picture svg .role-mark path, #picture svg .role-mark line")]
  .map((one) => one.getAttribute("d") ?? one.getAttribute("transform")).join("|")
"""

DRAWN = "(looks) => ['picture', 'grid-picture'].every((id) => document.getElementById(id).dataset.drawn === looks)"
REVISED = "(before) => Number(document.documentElement.dataset.rev) > before"
REV = "() => Number(document.documentElement.dataset.rev)"


class Live:
    """The page of a grid, worked by keys alone."""

    def __init__(self, page: Page, found: Grid) -> None:
        self.page, self.found = page, found

    def changed(self, act: Callable[[], Any]) -> None:
        """Do something, and wait until the charts have followed."""
        before = self.page.evaluate(REV)
        act()
        self.page.wait_for_function(REVISED, arg=before)

    def press(self, place: str, *keys: str) -> None:
        """Keys on a control."""
        self.page.locator(f"#{place}").focus()
        for key in keys:
            self.changed(lambda key=key: self.page.keyboard.press(key))  # type: ignore[misc]

    def state(self) -> str:
        """What the page says about the point."""
        return str(self.page.locator("#state").text_content())

    def assert_shows(self, first: int, second: int) -> None:
        """The table has what the library computes at two stops."""
        found = self.found
        place = first * len(found.axes[1].values) + second
        results = compared(found.space.at(place), found.choices).results
        for k, result in enumerate(results.values()):
            cells = self.page.locator(f'#figures td[data-policy="{k}"]').all_text_contents()
            computed = [as_text(value, found.units[name]) for name, value in result.figures.items()]
            assert cells == [*computed, "0"]
        own = (first, second) == tuple(axis.own for axis in found.axes)
        said = found.space.words(place)
        assert self.state() == f"Computed for {said}{': the scenario as it is' if own else ''}."


@pytest.mark.parametrize("kind", GRIDS)
def test_a_page_follows_the_keyboard_and_shows_computed_points(
    kind: str, browser: Browser, live_pages: dict[str, Path]
) -> None:
    found = small(kind)
    names = [axis.name for axis in found.axes]
    look = {"viewport": {"width": 1200, "height": 900}, "color_scheme": "light"}
    with page_of(browser, live_pages[kind], **look) as (page, faults):
        live = Live(page, found)
        own = [axis.own for axis in found.axes]
        live.assert_shows(*own)
        assert page.evaluate(DRAWN, "wide light")
        assert page.evaluate(WIDTHS) == [1200, 1200]
        before = page.evaluate(SHAPES)
        for control in (
            *names,
            "figure",
        ):  # every control is reached with the keyboard, in the order of the page
            assert page.locator(f"#{control}").get_attribute("tabindex") is None
        live.press(names[0], "Home")
        live.press(names[1], "Home", "ArrowRight", "ArrowRight")
        live.assert_shows(0, 2)
        assert page.evaluate(SHAPES) != before
        assert page.locator(f"#{names[0]}").get_attribute("aria-valuetext") == found.axes[0].said[0]
        policies = len(found.choices.policies)
        assert page.evaluate(MARKS) == policies * sum(len(axis.values) for axis in found.axes)
        page.wait_for_function(
            "() => document.getElementById('announced').textContent.startsWith('Computed for ')"
        )
        page.locator("#picture-details summary").press("Enter")
        table = page.locator("#picture-tables table").first
        table.wait_for()
        assert table.locator("tbody tr").count() > 1
        page.locator("#grid-details summary").press("Enter")
        page.locator("#grid-tables table").first.wait_for()
        rows = page.locator("#grid-tables table").first.locator("tbody tr").count()
        assert rows == policies * len(found.axes[0].values)
        live.changed(lambda: page.locator("#back").press("Enter"))
        live.assert_shows(*own)
        assert page.evaluate("() => document.activeElement.id") == names[0]
        assert page.evaluate(SHAPES) == before

        page.set_viewport_size({"width": 360, "height": 740})
        page.emulate_media(color_scheme="dark")
        page.wait_for_function(DRAWN, arg="narrow dark")
        assert page.evaluate(WIDTHS) == [360, 360]
        live.press(names[1], "End")
        live.assert_shows(own[0], len(found.axes[1].values) - 1)
        page.set_viewport_size({"width": 868, "height": 740})
        page.wait_for_function(DRAWN, arg="medium dark")
        assert page.evaluate(WIDTHS) == [868, 868]
        page.emulate_media(media="print", color_scheme="dark")  # paper shows the light drawing
        page.wait_for_function("() => document.querySelector('#picture-paper svg')")
        assert page.locator("#picture-paper").is_visible()
        assert not page.locator("#picture").is_visible()
        assert faults == []


def test_what_is_chosen_in_the_picture_links_charts(browser: Browser, live_pages: dict[str, Path]) -> None:
    look = {"viewport": {"width": 1200, "height": 900}, "color_scheme": "light"}
    with page_of(browser, live_pages["allocation"], **look) as (page, faults):
        live = Live(page, small("allocation"))
        titles = [text for text in page.evaluate(TEXTS, "picture") if ": utilization" in text]
        assert [title.partition(":")[0] for title in titles] == ["fifo", "aware"]
        live.press("left", "ArrowDown")
        titles = [text for text in page.evaluate(TEXTS, "picture") if ": utilization" in text]
        assert [title.partition(":")[0] for title in titles] == ["aware", "aware"]
        mark = page.locator("#grid-picture .mark-symbol.role-mark path").last
        mark.scroll_into_view_if_needed()
        live.changed(lambda: mark.click(force=True))  # the largest cluster
        assert page.locator("#gpus").input_value() == "2"
        live.assert_shows(2, 2)
        assert faults == []
    with page_of(browser, live_pages["fairshare"], **look) as (page, faults):
        live = Live(page, small("fairshare"))
        assert "red: got (thick), owed (dashed)" in page.evaluate(TEXTS, "picture")
        live.press("chosen", "ArrowUp")
        assert "blue: got (thick), owed (dashed)" in page.evaluate(TEXTS, "picture")
        bar = page.locator("#picture .bars_0_marks path").nth(1)  # easy, red
        live.changed(lambda: bar.click())
        assert "red: got (thick), owed (dashed)" in page.evaluate(TEXTS, "picture")
        assert faults == []
