"""Run a notebook in a kernel of its own, from its first cell to its last, in its folder."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.reports.notebook_file import Notebook, missing
from gpuplan.reports.notebook_kernel import SCENARIOS

#: Seconds that a notebook may take in all.
TIME_LIMIT_S = 600.0

#: Characters of output after which a notebook is stopped.
MOST_OUTPUT = 100_000_000

_BEGIN = "from gpuplan.reports.notebook_kernel import begin as _gpuplan; _gpuplan(); del _gpuplan"
_END = "from gpuplan.reports.notebook_kernel import end as _gpuplan; _gpuplan()"

#: Characters of a folder whose sockets have names short enough for every system.
_LONGEST_SOCKET = 90

#: Packages that every run needs.
_NEEDED = ("nbclient", "ipykernel")


@dataclass(frozen=True)
class Ran:
    """What a run of a notebook gave.

    Attributes
    ----------
    outputs : tuple of list
        Outputs of every cell, as Jupyter stores them; text cells have none.
    scenarios : list of tuple
        Kind, name and fingerprint of every scenario that was run, in order.
    more : int
        Runs of scenarios beyond those.
    drawn : tuple of str
        Packages that may have drawn something, as the notebook has loaded them.
    """

    outputs: tuple[list[Any], ...]
    scenarios: list[tuple[str, str, str]]
    more: int
    drawn: tuple[str, ...]


def run_notebook(notebook: Notebook, folder: Path, source: str, time_limit_s: float = TIME_LIMIT_S) -> Ran:
    """Run every code cell in order.

    Parameters
    ----------
    notebook
        With its parameters in place.
    folder
        Where it runs: that of its file, so that it finds what lies beside it.
    source
        Name of its file, for messages.
    time_limit_s
        Seconds in all.

    Raises
    ------
    InputError
        For a cell that fails, a kernel that does not start or ends, and a run that takes too long or says too much.
    """
    cells = [
        _code(_BEGIN),
        *(_code(cell.source, cell.tags) for cell in notebook.cells if cell.kind == "code"),
        _code(_END),
    ]
    import nbformat

    made = nbformat.from_dict({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory(prefix="gpuplan-kernel-") as private:
        _execute(made, folder, Path(private), source, time_limit_s)
    last = made.cells[-1].outputs
    found: dict[str, Any] = next(
        (output.data[SCENARIOS] for output in last if SCENARIOS in output.get("data", {})), {}
    )
    outputs = iter(cell.outputs for cell in made.cells[1:-1])
    return Ran(
        tuple(next(outputs) if cell.kind == "code" else [] for cell in notebook.cells),
        [(kind, name, mark) for kind, name, mark in found.get("ran", [])],
        int(found.get("more", 0)),
        tuple(found.get("drawn", ())),
    )


def _code(source: str, tags: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "source": source,
        "metadata": {"tags": list(tags)},
        "outputs": [],
        "execution_count": None,
    }


def _execute(made: Any, folder: Path, private: Path, source: str, limit_s: float) -> None:
    for package in _NEEDED:
        try:
            __import__(package)
        except ModuleNotFoundError as error:
            raise missing(package) from error
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    began = time.monotonic()
    client = _client(made, private, folder, lambda _: max(1, int(limit_s - (time.monotonic() - began))))
    number = 0
    try:
        with _kernel(client, private, source):
            for number, cell in enumerate(made.cells):
                client.execute_cell(cell, number)
    except CellExecutionError as error:
        raise _failed(source, number, len(made.cells), f"{error.ename}: {_first(error.evalue)}") from error
    except CellTimeoutError as error:
        rule = f"was not done when {limit_s:g} s were over for the whole notebook (--time-limit gives more)"
        raise _failed(source, number, len(made.cells), rule) from error
    except DeadKernelError as error:
        rule = "ended the kernel: it left, or the memory was full"
        if client.said > MOST_OUTPUT:
            rule = f"said more than {MOST_OUTPUT // 1_000_000} million characters: a report is for people"
        raise _failed(source, number, len(made.cells), rule) from error


def _first(text: str) -> str:
    """The message of an error on one line, its mistakes included."""
    return shorten("; ".join(line.strip() for line in text.strip().split("\n") if line.strip()), 2000)


def _failed(source: str, number: int, n_cells: int, rule: str) -> InputError:
    where = f"code cell {number}" if 0 < number < n_cells - 1 else "kernel"
    return InputError(source, [Mistake(where, rule)])


@contextmanager
def _kernel(client: Any, private: Path, source: str) -> Iterator[None]:
    # Startup files and settings of whoever runs it are not part of a notebook; texts are hashed alike in every run.
    settings = {
        "IPYTHONDIR": str(private),
        "PYTHONHASHSEED": "0",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    }
    started = False
    try:
        with client.setup_kernel(env={**os.environ, **settings}):
            started = True
            yield
    except (OSError, RuntimeError) as error:
        if started:
            raise
        raise InputError(source, [Mistake("kernel", f"does not start: {_first(str(error))}")]) from error


def _client(made: Any, private: Path, folder: Path, timeout: Any) -> Any:
    """A client whose kernel is this very Python, whatever kernels are installed beside it."""
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from jupyter_core.utils import ensure_async
    from nbclient import NotebookClient

    class Client(NotebookClient):
        """Counts what is said, and stops a kernel that says too much."""

        said = 0
        _stopping: Any = None

        def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
            if self.said > MOST_OUTPUT:
                return None
            content = msg.get("content", {})
            for part in (content.get("text"), *content.get("data", {}).values()):
                self.said += len(part) if isinstance(part, str) else len(str(part)) if part else 0
            if self.said > MOST_OUTPUT and self.km is not None:
                self._stopping = asyncio.ensure_future(ensure_async(self.km.shutdown_kernel(now=True)))
            return super().process_message(msg, cell, cell_index)

    manager = AsyncKernelManager(
        kernel_name="python3",
        kernel_spec_manager=KernelSpecManager(kernel_dirs=[]),
        connection_file=str(private / "kernel.json"),
    )
    if (
        os.name == "posix" and len(str(private)) < _LONGEST_SOCKET
    ):  # files that others cannot read, instead of ports
        manager.transport, manager.ip = "ipc", str(private / "s")
    client = Client(
        made,
        km=manager,
        timeout_func=timeout,
        record_timing=False,
        coalesce_streams=True,
        shutdown_kernel="immediate",
        startup_timeout=120,
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        resources={"metadata": {"path": str(folder)}},
    )
    client.owns_km = True  # it ends what it starts
    client.log.setLevel("CRITICAL")
    return client
