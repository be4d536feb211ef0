"""Fixtures for all tests, and the rule that in CI a browser or notebook test may not quietly skip."""

import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from chromium import find_chromium
from hypothesis import settings

CHECKOUT = Path(__file__).resolve().parent.parent
SHARED = CHECKOUT.parent / "shared"

#: The one reason for which a browser or notebook test may skip in CI.
SHARED_ABSENT = "shared data not present"

#: Markers of the tests that must run in CI.
MUST_RUN = ("browser", "notebook")

#: A folder whose tests share what is dear to start, and what takes longest, the longest first.
BROWSER = "tests/browser/"
LONGEST = (BROWSER, "notebooks/", "tests/notebooks/", "tests/packing/")

#: Of that folder what runs beside the rest, in a process of its own, for it needs the app and no JupyterLab.
APP = ("tests/browser/test_access.py", "tests/browser/test_app.py")

# Shared machines stall; a test that is slow once is not wrong. CI repeats the same examples.
settings.register_profile("gpuplan", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("gpuplan")


@pytest.fixture(scope="session", autouse=True)
def compiled_kernels() -> None:
    """Tests run on compiled kernels (once some twenty seconds, then from numba's cache)."""
    from gpuplan.allocation.plan import warm_up

    warm_up()


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The folder that holds pyproject.toml."""
    return CHECKOUT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real traces and cases next to the checkout; skips where it is absent."""
    if not (SHARED / "traces").is_dir():
        pytest.skip(f"{SHARED_ABSENT}: no ../shared/traces beside the checkout")
    return SHARED


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs a command in this process; its exit code, output and messages."""
    from gpuplan.cli import main

    def call(*words: str | Path) -> tuple[int, str, str]:
        status = main([str(word) for word in words])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a Chromium; skips where there is none (in CI that is a failure)."""
    path = find_chromium()
    if path is None:
        pytest.skip("no Chromium found; install Debian's chromium or name one in $CHROMIUM")
    return path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever lies in tests/browser is a browser test, marked or not; what takes longest begins first."""
    items.sort(key=_turn)
    for item in items:
        if CHECKOUT / "tests" / "browser" in item.path.parents:
            item.add_marker("browser")


def _turn(item: pytest.Item) -> int:
    """Place in line: a long file that begins last would keep one process busy while the others are done."""
    places = [place for place, start in enumerate(LONGEST) if item.nodeid.startswith(start)]
    return places[0] if places else len(LONGEST)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Processes that share tests must give them the same names: of bytes that may hold a time (gzip), none."""
    return argname if isinstance(val, bytes) and not val.isascii() else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``--dist loadfile`` tests/browser counts as one file: one JupyterLab and one Chromium; the app another."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith(APP):
                return APP[0]
            return BROWSER if nodeid.startswith(BROWSER) else super()._split_scope(nodeid)

    return ByFile(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI, turn a skipped browser or notebook test into a failed one."""
    report = yield
    if any(item.get_closest_marker(name) for name in MUST_RUN) and not hasattr(report, "wasxfail"):
        _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """In CI, turn a file that skips itself as a whole (`importorskip`) into an error as well."""
    report = yield
    if "browser" in collector.nodeid or "notebook" in collector.nodeid:
        _refuse_skip(report)
    return report


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if "CI" not in os.environ or report.outcome != "skipped":
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped: ")
    if not reason.startswith(SHARED_ABSENT):
        report.outcome = "failed"
        report.longrepr = f"must not skip in CI: {reason}"
