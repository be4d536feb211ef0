"""What the explorer hands out is what is on screen: YAML, Python, pictures, tables; and the way back."""

import csv
import io
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

import gpuplan as gp
from browser.desk import Desk
from browser.screen import Screen
from gpuplan.allocation.model import AllocationScenario


@pytest.fixture
def changed(screen: Screen) -> AllocationScenario:
    """Move a slider and edit a job; the scenario that is on screen afterwards."""
    screen.slide("penalty", ["Home"])
    cell = screen.cell("embed-product-catalogue", "priority")
    cell.fill("20")
    cell.press("Enter")
    scenario = gp.load("two-apps").replace({"objective.shortfall_penalty": 0, "batch.0.priority": 20})
    screen.await_scenario(scenario)
    return scenario


def copied(desk: Desk, button: str, said: str) -> str:
    """Text in the clipboard after a click."""
    desk.page.locator(f".gp-{button}").click()
    expect(desk.page.locator(".gp-actions-said")).to_contain_text(said)
    return str(desk.page.evaluate("() => navigator.clipboard.readText()"))


def saved(desk: Desk, button: str) -> tuple[str, bytes]:
    """Name and content of the file that a click saves."""
    with desk.page.expect_download() as download:
        desk.page.locator(f".gp-{button}").click()
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


def records(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))


def test_the_copied_yaml_loads_to_what_is_on_screen(
    desk: Desk, changed: AllocationScenario, tmp_path: Path
) -> None:
    path = tmp_path / "copied.yaml"
    path.write_text(copied(desk, "copy-yaml", "copied as YAML"), encoding="utf-8")
    assert gp.load(path).fingerprint == changed.fingerprint
    assert changed.fingerprint != gp.load("two-apps").fingerprint


def test_the_copied_python_makes_the_same_plans(desk: Desk, changed: AllocationScenario) -> None:
    text = copied(desk, "copy-python", "copied")
    assert len(text.strip().splitlines()) == 3
    names: dict[str, Any] = {}
    exec(text, names)
    assert names["scenario"].fingerprint == changed.fingerprint
    for policy in ("fifo", "aware"):
        assert names["both"][policy].fingerprint == gp.plan(changed, policy).fingerprint


def test_the_picture_is_saved_as_png_and_svg(desk: Desk, changed: AllocationScenario) -> None:
    name, png = saved(desk, "save-png")
    assert name == "gpuplan-two-apps.png"
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    canvas = desk.page.locator(".gp-chart canvas").bounding_box()
    assert canvas is not None
    assert abs(int.from_bytes(png[16:20], "big") - 2 * canvas["width"]) <= 2  # for print, twice as fine
    name, svg = saved(desk, "save-svg")
    assert name == "gpuplan-two-apps.svg"
    words = "".join(ElementTree.fromstring(svg).itertext())
    value = gp.plan(changed, "aware").figures["value"]
    assert f"value {value:,.1f}" in words


def test_the_numbers_on_screen_are_saved_as_csv(
    desk: Desk, screen: Screen, changed: AllocationScenario
) -> None:
    name, content = saved(desk, "save-csv")
    assert name == "gpuplan-two-apps.csv"
    bars = [row for row in records(content) if row["table"] == "right_bars"]
    on_screen = screen.rows("right_bars")
    assert [row["job"] for row in bars] == [row["job"] for row in on_screen]
    assert [float(row["x"]) for row in bars] == [row["x"] for row in on_screen]


def test_jobs_and_figures_are_saved_as_csv(desk: Desk, changed: AllocationScenario) -> None:
    name, content = saved(desk, "save-jobs")
    assert name == "gpuplan-jobs.csv"
    aware = gp.plan(changed, "aware")
    starts = {row["job"]: int(row["start_step"] or -1) for row in records(content) if row["side"] == "right"}
    assert starts == {job.name: int(start) for job, start in zip(changed.batch, aware.start, strict=True)}
    name, content = saved(desk, "save-figures")
    assert name == "gpuplan-figures.csv"
    values = {row["figure"]: row["value"] for row in records(content) if row["policy"] == "aware"}
    assert float(values["utilization"]) == pytest.approx(aware.figures["utilization"], rel=1e-9)
    assert float(values["value"]) == pytest.approx(aware.figures["value"], rel=1e-9)


def test_reset_brings_back_what_was_loaded(desk: Desk, screen: Screen, changed: AllocationScenario) -> None:
    screen.choose("policy-right", "fifo-strict")
    screen.await_scenario(changed, "fifo", "fifo-strict")
    desk.page.locator(".gp-reset").click()
    screen.await_scenario(gp.load("two-apps"))
    assert desk.page.locator(".gp-penalty .widget-readout").inner_text() == "8.00"
    assert screen.cell("embed-product-catalogue", "priority").input_value() == "1"
