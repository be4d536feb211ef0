"""A process in which everything is loaded and warm, from which the app's kernels are forked.

A kernel is then there in a fraction of a second, and kernels share the memory of what they load. The server talks to
the process through a socket, a JSON object per line: ``{"fork": {...}, "ask": n}`` is answered by
``{"born": pid, "ask": n}``, and ``{"ended": pid, "status": n}`` follows when that kernel has ended. When the server
is gone, so are the kernels and their folders.
"""

import contextlib
import ctypes
import gc
import json
import os
import resource
import selectors
import shutil
import signal
import socket
import sys
import tempfile
from typing import Any

#: How often (seconds) ended kernels are looked for.
LOOK_S = 0.1


#: Widgets that modules keep for all explorers, such as layouts.
shared: list[Any] = []


def warm() -> None:
    """Load whatever pages use and make each explorer once, so that kernels find it done."""
    import ipykernel.ipkernel
    import ipykernel.kernelapp
    import ipykernel.zmqshell  # noqa: F401
    import ipywidgets
    import pandas  # noqa: F401
    from IPython.display import Markdown  # noqa: F401
    from ipywidgets.widgets.widget import _instances

    import gpuplan.app.page as page
    import gpuplan_widgets as widgets
    from gpuplan.lab import compile_kernels

    compile_kernels()
    for name in widgets.__all__:
        getattr(widgets, name)
    shared.extend(_instances.values())
    for name in page.MAKERS:
        page.made(name, {})
    ipywidgets.Widget.close_all()
    gc.collect()
    gc.freeze()


class Nursery:
    """The loop of the process."""

    def __init__(self, channel: socket.socket, root: str) -> None:
        self._channel, self._root = channel, root
        self._kernels: set[int] = set()

    def serve(self) -> None:
        """Answer until the server is gone; then end all kernels."""
        try:
            with contextlib.suppress(ConnectionError):  # gone while it was told something
                self._until_gone()
        finally:
            for pid in self._kernels:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            shutil.rmtree(self._root, ignore_errors=True)

    def _until_gone(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._channel, selectors.EVENT_READ)
            rest = b""
            while True:
                if selector.select(LOOK_S):
                    data = self._channel.recv(1 << 16)
                    if not data:
                        return
                    *lines, rest = (rest + data).split(b"\n")
                    for line in lines:
                        self._answer(json.loads(line))
                self._look()

    def say(self, message: dict[str, Any]) -> None:
        """Tell the server something."""
        self._channel.sendall(json.dumps(message).encode() + b"\n")

    def _answer(self, asked: dict[str, Any]) -> None:
        nursery, pid = os.getpid(), os.fork()
        if pid == 0:
            become_kernel(self._channel, {**asked["fork"], "nursery": nursery})
        self._kernels.add(pid)
        self.say({"born": pid, "ask": asked["ask"]})

    def _look(self) -> None:
        while self._kernels:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            self._kernels.discard(pid)
            self.say({"ended": pid, "status": os.waitstatus_to_exitcode(status)})


def become_kernel(channel: socket.socket, asked: dict[str, Any]) -> None:
    """Be a kernel from now on, within its limits; does not return."""
    status = 1
    try:
        channel.close()
        end_with(asked["nursery"])
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # advice for people at a terminal
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        folder = asked["folder"]
        os.environ.update(asked["env"], TMPDIR=folder, IPYTHONDIR=folder, HOME=folder)
        os.chdir(folder)
        os.umask(0o077)
        tempfile.tempdir = None
        _limit(asked["memory_mb"], asked["cpu_s"])
        from ipykernel.kernelapp import IPKernelApp

        from gpuplan.inputs.folders import confine
        from gpuplan_widgets.guest import Guest, receive

        confine()
        receive(Guest(asked["upload_mb"] * 1_000_000, asked["seconds"]))

        arguments = [
            "-f",
            asked["connection_file"],
            "--HistoryManager.enabled=False",
            "--IPKernelApp.quiet=True",
        ]
        app = IPKernelApp.instance()
        app.initialize(arguments)
        import ipywidgets

        ipywidgets.register_comm_target()  # done at import, where there is a kernel already
        for widget in shared:
            widget.open()  # to this kernel's page
        app.start()
        status = 0
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    finally:
        os._exit(status)


def end_with(parent: int) -> None:
    """Be killed when the parent ends, even where it is killed itself (Linux: prctl(2), PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it has ended already
        os._exit(1)


def _limit(memory_mb: int, cpu_s: int) -> None:
    """Limits that the operating system keeps: what is asked beyond them fails, or ends the kernel."""
    with open("/proc/self/statm", encoding="ascii") as file:
        held = int(file.read().split()[0]) * resource.getpagesize()
    most = held + memory_mb * 1_000_000
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Warm up, say so, and serve."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's question
    channel = socket.socket(fileno=int(sys.argv[1]))
    nursery = Nursery(channel, sys.argv[2])
    warm()
    nursery.say({"ready": len(os.listdir("/proc/self/task"))})
    nursery.serve()


if __name__ == "__main__":
    main()
