"""The server of the app: what it answers to, how it starts and how it ends."""

import asyncio
import contextlib
import fcntl
import logging
import os
import secrets
import shutil
import signal
import socket as sockets
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jinja2
import voila.paths
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_server.auth.authorizer import AllowAllAuthorizer
from tornado.httpserver import HTTPServer
from tornado.web import Application

from gpuplan.app import handlers as h
from gpuplan.app.door import Door
from gpuplan.app.kernel_pool import Kernels
from gpuplan.app.options import Options
from gpuplan.app.render import EXTENSIONS
from gpuplan.app.socket import WidgetConnection, WidgetSocket

HERE = Path(__file__).parent

#: Port that is tried first where none is named, and how many after it.
PORT, PORTS = 8866, 50

#: Folders of kernels, in the system's folder for temporary files.
PREFIX = "gpuplan-app-"

#: Bytes of a message beyond what an upload needs.
SPARE = 1_000_000


class Refused(Exception):
    """What was asked of the app cannot be; the message says why."""


def front_end() -> Path:
    """The folder of Voila's front end."""
    name = Path("templates", "base", "static")
    found = [Path(root, "voila", name) for root in voila.paths._default_root_dirs()]
    own = Path(sys.prefix, "share", "jupyter", "voila", name)
    return next((folder for folder in (own, *found) if (folder / "voila.js").is_file()), own)


def sheets() -> Path:
    """The folder of JupyterLab's style sheets, as nbconvert brings them."""
    name = Path("nbconvert", "templates", "lab", "static")
    found = [
        Path(root, name) for root in (Path(sys.prefix, "share", "jupyter"), *voila.paths._default_root_dirs())
    ]
    return next((folder for folder in found if (folder / "index.css").is_file()), found[0])


def extension_folders() -> dict[str, Path]:
    """The folder of each extension of the front end."""
    from jupyter_core.paths import jupyter_path

    roots = [Path(p, "labextensions") for p in (*jupyter_path(), *jupyter_path("voila"))]
    found = {
        name: next((root / name for root in roots if (root / name).is_dir()), None) for name in EXTENSIONS
    }
    return {name: folder for name, folder in found.items() if folder is not None}


def rules(options: Options) -> list[Any]:
    """Every address that the app answers to, and what answers."""
    base = options.base_url
    files = [(rf"{base}voila/static/(.*)", h.Files, {"path": str(front_end())})]
    files += [
        (rf"{base}voila/labextensions/{name}/(.*)", h.Files, {"path": str(folder)})
        for name, folder in extension_folders().items()
    ]
    files += [(rf"{base}sheets/((?:index|theme-light|theme-dark)\.css)", h.Files, {"path": str(sheets())})]
    files += [(rf"{base}app/(.*)", h.Files, {"path": str(HERE / "static")})]
    return [
        (base, h.Home),
        (rf"{base}login", h.Login),
        (rf"{base}((?:explore|lessons)/[^/]+)", h.Show),
        (rf"{base}api/kernels/{h.KERNEL_ID}/channels", WidgetSocket),
        (rf"{base}api/kernels/{h.KERNEL_ID}", h.Model),
        (rf"{base}kernels/{h.KERNEL_ID}", h.Kernel),
        (rf"{base}voila/api/shutdown/{h.KERNEL_ID}", h.Kernel),
        *files,
    ]


def application(options: Options, kernels: Kernels, log: logging.Logger) -> Application:
    """The app without a port."""
    loader = jinja2.FileSystemLoader(HERE / "templates")
    door = Door(token=options.token, header=options.proxy_header, cookie_options={"samesite": "Lax"})
    return Application(
        rules(options),
        default_handler_class=h.Missing,
        base_url=options.base_url,
        options=options,
        log=log,
        jinja2_env=jinja2.Environment(loader=loader, autoescape=True),
        kernel_manager=kernels,
        kernel_websocket_connection_class=WidgetConnection,
        identity_provider=door,
        authorizer=AllowAllAuthorizer(identity_provider=door),
        cookie_secret=secrets.token_bytes(32),
        xsrf_cookies=True,
        login_url=f"{options.base_url}login",
        allow_remote_access=not options.hosts and (options.open_to_others or bool(options.proxy_header)),
        local_hostnames=["localhost", *options.hosts],
        websocket_max_message_size=options.upload_mb * 1_000_000 + SPARE,
        log_function=lambda _handler: None,
    )


@contextmanager
def kernel_root() -> Iterator[Path]:
    """A folder for what kernels keep, which only this person may enter; those of dead servers are removed."""
    for old in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            _sweep(old)
    root = Path(tempfile.mkdtemp(prefix=PREFIX))
    with (root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield root
        finally:
            shutil.rmtree(root, ignore_errors=True)


def _sweep(old: Path) -> None:
    """Remove the folder of a server that is gone: nobody holds its lock."""
    if old.is_symlink() or old.stat().st_uid != os.geteuid():
        return
    with (old / "lock").open("r") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(old, ignore_errors=True)


def bound(options: Options) -> list[sockets.socket]:
    """The sockets that the app listens on.

    Raises
    ------
    Refused
        If the port is taken, or the address is none of this machine's.
    """
    ports = range(PORT, PORT + PORTS) if options.port is None else (options.port,)
    cause: Exception | None = None
    for port in ports:
        try:
            found = sockets.getaddrinfo(options.ip, port, type=sockets.SOCK_STREAM)[0]
            one = sockets.create_server((options.ip, port), family=found[0], backlog=128)
        except OSError as error:
            cause = error
            if isinstance(error, sockets.gaierror):
                break
        else:
            one.setblocking(False)
            return [one]
    where = f"port {options.port}" if options.port is not None else f"ports {PORT} to {PORT + PORTS - 1}"
    raise Refused(f"cannot listen on {options.ip}, {where}: {getattr(cause, 'strerror', cause)}")


async def run(options: Options, root: Path, listening: list[sockets.socket], log: logging.Logger) -> None:
    """Serve until the process is asked to end."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    specs = KernelSpecManager(whitelist=set(), ensure_native_kernel=True)
    kernels = Kernels(
        options=options,
        root=str(root),
        root_dir=str(root),
        connection_dir=str(root),
        kernel_spec_manager=specs,
        log=log,
    )
    server = HTTPServer(application(options, kernels, log), xheaders=bool(options.proxy_header))
    await kernels.forks.start()
    server.add_sockets(listening)
    watch = asyncio.create_task(kernels.look())
    _announce(options, listening[0].getsockname()[1])
    await stop.wait()
    server.stop()
    watch.cancel()
    await kernels.stop()


def _announce(options: Options, port: int) -> None:
    host = f"[{options.ip}]" if ":" in options.ip else options.ip
    token = f"?token={options.token}" if options.token else ""
    address = f"http://{host}:{port}{options.base_url}{token}"
    print(f"The app is at {address}\nStop it with Ctrl-C.", flush=True)
    if options.browser:
        with contextlib.suppress(webbrowser.Error):
            webbrowser.open(address)


def serve(options: Options) -> int:
    """Serve the app until it is stopped; the exit code.

    Raises
    ------
    Refused
        If it cannot listen where it is told to.
    """
    log = logging.getLogger("gpuplan.app")
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    listening = bound(options)
    with kernel_root() as root:
        asyncio.run(run(options, root, listening, log))
    return 0
