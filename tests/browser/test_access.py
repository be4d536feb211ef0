"""People without a mouse or without sight, with a dark or a narrow screen: the explorers in the app."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

import gpuplan as gp
from browser.access import findings, small_targets
from browser.app_page import AppPage, visiting
from browser.app_server import App
from browser.desk import until
from gpuplan.allocation.charts.rolling_moment import moment_words
from gpuplan.fairshare.keep_jobs import keep_jobs
from gpuplan_widgets.fairshare_words import headline as fair_headline
from gpuplan_widgets.packing_words import headline as pack_headline

EXPLORERS = {
    "allocation": "two-apps",
    "fair-share": "first-hours",
    "packing": "embedder-evicts-chat",
    "days": "two-apps",
}

SIDEWAYS = "() => [document.documentElement.scrollWidth - document.documentElement.clientWidth, innerWidth]"

PAPER = "() => document.querySelector('.gp-chart canvas').getContext('2d').getImageData(1, 1, 1, 1).data[0]"

FOLDS = ".gp-explorer .jupyter-widget-Collapse-header"


@pytest.fixture(scope="module", params=EXPLORERS)
def shown(request: pytest.FixtureRequest, browser: Browser, app: App) -> Iterator[AppPage]:
    """An explorer in the app; its name is the title of the test."""
    with visiting(browser, app) as visitor:
        visitor.name = request.param
        yield visitor.open(f"{app.url}/explore/{request.param}?scenario={EXPLORERS[request.param]}")
        assert visitor.faults() == []


def test_the_tab_key_comes_to_everything_shows_where_it_is_and_leaves(shown: AppPage) -> None:
    stops = shown.walk()
    assert shown.missed() == []
    assert [stop["what"] for stop in stops if not stop["seen"]] == []
    assert [stop["what"] for stop in stops if not stop["name"]] == []
    assert len({stop["stop"] for stop in stops}) == len(stops)
    shown.press("Shift+Tab")
    assert shown.focus()["stop"] == stops[-1]["stop"]


def test_it_is_worked_by_keys_alone_and_news_are_said_once_they_rest(shown: AppPage) -> None:
    shown.top()
    shown.listen()
    JOURNEYS[shown.name](shown)
    shown.reach(".gp-reset")
    shown.press("Enter")


def allocation(page: AppPage) -> None:
    base = gp.load("two-apps")
    page.reach(".gp-penalty .noUi-handle")
    page.press("Home", *["ArrowRight"] * 4)
    page.screen.await_scenario(base.replace({"objective.shortfall_penalty": 1}))
    until(
        lambda: page.said() == [page.headline],
        "a slider that has moved five times is said otherwise than once",
    )
    page.reach(".gp-chart-pick")
    page.press("ArrowDown")
    picked = page.page.locator(".gp-chart-pick").input_value()
    state = page.page.evaluate("() => document.querySelector('.gp-chart-host').vegaView.signal('kinds')")
    assert state["kind"] == [picked]
    page.press("ArrowUp")
    page.reach(".gp-curve-point")
    page.press("ArrowRight", "ArrowUp", "ArrowUp")
    demand = list(base.realtime[0].demand)
    demand[1] += 2
    page.reach(".gp-cell[data-field=priority]")
    page.press("ArrowUp")
    moved = {"realtime.0.demand": demand, "batch.0.priority": int(base.batch[0].priority) + 1}
    page.screen.await_scenario(base.replace({"objective.shortfall_penalty": 1, **moved}))
    page.reach(".gp-all-figures .jupyter-widget-Collapse-header")
    page.press("Enter")
    expect(page.page.locator(".gp-figures-table table")).to_be_visible()
    page.press(" ")
    expect(page.page.locator(".gp-figures-table table")).to_be_hidden()


def fair_share(page: AppPage) -> None:
    base = gp.load("first-hours")
    page.reach(".gp-budget-slider")
    page.press(*["ArrowRight"] * 3)
    until(
        lambda: page.page.locator(".gp-budget-share").all_inner_texts()[0].startswith("53.0"),
        "no share of 53 %",
    )
    weights = {"budget.0.weight": 53.0, "budget.1.weight": 47.0}
    runs = [gp.simulate(keep_jobs(base).replace(weights), policy) for policy in ("easy", "fair-share")]
    expect(page.page.locator(".gp-headline")).to_have_text(fair_headline(*runs))
    page.reach(".gp-budget-mute")
    page.press(" ")
    expect(page.page.locator(".gp-budget-mute").first).to_have_attribute("aria-pressed", "true")
    page.reach(".gp-all-figures .jupyter-widget-Collapse-header")
    page.press("Enter")
    expect(page.page.locator(".gp-fair-why-when")).to_be_visible()
    page.press("Enter")


def packing(page: AppPage) -> None:
    base = gp.load("embedder-evicts-chat")
    page.reach(".gp-pack-margin .noUi-handle")
    page.press("Home")
    left, right = (
        page.page.locator(".gp-pack-left-placement select"),
        page.page.locator(".gp-pack-right-placement select"),
    )
    policies = [left.input_value(), right.input_value()]
    lowest = base.replace({"admission.margin": 0})

    def packed() -> str:
        return pack_headline(*(gp.pack(lowest, policy) for policy in policies))

    expect(page.page.locator(".gp-headline")).to_have_text(packed())
    page.top()
    page.reach(".gp-pack-left-placement select")
    page.press("ArrowDown")
    until(lambda: left.input_value() != policies[0], "the list of policies does not follow the keys")
    policies[0] = left.input_value()
    expect(page.page.locator(".gp-headline")).to_have_text(packed())
    page.reach(".gp-all-figures .jupyter-widget-Collapse-header")
    page.press("ArrowDown", "Enter")
    page.press("Enter")


def days(page: AppPage) -> None:
    run = gp.roll("two-apps", "aware", days=7)
    where = page.page.locator(".gp-roll-where")
    page.reach(".gp-roll-moment .noUi-handle")
    page.press(*["ArrowRight"] * 3)
    expect(where).to_have_text(f"{moment_words(run.days, 3)}: plan 4 of {len(run.promises)}")
    page.reach(".gp-roll-back")
    page.press("Enter")
    expect(where).to_have_text(f"{moment_words(run.days, 2)}: plan 3 of {len(run.promises)}")
    until(lambda: page.said()[-1:] == [where.inner_text()], "the moment is not said")
    page.reach(".gp-all-figures .jupyter-widget-Collapse-header")
    page.press("Enter")
    expect(page.page.locator(".gp-roll-all-figures table")).to_be_visible()
    page.press("Enter")


JOURNEYS = {"allocation": allocation, "fair-share": fair_share, "packing": packing, "days": days}


def test_nothing_serious_is_found_on_light_and_dark_on_wide_and_narrow_screens(shown: AppPage) -> None:
    page = shown.page
    for number in range(page.locator(FOLDS).count()):
        fold = page.locator(FOLDS).nth(number)
        if shown.name != "allocation" and "as tables" in fold.inner_text():
            continue  # thousands of cells, all alike
        if fold.get_attribute("aria-expanded") == "false":
            fold.press("Enter")
            expect(fold).to_have_attribute("aria-expanded", "true")
    found = []
    # All rules on one wide and one narrow page; what else a look can change is its colours and what scrolls.
    looks = ("color-contrast", "scrollable-region-focusable")
    for width, dark, rules in ((1280, False, ()), (1280, True, looks), (360, True, ()), (360, False, looks)):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme="dark" if dark else "light")
        until(
            lambda dark=dark: (page.evaluate(PAPER) < 100) == dark,
            "the chart does not follow the page's colours",
        )
        until(lambda: page.evaluate(SIDEWAYS)[0] <= 0, f"a page of {width} pixels scrolls sideways")
        # what scrolls can have the focus a moment after it is laid out
        until(lambda: not findings(page, rules=looks[1:]), "keys cannot scroll a box")
        found += [f"{width} {dark}: {line}" for line in findings(page, rules=rules)]
    assert found == []
    assert small_targets(page, ".gp-explorer") == []
