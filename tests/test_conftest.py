"""The rule that in CI a browser or notebook test may not quietly skip, tried on a small suite."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = """
import pytest

@pytest.fixture(scope="session", autouse=True)
def compiled_kernels():
    pass  # nothing is planned here

def test_absent():
    pytest.skip("no Chromium found")

def test_data():
    pytest.skip("shared data not present: no ../shared/traces beside the checkout")

@pytest.mark.skip(reason="not today")
def test_marked():
    pass

@pytest.fixture
def server():
    pytest.skip("no server")

def test_fixture(server):
    pass

@pytest.mark.xfail(reason="known")
def test_known():
    assert False
"""


@pytest.fixture
def suite(checkout: Path, tmp_path: Path) -> Path:
    """The same tests in a folder of browser tests and in one of others, with our conftest."""
    for folder in ("browser", "other"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder / f"test_{folder}.py").write_text(SUITE, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = --import-mode=importlib\npythonpath = tests\nmarkers =\n    browser: x\n    notebook: x\n",
        encoding="utf-8",
    )
    for name in ("conftest.py", "chromium.py"):
        shutil.copy(checkout / "tests" / name, tmp_path / "tests" / name)
    return tmp_path


def outcomes(suite: Path, *folders: str, ci: bool) -> str:
    """The closing line of a run."""
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | ({"CI": "true"} if ci else {})
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *folders]
    run = subprocess.run(command, cwd=suite, env=environment, capture_output=True, text=True, check=False)
    return run.stdout.splitlines()[-1].split(" in ")[0]


def test_at_home_everything_may_skip(suite: Path) -> None:
    assert outcomes(suite, "tests", ci=False) == "8 skipped, 2 xfailed"


def test_in_ci_a_browser_test_skips_for_absent_data_alone(suite: Path) -> None:
    # test_absent fails; the skips of test_marked and of the fixture happen before the test: errors.
    assert outcomes(suite, "tests/browser", ci=True) == "1 failed, 1 skipped, 1 xfailed, 2 errors"


def test_in_ci_other_tests_may_skip(suite: Path) -> None:
    assert outcomes(suite, "tests/other", ci=True) == "4 skipped, 1 xfailed"


def test_in_ci_a_marked_test_counts_wherever_it_lies(suite: Path) -> None:
    path = suite / "tests" / "other" / "test_other.py"
    path.write_text(
        SUITE.replace("def test_absent", "@pytest.mark.notebook\ndef test_absent"), encoding="utf-8"
    )
    assert outcomes(suite, "tests/other", ci=True) == "1 failed, 3 skipped, 1 xfailed"


def test_in_ci_a_browser_file_may_not_skip_itself(suite: Path) -> None:
    path = suite / "tests" / "browser" / "test_browser.py"
    path.write_text("import pytest\npytest.importorskip('no_such_module')\n", encoding="utf-8")
    assert outcomes(suite, "tests/browser", ci=True) == "1 error"
    assert outcomes(suite, "tests/browser", ci=False) == "1 skipped"


def test_in_ci_the_rule_holds_in_several_processes(suite: Path) -> None:
    several = ("-p", "xdist.plugin", "-n", "2", "--dist", "loadfile")
    assert outcomes(suite, "tests", *several, ci=True) == "1 failed, 5 skipped, 2 xfailed, 2 errors"
