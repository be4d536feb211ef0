"""Kernels end with the process that they come from, and that one with the server."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

#: The nursery without what takes long; its kernels are real.
PROGRAM = "import gpuplan.app.nursery as nursery; nursery.warm = lambda: None; nursery.main()"


class Nursery:
    """A nursery, asked as the server asks it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.channel, theirs = socket.socketpair()
        self.lines = self.channel.makefile("rb")
        command = [sys.executable, "-c", PROGRAM, str(theirs.fileno()), str(root)]
        self.process = subprocess.Popen(command, pass_fds=(theirs.fileno(),))
        theirs.close()
        assert "ready" in self.hear()

    def hear(self) -> Any:
        return json.loads(self.lines.readline())

    def fork(self, number: int) -> int:
        folder = self.root / str(number)
        folder.mkdir()
        asked = {
            "env": {},
            "folder": str(folder),
            "memory_mb": 2000,
            "cpu_s": 60,
            "upload_mb": 1,
            "seconds": 30,
            "connection_file": str(folder / "kernel.json"),
        }
        self.channel.sendall(json.dumps({"fork": asked, "ask": number}).encode() + b"\n")
        said = self.hear()
        assert said["ask"] == number
        return int(said["born"])

    def leave(self) -> None:
        """Be gone, as a server that was killed."""
        self.lines.close()
        self.channel.close()


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Nursery]:
    root = tmp_path / "root"
    root.mkdir()
    made = Nursery(root)
    yield made
    made.leave()
    made.process.kill()
    made.process.wait()


def await_end(pid: int) -> None:
    """Wait until a process is gone, or waits for nothing but to be forgotten."""
    stat = Path("/proc", str(pid), "stat")
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            if stat.read_text(encoding="ascii").rpartition(")")[2].split()[0] in "ZX":
                return
        except (FileNotFoundError, ProcessLookupError):
            return
        time.sleep(0.02)
    raise AssertionError("it lives on")


def test_kernels_end_with_a_nursery_that_is_killed(nursery: Nursery) -> None:
    kernels = [nursery.fork(number) for number in (1, 2)]
    nursery.process.kill()  # it has no time to tell anybody
    for pid in kernels:
        await_end(pid)


@pytest.mark.parametrize("first", [False, True])
def test_kernels_and_folders_go_with_the_server(nursery: Nursery, *, first: bool) -> None:
    """Also where a kernel ends in that very moment, of which nobody is left to hear."""
    kernels = [nursery.fork(number) for number in (1, 2)]
    if first:
        os.kill(kernels[0], signal.SIGKILL)
    nursery.leave()
    assert nursery.process.wait(30) == 0
    for pid in kernels:
        await_end(pid)
    assert not nursery.root.exists()
