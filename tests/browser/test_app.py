"""The app end to end in real browsers: files people bring, two of them at once, an end of what computes, a lesson."""

import contextlib
import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.sync_api import Browser, Locator, expect

import gpuplan as gp
from browser.access import findings
from browser.app_page import AppPage, visiting
from browser.app_server import App
from browser.pages import page_of
from gpuplan.lab import FIRST_NOTEBOOK

IMAGE = "<img src=x onerror=alert(2)>"

HOSTILE = f"""
kind: allocation
name: <script>alert(1)</script>
cluster: {{gpus: 4}}
horizon: {{steps: 6, step_hours: 1}}
realtime: [{{name: "=1+1", priority: 5, demand: [1, 1, 1, 1, 1, 1]}}]
batch:
  - {{name: "../x", kind: training, gpus: 2, hours: 2, priority: 3}}
  - {{name: "{IMAGE}", kind: training, gpus: 1, hours: 1, priority: 2}}
"""

FAIR = """
kind: fairshare
name: theirs
cluster: {gpus: 8}
budget: [{name: a, weight: 1}]
workload: {file: /etc/passwd}
"""

#: What names of a file would have made, had they been read as HTML.
INJECTED = ".gp-explorer script, img[src=x], [onerror]"

#: What Python says of errors, code, and folders of the server.
INNER = re.compile(r"Traceback|\b[A-Z]\w+Error\b|import gpuplan|\.py\b|/tmp/|gpuplan-upload")


def visible(visitor: AppPage) -> str:
    """Everything that can be read on the page."""
    return visitor.page.locator("body").inner_text()


def file_field(visitor: AppPage) -> Locator:
    """Unfold the controls for files."""
    visitor.page.locator(".gp-file .jupyter-widget-Collapse-header").press("Enter")
    return visitor.page.locator(".gp-file-upload")


def choose(visitor: AppPage, field: Locator, path: Path) -> None:
    """Choose a file as people do."""
    with visitor.page.expect_file_chooser() as chooser:
        field.click()
    chooser.value.set_files(path)


def is_grey(visitor: AppPage) -> bool:
    host = visitor.page.locator(".gp-chart-host").first
    return "grayscale" in str(host.evaluate("(host) => getComputedStyle(host).filter"))


def test_home_and_a_page_that_does_not_exist_are_for_everybody(browser: Browser, app: App) -> None:
    for dark in (False, True):
        with visiting(browser, app, width=360, dark=dark) as visitor:
            visitor.open(f"{app.url}/")
            assert findings(visitor.page) == []
            assert visitor.faults() == []
            visitor.page.goto(f"{app.url}/explore/nothing")
            expect(visitor.page.locator("h1")).to_have_text("There is no such page")
            assert INNER.findall(visible(visitor)) == []
            assert findings(visitor.page) == []
            assert visitor.outside == []


def test_files_of_a_visitor_good_bad_hostile_and_too_large(
    browser: Browser, app: App, tmp_path: Path
) -> None:
    good, bad, large = tmp_path / "hostile.yaml", tmp_path / "bad.yaml", tmp_path / "large.csv"
    good.write_text(HOSTILE, encoding="utf-8")
    bad.write_text(HOSTILE.replace("gpus: 4", "gpus: -1"), encoding="utf-8")
    large.write_bytes(b"x" * 6_000_000)
    with visiting(browser, app) as visitor:
        sent: list[int] = []
        visitor.page.on(
            "websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(len(frame)))
        )
        visitor.open(f"{app.url}/explore/allocation?scenario=two-apps")
        page, shown = visitor.page, gp.load("two-apps")
        visitor.screen.await_scenario(shown)
        field, told = file_field(visitor), page.locator(".gp-message-file [role=alert]")
        assert page.locator(".gp-file-path").count() == 0  # nobody writes a path on the server's machine

        choose(visitor, field, bad)
        expect(told).to_contain_text("bad.yaml")
        expect(told).to_contain_text("gpus")
        expect(told).to_contain_text("-1")
        expect(page.locator(".gp-old-note").first).to_have_text("Old picture: not from the new file")
        assert is_grey(visitor)
        assert visitor.screen.shows(gp.plan(shown, "fifo"), gp.plan(shown, "aware"))

        choose(visitor, field, good)
        visitor.screen.await_scenario(gp.load(good))
        expect(told).to_have_count(0)
        expect(page.locator(".gp-file-report")).to_contain_text("<script>alert(1)</script>")
        for name in ("../x", IMAGE):
            expect(page.locator(f"[aria-label='Job of {name}']")).to_have_value(name)
        assert "=1+1" in visible(visitor)
        assert page.locator(INJECTED).count() == 0
        assert not is_grey(visitor)
        expect(page.locator(".gp-address-said")).to_contain_text("Your own file is not in the address")
        assert page.url == f"{app.url}/explore/allocation"

        before = sum(sent)
        assert before > len(HOSTILE)
        choose(visitor, field, large)
        expect(page.locator(".gp-app-upload[role=alert]")).to_contain_text(
            "at most 5 MB may be uploaded here"
        )
        expect(page.locator(".gp-app-upload")).to_contain_text("6.0 MB. Nothing was sent.")
        visitor.screen.slide("penalty", ["Home"])
        visitor.screen.await_scenario(gp.load(good).replace({"objective.shortfall_penalty": 0}))
        assert sum(sent) - before < 100_000
        assert INNER.findall(visible(visitor)) == []
        assert visitor.faults() == []


