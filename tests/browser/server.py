"""JupyterLab as `gpuplan lab` starts it, on a folder and with settings of its own."""

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpuplan import lab

TOKEN = "let-me-in"

#: JupyterLab starts in two seconds; a busy machine may need many times as long.
START_S = 90.0


@dataclass(frozen=True, slots=True)
class Server:
    """A running JupyterLab: its address, its folder, its log."""

    url: str
    folder: Path
    log: Path

    def write(self, name: str, *cells: str) -> str:
        """Write a notebook of code cells into the folder; its name."""
        notebook = {
            "cells": [_cell(f"cell-{number}", source) for number, source in enumerate(cells)],
            "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        (self.folder / name).write_text(json.dumps(notebook), encoding="utf-8")
        return name


def _cell(number: str, source: str) -> dict[str, object]:
    return {
        "id": number,
        "cell_type": "code",
        "metadata": {},
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


@contextmanager
def serving(root: Path, more: Mapping[str, str] | None = None) -> Iterator[Server]:
    """Start JupyterLab on the folder ``root/notebooks``; stop it at the end.

    Parameters
    ----------
    root
        An empty folder, which also takes JupyterLab's settings, its runtime files and its log.
    more
        Further variables of the environment, which kernels inherit.
    """
    folder = root / "notebooks"
    folder.mkdir(parents=True)
    port = _free_port()
    command = [
        *lab.lab_command(folder, browser=False, port=port),
        "--ServerApp.ip=127.0.0.1",
        f"--IdentityProvider.token={TOKEN}",
        "--expose-app-in-browser",
    ]
    log = root / "log"
    with log.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(
            command, env=_environment(root) | dict(more or {}), stdout=out, stderr=subprocess.STDOUT
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _await_answer(f"{url}/api/status?token={TOKEN}", process, log)
            yield Server(url, folder, log)
        finally:
            process.terminate()  # it takes its kernels with it
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(15)


def _environment(root: Path) -> dict[str, str]:
    """Folders of our own for whatever JupyterLab reads and writes about the person who runs it."""
    places = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    return lab.lab_environment() | {name: str(root / place) for name, place in places.items()}


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _await_answer(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"JupyterLab ended: {log.read_text(encoding='utf-8')[-2000:]}")
        try:
            opener.open(url, timeout=5).read()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise TimeoutError(f"no JupyterLab within {START_S:g} s: {log.read_text(encoding='utf-8')[-2000:]}")
