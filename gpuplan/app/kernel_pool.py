"""Kernels of the app: a limited number, one per page, each of one visitor, with an end."""

import asyncio
import shutil
import signal
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager, ServerKernelManager
from traitlets import Instance, Unicode

from gpuplan.app.forks import ForkProvisioner, Forks
from gpuplan.app.options import Options

#: Seconds after which a kernel goes that no page is connected to.
ALONE_S = 60.0

#: Seconds after which it goes where others wait for a place.
SOON_S = 10.0

#: How often (seconds) it is looked which kernels have to go.
LOOK_S = 2.0

#: What kernels may be asked by a page; everything else is refused.
MESSAGES = ["comm_open", "comm_msg", "comm_close", "comm_info_request", "kernel_info_request"]

#: Reasons that are kept of kernels that are gone.
KEPT_REASONS = 1000


class Full(Exception):
    """As many pages as allowed have a kernel."""


@dataclass
class Guest:
    """A kernel as the app sees it: whose it is, since when, its process, its sockets."""

    visitor: str
    folder: Path
    began: float = field(default_factory=time.monotonic)
    touched: float = field(default_factory=time.monotonic)
    left: float | None = None
    pid: int | None = None
    sockets: set[Any] = field(default_factory=set)


class AppKernelManager(ServerKernelManager):
    """A kernel that comes from the nursery and is not started again when it ends."""

    def __init__(self, **kwargs: Any) -> None:
        # no ports: files in a folder that only this person may enter
        whole = Path(kwargs["connection_file"])
        # the path of a socket may have about a hundred characters, and folders for temporary files are long already
        short = whole.with_name(whole.stem.removeprefix("kernel-").replace("-", "")[:16] + whole.suffix)
        own = {"autorestart": False, "transport": "ipc", "connection_file": str(short)}
        super().__init__(**{**kwargs, **own})

    async def _async_pre_start_kernel(self, **kw: Any) -> tuple[list[str], dict[str, Any]]:
        kernels: Any = self.parent
        kernel_id = str(self.kernel_id or kw.get("kernel_id"))
        if self.provisioner is None:
            made = ForkProvisioner(kernel_id=kernel_id, kernel_spec=self.kernel_spec, parent=self)
            made.forks = kernels.forks
            made.asked = kernels.asked_of(kernel_id, kw.get("env", {}))
            self.provisioner = made
        answer: tuple[list[str], dict[str, Any]] = await super()._async_pre_start_kernel(**kw)
        return answer

    pre_start_kernel = _async_pre_start_kernel  # type: ignore[assignment]  # it is a coroutine there too