def test_a_file_of_the_server_is_not_read_for_anybody(browser: Browser, app: App, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.yaml"
    theirs.write_text(FAIR, encoding="utf-8")
    with visiting(browser, app) as visitor:
        visitor.open(f"{app.url}/explore/fair-share?scenario=first-hours")
        headline = visitor.headline
        choose(visitor, file_field(visitor), theirs)
        told = visitor.page.locator(".gp-message-file [role=alert]")
        expect(told).to_contain_text("theirs.yaml")
        expect(told).to_contain_text("must be the name of a file that was uploaded with the scenario")
        for secret in ("root:", "gpuplan-upload", str(app.folder)):
            assert secret not in visitor.page.content()
        assert INNER.findall(visible(visitor)) == []
        assert visitor.headline == headline
        assert visitor.faults() == []


def kernels(app: App) -> dict[int, str]:
    """Processes that compute for pages, and the ids of their kernels."""
    found = {}
    for process in psutil.Process(app.process.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # one of an earlier page, at its end
            folder = Path(process.cwd())
            if folder.is_relative_to(app.folder):
                found[process.pid] = folder.name
    return found


def test_two_people_work_apart_hand_on_a_link_and_one_starts_again(browser: Browser, app: App) -> None:
    address = f"{app.url}/explore/allocation?scenario=two-apps"
    base = gp.load("two-apps")
    free = base.replace({"objective.shortfall_penalty": 0})
    with visiting(browser, app) as first, visiting(browser, app) as second:
        second.open(address)
        others = kernels(app)
        first.open(address)
        ((pid, kernel),) = kernels(app).items() - others.items()
        first.screen.slide("penalty", ["Home"])
        first.screen.await_scenario(free)
        second.screen.await_scenario(base)
        first.page.wait_for_function("() => location.search.includes('shortfall_penalty')")
        link = first.page.url
        second.open(link)
        second.screen.await_scenario(free)
        second.page.wait_for_function("() => location.search.includes('shortfall_penalty')")
        assert second.page.url == link  # with the fingerprint of what is shown
        second.screen.slide("penalty", ["ArrowRight"] * 4)
        moved = base.replace({"objective.shortfall_penalty": 1})
        second.screen.await_scenario(moved)
        assert first.screen.shows(gp.plan(free, "fifo"), gp.plan(free, "aware"))

        os.kill(pid, signal.SIGKILL)
        ended = first.page.locator("#gp-app-ended[role=alert]")
        expect(ended).to_contain_text("The computation behind this page has ended.")
        assert INNER.findall(visible(first)) == []
        # the browser notes that this one is not found any more
        assert [fault for fault in first.faults() if kernel not in fault] == []
        ended.get_by_role("button", name="Start again").press("Enter")
        expect(ended).to_be_hidden()
        first.screen.ready().await_scenario(free)
        second.screen.slide("penalty", ["Home"])
        second.screen.await_scenario(free)  # it has not been told of anything
        assert second.faults() == []


def test_a_lesson_shows_no_code_and_is_answered_by_keys(browser: Browser, app: App, checkout: Path) -> None:
    with visiting(browser, app) as visitor:
        page = visitor.open(f"{app.url}/lessons/{FIRST_NOTEBOOK}").page
        visitor.screen.ready()
        text = visible(visitor)
        assert INNER.findall(text) == []
        cells = json.loads((checkout / "notebooks" / FIRST_NOTEBOOK).read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        lines = [line.strip() for source in code for line in source.splitlines() if len(line.strip()) > 8]
        assert len(lines) > 10
        assert [line for line in lines if line in text] == []
        form = page.get_by_role("form", name="Exercise 1.1")
        field = form.get_by_label("Your answer")
        for answer, verdict in (("13 GPU-hours", "nearly"), ("14", "right")):
            field.focus()
            visitor.press("Control+a")
            page.keyboard.type(answer)
            visitor.press("Enter")
            page.wait_for_selector(f'form.gp-exercise[data-verdict="{verdict}"]', state="attached")
            assert gp.check("1.1", answer).text in form.get_by_role("status").inner_text()
        assert findings(page) == []
        assert visitor.faults() == []


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory, live_pages: dict[str, Path]) -> dict[str, Path]:
    """A report, and a page with live controls."""
    report = tmp_path_factory.mktemp("report") / "report.html"
    gp.report("two-apps").save(report)
    return {"report": report, "live": live_pages["allocation"]}


@pytest.mark.parametrize("paper", ["report", "live"])
def test_nothing_serious_is_found_on_a_page_without_python(
    paper: str, browser: Browser, papers: dict[str, Path]
) -> None:
    look: dict[str, Any] = {"viewport": {"width": 1200, "height": 900}, "color_scheme": "light"}
    with page_of(browser, papers[paper], **look) as (page, faults):
        assert findings(page) == []
        page.set_viewport_size({"width": 360, "height": 740})
        page.emulate_media(color_scheme="dark")
        page.wait_for_function("() => getComputedStyle(document.body).backgroundColor === 'rgb(17, 17, 17)'")
        assert findings(page, rules=["color-contrast", "scrollable-region-focusable"]) == []
        assert faults == []
