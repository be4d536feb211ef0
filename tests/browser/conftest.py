"""One JupyterLab and one Chromium for all browser tests; a fresh explorer for each."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from reports.grids import pages

from browser.app_server import App, app_running
from browser.desk import Desk, chromium_running, desk_of
from browser.screen import Screen
from browser.server import Server, serving

IMPORT = "import gpuplan as gp"


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """JupyterLab on a temporary folder; kernels find everything compiled."""
    from gpuplan.allocation.plan import warm_up

    warm_up()
    with serving(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture(scope="package")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """`gpuplan app`, open to this machine; places for twelve pages at once, 5 MB of files each."""
    from gpuplan.allocation.plan import warm_up

    warm_up()
    with app_running(tmp_path_factory.mktemp("app"), "--users", "12", "--upload", "5") as running:
        yield running


@pytest.fixture(scope="package")
def browser(chromium: str) -> Iterator[Browser]:
    """Chromium for this package only: as long as its Playwright runs, no other test can start one."""
    with chromium_running(chromium) as running:
        yield running


@pytest.fixture(scope="package")
def live_pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A small page with live controls (`gpuplan report --interactive`) by kind of scenario."""
    return pages(tmp_path_factory.mktemp("memory stick"))  # a blank in the path, as people have it


@pytest.fixture(scope="package")
def opened(browser: Browser, lab: Server) -> Iterator[Desk]:
    """A notebook that makes an explorer, open in JupyterLab, with its kernel."""
    notebook = lab.write("explorer.ipynb", IMPORT, 'explorer = gp.explore("two-apps")\nexplorer')
    with desk_of(browser, lab) as desk:
        desk.open(notebook)
        yield desk


@pytest.fixture
def desk(opened: Desk) -> Iterator[Desk]:
    """The open notebook; whatever left the machine or went wrong on the page fails the test."""
    opened.outside.clear()
    opened.errors.clear()
    yield opened
    assert opened.faults() == []


@pytest.fixture
def explore(desk: Desk) -> Callable[[str], Screen]:
    """Make an explorer of what an expression gives (text of Python), and wait for its first chart."""

    def make(expression: str) -> Screen:
        desk.run_all(IMPORT, f"explorer = gp.explore({expression})\nexplorer")
        return Screen(desk.page).ready()

    return make


@pytest.fixture
def screen(explore: Callable[[str], Screen]) -> Screen:
    """An explorer of two-apps."""
    return explore('"two-apps"')