class Kernels(AsyncMappingKernelManager):
    """All kernels of the app.

    Attributes
    ----------
    options
        With the limits.
    guests
        What is known of each kernel, by its id.
    """

    options = Instance(Options)
    root = Unicode()

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kernel_manager_class = "gpuplan.app.kernel_pool.AppKernelManager"
        self.allowed_message_types = MESSAGES
        self.buffer_offline_messages = False
        self.guests: dict[str, Guest] = {}
        self.reasons: OrderedDict[str, str] = OrderedDict()
        self.forks = Forks(Path(self.root), self._ended)

    # ------------------------------------------------------------------ coming

    async def start_for(self, visitor: str, env: dict[str, str]) -> str:
        """Start a kernel for a visitor's page; its id.

        Raises
        ------
        Full
            If there are as many as allowed.
        """
        if len(self.guests) >= self.options.users:
            await self._make_room()
        if len(self.guests) >= self.options.users:
            raise Full
        kernel_id: str = self.new_kernel_id()
        folder = Path(self.root) / kernel_id
        folder.mkdir(mode=0o700)
        self.guests[kernel_id] = Guest(visitor, folder)
        try:
            await self.start_kernel(kernel_id=kernel_id, kernel_name="python3", env=env)
        except BaseException:
            self._forget(kernel_id, "It could not be started.")
            raise
        guest = self.guests.get(kernel_id)
        if guest is not None:
            guest.pid = getattr(self.get_kernel(kernel_id).provisioner, "pid", None)
        return kernel_id

    def has_room(self) -> bool:
        """Whether a page could have a kernel now, perhaps in place of one that nobody looks at."""
        now = time.monotonic()
        alone = any(g.left is not None and now - g.left > SOON_S for g in self.guests.values())
        return len(self.guests) < self.options.users or alone

    def asked_of(self, kernel_id: str, env: dict[str, str]) -> dict[str, Any]:
        """What the nursery is asked for."""
        limits = self.options
        return {
            "env": env,
            "folder": str(self.guests[kernel_id].folder),
            "memory_mb": limits.memory_mb,
            "cpu_s": max(1, round(60 * limits.cpu_min)),
            "upload_mb": limits.upload_mb,
            "seconds": limits.seconds,
        }

    def written(self, kernel_id: str | None) -> None:
        """A page was written whole: from now on its kernel waits for its socket."""
        guest = self.guests.get(kernel_id or "")
        if guest is not None and not guest.sockets:
            guest.left = time.monotonic()

    def is_of(self, kernel_id: str, visitor: str | None) -> bool:
        """Whether a kernel is there and a visitor's own."""
        guest = self.guests.get(kernel_id)
        return guest is not None and guest.visitor == visitor

    # ------------------------------------------------------------------ going

    async def look(self) -> None:
        """End what has to go, again and again."""
        while True:
            await asyncio.sleep(LOOK_S)
            for kernel_id, why in self.due(self.guests, self.options, time.monotonic()):
                await self.end(kernel_id, why)

    @staticmethod
    def due(guests: Mapping[str, Guest], limits: Options, now: float) -> list[tuple[str, str]]:
        """Kernels that have to go at a time (monotonic seconds), and why."""
        found = []
        for kernel_id, guest in guests.items():
            if now - guest.began > 60 * limits.life_min:
                why = f"A page lives for {limits.life_min:g} minutes here."
            elif now - guest.touched > 60 * limits.idle_min:
                why = f"Nothing was moved for {limits.idle_min:g} minutes."
            elif guest.left is not None and now - guest.left > ALONE_S:
                why = "The page had no connection for a minute."
            else:
                continue
            found.append((kernel_id, why))
        return found

    async def _make_room(self) -> None:
        """End the kernel that has been without a page for longest, if that is more than a moment."""
        now = time.monotonic()
        alone = [(g.left, k) for k, g in self.guests.items() if g.left is not None and now - g.left > SOON_S]
        if alone:
            await self.end(min(alone)[1], "The page had no connection, and others waited.")

    async def end(self, kernel_id: str, why: str) -> None:
        """End a kernel and forget what it held; ``why`` is told to its page."""
        if kernel_id not in self.guests:
            return
        self._forget(kernel_id, why)
        if kernel_id in self:
            await self.shutdown_kernel(kernel_id, now=True)

    def _ended(self, pid: int, status: int) -> None:
        """A process is gone: tell its page why."""
        for kernel_id, guest in tuple(self.guests.items()):
            if guest.pid == pid:
                self._forget(kernel_id, self._why(status))
                if kernel_id in self:
                    asyncio.get_running_loop().create_task(self.shutdown_kernel(kernel_id, now=True))

    def _why(self, status: int) -> str:
        known = {
            -signal.SIGALRM: f"One computation took longer than {self.options.seconds:g} seconds.",
            -signal.SIGXCPU: f"It had used its {self.options.cpu_min:g} minutes of processor time.",
            -signal.SIGKILL: "It was ended from outside, or the machine had no memory left.",
        }
        return known.get(status, "It ended on its own, perhaps for want of memory.")

    def _forget(self, kernel_id: str, why: str) -> None:
        guest = self.guests.pop(kernel_id)
        self.reasons[kernel_id] = why
        while len(self.reasons) > KEPT_REASONS:
            self.reasons.popitem(last=False)
        for one in tuple(guest.sockets):
            one.close(4001, "ended")
        shutil.rmtree(guest.folder, ignore_errors=True)

    async def stop(self) -> None:
        """End everything."""
        for kernel_id in tuple(self.guests):
            await self.end(kernel_id, "The app was stopped.")
        await self.forks.stop()
