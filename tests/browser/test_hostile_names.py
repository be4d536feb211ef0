"""Names from files are text wherever the page shows them, and no name runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

import gpuplan as gp
from browser.desk import Desk
from browser.screen import Screen
from gpuplan.allocation.model import AllocationScenario

IMAGE = "<img src=x onerror=alert(1)>"

NAMES = (
    IMAGE,
    "=1+1",
    "</script><script>alert(2)</script>",
    '"><b onmouseover=alert(3)>bold</b>',
    "🚀 fine-tune 👩‍🔬",
    "אימון-מודל",
    "../../etc/passwd",
    "a" * 200,
    "${alert(4)} {{7*7}} %s &lt;i&gt;",
)

# The first kind of element that a name could become, and an attribute that would run.
INJECTED = "img[src=x], .gp-explorer script, .gp-explorer b[onmouseover], [onerror], #vg-tooltip-element img"


def hostile() -> dict[str, Any]:
    jobs = [
        {"name": name, "kind": "training", "gpus": 1, "hours": 4, "priority": 1 + k}
        for k, name in enumerate(NAMES)
    ]
    jobs[0] |= {"gpus": 4, "hours": 6, "priority": 90}
    jobs[1] |= {"priority": 80}
    app = {"name": "<i onclick=alert(5)>chat</i>", "priority": 3, "demand": [1, 2, 9, 2] * 3}
    return {
        "kind": "allocation",
        "name": "<svg onload=alert(6)>/../day",
        "cluster": {"gpus": 8},
        "horizon": {"steps": 12, "step_hours": 1},
        "realtime": [app],
        "batch": jobs,
    }


@pytest.fixture
def screen(explore: Callable[[str], Screen]) -> Screen:
    return explore(repr(hostile()))


@pytest.fixture
def base() -> AllocationScenario:
    return gp.load(hostile())


def test_every_name_is_text_in_every_part_of_the_page(
    desk: Desk, screen: Screen, base: AllocationScenario
) -> None:
    screen.await_scenario(base)
    inputs = desk.page.locator(".gp-jobs-table input[data-field=name]")
    assert [inputs.nth(row).input_value() for row in range(len(NAMES))] == list(NAMES)
    # Notes, explanations and tables.
    expect(desk.page.locator(".gp-notes")).to_contain_text("<i onclick=alert(5)>chat</i>")
    for name in (IMAGE, "=1+1"):
        screen.choose("why", name)
        expect(desk.page.locator(".gp-why-text")).to_contain_text(gp.plan(base, "aware").why(name))
    desk.page.get_by_text("The charts as tables").click()
    expect(desk.page.locator(".gp-chart-tables")).to_contain_text(IMAGE)
    assert desk.page.locator(INJECTED).count() == 0


def test_the_tooltip_of_a_bar_shows_its_name_as_text(
    desk: Desk, screen: Screen, base: AllocationScenario
) -> None:
    screen.await_scenario(base)
    desk.page.locator(".gp-chart canvas").scroll_into_view_if_needed()
    (bar,) = (bar for bar in screen.bars("right") if bar["job"] == IMAGE)
    left, top, width, height = bar["box"]
    desk.page.mouse.move(left + width / 2 - 3, top + height / 2)
    desk.page.mouse.move(left + width / 2, top + height / 2)
    expect(desk.page.locator("#vg-tooltip-element")).to_contain_text(IMAGE)
    assert desk.page.locator(INJECTED).count() == 0


def test_a_name_typed_into_the_table_is_text_too(screen: Screen, base: AllocationScenario) -> None:
    screen.await_scenario(base)
    typed = "<iframe src=javascript:alert(7)>"
    cell = screen.cell("=1+1", "name")
    cell.fill(typed)
    cell.press("Enter")
    screen.await_scenario(base.replace({"batch.1.name": typed}))
    cell = screen.cell(typed, "name")
    cell.fill(IMAGE)  # taken already: the sentence quotes it
    cell.press("Enter")
    expect(screen.message("jobs")).to_contain_text(IMAGE)
    assert screen.page.locator(f"{INJECTED}, iframe[src^=javascript]").count() == 0


def test_files_have_safe_names_and_formulas_stay_text(
    desk: Desk, screen: Screen, base: AllocationScenario
) -> None:
    screen.await_scenario(base)
    for button in ("save-csv", "save-jobs"):
        with desk.page.expect_download() as download:
            desk.page.locator(f".gp-{button}").click()
        name = download.value.suggested_filename
        assert name == Path(name).name
        assert not set(name) & set('<>/\\"')
        text = Path(download.value.path()).read_text(encoding="utf-8-sig")
        assert "'=1+1" in text
        assert ",=1+1" not in text
