"""The first lesson, opened in JupyterLab and run from the top: its explorer makes the moves that it asks for."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

import gpuplan as gp
from browser.desk import Desk, desk_of
from browser.screen import Screen
from browser.server import Server
from gpuplan.allocation.model import AllocationScenario
from gpuplan.lab import FIRST_NOTEBOOK


@pytest.fixture(scope="module")
def lesson(browser: Browser, lab: Server, checkout: Path) -> Iterator[Desk]:
    """The lesson, run; whatever left the machine or went wrong on the page fails at the end."""
    shutil.copy(checkout / "notebooks" / FIRST_NOTEBOOK, lab.folder)
    with desk_of(browser, lab) as desk:
        desk.open(FIRST_NOTEBOOK)
        desk.run_all()
        yield desk
        assert desk.faults() == []


@pytest.fixture(scope="module")
def live(lesson: Desk) -> Screen:
    """The explorer of the lesson."""
    return Screen(lesson.page).ready()


@pytest.fixture
def screen(live: Screen) -> Screen:
    """The explorer of the lesson, after Reset."""
    live.page.locator(".gp-reset").click()
    live.await_scenario(gp.load("training-rush"))
    return live


@pytest.fixture
def base() -> AllocationScenario:
    return gp.load("training-rush")


def test_every_cell_runs(lesson: Desk, live: Screen) -> None:
    assert lesson.failed_cells() == []
    assert live.page.locator(".gp-explorer").count() == 1
    live.await_scenario(gp.load("training-rush"))


def test_an_exercise_is_answered_by_keys_and_says_what_helps(lesson: Desk, live: Screen) -> None:
    form = lesson.page.get_by_role("form", name="Exercise 1.1")
    field = form.get_by_label("Your answer")
    for answer, verdict in (("13 GPU-hours", "nearly"), ("14", "right")):
        field.fill(answer)
        field.press("Enter")
        lesson.page.wait_for_selector(f'form.gp-exercise[data-verdict="{verdict}"]', state="attached")
        assert gp.check("1.1", answer).text in form.get_by_role("status").inner_text()
    live.page.locator(".gp-explorer").scroll_into_view_if_needed()


def test_its_first_move_is_the_penalty(screen: Screen, base: AllocationScenario) -> None:
    screen.slide("penalty", ["Home"])
    screen.await_scenario(base.replace({"objective.shortfall_penalty": 0}))


def test_its_second_move_is_the_demand_curve(screen: Screen, base: AllocationScenario) -> None:
    demand = list(base.realtime[0].demand)
    hours = [hour for hour, wanted in enumerate(demand) if wanted == max(demand)]
    for hour in hours:
        screen.point(hour).focus()
        for _ in range(7 - demand[hour]):
            screen.page.keyboard.press("ArrowUp")
    screen.await_scenario(base.replace({f"realtime.0.demand.{hour}": 7 for hour in hours}))


def test_its_third_move_is_the_swap_cap(screen: Screen, base: AllocationScenario) -> None:
    assert base.realtime[0].max_swap == 2
    screen.slide("swap-cap", ["ArrowLeft"])
    screen.await_scenario(base.replace({"realtime.0.max_swap": 1}))


def test_its_fourth_move_is_a_priority(screen: Screen, base: AllocationScenario) -> None:
    job = [job.name for job in base.batch].index("cpt-1b-portuguese")
    cell = screen.cell("cpt-1b-portuguese", "priority")
    cell.fill("20")
    cell.press("Enter")
    screen.await_scenario(base.replace({f"batch.{job}.priority": 20}))
