"""Opens JupyterLab on the notebooks, with everything compiled and nothing fetched from outside."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from gpuplan.inputs.folders import data_folder

FIRST_NOTEBOOK = "01-why-order-is-capacity.ipynb"

#: Where notebooks of an installed wheel are copied when no folder is named.
DEFAULT_COPY = "gpuplan-notebooks"


def notebooks_to_open(folder: Path | None) -> Path:
    """The folder to work in: the checkout's own notebooks, or a copy of the shipped ones.

    Parameters
    ----------
    folder
        Where to copy to; files that are already there are kept as they are. ``None``: in a
        checkout no copy is made, elsewhere the copy goes to ``gpuplan-notebooks``.

    Raises
    ------
    OSError
        Where the copy cannot be written.
    """
    shipped = data_folder("notebooks")
    in_checkout = (shipped.parent / "pyproject.toml").is_file()
    if folder is None and in_checkout:
        return shipped
    folder = Path(DEFAULT_COPY) if folder is None else folder
    folder.mkdir(parents=True, exist_ok=True)
    for notebook in sorted(shipped.glob("*.ipynb")):
        try:
            with (folder / notebook.name).open("xb") as copy:
                copy.write(notebook.read_bytes())
        except FileExistsError:
            print(f"kept your own {folder / notebook.name}")
    return folder


def lab_command(folder: Path, *, browser: bool = True, port: int | None = None) -> list[str]:
    """The command line that starts JupyterLab in `folder`, with all its outside calls turned off."""
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={folder.resolve()}",
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
        "--ServerApp.kernel_websocket_connection_class=gpuplan.lab_socket.PromptConnection",
    ]
    if (folder / FIRST_NOTEBOOK).is_file():
        command.append(f"--LabApp.default_url=/lab/tree/{FIRST_NOTEBOOK}")
    if not browser:
        command.append("--no-browser")
    if port is not None:
        command += [f"--port={port}", "--ServerApp.port_retries=0"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")  # containers have no other user; the server listens on loopback
    return command


def lab_environment() -> dict[str, str]:
    """Environment for JupyterLab: ours, and the folder that answers its question about news with no.

    It changes defaults only: what a person has set in JupyterLab stays.
    """
    paths = [os.environ.get("JUPYTER_CONFIG_PATH"), str(Path(__file__).with_name("jupyter_config"))]
    return {**os.environ, "JUPYTER_CONFIG_PATH": os.pathsep.join(filter(None, paths))}


def missing_jupyterlab() -> str | None:
    """What to say where JupyterLab is not installed, else ``None``."""
    if importlib.util.find_spec("jupyterlab") is not None:
        return None
    return "JupyterLab is not installed here; install it with: pip install 'gpuplan[lab]'"


def compile_kernels() -> None:
    """Compile all kernels into numba's cache, so that no slider waits for the compiler."""
    from gpuplan.allocation import engine
    from gpuplan.allocation.plan import warm_up
    from gpuplan.fairshare import run as fairshare
    from gpuplan.packing import run as packing

    if not engine.on_disk():
        print("Compiling (two to three minutes, the first time only) ...", flush=True)
    warm_up()
    fairshare.warm_up()
    packing.warm_up()


def open_lab(folder: Path, *, browser: bool = True, port: int | None = None) -> int:
    """Start JupyterLab in `folder` and stay until it is stopped; its exit code."""
    command = lab_command(folder, browser=browser, port=port)
    sys.stdout.flush()
    if os.name == "posix":  # one process only: Ctrl-C is JupyterLab's own question then
        os.execve(command[0], command, lab_environment())
    return subprocess.run(command, env=lab_environment(), check=False).returncode
