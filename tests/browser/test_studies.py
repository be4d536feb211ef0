"""The folds below an explorer on a real page: the gain and the curves are drawn, a proof is made and said."""

from collections.abc import Callable

from playwright.sync_api import Locator, expect

import gpuplan as gp
from browser.desk import Desk
from browser.screen import Screen

PATIENCE_MS = 60_000


def opened(screen: Screen, title: str) -> Locator:
    """The contents of a fold, opened."""
    fold = screen.page.locator(".gp-studies .jupyter-widget-Accordion-child", has_text=title)
    fold.locator(".jupyter-widget-Collapse-header").click()
    return fold.locator(".jupyter-widget-Collapse-contents")


def inside(fold: Locator) -> bool:
    """Whether what is drawn in the fold is no wider than the fold."""
    return bool(fold.evaluate("box => box.scrollWidth <= box.clientWidth + 1"))


def test_the_gain_is_drawn_and_follows_the_penalty(explore: Callable[[str], Screen], desk: Desk) -> None:
    screen = explore('"training-rush", policies=("fifo", "search")')
    fold = opened(screen, "Where does the gain come from?")
    canvas = fold.locator(".gp-chart[data-rev] canvas")
    canvas.wait_for(timeout=PATIENCE_MS)
    said = fold.locator(".gp-study-0")
    expect(said).to_have_text(gp.take_apart("training-rush").sentence("value"), timeout=PATIENCE_MS)
    assert inside(fold)
    screen.slide("penalty", ["Home"])
    free = gp.load("training-rush").replace({"objective.shortfall_penalty": 0})
    expect(said).to_have_text(gp.take_apart(free).sentence("value"), timeout=PATIENCE_MS)
    fold.get_by_role("button", name="objective").click()
    expect(said).to_have_text(gp.take_apart(free).sentence("objective"), timeout=PATIENCE_MS)
    desk.dark(True)
    try:
        expect(canvas).to_be_visible()
    finally:
        desk.dark(False)


def test_the_curves_are_drawn_with_the_sentence_of_the_library(explore: Callable[[str], Screen]) -> None:
    screen = explore('"training-rush", policies=("fifo", "search")')
    fold = opened(screen, "How sensitive is it?")
    fold.locator(".gp-chart[data-rev] canvas").wait_for(timeout=PATIENCE_MS)
    expect(fold.locator(".gp-study-1")).to_have_text(
        gp.sensitivity("training-rush").sentence, timeout=PATIENCE_MS
    )
    assert inside(fold)


def test_a_proof_is_made_on_request_and_stands_beside_the_plans(explore: Callable[[str], Screen]) -> None:
    screen = explore('"training-rush", policies=("fifo", "search")')
    fold = opened(screen, "How good can a plan be?")
    fold.locator(".gp-certify").click()
    proven = "Proven optimal: no legal plan is worth more than 693.06."
    expect(fold.locator(".gp-study-2")).to_have_text(proven, timeout=PATIENCE_MS)
    fold.locator(".gp-chart[data-rev] canvas").wait_for(timeout=PATIENCE_MS)
    expect(screen.page.locator(".gp-summary")).to_contain_text("an objective above 693.1")
    screen.slide("penalty", ["ArrowRight"])
    expect(fold.locator(".gp-study-2")).to_have_text("")
