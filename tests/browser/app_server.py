"""The app as `gpuplan app` starts it, on a free port of loopback, with limits that tests can reach."""

import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from browser.desk import until
from browser.server import _free_port

#: The app starts in a second, its first kernel in a few; a busy machine may need many times as long.
START_S = 90.0


@dataclass(frozen=True, slots=True)
class App:
    """A running app: its address (without a slash at its end), its log, its process, where its kernels keep files."""

    url: str
    log: Path
    process: "subprocess.Popen[bytes]"
    folder: Path


@contextmanager
def app_running(root: Path, *options: str) -> Iterator[App]:
    """Start the app; stop it at the end.

    Parameters
    ----------
    root
        An empty folder, for its temporary files and its log.
    options
        Further words of the command line.
    """
    log, folder, port = root / "log", root / "tmp", _free_port()
    folder.mkdir()
    command = [sys.executable, "-m", "gpuplan", "app", "--no-browser", "--port", str(port), *options]
    with log.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(
            command, env={**os.environ, "TMPDIR": str(folder)}, stdout=out, stderr=subprocess.STDOUT
        )
        app = App(f"http://127.0.0.1:{port}", log, process, folder)
        try:
            until(lambda: _answers(app), "the app does not answer", START_S)
            yield app
        finally:
            process.terminate()  # it takes its kernels with it
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(15)


def _answers(app: App) -> bool:
    if app.process.poll() is not None:
        raise RuntimeError(f"the app ended: {app.log.read_text(encoding='utf-8')[-2000:]}")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        return bool(opener.open(app.url + "/login", timeout=5).read())
    except OSError:
        return False
