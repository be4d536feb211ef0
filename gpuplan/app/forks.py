"""The server's side of the nursery: asks for kernels, hears when they end."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.local_provisioner import LocalProvisioner


class Forks:
    """A nursery and the kernels that came from it.

    Parameters
    ----------
    root
        Folder of all kernels, which the nursery removes when the server is gone.
    ended
        Told the number of a process that has ended, and its exit code (minus the signal that killed it).
    """

    def __init__(self, root: Path, ended: Callable[[int, int], None]) -> None:
        self._root, self._told = root, ended
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._ready: asyncio.Future[int] | None = None
        self._asked: dict[int, asyncio.Future[int]] = {}
        self._number = 0
        self.alive: set[int] = set()
        self.codes: dict[int, int] = {}

    async def start(self) -> None:
        """Start the nursery; `fork` waits until it is warm."""
        ours, theirs = socket.socketpair()
        command = (sys.executable, "-m", "gpuplan.app.nursery", str(theirs.fileno()), str(self._root))
        single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        env = {key: value for key, value in os.environ.items() if not key.startswith("JUPYTER")} | single
        self._process = await asyncio.create_subprocess_exec(
            *command, pass_fds=(theirs.fileno(),), env=env, stdin=asyncio.subprocess.DEVNULL
        )
        theirs.close()
        reader, self._writer = await asyncio.open_connection(sock=ours)
        self._ready = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._listen(reader, self._ready))

    async def warm(self) -> None:
        """Wait until kernels can be had.

        Raises
        ------
        RuntimeError
            If there is no nursery.
        """
        if self._ready is None or self._writer is None:
            await self.start()
        assert self._ready is not None
        await asyncio.shield(self._ready)

    async def fork(self, asked: dict[str, Any]) -> int:
        """A new kernel; the number of its process."""
        await self.warm()
        assert self._writer is not None
        self._number += 1
        born: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._asked[self._number] = born
        self._writer.write(json.dumps({"fork": asked, "ask": self._number}).encode() + b"\n")
        await self._writer.drain()
        return await born

    async def _listen(self, reader: asyncio.StreamReader, ready: "asyncio.Future[int]") -> None:
        while line := await reader.readline():
            said = json.loads(line)
            if "ready" in said:
                ready.set_result(said["ready"])
            elif "born" in said:
                self.alive.add(said["born"])
                self._asked.pop(said["ask"]).set_result(said["born"])
            else:
                self._end(said["ended"], said["status"])
        self._writer = self._ready = None
        gone = RuntimeError("the process that kernels come from has ended")
        for future in (ready, *self._asked.values()):
            if not future.done():
                future.set_exception(gone)
                future.exception()  # looked at, or asyncio complains
        self._asked.clear()
        for pid in tuple(self.alive):
            self._end(pid, -signal.SIGKILL)

    def _end(self, pid: int, status: int) -> None:
        self.alive.discard(pid)
        self.codes[pid] = status
        self._told(pid, status)

    async def stop(self) -> None:
        """End the nursery and with it all kernels and their folders."""
        if self._writer is not None:
            self._writer.close()
        if self._process is not None:
            try:
                await asyncio.wait_for(self._process.wait(), 5)
            except TimeoutError:
                self._process.kill()


class ForkProvisioner(LocalProvisioner):
    """Gets a kernel's process from the nursery."""

    forks: Forks
    asked: dict[str, Any]

    @property
    def has_process(self) -> bool:
        """Whether it has a process that nobody has seen ended."""
        return self.pid is not None

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Fork a kernel."""
        manager: Any = self.parent
        self.pid = await self.forks.fork({**self.asked, "connection_file": manager.connection_file})
        return self.connection_info

    async def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        return None if self.pid in self.forks.alive else self.forks.codes.get(self.pid or 0, 1)

    async def wait(self) -> int | None:
        """Wait until it has ended."""
        while await self.poll() is None:
            await asyncio.sleep(0.05)
        code = await self.poll()
        self.pid = None
        return code

    async def send_signal(self, signum: int) -> None:
        """Send a signal to the kernel and what it started."""
        if self.pid in self.forks.alive:
            try:
                os.killpg(self.pid, signum)
            except ProcessLookupError:
                return

    async def kill(self, restart: bool = False) -> None:
        """End it at once."""
        await self.send_signal(signal.SIGKILL)

    async def terminate(self, restart: bool = False) -> None:
        """Ask it to end."""
        await self.send_signal(signal.SIGTERM)
