"""A page as a PDF, printed by a browser of the Chromium family without a window and without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from gpuplan.files import write_whole
from gpuplan.inputs.errors import InputError, Mistake

#: Names under which such a browser is found.
BROWSERS = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge", "microsoft-edge",
)  # fmt: skip

#: Seconds after which the browser is given up.
PATIENCE_S = 180.0

#: Milliseconds of the page's own clock in which its charts are drawn.
_DRAWING_MS = 60_000


def browser_at_hand() -> str | None:
    """Path of the first browser of `BROWSERS` on the search path."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def print_pdf(page: str, path: Path) -> None:
    """Print a page into a file.

    Parameters
    ----------
    page
        HTML.
    path
        The PDF; an older one is replaced once the new one is complete.

    Raises
    ------
    InputError
        Where there is no browser, or it makes no PDF.
    """
    browser = browser_at_hand()
    if browser is None:
        rule = f"needs a browser, and none of {', '.join(BROWSERS)} is on the search path: write .html and print it"
        raise InputError(path.name, [Mistake("", f"a PDF {rule}")])
    with tempfile.TemporaryDirectory(prefix="gpuplan-report-") as folder:
        source, target = Path(folder) / "report.html", Path(folder) / "report.pdf"
        source.write_text(page, encoding="utf-8", newline="\n")
        _print(browser, source, target)
        if not target.is_file() or not target.read_bytes().startswith(b"%PDF"):
            raise InputError(path.name, [Mistake("", f"{Path(browser).name} made no PDF of the report")])
        write_whole(path, target.read_bytes())


def _print(browser: str, source: Path, target: Path) -> None:
    # As root, as in containers, Chromium refuses its own sandbox; the page is ours and may not fetch anything.
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    words = [
        browser,
        "--headless",
        *root,
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={source.parent / 'profile'}",
        "--window-size=1100,1400",
        f"--virtual-time-budget={_DRAWING_MS}",
        "--no-pdf-header-footer",
        f"--print-to-pdf={target}",
        source.as_uri(),
    ]
    try:
        subprocess.run(words, capture_output=True, timeout=PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        rule = f"{Path(browser).name} could not print the report ({type(error).__name__})"
        raise InputError(target.name, [Mistake("", rule)]) from error
