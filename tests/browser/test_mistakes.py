"""What cannot be planned is a sentence beside its control, and the picture is marked as old meanwhile."""

from collections.abc import Callable

from playwright.sync_api import expect

import gpuplan as gp
from browser.screen import Screen


def is_old(screen: Screen) -> bool:
    """Whether the picture is greyed and says that it is old, to eyes and to screen readers."""
    host = screen.page.locator(".gp-chart-host")
    grey = "grayscale" in str(host.evaluate("(host) => getComputedStyle(host).filter"))
    said = screen.page.locator(".gp-old-note").inner_text() != ""
    label = (screen.chart.get_attribute("aria-label") or "").startswith("Old picture")
    assert grey == said == label, f"grey: {grey}, said: {said}, in the label: {label}"
    return grey


def test_a_cluster_too_small_is_said_beside_its_slider(explore: Callable[[str], Screen]) -> None:
    change = {"realtime.0.min_gpus": 4}
    screen = explore(f'gp.load("two-apps").replace({change!r})')
    base = gp.load("two-apps").replace(change)
    screen.await_scenario(base)
    assert not is_old(screen)
    screen.slide("cluster-size", ["Home"])
    sentence = screen.message("cluster-size")
    expect(sentence).to_contain_text("chat-assistant: min_gpus")
    expect(sentence).to_contain_text("The picture is old")
    assert screen.page.locator(".gp-message [role=alert]").count() == 1
    assert is_old(screen)
    assert screen.shows(gp.plan(base, "fifo"), gp.plan(base, "aware"))
    screen.slide("cluster-size", ["ArrowRight"] * 3)
    screen.await_scenario(base.replace({"cluster.gpus": 4}))
    expect(sentence).to_have_count(0)
    assert not is_old(screen)


def test_a_wrong_cell_is_marked_in_the_table(screen: Screen) -> None:
    base = gp.load("two-apps")
    cell = screen.cell("cpt-7b-domain", "gpus")
    cell.fill("3")
    cell.press("Enter")
    expect(cell).to_have_attribute("aria-invalid", "true")
    told = screen.page.locator(f"#{cell.get_attribute('aria-describedby')}")
    expect(told).to_have_text("must be a power of two (got 3)")
    expect(screen.message("jobs")).to_contain_text("cpt-7b-domain: gpus must be a power of two (got 3)")
    assert is_old(screen)
    cell.fill("<b>many</b>")
    cell.press("Enter")
    expect(told).to_contain_text("<b>many</b>")
    assert is_old(screen)
    cell.fill("2")
    cell.press("Enter")
    screen.await_scenario(base.replace({"batch.2.gpus": 2}))
    expect(cell).not_to_have_attribute("aria-invalid", "true")
    expect(screen.message("jobs")).to_have_count(0)
    assert not is_old(screen)


def test_another_control_works_on_while_a_cell_is_wrong(screen: Screen) -> None:
    cell = screen.cell("cpt-7b-domain", "hours")
    cell.fill("soon")
    cell.press("Enter")
    expect(screen.message("jobs")).to_be_visible()
    screen.slide("penalty", ["Home"])
    screen.page.wait_for_timeout(500)
    expect(screen.message("jobs")).to_contain_text("cpt-7b-domain: hours")
    expect(screen.message("penalty")).to_have_count(0)
    assert is_old(screen)
    cell.fill("10")
    cell.press("Enter")
    screen.await_scenario(gp.load("two-apps").replace({"objective.shortfall_penalty": 0}))
    assert not is_old(screen)
