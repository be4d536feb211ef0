"""Reports in a real browser: opened as files, without a network, on wide and narrow, light and dark pages; as PDF."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import altair as alt
import pytest
from playwright.sync_api import Browser
from reports.notebooks import shown

import gpuplan as gp
from browser.pages import WIDTHS, page_of
from gpuplan.reports import pdf
from gpuplan.reports.notebook_kernel import CHART
from gpuplan.reports.notebook_page import notebook_page

SCENARIOS = {"allocation": "two-apps", "fairshare": "first-hours", "packing": "one-gpu-idles"}

#: Of each chart: how it was drawn, marks and texts in it, and whether it stays within the page or scrolls by itself.
CHARTS = """
() => [...document.querySelectorAll("figure.chart")].map((figure) => {
  const host = figure.querySelector(".on-screen");
  return { drawn: figure.dataset.drawn, marks: host.querySelectorAll("svg path, svg rect").length,
    texts: host.querySelectorAll("svg text").length, right: Math.round(host.getBoundingClientRect().right),
    height: Math.round(host.getBoundingClientRect().height) };
})
"""

PAPER = "() => getComputedStyle(document.body).backgroundColor"

Opened = Callable[..., Any]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("memory stick")  # a blank in the path, as people have it
    made = {kind: folder / f"{kind}.html" for kind in SCENARIOS}
    for kind, path in made.items():
        gp.report(SCENARIOS[kind]).save(path)
    return made


@pytest.mark.parametrize("kind", SCENARIOS)
def test_a_report_draws_its_charts_without_a_network(
    kind: str, browser: Browser, files: dict[str, Path]
) -> None:
    look = {"viewport": {"width": 1200, "height": 900}, "color_scheme": "light"}
    with page_of(browser, files[kind], **look) as (page, faults):
        charts = page.evaluate(CHARTS)
        assert len(charts) >= 5
        for chart in charts:
            assert chart["drawn"] == "wide light"
            assert chart["marks"] > 10
            assert chart["texts"] > 5
            assert chart["height"] > 60
        assert page.evaluate(WIDTHS) == [1200, 1200]
        assert page.evaluate(PAPER) == "rgb(255, 255, 255)"
        page.emulate_media(color_scheme="dark")
        page.wait_for_function(
            "() => [...document.querySelectorAll('figure.chart')].every((f) => f.dataset.drawn === 'wide dark')"
        )
        assert page.evaluate(PAPER) == "rgb(17, 17, 17)"
        page.emulate_media(media="print")  # paper shows the light drawing, whatever the screen was
        shown = page.evaluate(
            "() => ['.on-screen', '.on-paper'].map((part) => document.querySelector(part).offsetHeight > 0)"
        )
        assert shown == [False, True]
        assert faults == []


@pytest.mark.parametrize("kind", SCENARIOS)
def test_a_report_fits_a_telephone(kind: str, browser: Browser, files: dict[str, Path]) -> None:
    look = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}
    with page_of(browser, files[kind], **look) as (page, faults):
        assert page.evaluate(WIDTHS) == [360, 360]
        for chart in page.evaluate(CHARTS):
            assert chart["drawn"] == "narrow dark"
            assert chart["right"] <= 360
        first = page.locator("figure.chart summary").first
        first.focus()
        page.keyboard.press("Enter")
        assert page.locator("figure.chart details table").first.is_visible()
        assert page.evaluate(WIDTHS) == [360, 360]
        assert faults == []


def test_hostile_names_run_nothing(browser: Browser, tmp_path: Path) -> None:
    name = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    path = tmp_path / "hostile.html"
    changes = {"name": name, "batch.0.name": name, "realtime.0.name": f"{name}2"}
    gp.report(gp.load("two-apps").replace(changes)).save(path)
    with page_of(browser, path, viewport={"width": 1000, "height": 800}) as (page, faults):
        assert page.locator("h1").text_content() == name
        assert page.locator("img").count() == 0
        assert all(chart["drawn"] == "wide light" for chart in page.evaluate(CHARTS))
        assert faults == []


def test_a_report_of_a_notebook_draws_and_nothing_else_runs(browser: Browser, tmp_path: Path) -> None:
    """Outputs with scripts, a chart of somebody else, a picture: on a telephone, in the dark."""
    hostile = (
        "</script><script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"
    )
    chart = (
        alt.Chart(alt.InlineData([{"a": hostile, "b": 3}])).mark_bar(color="teal").encode(x="b:Q", y="a:N")
    )
    figures = gp.report_figures("two-apps")
    notebook, ran = shown(
        figures._repr_mimebundle_(),
        {CHART: {"wide": chart.to_dict(), "config": {}}, "text/plain": hostile},
        {"text/html": f"<p>before{hostile}after</p><table><tr>{'<td>wide</td>' * 99}</tr></table>"},
        {
            "image/svg+xml": "<svg xmlns='http://www.w3.org/2000/svg' width='900' height='9'><script>x()</script></svg>"
        },
    )
    text = notebook_page(notebook, {}, ran, None, code=True)
    path = tmp_path / "notebook.html"
    path.write_text(text, encoding="utf-8")
    look = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}
    with page_of(browser, path, **look) as (page, faults):
        assert page.evaluate(WIDTHS) == [360, 360]
        assert [chart["drawn"] for chart in page.evaluate(CHARTS)] == ["narrow dark"]
        assert page.locator('.on-screen path[fill="teal"]').count() == 1
        assert page.title() == "Report: made"
        assert [fault for fault in faults if not fault.startswith("data:")] == []
    # Should anything get past the cleaning, the page's policy still lets no script but its own run.
    path.write_text(text.replace("</main>", f"{hostile[9:]}</main>"), encoding="utf-8")
    with page_of(browser, path, **look) as (page, faults):
        assert page.title() == "Report: made"
        assert any("Content Security Policy" in fault for fault in faults)


def test_a_report_becomes_a_pdf(chromium: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "browser_at_hand", lambda: chromium)
    path = tmp_path / "report.pdf"
    gp.report("two-apps").save(path)
    content = path.read_bytes()
    assert content.startswith(b"%PDF-")
    assert len(content) > 200_000  # 490,000 with its charts, 98,000 without
