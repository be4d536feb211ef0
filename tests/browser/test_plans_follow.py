"""Controls move, and both Gantts follow: what is on screen is what gpuplan plans in this process."""

import gpuplan as gp
import pytest
from browser.screen import Screen, picture_of
from gpuplan.allocation.model import AllocationScenario

Change = dict[str, object]


@pytest.fixture(scope="module")
def base() -> AllocationScenario:
    return gp.load("two-apps")


def await_scenario(
    screen: Screen, scenario: AllocationScenario, left: str = "fifo", right: str = "aware"
) -> None:
    screen.await_plans(gp.plan(scenario, left), gp.plan(scenario, right))


def test_the_first_picture_is_the_scenarios(screen: Screen, base: AllocationScenario) -> None:
    await_scenario(screen, base)
    assert screen.handle("penalty").get_attribute("aria-valuenow") == "8.0"


def test_the_penalty_slider_moves_the_right_bars(screen: Screen, base: AllocationScenario) -> None:
    free = base.replace({"objective.shortfall_penalty": 0})
    assert picture_of(gp.plan(free, "aware")) != picture_of(gp.plan(base, "aware"))
    before = screen.rev
    screen.slide("penalty", ["Home"])
    await_scenario(screen, free)
    assert screen.rev > before
    screen.slide("penalty", ["ArrowRight"] * 3)
    await_scenario(screen, base.replace({"objective.shortfall_penalty": 0.75}))
    assert screen.page.locator(".gp-penalty .widget-readout").inner_text() == "0.75"
